"""Figure 6 of the S-DCP paper: learning rates, and d inner steps of K' transitions with d K' = 24.

On MNIST. The text names the learning rate 0.01 and d = 6, K' = 4 only; the others are chosen
here.

V. Upadhya, P. S. Sastry (2017). "Learning RBM with a DC programming approach". ACML.
"""

import numpy as np
from _bench import compare, reproduction, settings
from _large_sets import FULL, OURS, QUICK, curve, draw, keep, load, paper_and_here

FULL = FULL | dict(rates=[0.01, 0.05, 0.1], inner=[2, 4, 6, 12], rate=0.05)


def main():
    args = settings(__doc__, FULL, QUICK | dict(rates=[0.01, 0.05], inner=[2, 6, 12]))
    X, X_test = load("mnist", args)
    with reproduction("sdcp_figure6", "S-DCP, Figure 6: hyperparameters", args):
        by_rate, by_inner = {}, {}
        for name, options in OURS.items():
            for rate in args.rates:
                at_rate = options | dict(learning_rate=rate)
                by_rate[f"{name}, {rate:g}"] = curve(X, X_test, at_rate, args)
            for d in args.inner:
                scheme = options | dict(n_inner=d, n_gibbs=24 // d, learning_rate=args.rate)
                if d == 6 and args.rate in args.rates:
                    by_inner[f"{name} {d}×4"] = by_rate[f"{name}, {args.rate:g}"]
                else:
                    by_inner[f"{name} {d}×{24 // d}"] = curve(X, X_test, scheme, args)
        ends = keep(by_rate | by_inner, args)
        rows = [paper_and_here(args)]
        for name in OURS:
            slow = by_rate[f"{name}, {min(args.rates):g}"]
            rises = int((np.diff(slow) > 0).sum())
            rows.append((f"{name}, rate {min(args.rates):g}: points that are above the one before",
                         "most", f"{rises} of {len(slow) - 1}",
                         rises > 0.5 * (len(slow) - 1)))  # fmt: skip
            order = [ends[f"{name} {d}×{24 // d}"][0] for d in args.inner]
            first = [by_inner[f"{name} {d}×{24 // d}"][0] for d in args.inner]
            rows.append((f"{name}, d = {', '.join(map(str, args.inner))}: first point",
                         "the larger d, the faster", ", ".join(f"{x:.1f}" for x in first),
                         first == sorted(first)))  # fmt: skip
            rows.append((f"{name}, the same after {args.epochs} epochs", "the same in the end",
                         ", ".join(f"{x:.1f}" for x in order),
                         max(order) - min(order) < 3 if args.epochs >= 200 else None))  # fmt: skip
        compare(args, rows)
    draw({"learning rate": by_rate, f"d×K', learning rate {args.rate:g}": by_inner}, args)


if __name__ == "__main__":
    main()
