"""Figure 5 of the S-DCP paper: stochastic spectral descent on MNIST, batches of 1,000.

SSD takes 25 transitions for a step, S-DCP and CS-DCP 6 × 4. The text does not give the learning
rates; those of --rates (S-DCP and the others; SSD) were found by trying a few.

V. Upadhya, P. S. Sastry (2017). "Learning RBM with a DC programming approach". ACML.
"""

from _bench import compare, reproduction, settings
from _large_sets import COMPARED, FULL, QUICK, curve, draw, keep, load, paper_and_here

FULL = FULL | dict(batch=1_000, epochs=250, rates=[0.05, 0.01])
QUICK = QUICK | dict(batch=1_000, rows=5_000, epochs=12, rates=[0.2, 0.01])


def main():
    args = settings(__doc__, FULL, QUICK)
    X, X_test = load("mnist", args)
    rate, spectral_rate = args.rates
    options = {name: COMPARED[name] | dict(learning_rate=rate) for name in COMPARED}
    options["SSD"] = dict(n_inner=1, n_gibbs=25, optimizer="ssd", learning_rate=spectral_rate)
    with reproduction("sdcp_figure5", "S-DCP, Figure 5: batches of 1,000", args):
        curves = {name: curve(X, X_test, o, args) for name, o in options.items()}
        ends = {name: value for name, (value, _) in keep(curves, args).items()}
        others = max(ends[name] for name in ("CD-24", "PCD-24", "CG-24"))
        falls = curves["SSD"].max() - curves["SSD"][-1]
        compare(args, [
            paper_and_here(args, batch=1_000, epochs=250),
            ("SSD and CS-DCP", "similar", f"{ends['SSD']:.1f} and {ends['CS-DCP']:.1f}",
             abs(ends["SSD"] - ends["CS-DCP"]) < 5),
            ("the best of CD, PCD, CG", "below SSD and CS-DCP", f"{others:.1f}",
             others < min(ends["SSD"], ends["CS-DCP"])),
            ("SSD by its best point in the end", "begins to diverge after 250 epochs",
             f"{falls:.1f} nats below", falls > 1 if args.epochs >= 250 else None),
        ])  # fmt: skip
    draw({f"MNIST, batches of {args.batch:,}": curves}, args)


if __name__ == "__main__":
    main()
