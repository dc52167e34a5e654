"""Figure 7 of the S-DCP paper: batch sizes, and four initialisations (its Table 1), on MNIST.

The weights begin with N(0, 0.001²) or N(0, 0.01²), the biases of the visible units with 0 or with
the log-odds of the means ("base rate"). The text does not give the batch sizes; the learning
rate is 0.01.

V. Upadhya, P. S. Sastry (2017). "Learning RBM with a DC programming approach". ACML.
"""

from _bench import compare, reproduction, settings
from _large_sets import FULL, OURS, QUICK, curve, draw, keep, load, paper_and_here

INITIAL = {  # deviation of the weights, biases of the visible units
    "Init 1": (0.001, 0.0),
    "Init 2": (0.01, 0.0),
    "Init 3": (0.001, None),
    "Init 4": (0.01, None),
}
FULL = FULL | dict(rate=0.01, batches=[50, 100, 200, 500])
# The few steps must be longer to come anywhere.
QUICK = QUICK | dict(rate=0.05, batches=[25, 50, 100])


def main():
    args = settings(__doc__, FULL, QUICK)
    X, X_test = load("mnist", args)
    with reproduction("sdcp_figure7", "S-DCP, Figure 7: batch size and initialisation", args):
        by_batch, by_start = {}, {}
        for name, options in OURS.items():
            for size in args.batches if name == "S-DCP" else []:
                sized = options | dict(learning_rate=args.rate, batch_size=size)
                by_batch[f"{name}, batches of {size}"] = curve(X, X_test, sized, args)
            for start, (deviation, bias) in INITIAL.items():
                started = options | dict(learning_rate=args.rate, weights_init=deviation)
                by_start[f"{name}, {start}"] = curve(X, X_test, started, args, bias)
        ends = {name: value for name, (value, _) in keep(by_batch | by_start, args).items()}
        ends_by_batch = [ends[name] for name in by_batch]
        rows = [paper_and_here(args)]
        rows.append((f"S-DCP, batches of {', '.join(map(str, args.batches))}", "almost the same",
                     ", ".join(f"{x:.1f}" for x in ends_by_batch),
                     max(ends_by_batch) - min(ends_by_batch) < 5
                     if args.epochs >= 200 else None))  # fmt: skip
        for name in OURS:
            values = [ends[f"{name}, {start}"] for start in INITIAL]
            rows.append((f"{name}, Init 1 to 4", "less sensitive",
                         ", ".join(f"{x:.1f}" for x in values),
                         max(values) - min(values) < 5))  # fmt: skip
        compare(args, rows)
    draw({f"batch size, rate {args.rate:g}": by_batch, "initialisation": by_start}, args)


if __name__ == "__main__":
    main()
