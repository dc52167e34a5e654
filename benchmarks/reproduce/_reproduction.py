"""What the scripts of this folder share.

Each has settings, those of the paper and quick ones; runs; prints the paper's figures and claims
beside what came out; and keeps a report (.txt), the comparison (.csv), the points of its curves
(_curves.csv) and a picture (.png) as ``reproduce_NAME`` in the folder of results.
"""

from contextlib import contextmanager
from datetime import date
from pathlib import Path
from time import perf_counter, process_time

import _path  # noqa: F401
import joblib
import matplotlib.pyplot as plt
from _common import make_parser, print_table, report, save_table, unfinished


def settings(description, full, quick):
    """Options of a script: --data, --output, --quick, --models and one for each setting.

    `full` has all settings, numbers, texts or lists; `quick` those that differ with --quick.
    """
    parser = make_parser(description)
    parser.add_argument("--quick", action="store_true", help="small settings, a minute or two")
    parser.add_argument("--models", type=Path, help="folder of models, to go on with a run")
    for name, value in full.items():
        first = value[0] if isinstance(value, list) else value
        parser.add_argument(
            f"--{name.replace('_', '-')}",
            type=type(first),
            nargs="+" if isinstance(value, list) else None,
            help=f"{value}; quick: {quick.get(name, value)}",
        )
    args = parser.parse_args()
    chosen = full | quick if args.quick else full
    for name, value in chosen.items():
        if getattr(args, name) is None:
            setattr(args, name, value)
    args.settings = list(full)
    return args


@contextmanager
def reproduction(name, title, args):
    """Keep all that is printed in a report, with the settings and the seconds.

    These are of the processor, or, where several processes or a device learn, by the clock.
    """
    args.stem = str(args.output / f"reproduce_{name}")
    elsewhere = getattr(args, "device", "") or getattr(args, "workers", 1) > 1
    args.clock = perf_counter if elsewhere else process_time
    args.start = args.clock()
    with report(Path(f"{args.stem}.txt"), title, lambda: seconds(args)):
        values = {key: getattr(args, key) for key in args.settings}
        print(", ".join(f"{key} {value}" for key, value in values.items()), end="\n\n")
        yield


def seconds(args):
    """Since the start of the script, and for what it took from the folder of models."""
    return args.clock() - args.start


def kept(args, name, make, seconds_of=None):
    """What `make` returns, or an earlier run has kept; its seconds are counted in both cases.

    `seconds_of` gives those of what another script has made in several parts.
    """
    if args.models is None:
        return make()
    path = args.models / f"{name}.joblib"
    if path.exists():
        value, spent = joblib.load(path)
        args.start -= spent if seconds_of is None else seconds_of(value)
        return value
    begin = args.clock()
    value = make()
    args.models.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".part")  # of a run that is stopped while it writes
    joblib.dump((value, args.clock() - begin), unfinished)
    unfinished.replace(path)
    return value


def compare(args, rows):
    """Print and keep rows of what, in the paper, here, and whether they agree, None if open."""
    words = {True: "yes", False: "no", None: ""}
    rows = [[what, paper, here, words[agrees]] for what, paper, here, agrees in rows]
    rows.insert(1, ["date, seconds", "", f"{date.today()}, {seconds(args):,.0f}", ""])
    header = ["", "paper", "here", "agrees"]
    print_table(header, rows)
    save_table(f"{args.stem}.csv", header, rows)


def keep_rows(args, header, rows):
    """Print and keep a table."""
    print_table(header, rows)
    save_table(f"{args.stem}_rows.csv", header, rows)


def keep_curves(args, at, curves, digits):
    """Keep the values of curves by their names at some epochs."""
    values = zip(at, *curves.values(), strict=True)
    rows = [[epoch, *(f"{x:.{digits}f}" for x in row)] for epoch, *row in values]
    save_table(f"{args.stem}_curves.csv", ["epoch", *curves], rows)


def save_picture(figure, path):
    """Write a PNG file."""
    figure.savefig(unfinished(path), dpi=110)
    plt.close(figure)
