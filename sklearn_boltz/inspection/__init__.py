"""Pictures of fitted models. Matplotlib is imported when something is drawn."""

from sklearn_boltz.inspection._coupling import CouplingDisplay
from sklearn_boltz.inspection._history import HistoryDisplay

__all__ = ["CouplingDisplay", "HistoryDisplay"]
