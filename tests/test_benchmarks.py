"""The benchmarks: scripts can be run and share what they should; pages quote what the logs have.

A passage with measured figures names the logs in ``benchmarks/results`` that have them, in a
comment: ``.. measured: isingfit.txt`` before a paragraph or directive of a page, ``<!-- measured:
isingfit.txt -->`` within a paragraph, item or row of a table in Markdown. All numbers of the
passage must be in these logs, as rounded there or further, whatever their sign; a percentage may be
a fraction there. What is code or part of a name is no figure. Behind the names stand, each after a
semicolon,

* figures that follow from those of the log: ``34 = 9.04 / 0.27``, also with 1, 60 and 100;
* numbers that are no measurements, as sizes and settings: ``settings 50 6,000``.

Instead of a log, ``measured: elsewhere`` says in plain words where figures come from that no script
prints: examples, arithmetic or a paper.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BENCHMARKS = ROOT / "benchmarks"
RESULTS = BENCHMARKS / "results"
FOLDERS = [".", "fvbm", "networks", "rbm", "tables", "reproduce"]

# Each script is imported, then run with --help, as if it were started by its path: the folder of
# the script is the first to be searched, and nothing else leads to the benchmarks. One process for
# all folders, since most of the time would be spent in importing the libraries: a folder does not
# see the modules of the one before.
RUN_ALL = """
import importlib, runpy, sys
from pathlib import Path
benchmarks, *scripts = sys.argv[1:]
elsewhere = sys.path[1:]
folder = None
for path in map(Path, scripts):
    if path.parent != folder:
        folder = path.parent
        sys.path[:] = [str(folder), *elsewhere]
        for name, module in list(sys.modules.items()):
            if (getattr(module, "__file__", None) or "").startswith(benchmarks):
                del sys.modules[name]
    importlib.import_module(path.stem)
    sys.argv = [str(path), "--help"]
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        assert not end.code, path
        print("answered:", path)
"""


@pytest.fixture(scope="module", autouse=True)
def benchmarks_are_there():
    if not BENCHMARKS.is_dir():
        pytest.skip("no benchmarks beside the tests")


def scripts_of(folder):
    """Names of the scripts in a folder; those that begin with _ are no scripts."""
    return sorted(path.stem for path in (BENCHMARKS / folder).glob("[!_]*.py"))


def test_no_folder_is_missed():
    found = {str(path.parent.relative_to(BENCHMARKS)) for path in BENCHMARKS.rglob("*.py")}
    assert found == set(FOLDERS)


def test_scripts_answer_help_from_anywhere(tmp_path):
    scripts = []
    for folder in FOLDERS:
        found = scripts_of(folder)
        assert found
        scripts += [str(BENCHMARKS / folder / f"{name}.py") for name in found]
    command = [sys.executable, "-c", RUN_ALL, str(BENCHMARKS), *scripts]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert re.findall("^answered: (.*)$", ran.stdout, re.MULTILINE) == scripts
    # The mutations of the source learn from no data.
    n_of_data = len(scripts) - sum(Path(script).stem == "mutations" for script in scripts)
    assert ran.stdout.count("[--data DATA]") == n_of_data
    assert not list(tmp_path.iterdir())


# Two scripts, the second of which fails after it has written.
FAILS = """
import sys
from _common import make_parser, report, save_table, script
for divisor in (1, 0):
    @script
    def main():
        output = make_parser(None).parse_args().output / str(divisor)
        with report(output / "log.txt", "One that may fail"):
            save_table(output / "table.csv", ["a"], [[1]])
        1 / divisor
"""


def test_a_script_that_fails_writes_nothing(tmp_path):
    script, results = tmp_path / "bench_this.py", tmp_path / "results"
    script.write_text(FAILS)
    command = [sys.executable, str(script), "--output", str(results)]
    environment = os.environ | {"PYTHONPATH": f"{BENCHMARKS}{os.pathsep}{ROOT}"}
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert ran.returncode == 1 and "ZeroDivisionError" in ran.stderr, ran.stderr
    found = sorted(str(p.relative_to(results)) for p in results.rglob("*") if p.is_file())
    assert found == ["1/log.txt", "1/table.csv"]


# The smallest settings of each script. One that needs data, a program or a device is skipped
# where it is not there.
SMALLEST = {
    "./bench_memory": "--rows 300 --only FSLLDensity SDCPRBM",
    "./bench_scale": "--largest 1e5",
    "fvbm/bench_adabmdca": "--steps 2",
    "fvbm/bench_bgms": "--sweeps 20",
    "fvbm/bench_fvbm_intervals": "--share 0.01",
    "fvbm/bench_fvbm_spikes": "",
    "fvbm/bench_isingfit": "--repeats 1",
    "fvbm/bench_likert": "--networks 1 --sizes 1",
    "fvbm/bench_mgm": "",
    "fvbm/bench_pairs": "--sets attrition",
    "fvbm/bench_plmc": "",
    "fvbm/bench_survey_weights": "--share 0.01",
    "networks/bench_null_tables": "--quick --share 0.02",
    "networks/bench_selection": "--seeds 1",
    "rbm/bench_default_log_partition": "--rows 200 --chains 20 --temperatures 100",
    "rbm/bench_few_labels": "--seeds 1",
    "rbm/bench_gpu": "--rows 200",
    "rbm/bench_log_partition": "--machines 1",
    "rbm/bench_patterns": "--seeds 1 --sets 22-3 --estimators SDCPRBM",
    "rbm/bench_peers": "--seeds 1 --rows 300",
    "rbm/bench_rbm_default": "--parts tuned --seeds 1",
    "rbm/bench_rbm_features": "--seeds 1 --few-rows 500 --rows 500 --hidden 10 --seconds 0.5",
    "rbm/bench_rbm_mnist": "--epochs 1 --hidden 10 --temperatures 50 --every 1",
    "rbm/bench_rbm_speed": "--repeats 1",
    "rbm/bench_rbm_tracking": "--sets digits --temperatures 100",
    "tables/bench_classify": "--seeds 1 --sets vote",
    "tables/bench_curves": "--rows 300 --columns 10",
    "tables/bench_density": "--seeds 1 --sets iris",
    "tables/bench_explain": "--seeds 1 --sets chile",
    "tables/bench_fill": "--rows 1000 --filled 500",
    "tables/bench_how": "--sets iris",
    "tables/bench_impute": "--seeds 1 --sets vote --mixed iris --runs 2",
    "tables/bench_outliers": "--seeds 1 --sets iris",
    "tables/bench_parquet": "--rows 1000",
    "tables/bench_penalty": "--seeds 1",
    "tables/bench_seconds": "--quick",
    "tables/bench_synthetic": "--seeds 1 --sets penguins",
    "tables/bench_twenty": "--seeds 1 --sets nltcs --parts default",
    "reproduce/fsll_table1": "--quick",
    "reproduce/fvbm_errors": "--quick --sets 2",
    "reproduce/fvbm_figure1": "--quick --max-iter 1000",
    "reproduce/infinite_figures1and2": "--quick --rows 200 --components 4 --every 2 --sizes 2 4 "
    "--epochs 4 --trial 1",
    "reproduce/infinite_penalties": "--quick --rows 200 --components 2",
    "reproduce/sdcp_figure5": "--quick --rows 1000 --hidden 10 --epochs 2 --temperatures 50",
    "reproduce/sdcp_figures1and2": "--quick --epochs 4",
    "reproduce/sdcp_figures3and4": "--quick --rows 200 --hidden 10 --epochs 2 --temperatures 50",
    "reproduce/sdcp_figures6and7": "--quick --rows 200 --hidden 10 --epochs 2 --temperatures 50",
    "reproduce/tap_figure10": "--quick --epochs 2",
    "reproduce/tap_figure11": "--quick --rows 200 --test-rows 50 --epochs 2 --pretrain 1",
    "reproduce/tap_figure12": "--quick --rows 500 --hidden 10 --epochs 5 --temperatures 50",
    "reproduce/tap_figures3to7": "--quick --rows 300 --real-rows 200 --epochs 2 --starts 20 "
    "--most 50",
    "reproduce/tap_figures8and9": "--quick --rows 300 --hidden 10 --epochs 1 --images 20 "
    "--neighbours 300",
}


def test_no_script_is_without_its_smallest_settings():
    found = {f"{folder}/{name}" for folder in FOLDERS for name in scripts_of(folder)}
    assert found == set(SMALLEST)


@pytest.mark.slow
@pytest.mark.parametrize("script", SMALLEST)
def test_scripts_run(script, tmp_path, shared_data):
    options = ["--data", str(shared_data), "--output", str(tmp_path), *SMALLEST[script].split()]
    command = [sys.executable, str(BENCHMARKS / f"{script}.py"), *options]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert ran.returncode == 0, ran.stderr
    assert " skipped: " in ran.stdout or list(tmp_path.glob("*.txt"))


# What the pages quote.

PAGES = [
    ROOT / "README.md",
    BENCHMARKS / "README.md",
    *(ROOT / "doc" / name for name in ("index.rst", "how_good.rst")),
    *sorted((ROOT / "doc" / "user_guide").rglob("*.rst")),
    *sorted((ROOT / "doc" / "reproduced").glob("*.rst")),
]
MARKER = re.compile(r"^ *\.\. measured: (.*(?:\n +\S.*)*)|<!-- measured: (.*?) -->", re.MULTILINE)
# Code, roles, links, footnotes and options; then names with digits in them, and powers.
NO_TEXT = re.compile(
    r"``.*?``|`[^`\n]*`|:[\w:-]+:`.*?`|\]\([^)]*\)|https?://\S+|^ *:[\w-]+:.*$|^ *\.\. [\w-]+::",
    re.MULTILINE,
)
NO_FIGURE = re.compile(
    r"[^\W\d_][\w.-]*\d[\w×.-]*|\d+[^\W\d_]\w*|\d+ ?× ?\d+|Figures? [\d to,and]+"
    r"|(?:[\d.]+·)?10⁻?[⁰¹²³⁴-⁹]+"
)
NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+|\d*\.\d+(?:e-?\d+)?|\d+(?:e-?\d+)?")


PER_CENT = re.compile(r"\s*(?:(?:to|and|,|–)\s*[\d.]+\s*)?%")


def numbers(text):
    """The numbers in a text, without their signs, and whether each is a percentage."""
    return [
        (found.group(), bool(PER_CENT.match(text, found.end()))) for found in NUMBER.finditer(text)
    ]


def value(number):
    return float(number.replace(",", ""))


def unit(number):
    """Of the last digit."""
    mantissa, _, exponent = number.partition("e")
    return 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))


def is_in(number, known, percentage=False):
    """Whether a number is one of others, rounded."""
    scales = (1, 100) if percentage else (1,)
    margin = 0.5001 * unit(number)
    return any(abs(scale * other - value(number)) <= margin for other in known for scale in scales)


def passages(text):
    """(marker, passage, line) of each marker in a page."""
    for found in MARKER.finditer(text):
        if found.group(2):
            # In Markdown: a row of a table, an item of a list, or a paragraph.
            begin = max(text.rfind(s, 0, found.start()) for s in ("\n\n", "\n* ", "\n| "))
            ends = [text.find(s, found.end()) for s in ("\n\n", "\n* ", "\n| ")]
            passage = text[begin : min(e if e >= 0 else len(text) for e in ends)]
        else:
            lines = text[found.end() :].lstrip("\n").split("\n")
            inner = " " * (len(lines[0]) - len(lines[0].lstrip()) + 1)
            # A directive with its content, else a paragraph.
            whole = lines[0].lstrip().startswith(".. ")
            n = next(
                (
                    n
                    for n, line in enumerate(lines)
                    if n and not line.startswith(inner) and (line.strip() != "") == whole
                ),
                len(lines),
            )
            passage = "\n".join(lines[:n])
        marker = " ".join((found.group(1) or found.group(2)).split())
        yield marker, passage, text.count("\n", 0, found.start()) + 1


def figures_of(log):
    """The numbers of a log except for those of its header."""
    lines = (RESULTS / log).read_text(encoding="utf-8").split("\n")
    header = ("date: ", "seconds: ")
    text = "\n".join(
        line for line in lines if not line.startswith(header) and "sklearn_boltz " not in line
    )
    return [value(number) for number, _ in numbers(text)]


def unfounded(marker, passage):
    """The figures in a passage that its logs do not have, and what is wrong with its marker."""
    logs, *clauses = [clause.strip() for clause in marker.split(";")]
    if logs.startswith("elsewhere"):
        return []
    known = [figure for log in logs.split() for figure in figures_of(log)]
    settings, problems = [], []
    for clause in clauses:
        if clause.startswith("settings "):
            settings += [value(number) for number in clause.split()[1:]]
            continue
        derived, formula = clause.split(" = ")
        problems += [part for part, _ in numbers(formula) if not is_in(part, [1, 60, 100, *known])]
        if not is_in(derived, [eval(formula.replace(",", ""))]):
            problems.append(clause)
        settings.append(value(derived))
    text = NO_FIGURE.sub(" ", NO_TEXT.sub(" ", MARKER.sub("", passage)))
    problems += [
        number
        for number, percentage in numbers(text)
        if value(number) not in settings and not is_in(number, known, percentage)
    ]
    return problems


def test_pages_quote_what_the_logs_have():
    wrong = {
        f"{page.relative_to(ROOT)}, line {line}": unfounded(marker, text)
        for page in PAGES
        for marker, text, line in passages(page.read_text(encoding="utf-8"))
    }
    assert {place: figures for place, figures in wrong.items() if figures} == {}


# Words beside a number that only a measurement gives.
MEASURED = re.compile(
    r"(?<!\d)\d[\d.,]* (?:s|ms|seconds|minutes|MiB|nats)\b(?! (?:of|for each)\b)|times faster"
)


def unmarked(text):
    """Paragraphs with measured figures that do not name a log."""
    for _, passage, _ in list(passages(text)):
        text = text.replace(passage, "")
    blocks = re.split(r"\n\s*\n", MARKER.sub("", text))
    return [
        block
        for block in blocks
        if ">>>" not in block and MEASURED.search(NO_TEXT.sub(" ", block).replace("*", ""))
    ]


def test_measured_figures_name_their_log():
    found = {str(page.relative_to(ROOT)): unmarked(page.read_text("utf-8")) for page in PAGES}
    assert {page: blocks for page, blocks in found.items() if blocks} == {}


def test_logs_say_version_date_processor_and_seconds():
    lines = [r".* cores, .*, sklearn_boltz [\d.]+", "date: (?:[\\d-]{10}|not recorded.*)"]
    lines.append(r"seconds: (?:\d+|not recorded)")
    for log in RESULTS.glob("*.txt"):
        text = log.read_text(encoding="utf-8")
        for line in lines:
            assert re.search(f"^{line}$", text, re.MULTILINE), (log.name, line)


def test_results_are_read():
    """By a page, which shows or links them, or names them as the source of its figures."""
    pages = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    # The reports, points and comparisons of the papers' figures are kept together.
    kept = {p.name for p in RESULTS.iterdir() if not p.name.startswith("reproduce_")}
    assert {name for name in kept if name not in pages} == set()
