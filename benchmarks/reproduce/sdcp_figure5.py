"""Figure 5 of the S-DCP paper: stochastic spectral descent on MNIST, batches of 1,000.

SSD takes 25 transitions for a step, S-DCP and CS-DCP 6 × 4. The text does not give the learning
rates; those of --rates (S-DCP and the others; SSD) were found by trying a few.

V. Upadhya, P. S. Sastry (2017). "Learning RBM with a DC programming approach". ACML.
"""

import _path  # noqa: F401
from _common import script
from _sdcp import COMPARED, Curve, image_settings, reproduce_images


def curves(args):
    """The five algorithms, and stochastic spectral descent."""
    rate, spectral_rate = args.rates
    options = {name: COMPARED[name] | dict(learning_rate=rate) for name in COMPARED}
    options["SSD"] = dict(n_inner=1, n_gibbs=25, spectral=True, learning_rate=spectral_rate)
    panel = f"MNIST, batches of {args.batch:,}"
    return {name: Curve(panel, o) for name, o in options.items()}


def claims(paths, ends, args):
    """What the paper says of its figure."""
    last = {name: value for name, (value, _) in ends.items()}
    others = max(last[name] for name in ("CD-24", "PCD-24", "CG-24"))
    falls = paths["SSD"].max() - paths["SSD"][-1]
    return [
        ("SSD and CS-DCP", "similar", f"{last['SSD']:.1f} and {last['CS-DCP']:.1f}",
         abs(last["SSD"] - last["CS-DCP"]) < 5),
        ("the best of CD, PCD, CG", "below SSD and CS-DCP", f"{others:.1f}",
         others < min(last["SSD"], last["CS-DCP"])),
        ("SSD by its best point in the end", "begins to diverge after 250 epochs",
         f"{falls:.1f} nats below", falls > 1 if args.epochs >= 250 else None),
    ]  # fmt: skip


@script
def main():
    args = image_settings(
        __doc__,
        full=dict(batch=1_000, epochs=250, rates=[0.05, 0.01]),
        quick=dict(batch=1_000, rows=5_000, epochs=12, rates=[0.2, 0.01]),
    )
    reproduce_images(5, "batches of 1,000", args, curves=curves, claims=claims, batch=1_000,
                     epochs=250)  # fmt: skip
