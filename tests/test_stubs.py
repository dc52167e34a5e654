"""Type stubs are those of the code, and a user's script passes mypy."""

import subprocess
import sys
from pathlib import Path

import pytest

import stubs

SCRIPT = """
import numpy as np
from sklearn_boltz import BoltzmannImputer, FVBMPseudoLikelihood, SDCPRBM, statistics
from sklearn_boltz.datasets import load_penguins

penguins = load_penguins()
filled = BoltzmannImputer(how="mean", random_state=0).fit_transform(penguins)
model = FVBMPseudoLikelihood(alpha=0.1).fit(penguins)
score: float = model.score(penguins)
edges = statistics.inference(model, penguins).to_frame("holm")
rows = SDCPRBM.for_features(8, random_state=0).fit(np.eye(4)).sample(3)
print(filled.shape, score, len(edges), rows, model.coupling_, model.alpha)
"""


@pytest.mark.parametrize("module", stubs.MODULES)
def test_stubs_are_those_of_the_code(module):
    if not stubs.path(module).is_file():
        pytest.skip("the sources are not here")
    assert stubs.path(module).read_text(encoding="utf-8") == stubs.stub(module), "run `make stubs`"


@pytest.mark.slow
def test_mypy_passes_a_script_and_finds_an_error(tmp_path):
    pytest.importorskip("mypy")
    root = Path(stubs.__file__).parents[1]

    def errors(script):
        (tmp_path / "script.py").write_text(script)
        command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent"]
        command += ["--disable-error-code=import-untyped", tmp_path / "script.py"]
        run = subprocess.run(
            command, capture_output=True, text=True, cwd=tmp_path, env={"MYPYPATH": str(root)}
        )
        return [line for line in run.stdout.splitlines() if line.startswith("script.py")]

    assert errors(SCRIPT) == []
    assert len(errors(SCRIPT.replace("alpha=0.1", "alpha=[]"))) == 1
