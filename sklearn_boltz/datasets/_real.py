"""Real tables that ship with the package."""

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
    return _read("house_votes_1984.csv")


def load_penguins():
    """Load measurements of 344 penguins of three species, on three islands of Antarctica.

    Two of them have no measurements, and of nine more the sex is not known. The table is that of
    the R package palmerpenguins [1]_ (CC0) without the year, from the study of Gorman, Williams and
    Fraser [2]_.

    Returns
    -------
    penguins : pandas.DataFrame of shape (344, 7)
        The columns ``species``, ``island`` and ``sex`` of strings, ``bill_length_mm``,
        ``bill_depth_mm`` and ``flipper_length_mm`` in millimetres, and ``body_mass_g`` in grams.
        Missing cells are NaN.

    Raises
    ------
    ImportError
        If pandas is not installed.

    References
    ----------
    .. [1] Horst, Hill and Gorman, palmerpenguins: Palmer Archipelago (Antarctica) penguin data,
       2020. https://doi.org/10.5281/zenodo.3960218

    .. [2] Gorman, Williams and Fraser, Ecological sexual dimorphism and environmental variability
       within a community of Antarctic penguins (genus Pygoscelis), PLOS ONE 9(3), 2014.
       https://doi.org/10.1371/journal.pone.0090081

    Examples
    --------
    >>> from sklearn_boltz.datasets import load_penguins
    >>> penguins = load_penguins()
    >>> penguins.shape, int(penguins.isna().sum().sum())
    ((344, 7), 19)
    >>> penguins["species"].value_counts().to_dict()
    {'Adelie': 152, 'Gentoo': 124, 'Chinstrap': 68}
    """
    return _read("penguins.csv")


def _read(name):
    from pandas import read_csv  # an optional dependency

    with resources.files("sklearn_boltz.datasets").joinpath("data", name).open("rb") as file:
        return read_csv(file)
