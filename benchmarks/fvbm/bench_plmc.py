"""Networks of alignments beside plmc, the program in C by which contacts are predicted.

The same sequences, weights by the same rule (80 % of the letters) and the same penalty, in one
thread: seconds of processor, and whether the scores of pairs agree. `--plmc` is the program, as
`make all32` builds it: https://github.com/debbiemarkslab/plmc. It ends after 100 iterations, or
where single precision does; ours by the default `tol`, where an iteration raises the log
pseudo-likelihood of all rows by less than 1e-5 nats. One alignment is real, the SAM riboswitch; the
other one has the size of a protein family.
"""

import resource
import shutil
import subprocess
import tempfile
from pathlib import Path

import _path  # noqa: F401
import numpy as np
from _common import (
    MissingData,
    make_parser,
    print_check,
    print_table,
    processor_timed,
    report,
    script,
)

from sklearn_boltz import FVBMPseudoLikelihood
from sklearn_boltz.datasets import load_sam_riboswitch, make_alignment
from sklearn_boltz.metrics import sequence_weights


def seconds_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def by_plmc(program, family, strength, folder):
    """Pairs (i, j) with their scores, of shape (n_pairs, 3)."""
    lines = [f">{k}\n{''.join(letters)}\n" for k, letters in enumerate(family.letters)]
    (folder / "family.fasta").write_text("".join(lines))
    options = ["-a", family.alphabet, "-le", str(strength), "-lh", "0.01", "-m", "100"]
    command = [program, "-c", folder / "scores", *options, folder / "family.fasta"]
    subprocess.run(command, check=True, capture_output=True)
    return np.genfromtxt(folder / "scores", usecols=(0, 2, 5))


def by_us(family, strength):
    """Scores of all pairs of sites."""
    weights = sequence_weights(family.codes)
    # Couplings e of plmc are 2 m of ours, so that λ e² = ½ α N m².
    model = FVBMPseudoLikelihood(
        columns=range(len(family.alphabet)), alpha=8 * strength / weights.sum()
    )
    return model.fit(family.codes, sample_weight=weights).interaction_scores()


@script
def main():
    parser = make_parser(__doc__)
    parser.add_argument("--plmc", default=shutil.which("plmc"), help="the program")
    args = parser.parse_args()
    if args.plmc is None:
        raise MissingData("there is no program plmc")
    protein = make_alignment(13_600, 53, n_steps=20, random_state=0)
    tables = {"SAM riboswitch": load_sam_riboswitch(), "simulated protein": protein}
    rows = []
    with report(args.output / "plmc.txt", "Networks of alignments beside plmc"):
        for name, family in tables.items():
            n_sequences, n_sites = family.codes.shape
            strength = 0.2 * (n_sites - 1)
            before = seconds_of_children()
            with tempfile.TemporaryDirectory() as folder:
                i, j, theirs = by_plmc(args.plmc, family, strength, Path(folder)).T
            of_plmc = seconds_of_children() - before
            scores, ours = processor_timed(by_us, family, strength)
            r = np.corrcoef(theirs, scores[i.astype(int) - 1, j.astype(int) - 1])[0, 1]
            rows.append([name, n_sequences, n_sites, len(family.alphabet), of_plmc, ours, r])
        header = ["", "sequences", "sites", "letters", "plmc, s", "ours, s",
                  "correlation of scores"]  # fmt: skip
        print_table(header, rows, ",,,.1f,.1f,.4f")
        for name, *_, of_plmc, ours, _ in rows:
            print_check(f"{name}: times the seconds of plmc", "<= 1", f"{ours / of_plmc:.2f}",
                        ours <= of_plmc)  # fmt: skip
