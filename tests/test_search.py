"""The search of the built pages leads to the right page; needs ``make doc`` and node."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

HTML = Path(__file__).parents[1] / "doc" / "_build" / "html"
PAGES = {
    "anomaly": "outliers",
    "BernoulliRBM": "migration",
    "categorical": "tables",
    "contrastive divergence": "rbm",
    "Dask": "scale",
    "feature importance": "networks",
    "imputation": "tables",
    "save model": "how_to/save_and_load",
    "synthetic data": "samples",
}


@pytest.mark.slow
def test_the_right_page_is_first_or_second():
    if not (HTML / "searchindex.js").is_file() or not shutil.which("node"):
        pytest.skip("no pages, or no node")
    command = ["node", Path(__file__).with_name("search.js"), HTML, *PAGES]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    first = {query: pages[:2] for query, pages in map(json.loads, found.splitlines())}
    wrong = {q: first[q] for q, page in PAGES.items() if f"user_guide/{page}" not in first[q]}
    assert wrong == {}
