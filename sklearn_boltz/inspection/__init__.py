"""Plots of fitted models. Matplotlib is imported when something is drawn."""

from sklearn_boltz.inspection._contact_map import ContactMapDisplay
from sklearn_boltz.inspection._coupling import CouplingDisplay
from sklearn_boltz.inspection._history import HistoryDisplay
from sklearn_boltz.inspection._ladder import LadderDisplay
from sklearn_boltz.inspection._landscape import LandscapeDisplay
from sklearn_boltz.inspection._logo import plot_logo
from sklearn_boltz.inspection._moments import MomentsDisplay
from sklearn_boltz.inspection._pair_effect import PairEffectDisplay
from sklearn_boltz.inspection._receptive_field import ReceptiveFieldDisplay
from sklearn_boltz.inspection._sample import SampleDisplay

__all__ = [
    "ContactMapDisplay",
    "CouplingDisplay",
    "HistoryDisplay",
    "LadderDisplay",
    "LandscapeDisplay",
    "MomentsDisplay",
    "PairEffectDisplay",
    "ReceptiveFieldDisplay",
    "SampleDisplay",
    "plot_logo",
]
