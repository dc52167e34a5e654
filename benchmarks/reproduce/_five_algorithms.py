"""Figures 3 and 4 of the S-DCP paper: five algorithms at two learning rates on one data set."""

from _bench import compare, reproduction, settings
from _large_sets import COMPARED, FULL, QUICK, curve, draw, keep, load, paper_and_here


def reproduce(name, figure, description, claims):
    """Run and keep one of the two figures.

    Parameters
    ----------
    name : {"mnist", "omniglot"}
    figure : int
    description : str
    claims : callable
        (ends, args) -> rows of the comparison, with `ends` by (algorithm, rate).
    """
    args = settings(description, FULL | dict(rates=[0.01, 0.05]), QUICK)
    X, X_test = load(name, args)
    with reproduction(f"sdcp_figure{figure}", f"S-DCP, Figure {figure}: {name.upper()}", args):
        curves = {
            (algorithm, rate): curve(X, X_test, options | dict(learning_rate=rate), args)
            for rate in args.rates
            for algorithm, options in COMPARED.items()
        }
        keys = {f"{algorithm}, rate {rate:g}": (algorithm, rate) for algorithm, rate in curves}
        found = keep({label: curves[key] for label, key in keys.items()}, args)
        ends = {keys[label]: values for label, values in found.items()}
        compare(args, [paper_and_here(args), *claims(ends, args)])
    draw({f"{name.upper()}, learning rate {rate:g}": {a: curves[a, rate] for a in COMPARED}
          for rate in args.rates}, args)  # fmt: skip
