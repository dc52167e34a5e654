"""Real tables and an alignment that ship with the package."""

from importlib import resources

import numpy as np

from sklearn_boltz.datasets._alignment import read_alignment

# Base pairs of the SAM riboswitch: an open bracket pairs with the one that closes it.
STEMS = (
    "((((((((......(((...(((.....)))......))).(((.((((((.........)))..))))))"
    "........((((.........))))...))))))))"
)


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


def _read(name):
    from pandas import read_csv  # an optional dependency

    with _data(name) as file:
        return read_csv(file)


def _data(name):
    return resources.files("sklearn_boltz.datasets").joinpath("data", name).open("rb")
