"""New sequences of the SAM riboswitch by an RBM and by adabmDCA, a Boltzmann machine of all pairs.

How well drawn sequences have the covariances of letters at two sites, those of the family with its
weights: their correlation, by which the field judges a generative model. And how many of the 20
pairs of sites with the highest scores are base pairs, by adabmDCA and by the network that has no
sequences to draw, of sites four or more apart. adabmDCA has 1,000 chains and runs on the processor
in PyTorch, once for about as long as the RBM and once for `--steps`. It is skipped without
adabmDCA.
"""

import tempfile
from functools import partial
from pathlib import Path

import _path  # noqa: F401
import numpy as np
from _common import MissingData, make_parser, print_table, processor_timed, report, script
from threadpoolctl import threadpool_limits

from sklearn_boltz import SDCPRBM, FVBMPseudoLikelihood
from sklearn_boltz.datasets import load_sam_riboswitch
from sklearn_boltz.metrics import sequence_weights


def covariances(codes, weights=None):
    """Of letters at two sites."""
    sites = codes.shape[1]
    one_hot = np.eye(5)[codes].reshape(len(codes), -1)
    apart = np.kron(1 - np.eye(sites), np.ones((5, 5))) > 0
    return np.cov(one_hot.T, aweights=weights)[apart]


def base_pairs(family, scores):
    """How many of the first 20 pairs are base pairs."""
    known = np.zeros(scores.shape, dtype=bool)
    known[tuple(family.contacts.T)] = True
    pairs = np.triu_indices(len(scores), 4)
    return int(known[pairs][np.argsort(-scores[pairs])[:20]].sum())


def by_rbm(family, weights):
    rbm = SDCPRBM(columns=range(5), random_state=0, n_jobs=1)
    rbm.fit(family.codes, sample_weight=weights)
    return rbm.sample(1000, random_state=0).astype(int), None


def by_adabmdca(family, n_steps):
    from adabmDCA.api.training import train_model

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "family.fasta"
        path.write_text("".join(f">{k}\n{''.join(row)}\n" for k, row in enumerate(family.letters)))
        result = train_model(
            path, alphabet=family.alphabet, device="cpu", n_chains=1000, max_gradient_steps=n_steps
        )
    return result.chains.argmax(-1).numpy(), result.model.compute_contact_map()


@script
def main():
    parser = make_parser(__doc__)
    parser.add_argument("--steps", type=int, default=500)
    args = parser.parse_args()
    try:
        import adabmDCA
        import torch
    except ImportError as error:
        raise MissingData(str(error)) from error
    torch.set_num_threads(1)
    family = load_sam_riboswitch()
    weights = sequence_weights(family.codes)
    of_family = covariances(family.codes, weights)
    title, rows = "New sequences of the SAM riboswitch, beside adabmDCA", []

    def measure(name, way):
        (codes, scores), seconds = processor_timed(way)
        r = np.corrcoef(of_family, covariances(codes))[0, 1]
        pairs = "" if scores is None else base_pairs(family, np.asarray(scores))
        rows.append([name, f"{seconds:.0f}", f"{r:.2f}", pairs])
        return seconds

    with threadpool_limits(1), report(args.output / "adabmdca.txt", title):
        print(f"adabmDCA {adabmDCA.__version__}, torch {torch.__version__}\n")
        seconds = measure("SDCPRBM", partial(by_rbm, family, weights))
        _, of_steps = processor_timed(by_adabmdca, family, 10)
        for n_steps in round(10 * seconds / of_steps), args.steps:
            measure(f"adabmDCA, {n_steps} steps", partial(by_adabmdca, family, n_steps))
        network = FVBMPseudoLikelihood(columns=range(5))
        network, seconds = processor_timed(network.fit, family.codes, sample_weight=weights)
        found = base_pairs(family, network.interaction_scores())
        rows.append(["FVBMPseudoLikelihood", f"{seconds:.0f}", "", found])
        print_table(["", "seconds", "correlation", "base pairs of 20"], rows)
