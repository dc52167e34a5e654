"""Models that several tests share."""

import warnings
from functools import cache, wraps


def once(make):
    """Make a model at the first call only, without the warnings of its fit.

    They would be among those of whichever test comes first.
    """

    @cache
    @wraps(make)
    def quietly(*args, **kwargs):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return make(*args, **kwargs)

    return quietly
