"""Restricted Boltzmann machines of other libraries in the time of `SDCPRBM`.

`SDCPRBM(64)` learns from the digits as bits, and with ``--data`` in ten epochs from 10,000 rows of
MNIST with a single seed. The others have as many units and as many seconds of one processor:
`BernoulliRBM`, `rbms` (centred PCD), `learnergy` (CD-1) and PCD written by hand in PyTorch; what is
not installed is left out. Each has the best of three learning rates, chosen on the test rows, which
no user could do. All likelihoods of test rows are by the same annealed importance sampling, from
the parameters that were learned, and by annealing in reverse from test rows: the lower one counts,
since annealing does not see modes far from the data, as CD-1 leaves them.
"""

import logging
import sys
from functools import partial
from importlib.metadata import version
from time import process_time
from types import SimpleNamespace

import _path  # noqa: F401
import numpy as np
from _baselines import BernoulliRBMPeer, independent, parameters_of, torch_pcd
from _common import (
    log_likelihood,
    make_parser,
    print_table,
    processor_timed,
    report,
    script,
    unconverged_is_fine,
)
from _data import binary, load_bits, load_small_digits
from threadpoolctl import threadpool_limits

from sklearn_boltz import SDCPRBM

N_HIDDEN, BATCH = 64, 50

# Each peer is a function of rows, a rate and a seed; it returns two functions: one makes an epoch,
# the other gives the parameters.


def bernoulli_rbm(X, rate, seed):
    peer = BernoulliRBMPeer(X, N_HIDDEN, learning_rate=rate, batch_size=BATCH, seed=seed)
    return peer.epoch, peer.parameters


def pytorch(X, rate, seed):
    return torch_pcd(X, N_HIDDEN, rate, BATCH, seed)


def learnergy(X, rate, seed):
    import torch
    from learnergy.core.dataset import Dataset
    from learnergy.models.bernoulli import RBM

    logging.disable()  # a line for each epoch
    torch.manual_seed(seed)
    model = RBM(X.shape[1], N_HIDDEN, learning_rate=rate)
    rows = Dataset(torch.from_numpy(X), torch.zeros(len(X)), show_log=False)
    epoch = partial(model.fit, rows, batch_size=BATCH, epochs=1)
    return epoch, lambda: [p.detach().numpy() for p in (model.W.T, model.a, model.b)]


def rbms(X, rate, seed, gibbs_steps):
    """The loop of `rbms.training.pcd.train` without the file that it writes at each step."""
    import torch
    from rbms.bernoulli_bernoulli.classes import BBRBM
    from rbms.training.pcd import fit_batch_pcd

    torch.manual_seed(seed)
    rows, weights = torch.from_numpy(X), torch.ones(len(X), 1)
    model = BBRBM.init_parameters(N_HIDDEN, SimpleNamespace(data=rows), rows.device, rows.dtype)
    model.init_grad()
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, maximize=True)
    chains = model.init_chains(BATCH)

    @torch.no_grad()
    def epoch():
        nonlocal chains
        for batch in torch.randperm(len(rows)).split(BATCH):
            optimizer.zero_grad(set_to_none=False)
            data = rows[batch], weights[batch]
            chains, _ = fit_batch_pcd(data, chains, model, gibbs_steps, beta=1.0)
            optimizer.step()

    return epoch, lambda: [p.numpy() for p in (model.weight_matrix.T, model.vbias, model.hbias)]


# With rates around the best one. Gradients of rbms are divided by their norm.
PEERS = {
    "BernoulliRBM": (bernoulli_rbm, (0.01, 0.03, 0.1)),
    "PyTorch": (pytorch, (0.01, 0.03, 0.1)),
    "learnergy": (learnergy, (0.1, 0.3, 1.0)),
    "rbms, 1 step": (partial(rbms, gibbs_steps=1), (0.1, 0.3, 1.0)),
    "rbms, 10 steps": (partial(rbms, gibbs_steps=10), (0.3, 1.0, 3.0)),
}


def judged(parameters, test):
    """Mean log-likelihood of test rows by AIS and by RAISE, and twice the standard error of AIS."""
    model = SDCPRBM.from_parameters(*map(np.ascontiguousarray, parameters))
    ladder = {"n_chains": 100, "n_temperatures": 10_000}
    ais, by_raise, error = log_likelihood(model, test, reverse=True, **ladder)
    return ais, by_raise, 2 * error


def trained(peer, X, test, seconds, **settings):
    """-> Epochs in the seconds, log-likelihood by AIS and by RAISE, error of the former."""
    peer(X, **settings)[0]()  # compiles what is compiled when it is first called
    epoch, parameters = peer(X, **settings)
    start, n_epochs = process_time(), 0
    while process_time() - start < seconds:
        epoch()
        n_epochs += 1
    return n_epochs, *judged(parameters(), test)


def compare(X, test, seeds, **params):
    """Print the table of one set of rows."""
    found, times = [], []
    for seed in seeds:
        fit = SDCPRBM(N_HIDDEN, random_state=seed, n_jobs=1, **params).fit
        model, seconds = processor_timed(fit, X)
        found.append([model.n_iter_, *judged(parameters_of(model), test)])
        times.append(seconds)
    table = [["SDCPRBM", "auto", *np.mean(found, axis=0)]]
    for name, (peer, rates) in PEERS.items():
        peer = partial(trained, peer, X, test)
        try:
            found = [
                [name, rate, *np.mean([peer(times[s], rate=rate, seed=s) for s in seeds], 0)]
                for rate in rates
            ]
            table.append(max(found, key=lambda row: min(row[3:5])))
        except ImportError as error:
            print(f"{name} left out: {error}")
    table.append(["independent pixels", "", 0, *[independent(X, test)] * 2, 0.0])
    print(f"{len(X)} rows, {N_HIDDEN} units, {np.mean(times):.1f} seconds, seeds: {len(seeds)}")
    print_table(["", "rate", "epochs", "by AIS", "by RAISE", "error"], table, ",.0f,.2f,.2f,.2f")


@script
def main():
    parser = make_parser(__doc__, seeds=3)
    parser.add_argument("--rows", type=int, default=10_000, help="training rows, at most")
    args = parser.parse_args()
    X = np.random.default_rng(0).permutation(binary(load_small_digits()[0]))
    title = "Restricted Boltzmann machines of other libraries in the same time"
    with unconverged_is_fine(), threadpool_limits(1), report(args.output / "rbm_peers.txt", title):
        compare(X[:-360][: args.rows], X[-360:], range(args.seeds))
        if args.data is not None:
            print("\nMNIST")
            compare(*load_bits("mnist", args.data, args.rows, 1000), range(1), max_iter=10)
        used = [name for name in ("torch", "learnergy", "rbms") if name in sys.modules]
        print(*(f"{name} {version(name)}" for name in used), sep=", ")
