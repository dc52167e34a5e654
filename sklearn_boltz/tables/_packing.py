"""Values of any type as plain ones, which files of models hold, and back.

Who loads a file then needs to trust no other types, nor have the library that they are of.
"""

from dataclasses import fields, replace
from enum import Enum
from importlib import import_module
from typing import NamedTuple

import numpy as np

from sklearn_boltz.tables._column import Column
from sklearn_boltz.tables._values import as_objects

# What has values in it.
WHOLES = list, tuple, Column


class Packed(NamedTuple):
    """A value whose type is not plain.

    Attributes
    ----------
    kind : str
        One of `TYPES`.
    parts : list
        Plain values, or packed ones.
    """

    kind: str
    parts: list


def _stamp(cls, moment, zone):
    stamp = cls(moment)
    return stamp if zone is None else stamp.tz_localize("UTC").tz_convert(zone)


def _parse(cls, text):
    return cls.fromisoformat(text)


# The parts of a value by its library and type, and a function from type and parts to the value;
# None where that is the type itself.
TYPES = {
    "builtins.complex": (lambda x: [x.real, x.imag], None),
    "builtins.frozenset": (list, lambda cls, *parts: cls(parts)),
    "datetime.date": (lambda x: [x.isoformat()], _parse),
    "datetime.datetime": (lambda x: [x.isoformat()], _parse),
    "datetime.time": (lambda x: [x.isoformat()], _parse),
    "datetime.timedelta": (lambda x: [x.days, x.seconds, x.microseconds], None),
    "decimal.Decimal": (lambda x: [str(x)], None),
    "enum.Enum": (lambda x: [type(x), x.name], lambda cls, own, name: own[name]),
    "fractions.Fraction": (lambda x: [x.numerator, x.denominator], None),
    "numpy.ndarray": (np.ndarray.tolist, lambda cls, *parts: as_objects(parts)),
    "pandas.Interval": (lambda x: [x.left, x.right, x.closed], None),
    "pandas.Period": (lambda x: [x.ordinal, x.freqstr],
                      lambda cls, ordinal, freq: cls(ordinal=ordinal, freq=freq)),
    "pandas.Timedelta": (lambda x: [x.asm8], None),
    "pandas.Timestamp": (lambda x: [x.asm8, x.tz and str(x.tz)], _stamp),
    "uuid.UUID": (lambda x: [str(x)], None),
}  # fmt: skip


def packed(value):
    """A value without types that are not plain, also inside of lists, arrays and columns."""
    kind = f"{type(value).__module__.partition('.')[0]}.{type(value).__name__}"
    kind = "enum.Enum" if isinstance(value, Enum) else kind
    if isinstance(value, WHOLES):
        return _rebuilt(value, packed)
    if kind not in TYPES or isinstance(value, np.ndarray) and value.dtype.kind != "O":
        return value
    return Packed(kind, list(map(packed, TYPES[kind][0](value))))


def unpacked(value):
    """The value that was packed; still packed if its library is not installed."""
    if not isinstance(value, Packed):
        return _rebuilt(value, unpacked) if isinstance(value, WHOLES) else value
    library, _, name = value.kind.partition(".")
    make = TYPES[value.kind][1] or (lambda cls, *parts: cls(*parts))
    try:
        return make(getattr(import_module(library), name), *map(unpacked, value.parts))
    except ImportError:
        return value


def _rebuilt(values, convert):
    """A list, a tuple, also a named one, or a column of a table, of a function of its values."""
    if isinstance(values, Column):
        return replace(values, **{f.name: convert(getattr(values, f.name)) for f in fields(values)})
    return getattr(type(values), "_make", type(values))(map(convert, values))
