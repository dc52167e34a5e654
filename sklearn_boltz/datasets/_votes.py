"""A real table that ships with the package."""

from importlib import resources


def load_house_votes():
    """Load sixteen votes of the United States House of Representatives in 1984.

    Each row is a member of the House. The Congressional Quarterly Almanac chose the sixteen votes
    as the key votes of the year. A missing cell is a member who was absent, abstained, or did not
    make the position known; 203 rows have one.

    The table is that of the UCI Machine Learning Repository [1]_ (CC BY 4.0), with ``y`` and ``n``
    written as ``yes`` and ``no``.

    Returns
    -------
    votes : pandas.DataFrame of shape (435, 17)
        The column ``party``, ``"democrat"`` or ``"republican"``, and sixteen columns of ``"yes"``,
        ``"no"`` or NaN.

    Raises
    ------
    ImportError
        If pandas is not installed.

    References
    ----------
    .. [1] Congressional Voting Records, UCI Machine Learning Repository, 1987.
       https://doi.org/10.24432/C5C01P

    Examples
    --------
    >>> from sklearn_boltz.datasets import load_house_votes
    >>> votes = load_house_votes()
    >>> votes.shape, int(votes.isna().sum().sum())
    ((435, 17), 392)
    >>> votes["party"].value_counts().to_dict()
    {'democrat': 267, 'republican': 168}
    """
    from pandas import read_csv  # an optional dependency

    path = resources.files("sklearn_boltz.datasets").joinpath("data", "house_votes_1984.csv")
    with path.open(encoding="utf-8") as file:
        return read_csv(file)
