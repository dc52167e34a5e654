"""Constraints on the parameters of estimators and of their methods."""

from numbers import Integral, Real

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from sklearn_boltz._methods import SAMPLE_CONSTRAINTS
from sklearn_boltz.restricted.model._columns import UNITS_OF_COLUMNS
from sklearn_boltz.restricted.model._units import HIDDEN_NAMES
from sklearn_boltz.tables._kinds import NAMES
from sklearn_boltz.units._unit import UnitType

RANDOM_STATE = ["random_state", np.random.Generator]
COUNT = [Interval(Integral, 0, None, closed="left")]
POSITIVE = [Interval(Integral, 1, None, closed="left")]
# A share of the rows that is set aside, or whether one is.
SHARE = ["boolean", Interval(Real, 0, 1, closed="neither")]
# Types of `columns` and `hidden`. More is checked once the columns are known.
COLUMNS = [StrOptions({*NAMES, *UNITS_OF_COLUMNS}), UnitType, type, list, dict, tuple, range]
HIDDEN = [StrOptions(set(HIDDEN_NAMES)), UnitType, type, tuple]
# Constraints of estimators that follow ln Z during training.
TRACKED = {"track_likelihood": ["boolean", Interval(Real, 0, None, closed="neither")]}
COMPONENTS = {"n_components": [*POSITIVE, StrOptions({"auto"})]}
MACHINE_SAMPLE_CONSTRAINTS = SAMPLE_CONSTRAINTS | {
    "n_steps": COUNT,
    "init": ["array-like", "sparse matrix", StrOptions({"ladder"}), None],
}
