"""Cells that no model can read as they are written: what they are, and the line to convert."""

import datetime as dt
from functools import partial

import numpy as np
import pandas as pd

from sklearn_boltz import BoltzmannImputer, FVBMPseudoLikelihood

N = 60
DAYS = [dt.date(2020, 1, 3) + dt.timedelta(days=11 * k) for k in range(N)]
AMOUNTS = [round(1012.25 + 173.5 * k, 2) for k in range(N)]
HOURS = [6 + k % 15 + (k % 4) / 4 for k in range(N)]
# What the cells mean, and how they are written.
TEXTS = {
    "numbers": (AMOUNTS, str),
    "numbers and blanks": (AMOUNTS, lambda x: f" {x} "),
    "decimal commas": (AMOUNTS, lambda x: f"{x:.2f}".replace(".", ",")),
    "thousands": (AMOUNTS, lambda x: f"{x:,.2f}"),
    "thousands in whole numbers": ([int(x) for x in AMOUNTS], lambda x: f"{x:,}"),
    "thousands with points": (
        AMOUNTS, lambda x: f"{x:,.2f}".replace(",", "_").replace(".", ",").replace("_", "."),
    ),
    "thousands with blanks": (AMOUNTS, lambda x: f"{x:,.2f}".replace(",", " ")),
    "dollars": (AMOUNTS, lambda x: f"${x:.2f}"),
    "dollars and thousands": (AMOUNTS, lambda x: f"${x:,.2f}"),
    "euros": (AMOUNTS, lambda x: f"{x:.2f} €".replace(".", ",")),
    "per cent": ([x / 100 for x in AMOUNTS], lambda x: f"{100 * x:.2f}%"),
    "per cent and a blank": ([x / 100 for x in AMOUNTS], lambda x: f"{100 * x:.2f} %"),
    "kilograms": (AMOUNTS, lambda x: f"{x} kg"),
    "negative kilograms": ([-x for x in AMOUNTS], lambda x: f"{x} kg"),
    "degrees": (AMOUNTS, lambda x: f"{x}°C"),
    "dates of ISO 8601": (DAYS, str),
    "dates with points": (DAYS, lambda day: f"{day:%d.%m.%Y}"),
    "dates of two digits": (DAYS, lambda day: f"{day:%d.%m.%y}"),
    "dates of Britain": (DAYS, lambda day: f"{day:%d/%m/%Y}"),
    "dates of the USA": (DAYS, lambda day: f"{day:%m/%d/%Y}"),
    "dates with the year first": (DAYS, lambda day: f"{day:%Y/%m/%d}"),
    "dates with names of months": (DAYS, lambda day: f"{day:%b %d, %Y}"),
    "dates with long names of months": (DAYS, lambda day: f"{day:%d %B %Y}"),
    "dates with times": (DAYS, lambda day: f"{day:%d.%m.%Y 00:00}"),
    "dates of two spellings": (
        DAYS, lambda day: f"{day:%Y-%m-%d}" if day.month % 2 else f"{day:%d.%m.%Y}",
    ),
    "times of day": (HOURS, lambda x: f"{int(x):02}:{round(60 * (x % 1)):02}"),
}  # fmt: skip
# Cells that are no texts.
OBJECTS = {
    "times of day as objects": (HOURS, lambda x: dt.time(int(x), round(60 * (x % 1)))),
    "differences of times": (AMOUNTS, lambda x: dt.timedelta(seconds=x)),
    "dates with a zone": (
        DAYS, lambda day: dt.datetime(day.year, day.month, day.day, tzinfo=dt.UTC),
    ),
}  # fmt: skip
PERIODS = {"periods": [pd.Period("2020-01", "M") + k for k in range(N)]}
GAP = 7


def cells(what):
    """The cells of a column, with a gap: a blank text, where cells are texts."""
    values, write = (TEXTS | OBJECTS)[what]
    found = [write(value) for value in values]
    found[GAP] = "" if what == "numbers and blanks" else None
    return found


def frame(what):
    cells_of = cells(what) if what not in PERIODS else PERIODS[what]
    dtype = object if what in OBJECTS else None
    return pd.DataFrame({"x": pd.Series(cells_of, dtype=dtype), "y": np.arange(N) % 2})


CASES = {
    **{what: partial(FVBMPseudoLikelihood().fit, frame(what))
       for what in TEXTS | OBJECTS | PERIODS},
    **{f"{what}, for the imputer": partial(BoltzmannImputer().fit, frame(what))
       for what in OBJECTS | PERIODS},
    "a list of dicts": partial(FVBMPseudoLikelihood().fit, frame("kilograms").to_dict("records")),
    "a dict of columns": partial(BoltzmannImputer().fit, frame("kilograms").to_dict("list")),
    "a path": partial(FVBMPseudoLikelihood().fit, "table.csv"),
    "units each twice": partial(
        FVBMPseudoLikelihood(max_iter=1).fit,
        pd.DataFrame({"x": [f"{k % 30} kg" for k in range(90)], "y": np.arange(90) % 2}),
    ),
}  # fmt: skip
