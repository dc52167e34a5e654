"""Real tables and an alignment that ship with the package."""

from importlib import resources

import numpy as np

from sklearn_boltz.datasets._alignment import read_alignment

# Base pairs of the SAM riboswitch: an open bracket pairs with the one that closes it.
STEMS = (
    "((((((((......(((...(((.....)))......))).(((.((((((.........)))..))))))"
    "........((((.........))))...))))))))"
)


def load_bird_strikes():
    """Load 10,000 collisions of aircraft with animals in the United States, 1990 to 2002.

    The table is a part of the Wildlife Strike Database of the Federal Aviation Administration
    (public domain) [1]_: the strikes at 50 airports, as in the collection vega-datasets [2]_.

    Returns
    -------
    strikes : pandas.DataFrame of shape (10000, 12)
        ``date``, the day. Strings: ``airport``, ``state``, ``operator``, ``aircraft`` (225
        different models), ``phase`` of the flight, ``time_of_day``, ``size`` of the animal,
        ``species`` (``"Unknown bird - small"`` and the like where it was not identified) and
        ``damage`` (``"none"``, ``"minor"``, ``"medium"``, ``"substantial"``). Numbers: ``speed`` in
        knots, missing in 2,836 rows, and ``cost`` in US dollars.

    Raises
    ------
    ImportError
        If pandas is not installed.

    References
    ----------
    .. [1] Federal Aviation Administration, Wildlife Strike Database. https://wildlife.faa.gov

    .. [2] https://github.com/vega/vega-datasets

    Examples
    --------
    >>> from sklearn_boltz.datasets import load_bird_strikes
    >>> strikes = load_bird_strikes()
    >>> strikes.shape, int(strikes["speed"].isna().sum())
    ((10000, 12), 2836)
    >>> strikes["size"].value_counts().to_dict()
    {'Small': 4910, 'Medium': 4346, 'Large': 744}
    """
    return _read("bird_strikes.csv.xz", compression="xz", parse_dates=["date"])


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


def load_masculinity_survey():
    """Load the answers of 1,615 men in the United States about masculinity, with survey weights.

    FiveThirtyEight, WNYC and SurveyMonkey asked them in May 2018 [1]_ (CC BY 4.0). Here is a part
    of the questions, with short names, and with missing cells for "No answer" and "Prefer not to
    answer".

    Returns
    -------
    survey : pandas.DataFrame of shape (1615, 29)
        Strings: ``age``, ``race``, ``education``, ``income``, ``work``, ``marital`` and
        ``children``; ``feels_masculine``, ``seen_as_masculine`` (how important that is), and
        ``pressure`` (whether society puts unhealthy pressure on men); from ``professional_advice``
        to ``lonely``, how often the man asks friends for advice, shows them affection, cries,
        fights, watches sports, works out, sees a therapist and feels lonely; from ``worry_weight``
        to ``worry_family``, what is on his mind daily; and ``pays_for_dates``. ``weight`` is the
        survey weight of the row: its mean is 1.

    Raises
    ------
    ImportError
        If pandas is not installed.

    References
    ----------
    .. [1] FiveThirtyEight, What do men think it means to be a man?, 2018.
       https://github.com/fivethirtyeight/data/tree/master/masculinity-survey

    Examples
    --------
    >>> from sklearn_boltz.datasets import load_masculinity_survey
    >>> survey = load_masculinity_survey()
    >>> survey.shape, int(survey["income"].isna().sum())
    ((1615, 29), 213)
    >>> survey["age"].value_counts().to_dict()
    {'35-64': 855, '65+': 627, '18-34': 133}
    """
    return _read("masculinity_2018.csv.xz", compression="xz")


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


def load_sam_riboswitch():
    """Load an alignment of 4,757 SAM riboswitches, RNAs of bacteria, and their base pairs.

    A riboswitch is the part of a messenger RNA that switches the genes behind it; this one does so
    when it binds S-adenosylmethionine (SAM). It folds into four stems of base pairs, and a loop of
    one pairs with a strand between two others (a pseudoknot) [2]_. The sequences are those of the
    family RF00162 of Rfam [1]_ (CC0), in the alignment that comes with the program plmc [3]_.

    Returns
    -------
    family : :class:`~sklearn.utils.Bunch`
        What :func:`read_alignment` returns, with 4,757 sequences of 107 sites and the alphabet
        ``"-ACGU"``, and with

        structure : str
            The secondary structure of the family by Rfam: for each site, a bracket if it is
            paired, else a dot.
        contacts : ndarray of int of shape (27, 2)
            The base pairs of `structure` as column numbers from 0. The pseudoknot, columns 24 to 27
            with 78 to 75, is not among them.

    See Also
    --------
    make_alignment : Simulates an alignment with known couplings.

    References
    ----------
    .. [1] I. Kalvari et al., "Rfam 13.0: shifting to a genome-centric resource for non-coding RNA
       families", Nucleic Acids Research 46, D335, 2018. https://rfam.org/family/RF00162

    .. [2] R. K. Montange and R. T. Batey, "Structure of the S-adenosylmethionine riboswitch
       regulatory mRNA element", Nature 441, 1172, 2006. https://doi.org/10.1038/nature04819

    .. [3] https://github.com/debbiemarkslab/plmc

    Examples
    --------
    >>> from sklearn_boltz.datasets import load_sam_riboswitch
    >>> family = load_sam_riboswitch()
    >>> print("".join(family.letters[0, :50]), family.structure[:50], sep="\\n")
    UCUUUAUCAAGAGAGGCAGAGGGACCGGCCCUUUGAAGCCCAGCAACCUC
    ((((((((......(((...(((.....)))......))).(((.(((((
    """
    with _data("sam_riboswitch.fasta.xz") as file:
        family = read_alignment(file, alphabet="rna")
    family.structure, family.contacts = STEMS, _base_pairs(STEMS)
    return family


def _base_pairs(structure):
    """Brackets that belong together, (n_pairs, 2), in the order of the first ones."""
    open_ones, pairs = [], []
    for site, symbol in enumerate(structure):
        if symbol == "(":
            open_ones.append(site)
        elif symbol == ")":
            pairs.append((open_ones.pop(), site))
    return np.array(sorted(pairs))


def _read(name, **options):
    from pandas import read_csv  # an optional dependency

    with _data(name) as file:
        return read_csv(file, **options)


def _data(name):
    return resources.files("sklearn_boltz.datasets").joinpath("data", name).open("rb")
