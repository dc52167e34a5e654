"""How mutations change the probability of a sequence."""

import re

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sklearn_boltz.tables._frames import optional


def mutational_effect(model, wildtype, mutants, *, alphabet=None, positions=None):
    """Predict the effects of mutations by how much they change the probability of a sequence.

    Parameters
    ----------
    model : estimator with `free_energy`
        A network, a restricted Boltzmann machine or `FSLLDensity`, fitted to an alignment: a frame
        of letters or an array of codes, a column for each site.
    wildtype : str or array-like of shape (n_columns,)
        The sequence that is mutated, as letters, or as a row of the training table.
    mutants : str, list of str, or array-like of shape (n_mutants, n_columns)
        Mutations such as ``"A24G"``: the letter of the wild type, the position, and the new letter.
        Several in one mutant are joined by a colon or comma, ``"A24G:T30C"``. Or whole sequences.
    alphabet : str, default=None
        The letters in the order of their codes, as `read_alignment` returns them. For models of
        codes only.
    positions : array-like of int of shape (n_columns,), default=None
        The number of each column in mutations, such as the `positions` of `read_alignment`. None
        means the numbers at the end of the names of columns, as in ``M27``; or 1, 2, ... if some
        have no number, or if there are no names.

    Returns
    -------
    effect : ndarray of float64 of shape (n_mutants,)
        The energy of the wild type less that of each mutant, ln P(mutant) - ln P(wild type), in
        nats: negative for mutants that are less probable. EVmutation's ΔE has this sign [1]_,
        that of adabmDCA the opposite one.

    Raises
    ------
    ValueError
        If a sequence has another length than the table, a letter is not one of its column, a
        position does not exist, or the wild type has another letter there.
    ImportError
        If the model was fitted to a data frame, and pandas is not installed.

    See Also
    --------
    sklearn_boltz.datasets.read_alignment : Reads an alignment from a file.

    References
    ----------
    .. [1] T. A. Hopf et al., "Mutation Effects Predicted from Sequence Co-variation", Nature
       Biotechnology 35, 128–135, 2017. https://doi.org/10.1038/nbt.3769

    Examples
    --------
    >>> from sklearn_boltz import FVBMPseudoLikelihood
    >>> from sklearn_boltz.datasets import make_alignment
    >>> from sklearn_boltz.metrics import mutational_effect
    >>> family = make_alignment(2000, 6, alphabet="dna", random_state=0)
    >>> model = FVBMPseudoLikelihood(alpha=0.01).fit(family.codes)
    >>> mutational_effect(model, "CTCACC", ["C1G", "T2A", "C1G:T2A"], alphabet="ACGT").round(1)
    array([-1.5, -4. , -5.4])
    """
    check_is_fitted(model)
    codes = {letter: code for code, letter in enumerate(alphabet or "")}
    values = ([] if own is None else own for own in model.categories_)
    letters = [{value: value for value in own if isinstance(value, str)} or codes for own in values]
    places = {int(number): j for j, number in enumerate(_positions(model, positions))}
    wild = _row(wildtype, letters)
    numbers = np.issubdtype(np.asarray(mutants).dtype, np.number)
    is_one = isinstance(mutants, str) or (numbers and np.ndim(mutants) == 1)
    mutants = np.asarray([mutants] if is_one else mutants, dtype=object)
    rows = np.array([wild, *(_mutant(one, wild, letters, places) for one in mutants)])
    if hasattr(model, "feature_names_in_"):
        pandas = optional(
            "pandas",
            "mutational_effect for a model of a data frame needs pandas, which is not installed: "
            "run `pip install pandas`, or fit the model to an array.",
        )
        rows = pandas.DataFrame(rows, columns=model.feature_names_in_)
    energy = model.free_energy(rows)
    return energy[0] - energy[1:]


def _positions(model, positions):
    """The number of each column."""
    one_by_one = np.arange(1, model.n_features_in_ + 1)
    if positions is None:
        ends = [re.search(r"\d+$", str(name)) for name in getattr(model, "feature_names_in_", ())]
        positions = [int(end[0]) for end in ends if end]
        return positions if len(set(positions)) == len(one_by_one) else one_by_one
    if np.shape(positions) != one_by_one.shape:
        raise ValueError(
            f"mutational_effect: positions must be a number for each of the {len(one_by_one)} "
            f"columns of the model, got an array of shape {np.shape(positions)}."
        )
    if len(np.unique(positions)) < len(one_by_one):
        raise ValueError("mutational_effect: each column must have a position of its own.")
    return positions


def _mutant(mutant, wild, letters, places):
    """A mutant as a row of the table."""
    if not isinstance(mutant, str) or not re.search(r"\d", mutant):
        return _row(mutant, letters)
    row = list(wild)
    for mutation in re.split("[:,]", mutant):
        found = re.fullmatch(r"(\D)(\d+)(\D)", mutation.strip())
        if not found:
            raise ValueError(
                f"mutational_effect: {mutation!r} is no mutation. Write the letter of the wild "
                "type, the position and the new letter, as in 'A24G', and join several by a colon."
            )
        old, position, new = found[1], int(found[2]), found[3]
        if position not in places:
            raise ValueError(
                f"mutational_effect: {mutation!r} is at position {position}, and the columns are "
                f"{min(places)} to {max(places)}. Give other numbers of columns as positions."
            )
        j = places[position]
        if row[j] != _value(old, j, letters):
            has = [letter for letter, value in letters[j].items() if value == row[j]]
            raise ValueError(
                f"mutational_effect: {mutation!r} replaces {old!r}, and at position {position} the "
                f"wild type has {', '.join(has)}. If the columns have other numbers, give them as "
                "positions."
            )
        row[j] = _value(new, j, letters)
    return row


def _row(sequence, letters):
    """A sequence of letters as a row of the table."""
    cells = list(sequence) if isinstance(sequence, str) else np.ravel(sequence)
    if len(cells) != len(letters):
        raise ValueError(
            f"mutational_effect: a sequence has {len(cells)} letters, and the model "
            f"{len(letters)} columns. Align it with the training table."
        )
    return [_value(cell, j, letters) for j, cell in enumerate(cells)]


def _value(cell, j, letters):
    """Value of a letter in column j of the table; codes stay as they are."""
    if isinstance(cell, str) and cell not in letters[j]:
        known = ", ".join(letters[j]) or "codes; give the letters in their order as alphabet"
        raise ValueError(
            f"mutational_effect: {cell!r} is not a letter of column {j}, which has {known}."
        )
    return letters[j].get(cell, cell)
