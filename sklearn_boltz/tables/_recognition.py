"""Kinds of the columns of a table, from their cells and from the user's declarations."""

from dataclasses import replace
from functools import partial

import numpy as np
from scipy.sparse import issparse

from sklearn_boltz._warnings import warn
from sklearn_boltz.tables._categories import Categories, are_bits
from sklearn_boltz.tables._cells import (
    MOST_LEVELS,
    columns_of,
    is_whole,
    places_of,
    suspected_codes,
)
from sklearn_boltz.tables._column import MOST_CODES, Plain, UnfitColumn, of_each
from sklearn_boltz.tables._dates import Dates, type_of_dates
from sklearn_boltz.tables._frames import declared_values, is_frame, names_of
from sklearn_boltz.tables._kinds import IN_ORDER, OF_LEVELS, Kind
from sklearn_boltz.tables._phrases import having
from sklearn_boltz.tables._remedies import Place

# Kinds of columns whose numbers stand for themselves in an array.
PLAIN = ("auto", "plain")


def recognise_columns(X, numbers, need, kinds):
    """The columns of a table as of `Encoder.learn`, of which those of numbers have no bins."""
    found = list(columns_of(X))
    names = names_of(X) if is_frame(X) else []
    declared = [declared_values(X[name]) for name in names] or [(None, False)] * len(found)
    kinds = kinds or [Kind()] * len(found)
    stay = not is_frame(X) and numbers is not None and not need.reads_levels
    open_kind = Kind("plain" if stay else "auto")
    places = places_of(X) if is_frame(X) else [Place(None, j) for j in range(len(found))]
    columns = of_each(
        (place.title, partial(_column, cells, kind, open_kind, own, need.codes, place))
        for (_, cells), kind, own, place in zip(found, kinds, declared, places, strict=True)
    )
    _warn_of_spellings(columns)
    each = zip(columns, declared, places, strict=True)
    _warn_of_alphabet([(column, place.name) for column, own, place in each if own[0] is None])
    return columns


def _warn_of_alphabet(named):
    """Warn of strings in an order that nobody has declared, if they are more than two.

    `named` are pairs of a column and its label.
    """

    def has_words(column):
        return any(len(str(value)) > 2 and str(value).isalpha() for value in column.categories)

    declared = [c for c in named if c[0].kind.name in IN_ORDER and c[0].kind.levels is None]
    odd = [c for c in declared if len(c[0].categories) > 2 and has_words(c[0])]
    if odd:
        first, label = odd[0]
        kind = first.kind.name
        warn(
            f"{having([column.title for column, _ in odd])} strings and the kind {kind!r}. They "
            "are put in alphabetical order. If their order is another, list them in it: "
            f"columns={{{label!r}: ({kind!r}, [{first.shown()}])}}."
        )


def _warn_of_spellings(columns):
    """Warn of strings that differ in case or blanks only, unless that tells all values apart."""
    found = []
    for column in columns:
        texts = [] if column.categories is None or column.codec else column.categories.tolist()
        alike = {}
        for text in filter(lambda value: isinstance(value, str), texts):
            alike.setdefault(" ".join(text.split()).casefold(), []).append(text)
        groups = [group for group in alike.values() if len(group) > 1]
        if groups and len(alike) > 1:
            found.append((column, groups[0]))
    if found:
        column, texts = found[0]
        some = " and ".join(map(repr, texts[:2]))
        line = column.place.line(
            "x.str.strip().str.lower()", "x.str.strip_chars().str.to_lowercase()"
        )
        warn(
            f"{having([one.title for one, _ in found])} strings that differ in case or blanks "
            f"only, such as {some}. If they mean the same, write them in the same way: {line}."
        )


def _column(cells, kind, open_kind, declared, codes, place):
    values, is_ordered = declared
    dates = Dates.of(cells) if values is None else None
    if dates is None:
        seen_as = open_kind if kind.is_open else kind
        column = Categories.learn(cells, place, seen_as, values, codes)
        if kind.is_open and values is not None and len(values) > 2:
            kind = Kind("ordinal" if is_ordered else "nominal")
        return replace(column, kind=kind)
    if kind.name in OF_LEVELS:
        remedy = (
            "Leave it at 'auto', which takes dates for numbers, or make strings of them: "
            f"{place.texts()}."
        )
        if kind.name == "cyclic":
            remedy = f"Extract what recurs, such as the month: {place.line('x.dt.month')}."
        raise UnfitColumn(
            f"{kind.name} dates",
            f"{place.title} holds dates, and is declared as {kind.name!r}. {remedy}",
        )
    of_objects = type_of_dates(cells)
    levels = dates.levels(cells, MOST_LEVELS) if kind.is_open else None
    if levels is None:
        return Plain(place, kind, dates, of_objects)
    return Categories(place, kind, None, of_objects, categories=levels)


# Numbers that are no codes.


def hold_amounts(columns, X, most):
    """Which columns of X hold numbers that are no codes: fractions, many values, or negative.

    Not those of codes of which one seems to stand for a missing value: what it means has to be
    asked. Of codes, there may be `most`.
    """
    found = np.array([column.categories is None for column in columns], dtype=bool)
    if isinstance(X, np.ndarray) and X.dtype.kind in "biuf":  # most arrays hold codes
        codes = (is_whole(X) | np.isnan(X)).all(axis=0)
        found &= ~(codes & (np.fmax.reduce(X, axis=0, initial=0) < most))
    for j, (_, cells) in enumerate(columns_of(X) if found.any() else ()):
        is_date = columns[j].codec is not None
        found[j] = found[j] and (is_date or _are_amounts(columns[j].numbers(cells), most))
    return found


def _are_amounts(numbers, most):
    values = np.unique(numbers[~np.isnan(numbers)])
    if (values != np.floor(values)).any():
        return True
    whole = set(values.tolist())
    whole -= {-1.0, 0.0, 1.0} if whole <= {-1.0, 0.0, 1.0} else set(suspected_codes(whole))
    return len(whole) > 0 and (min(whole) < 0 or len(whole) > most or max(whole) >= MOST_CODES)


def most_codes(X, need):
    """How many codes a column may have."""
    return MOST_CODES if not is_frame(X) and need.codes else MOST_LEVELS


def stands_for_itself(X, need, kinds):
    """Whether a batch of numbers holds codes or listed values, whatever is in others."""
    if any(kind.name not in PLAIN and not kind.levels for kind in kinds):
        return False
    is_open = [kind.name == "auto" for kind in kinds]
    if need.reads_levels and any(is_open) and not is_frame(X):
        return False
    if issparse(X):
        return True
    if is_frame(X):
        # Where all cells are missing, those of other batches may be anything.
        return all(
            cells.dtype.kind in "biuf" and are_bits(cells) and not np.isnan(cells).all()
            for _, cells in columns_of(X)
        )
    amounts = need.bins and hold_amounts(list(map(Plain, places_of(X))), X, most_codes(X, need))
    return not (need.bins and (is_open & amounts).any())
