"""RBMs of other libraries and other densities, side by side in one run.

    python bench_peers.py --data DIR [--sets mnist nltcs faces] [--seconds 20] [--rates 0.1 0.02]

Each machine trains for the same seconds on the same rows, in turns of a few epochs, so that all
see the same load; ratios of the seconds of an epoch are medians over the turns. `BernoulliRBM` is
scikit-learn's; `rbms` and `learnergy` (both on PyTorch) are skipped where they are not installed.
Mini-batches have 100 rows and chains make one transition, except for CS-DCP. What they learn is
judged by this library: the parameters go into an `SDCPRBM`, whose likelihood is exact for few
variables, else estimated by AIS and by RAISE: where they agree there is nothing against them.

On the way from the gradient to the step the libraries differ: `rbms` divides the gradient by its
length, so that the rate is the length of a step, of which more parameters need more: it gets the
rate of the others times 0.05 √(number of parameters), which suits it on both sets. `learnergy`
computes an error and a pseudo-likelihood of every batch. `rbms.training.pcd.train` also writes to
a file in every step: its steps alone are timed as well.

Faces (CBCL, each pixel standardised) have Gaussian visible units. `learnergy` has two such models,
one with variances of 1 and one that learns them; `rbms` 0.5.0 has none.
"""

import os
import tempfile
from contextlib import redirect_stderr
from functools import partial
from pathlib import Path

import _path  # noqa: F401
import numpy as np
from _baselines import (
    BernoulliRBMPeer,
    as_sdcp_rbm,
    chow_liu,
    independent,
    set_torch_threads,
    smoothed_table,
)
from _common import MissingData, make_parser, print_table, report, run_script, save_table, timed
from _data import load_bits, load_density, load_images
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from rbm.bench_rbm_mnist import evaluate
from sklearn_boltz import SDCPRBM, FSLLDensity, FVBMPseudoLikelihood

BATCH = 100


class Ours:
    """An `SDCPRBM`, by default with the algorithm of the peers."""

    def __init__(self, X, n_hidden, rate, seed, **scheme):
        pcd = dict(n_inner=1, n_gibbs=1, centered=False, persistent=True)
        self.X, self.rate = X, rate
        self.model = SDCPRBM(n_hidden, learning_rate=rate, batch_size=BATCH, max_iter=1)
        # The peers do not follow their likelihood.
        self.model.set_params(track_likelihood=False, warm_start=True, random_state=seed)
        self.model.set_params(**(scheme or pcd))

    def epoch(self):
        self.model.fit(self.X)

    def parameters(self):
        """Weights of shape (n_hidden, n_visible), biases of the visible and hidden units."""
        model = self.model
        return model.components_, model.intercept_visible_, model.intercept_hidden_


class Learnergy:
    """A model of `learnergy`, by its `fit`."""

    def __init__(self, X, n_hidden, rate, seed, kind="RBM", **settings):
        import torch
        from learnergy.models import bernoulli, gaussian

        torch.manual_seed(seed)
        X, self.rate = torch.from_numpy(X), rate
        self.rows = torch.utils.data.TensorDataset(X, torch.zeros(len(X)))
        make = getattr(bernoulli if kind == "RBM" else gaussian, kind)
        self.model = make(X.shape[1], n_hidden, steps=1, learning_rate=rate, **settings)

    def epoch(self):
        self.model.fit(self.rows, batch_size=BATCH, epochs=1)

    def parameters(self):
        model = self.model
        return [x.detach().numpy() for x in (model.W.T, model.a, model.b)]


class OursGaussian(Ours):
    """An `SDCPRBM` with Gaussian visible units."""

    def __init__(self, X, n_hidden, rate, seed, **scheme):
        super().__init__(X, n_hidden, rate, seed, visible="gaussian", **scheme)

    def parameters(self):
        """Those of `Ours`, and the precision of each visible unit."""
        return *super().parameters(), self.model.precision_visible_


class LearnergyGaussian(Learnergy):
    """Its energy is Σ (v - a)² / (2 σ²) - Σ softplus(b + W v / σ²), with σ = 1 or learned."""

    def parameters(self):
        weights, means, hidden = super().parameters()
        sigma = getattr(self.model, "sigma", None)
        precision = np.ones_like(means) if sigma is None else sigma.detach().numpy() ** -2.0
        return weights * precision, means * precision, hidden, precision


class _Rbms:
    """What the two ways to train `rbms` share."""

    def __init__(self, X, n_hidden, rate, seed):
        import torch
        from rbms.dataset.dataset_class import RBMDataset

        torch.manual_seed(seed)
        n, self.n_hidden, self.seed = len(X), n_hidden, seed
        n_parameters = (X.shape[1] + 1) * (n_hidden + 1) - 1
        self.rate = 0.05 * rate * n_parameters**0.5
        self.rows = RBMDataset(
            X, np.zeros(n), np.ones(n), np.arange(n).astype(str), "rows", True, "cpu"
        )
        self.n_batches = n // BATCH

    def parameters(self):
        params = self.params()
        return [x.numpy() for x in (params.weight_matrix.T, params.vbias, params.hbias)]


class RbmsTrain(_Rbms):
    """`rbms.training.pcd.train`, which goes on from the file of the epoch before."""

    def __init__(self, X, n_hidden, rate, seed):
        super().__init__(X, n_hidden, rate, seed)
        self.folder, self.n_updates = tempfile.TemporaryDirectory(), 1

    def epoch(self):
        import torch
        from rbms.training.pcd import train

        first = self.n_updates == 1
        self.n_updates += self.n_batches - first  # the file of the first model is update 1
        self.args = dict(
            filename=str(Path(self.folder.name) / "rbm.h5"), restore=not first, overwrite=True,
            num_updates=self.n_updates, num_hiddens=self.n_hidden, learning_rate=self.rate,
            batch_size=BATCH, num_chains=BATCH, gibbs_steps=1, seed=self.seed, beta=1.0,
            no_center=False, training_type="pcd", train_size=1.0, test_size=0.0, L1=0.0, L2=0.0,
            device=torch.device("cpu"), dtype=torch.float32, log=False,
        )  # fmt: skip
        last = np.array([self.n_updates])
        with open(os.devnull, "w") as nowhere, redirect_stderr(nowhere):  # its progress bar
            train(self.rows, self.rows, "BBRBM", self.args, torch.float32, last)

    def params(self):
        from rbms.io import load_params

        args = self.args
        return load_params(args["filename"], self.n_updates, args["device"], args["dtype"])


class RbmsSteps(_Rbms):
    """`rbms.training.pcd.fit_batch_pcd`, the steps of `train` without its file."""

    def __init__(self, X, n_hidden, rate, seed):
        super().__init__(X, n_hidden, rate, seed)
        import torch
        from rbms.bernoulli_bernoulli.classes import BBRBM

        self.model = BBRBM.init_parameters(n_hidden, self.rows, "cpu", torch.float32)
        self.model.init_grad()
        self.chains = self.model.init_chains(BATCH)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=self.rate, maximize=True)

    def epoch(self):
        import torch
        from rbms.training.pcd import fit_batch_pcd

        with torch.no_grad():
            for rows in torch.randperm(len(self.rows))[: self.n_batches * BATCH].split(BATCH):
                batch = (self.rows.data[rows], self.rows.weights[rows])
                self.optimizer.zero_grad(set_to_none=False)
                self.chains, _ = fit_batch_pcd(batch, self.chains, self.model, 1, 1.0)
                self.optimizer.step()

    def params(self):
        return self.model


def scikit_learn(X, n_hidden, rate, seed):
    """`BernoulliRBM`, an epoch at a time."""
    peer = BernoulliRBMPeer(X, n_hidden, learning_rate=rate, batch_size=BATCH, seed=seed)
    peer.rate = rate
    return peer


# The first is what the others are compared to.
PEERS = {
    "SDCPRBM, PCD-1": Ours,
    "SDCPRBM, centred PCD-1": partial(Ours, n_inner=1, n_gibbs=1, persistent=True),
    "SDCPRBM, CS-DCP 6×4": partial(Ours, n_inner=6, n_gibbs=4),
    "BernoulliRBM, PCD-1": scikit_learn,
    "rbms train(), centred PCD-1": RbmsTrain,
    "rbms steps, centred PCD-1": RbmsSteps,
    "learnergy, CD-1": Learnergy,
}
CD_1 = dict(n_inner=1, n_gibbs=1, centered=False, persistent=False)
GAUSSIAN_PEERS = {
    "SDCPRBM, CD-1": partial(OursGaussian, **CD_1),
    "SDCPRBM, CS-DCP 6×4": partial(OursGaussian, n_inner=6, n_gibbs=4),
    "learnergy GaussianRBM, CD-1": partial(
        LearnergyGaussian, kind="GaussianRBM", normalize=False, input_normalize=False
    ),
    "learnergy VarianceGaussianRBM, CD-1": partial(LearnergyGaussian, kind="VarianceGaussianRBM"),
}


def make_peers(kinds, X, n_hidden, rates, seed):
    """A fresh peer for each (name, rate), and why some are missing."""
    peers, missing = {}, {}
    for name, make in kinds.items():
        try:
            peers |= {(name, rate): make(X, n_hidden, rate, seed) for rate in rates}
        except ImportError as error:
            missing[name] = str(error)
    return peers, missing


def train_in_turns(peers, seconds, n_turns):
    """Train all for as long, in turns.

    Returns
    -------
    spent, epochs : dict of ndarray of shape (n_turns,)
        Seconds and epochs of each turn.
    """
    spent = {key: np.zeros(n_turns) for key in peers}
    epochs = {key: np.zeros(n_turns, dtype=int) for key in peers}
    for turn in range(n_turns):
        for key, peer in peers.items():
            # An epoch that took too long is made up for in the next turn.
            while epochs[key][turn] == 0 or spent[key].sum() < seconds * (turn + 1) / n_turns:
                spent[key][turn] += timed(peer.epoch)[1]
                epochs[key][turn] += 1
    return spent, epochs


def compare_rbms(title, X, X_test, n_hidden, args, kinds=PEERS, rates=None):
    """Train, judge and print all RBMs; -> rows of the table."""
    peers, missing = make_peers(kinds, X, n_hidden, rates or args.rates, args.seed)
    spent, epochs = train_in_turns(peers, args.seconds, args.turns)
    reference, header, rows = next(iter(kinds)), ["", "rate"], []
    header += ["epochs", "seconds", "s an epoch", "ratio", "AIS", "RAISE", "std. err."]
    for (name, rate), peer in peers.items():
        pace = spent[name, rate] / epochs[name, rate]
        ratio = np.median(pace / (spent[reference, rate] / epochs[reference, rate]))
        try:
            judged = evaluate(as_sdcp_rbm(peer.parameters(), X.astype(np.float64)), X_test, args)
        except ValueError as error:  # a machine that has diverged
            judged = [np.nan] * 3
            missing[f"the likelihood of {name} at rate {rate}"] = str(error)
        row = [f"{epochs[name, rate].sum()}", f"{spent[name, rate].sum():.1f}"]
        row += [f"{np.median(pace):.4f}", f"{ratio:.2f}", *(f"{x:.3f}" for x in judged)]
        rows.append([name, f"{peer.rate:.3g}", *row])
    print(f"{title}: {len(X)} rows, {X.shape[1]} × {n_hidden} units, batches of {BATCH}")
    print_table(header, rows)
    for name, problem in missing.items():
        print(f"{name} skipped: {problem}")
    return rows


def compare_densities(train, valid, test):
    """Seconds and test log-likelihoods of densities without hidden units; -> rows of the table."""
    rows = []
    for name, score in {
        "independent variables": lambda: independent(train, test),
        "Chow-Liu tree": lambda: chow_liu(train, test),
        "smoothed table of counts": lambda: smoothed_table(train, valid, test),
        "FVBMPseudoLikelihood()": lambda: FVBMPseudoLikelihood(binarize=0.5).fit(train).score(test),
        "FSLLDensity()": lambda: FSLLDensity().fit(train).score(test),
        "FSLLDensity(alpha=0.3, tol=3e-5)": lambda: (
            FSLLDensity(alpha=0.3, tol=3e-5).fit(train).score(test)
        ),
    }.items():
        value, seconds = timed(score)
        rows.append([name, "", "", f"{seconds:.2f}", "", "", f"{value:.3f}", "", ""])
    print("Densities without hidden units (seconds with the score)")
    print_table(["", "seconds", "test"], [[row[0], row[3], row[6]] for row in rows])
    return rows


def mnist(args):
    """MNIST, binarised at random."""
    rng = np.random.default_rng(args.seed)
    X, X_test = load_bits("mnist", args.data, args.rows, rng=rng)
    return compare_rbms("MNIST", X, X_test, args.hidden, args)


def nltcs(args):
    """NLTCS, where all likelihoods are exact."""
    train, valid, test = load_density("nltcs", args.data)
    rows = compare_densities(train, valid, test)
    X, X_test = train.astype(np.float32), test.astype(np.float32)
    return rows + compare_rbms("NLTCS, exact", X, X_test, 32, args)


def faces(args):
    """CBCL's faces, with Gaussian visible units."""
    X, X_test, *_ = load_images("cbcl", args.data)
    scaler = StandardScaler().fit(X)
    X, X_test = (scaler.transform(part).astype(np.float32) for part in (X, X_test))
    rates = [rate / 10 for rate in args.rates]
    return compare_rbms("Faces", X, X_test, args.hidden, args, GAUSSIAN_PEERS, rates)


SETS = {f.__name__: f for f in (nltcs, mnist, faces)}


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    parser.add_argument("--seconds", type=float, default=20, help="training time of each machine")
    parser.add_argument("--turns", type=int, default=5, help="into which it is cut")
    parser.add_argument("--rates", nargs="+", type=float, default=[0.1, 0.02])
    parser.add_argument("--rows", type=int, default=10_000, help="training rows of MNIST")
    parser.add_argument("--hidden", type=int, default=100, help="hidden units for MNIST")
    parser.add_argument("--temperatures", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    if args.data is None:
        print("bench_peers: MNIST and faces skipped, they need --data")
        args.sets = [name for name in args.sets if name == "nltcs"]
    header = ["model", "rate", "epochs", "seconds", "seconds_per_epoch", "ratio"]
    header += ["ais_or_exact", "raise", "standard_error"]
    for name in args.sets:
        file = args.output / f"peers_{name}.txt"
        with threadpool_limits(args.threads), report(file, "Peers, in one run"):
            set_torch_threads(args.threads)
            try:
                rows = SETS[name](args)
            except MissingData as error:
                print(f"{name} skipped: {error}")
                continue
        save_table(file.with_suffix(".csv"), header, rows)


if __name__ == "__main__":
    run_script(main)
