"""What more than one benchmark compares with: simple densities, scikit-learn's RBM, denoisers.

Not in `_common`: the processes whose memory is measured import that one, and not all of these
libraries.
"""

from time import process_time

import numpy as np
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.special import logit, logsumexp, softmax
from sklearn.neural_network import BernoulliRBM

from sklearn_boltz import SDCPRBM

# Densities: the mean log-likelihood of test rows of 0 and 1.


def independent(train, test, extra=1.0):
    """Of independent variables, with `extra` rows of each value added to the training rows."""
    p = (train.sum(axis=0, dtype=float) + extra) / (len(train) + 2 * extra)
    return float(np.where(test, np.log(p), np.log1p(-p)).sum(axis=1).mean())


def chow_liu(train, test):
    """Of the tree with the largest total mutual information."""
    n_features = train.shape[1]
    X = np.stack([1.0 - train, train], axis=2)
    # pair[i, a, j, b] = P(x_i = a, x_j = b), one observation spread over the four values.
    pair = (np.einsum("nia,njb->iajb", X, X, optimize=True) + 0.25) / (len(train) + 1)
    single = pair[:, :, 0, :].sum(axis=2)
    log_ratio = np.log(pair / np.multiply.outer(single, single))
    information = (pair * log_ratio).sum(axis=(1, 3))
    # Zero would be no edge, so all weights are made positive.
    tree = minimum_spanning_tree(np.triu(information.max() + 1 - information, 1)).nonzero()
    result = np.log(single)[np.arange(n_features), test].sum(axis=1)
    for i, j in zip(*tree, strict=True):
        result += log_ratio[i, test[:, i], j, test[:, j]]
    return float(result.mean())


class BernoulliMixture:
    """A mixture of products of Bernoulli variables, by EM.

    Each component has `extra` rows more, with the means of the columns. EM ends when `patience`
    steps have not made the validation rows likelier, and the best step counts.
    """

    def __init__(self, n_components, *, extra=1.0, max_iter=500, patience=5, seed=0):
        self.n_components, self.extra = n_components, extra
        self.max_iter, self.patience, self.seed = max_iter, patience, seed

    def fit(self, train, valid):
        X, rng = train.astype(float), np.random.default_rng(self.seed)
        means = (X.sum(axis=0) + 0.5) / (len(X) + 1)
        rows = X[rng.choice(len(X), self.n_components, replace=len(X) < self.n_components)]
        state = np.full(self.n_components, -np.log(self.n_components)), (3 * means + rows) / 4
        best, waited = (-np.inf, state), 0
        for _ in range(self.max_iter):
            share = softmax(_joint(state, X), axis=1)
            weight = share.sum(axis=0)
            p = (share.T @ X + self.extra * means) / (weight + self.extra)[:, np.newaxis]
            state = np.log((weight + 1) / (len(X) + self.n_components)), p
            value = logsumexp(_joint(state, valid), axis=1).mean()
            waited = 0 if value > best[0] else waited + 1
            best = max(best, (value, state), key=lambda found: found[0])
            if waited == self.patience:
                break
        self.state = best[1]
        return self

    def score(self, X):
        return float(logsumexp(_joint(self.state, X), axis=1).mean())


def _joint(state, X):
    """ln P(component, row)."""
    log_weight, p = state
    return X @ logit(p).T + (log_weight + np.log1p(-p).sum(axis=1))


# Restricted Boltzmann machines.


class BernoulliRBMPeer:
    """scikit-learn's `BernoulliRBM`, trained step by step.

    Its fit() would begin anew each time, and its partial_fit() change the type to float64.
    """

    def __init__(self, X, n_hidden, *, learning_rate, batch_size, seed):
        self.X, self.batch_size = X, batch_size
        self.order, self.source = np.random.default_rng(seed), np.random.RandomState(seed)
        self.model = BernoulliRBM(
            n_hidden, learning_rate=learning_rate, batch_size=batch_size, n_iter=0
        )
        self.model.set_params(random_state=seed).fit(X)

    def epoch(self, until=np.inf):
        """Make an epoch of whole mini-batches, or its part until a time; -> rows gone through."""
        order, n_rows = self.order.permutation(len(self.X)), 0
        for first in range(0, len(order) - self.batch_size + 1, self.batch_size):
            self.model._fit(self.X[order[first : first + self.batch_size]], self.source)
            n_rows += self.batch_size
            if process_time() >= until:
                break
        return n_rows

    def train(self, seconds):
        """Go on for this many seconds of the processor; -> epochs, seconds."""
        start, n_rows = process_time(), 0
        while process_time() - start < seconds:
            n_rows += self.epoch(start + seconds)
        return n_rows / len(self.X), process_time() - start

    def parameters(self):
        return parameters_of(self.model)


def parameters_of(model):
    """Weights of shape (n_hidden, n_visible), biases of the visible and hidden units."""
    return model.components_, model.intercept_visible_, model.intercept_hidden_


def as_sdcp_rbm(parameters, X):
    """An `SDCPRBM` with the parameters of another RBM, in the type of X, to judge them alike."""
    weights, visible, hidden = (np.ascontiguousarray(x, X.dtype) for x in parameters)
    model = SDCPRBM(len(weights), max_iter=0, random_state=0).fit(X)
    model.components_, model.intercept_visible_, model.intercept_hidden_ = weights, visible, hidden
    return model


def torch_pcd(X, n_hidden, rate, batch_size, seed=0, n_threads=1, device="cpu"):
    """PCD-1 written by hand in PyTorch: functions that make an epoch and give the parameters."""
    import torch

    torch.set_num_threads(n_threads)
    torch.manual_seed(seed)
    X = torch.asarray(X, device=device)
    W = 0.01 * torch.randn(n_hidden, X.shape[1], device=device)
    shapes = X.shape[1], n_hidden, (batch_size, n_hidden)
    b, c, h = (torch.zeros(shape, device=device) for shape in shapes)

    @torch.no_grad()
    def epoch():
        nonlocal h
        for V in X[torch.randperm(len(X), device=device)].split(batch_size):
            H = torch.sigmoid(torch.addmm(c, V, W.T))
            Vn = torch.bernoulli(torch.sigmoid(torch.addmm(b, h, W)))
            Hn = torch.sigmoid(torch.addmm(c, Vn, W.T))
            W.add_(H.T @ V / len(V) - Hn.T @ Vn / len(Vn), alpha=rate)
            b.add_(V.mean(0) - Vn.mean(0), alpha=rate)
            c.add_(H.mean(0) - Hn.mean(0), alpha=rate)
            h = torch.bernoulli(Hn)

    return epoch, lambda: [p.numpy() for p in (W, b, c)]


# Denoising of bits that were flipped.


def nearest(X, Y):
    """The row of X that differs from each row of Y in the fewest places."""
    return X[(X.sum(axis=1) - 2 * Y @ X.T).argmin(axis=1)]


def pixelwise(X, Y, p):
    """Whether each pixel is likelier on, given its observation and its mean in X alone."""
    prior = logit((X.sum(axis=0) + 0.5) / (len(X) + 1))
    return prior + (2 * Y - 1) * logit(1 - p) > 0
