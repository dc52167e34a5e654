"""Alignments: what is read and how it is weighted against plmc and plmDCA, and the time it takes.

Needs the alignments in --data: DHFR and potts3 are examples of plmc, see _plmc.py, the third is
example 1 of https://github.com/magnusekeberg/plmDCA. With plmc, by --plmc or on the PATH, its
weights and scores are computed and its iterations timed, in double precision on one thread.
"""

from dataclasses import dataclass

import _path  # noqa: F401
import numpy as np
from _common import make_parser, print_check, print_table, report, run_script, timed
from _data import alignment_file, load_alignment

from fvbm._plmc import find_plmc, run_plmc
from sklearn_boltz.metrics import sequence_weights


@dataclass
class Case:
    """An alignment, and what other programs found."""

    name: str
    shape: tuple  # sequences and columns
    n_effective: float = None
    tolerance: float = None  # as many digits as they give
    distinct: bool = False  # whether repetitions are left out first
    plmc: tuple = None  # its options

    def read(self, folder):
        """The alignment, and the rows that the other program weighs."""
        alignment = load_alignment(self.name, folder)
        rows = alignment.codes
        if self.distinct:
            rows = np.unique(alignment.letters, axis=0)
        return alignment, rows


CASES = [
    Case(
        "DHFR", (3616, 159), 1568.104282573092, 1e-9,
        plmc=("-le", "16.0", "-lh", "0.01", "-g", "-f", "DYR_ECOLI"),
    ),
    Case("plmDCA", (3090, 53), 1478.2347, 5e-5, distinct=True),
    # The rows are independent samples: no weights.
    Case("potts3", (500, 60), plmc=("-a", "_*^", "-t", "-1", "-le", "1.0", "-lh", "1.0")),
]  # fmt: skip


def reading_and_weights(case, folder):
    """The alignment, its weights and a row of the table; checks of shape and sum of weights."""
    (alignment, rows), read_seconds = timed(case.read, folder)
    weights, seconds = timed(sequence_weights, rows)
    shape = alignment.codes.shape
    print_check(f"{case.name}: rows, columns", case.shape, shape, shape == case.shape)
    if case.n_effective is not None:
        error = abs(weights.sum() - case.n_effective)
        print_check(
            f"{case.name}: effective number of rows",
            f"{case.n_effective} within {case.tolerance:g}",
            f"{weights.sum():.12g}",
            error <= case.tolerance,
        )
    return alignment, weights, [case.name, *shape, f"{read_seconds:.2f}", f"{seconds:.2f}"]


def beside_plmc(case, program, folder, n_iterations, alignment, weights):
    """A fit by plmc: a row of the table; checks of weights and scores."""
    run = run_plmc(program, alignment_file(case.name, folder), case.plmc, n_iterations)
    if case.n_effective is not None:
        largest = np.abs(run.weights[alignment.rows] - weights).max()
        print_check(f"{case.name}: weights of plmc", "<= 1e-15", f"{largest:.1e}", largest <= 1e-15)
    columns = sorted({column for pair in run.scores for column in pair})
    print_check(
        f"{case.name}: columns of plmc", "the same", len(columns),
        columns == alignment.columns.tolist(),
    )  # fmt: skip
    # `run.scores` is what interaction scores of a fit with the same penalties compare with, by rank
    # unless both converged; `run.seconds / run.n_iterations` is what an iteration compares with.
    return [
        case.name, run.n_iterations, f"{run.seconds:.1f}",
        f"{run.seconds / run.n_iterations:.3f}", f"{run.other_seconds:.2f}",
    ]  # fmt: skip


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--plmc", help="the program plmc; without it the PATH is searched")
    parser.add_argument("--iterations", type=int, default=20, help="of plmc, at most")
    args = parser.parse_args()
    program = find_plmc(args.plmc)
    with report(args.output / "alignments.txt", "Alignments, and plmc"):
        rows, peers = [], []
        for case in CASES:
            alignment, weights, row = reading_and_weights(case, args.data)
            rows.append(row)
            if program and case.plmc:
                peers.append(
                    beside_plmc(case, program, args.data, args.iterations, alignment, weights)
                )
        print()
        print_table(["", "rows", "columns", "s to read", "s for weights"], rows)
        if peers:
            header = ["plmc", "iterations", "s", "s an iteration", "s for the rest"]
            print_table(header, peers)
        else:
            print("plmc is not there: see --plmc")


if __name__ == "__main__":
    run_script(main)
