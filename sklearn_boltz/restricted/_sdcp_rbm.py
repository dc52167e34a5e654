"""SDCPRBM: an RBM trained by stochastic difference-of-convex programming."""

from numbers import Integral, Real

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from sklearn_boltz._random import Stream, make_generator
from sklearn_boltz.restricted._mini_batches import MiniBatchRBM
from sklearn_boltz.restricted.training._epochs import Training
from sklearn_boltz.restricted.training._monitor import Monitor
from sklearn_boltz.restricted.training._optimizers import OPTIMIZERS
from sklearn_boltz.restricted.training._rows import ColumnSums
from sklearn_boltz.restricted.training._sdcp import Learner, Scheme
from sklearn_boltz.units import Bernoulli


class SDCPRBM(MiniBatchRBM):
    """Bernoulli restricted Boltzmann machine, trained by CS-DCP and its relatives.

    The log-likelihood of an RBM is a difference of two convex functions. For each mini-batch,
    S-DCP linearises one of them and makes several steps of stochastic gradient descent on the
    other, with Markov chains that start at the data and go on from step to step [1]_. At the
    cost of contrastive divergence with as many transitions, it learns faster and gets stuck
    less. CS-DCP, the default, does so with the centred gradient.

    It has the parameters and attributes of :class:`sklearn.neural_network.BernoulliRBM`, and a
    likelihood: `score_samples` is normalised, so that models can be compared and tuned.

    Parameters
    ----------
    n_components : int, default=256
        Number of hidden units.

    learning_rate : float, default=0.05
        Length of a step along the mean gradient.

    learning_rate_schedule : {"constant", "invscaling"}, default="constant"
        With ``"invscaling"``, the learning rate in epoch t = 1, 2, ... is
        ``learning_rate / t ** power_t``. A call of `partial_fit` counts as an epoch.

    power_t : float, default=0.5
        Exponent of the inverse scaling.

    batch_size : int, default=100
        Number of rows of a mini-batch, and of persistent chains.

    max_iter : int or "auto", default="auto"
        Number of epochs. ``"auto"`` makes some 1,500 mini-batches: 10 epochs of many rows, and
        up to 200 of few, or up to 1,000 with `early_stopping`.

    n_inner : int, default=6
        Number of steps for each mini-batch, d in the paper.

    n_gibbs : int, default=4
        Number of Gibbs transitions for each step, K' in the paper.

    centered : bool, default=True
        Whether to use the centred gradient.

    persistent : bool, default=False
        Whether the chains go on from one mini-batch to the next, and not from the data.

    optimizer : {"sgd", "ssd"}, default="sgd"
        ``"ssd"`` is stochastic spectral descent [2]_: it takes a singular value decomposition
        for each step, and wants large mini-batches and small learning rates.

    offset_rate : float, default=0.01
        How fast the offsets of the centred gradient follow the means of the mini-batches.

    momentum : float, default=0.0
        Part of the last step that is added to each.

    weight_decay : float, default=0.0
        Strength of the L2 penalty on the weights.

    weights_init : float, default=0.01
        Standard deviation of the initial weights.

    early_stopping : bool, default=False
        Whether to set rows aside, and to stop when their log-likelihood no longer rises. The
        parameters are then those of the best epoch. The log-likelihood is exact with up to 12
        units in the smaller layer, and otherwise computed by a short run of annealed
        importance sampling.

    validation_fraction : float, default=0.1
        Part of the rows that is set aside for early stopping.

    n_iter_no_change : int, default=10
        Number of epochs without progress after which to stop.

    tol : float, default=1e-3
        What counts as progress, in nats.

    binarize : float, default=None
        If given, a value counts as 1 where it is greater than this threshold and as 0
        elsewhere. If None, values must lie in [0, 1]; those between count as probabilities.

    warm_start : bool, default=False
        Whether `fit` goes on from where the last fit ended, as if it had not been interrupted.

    n_jobs : int, default=None
        Number of threads. None means as many as BLAS uses. The result does not depend on it.

    verbose : int, default=0
        If positive, print a line for each epoch.

    random_state : int, RandomState instance or None, default=None
        The source of randomness: of the first weights, the order of the rows and Markov chains.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The weights.

    intercept_hidden_ : ndarray of shape (n_components,)
        Biases of the hidden units; ordinary ones, whether centred or not.

    intercept_visible_ : ndarray of shape (n_features,)
        Biases of the visible units.

    log_partition_ : float
        Logarithm of the normalising constant, in nats: exact with up to 20 units in the
        smaller layer, else estimated by annealed importance sampling with 100 chains and
        1,000 temperatures. Computed when first asked for.

    history_ : dict of ndarray
        For each epoch of `fit`: ``"reconstruction_error"`` (mean squared difference of a
        pixel), ``"log_pseudo_likelihood"`` (a stochastic estimate on fixed pixels of fixed
        training rows), ``"learning_rate"`` and ``"seconds"``; with `early_stopping`, also
        ``"log_likelihood"`` of the validation rows and ``"free_energy_gap"``, by how much the
        free energy of validation rows exceeds that of training rows.

    n_iter_ : int
        Number of epochs made.

    n_features_in_ : int
        Number of visible units.

    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the visible units, if `X` had names.

    See Also
    --------
    sklearn.neural_network.BernoulliRBM : RBM trained by persistent contrastive divergence.

    Notes
    -----
    The algorithms of the paper are reached by

    ==============================  ======================================================
    contrastive divergence, CD-K    ``n_inner=1, n_gibbs=K, centered=False``
    centred gradient, CG            ``n_inner=1, n_gibbs=K``
    persistent CD, PCD              ``n_inner=1, n_gibbs=1, centered=False, persistent=True``
    S-DCP                           ``centered=False``
    CS-DCP                          the default
    spectral descent, SSD           ``n_inner=1, n_gibbs=25, optimizer="ssd"``
    ==============================  ======================================================

    Integers and booleans are computed with in float32. The fit has the same bits whatever
    the number of threads.

    References
    ----------
    .. [1] V. Upadhya and P. S. Sastry, "Learning RBM with a DC programming approach", ACML
       2017. Algorithms 3 (S-DCP) and 4 (CS-DCP).
    .. [2] D. Carlson, V. Cevher and L. Carin, "Stochastic spectral descent for restricted
       Boltzmann machines", AISTATS 2015.

    Examples
    --------
    >>> from sklearn_boltz.datasets import make_bars_and_stripes
    >>> from sklearn_boltz.restricted import SDCPRBM
    >>> X = make_bars_and_stripes(3)
    >>> model = SDCPRBM(n_components=8, learning_rate=0.3, max_iter=500, random_state=0)
    >>> model.fit(X).transform(X).shape
    (16, 8)
    >>> bool(model.score(X) > -4)
    True
    """

    _parameter_constraints = {
        **MiniBatchRBM._parameter_constraints,
        "n_inner": [Interval(Integral, 1, None, closed="left")],
        "n_gibbs": [Interval(Integral, 1, None, closed="left")],
        "centered": ["boolean"],
        "optimizer": [StrOptions(set(OPTIMIZERS))],
        "offset_rate": [Interval(Real, 0, 1, closed="both")],
        "weight_decay": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        n_components=256,
        *,
        learning_rate=0.05,
        learning_rate_schedule="constant",
        power_t=0.5,
        batch_size=100,
        max_iter="auto",
        n_inner=6,
        n_gibbs=4,
        centered=True,
        persistent=False,
        optimizer="sgd",
        offset_rate=0.01,
        momentum=0.0,
        weight_decay=0.0,
        weights_init=0.01,
        early_stopping=False,
        validation_fraction=0.1,
        n_iter_no_change=10,
        tol=1e-3,
        binarize=None,
        warm_start=False,
        n_jobs=None,
        verbose=0,
        random_state=None,
    ):
        self.n_components = n_components
        self.learning_rate = learning_rate
        self.learning_rate_schedule = learning_rate_schedule
        self.power_t = power_t
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.n_inner = n_inner
        self.n_gibbs = n_gibbs
        self.centered = centered
        self.persistent = persistent
        self.optimizer = optimizer
        self.offset_rate = offset_rate
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.weights_init = weights_init
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.binarize = binarize
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    # Training: what `MiniBatchEstimator` asks for.

    def _begun(self, X):
        rng, seen = make_generator(self.random_state), ColumnSums.of(X)
        learner = Learner(
            self._initial_weights(rng, self.n_components, X.shape[1], X.dtype),
            seen.log_odds(X.dtype),
            np.zeros(self.n_components, dtype=X.dtype),
            seen.means(X.dtype),
            self._scheme(),
            OPTIMIZERS[self.optimizer](self.momentum),
            Stream.from_generator(rng),
        )
        return Training(learner, rng, seen)

    def _resumed(self):
        self._check_same_size()
        training = self._training.copy()
        # The public attributes are the truth, also where a user has set them.
        learner = training.learner
        learner.weights = self.components_.copy(order="F")
        learner.visible_bias = self.intercept_visible_.copy()
        learner.hidden_bias = self.intercept_hidden_.copy()
        learner.scheme = self._scheme()
        return training

    def _with_more(self, seen, X):
        return seen + ColumnSums.of(X)

    def _scheme(self):
        return Scheme(
            n_inner=self.n_inner,
            n_gibbs=self.n_gibbs,
            centered=self.centered,
            persistent=self.persistent,
            n_chains=self.batch_size,
            offset_rate=self.offset_rate,
            weight_decay=self.weight_decay,
        )

    def _monitor(self, training, X, train, valid):
        base = Bernoulli(training.seen.log_odds(X.dtype))
        return Monitor(X, train, valid, base, training.evaluation_seed)

    def _attributes(self, training):
        weights, visible_bias, hidden_bias = training.learner.parameters()
        return {
            "components_": weights,
            "intercept_visible_": visible_bias,
            "intercept_hidden_": hidden_bias,
            "_base_intercept": training.seen.log_odds(weights.dtype),
            **self._state(training),
        }
