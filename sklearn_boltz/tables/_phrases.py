"""The grammar of messages: names of columns, values and numbers as sentences have them."""

# Columns that a message names at most, and values that it has of many.
N_NAMES = 5


def join_columns(titles):
    """Names of some columns in messages: the first ones, and how many more there are."""
    titles = list(titles)
    if len(titles) == 1:
        return titles[0]
    some, n_more = ", ".join(title.removeprefix("column ") for title in titles[:N_NAMES]), ""
    if len(titles) > N_NAMES:
        n_more = f" and {len(titles) - N_NAMES:,} more"
    return f"columns {some}{n_more}"


def having(titles):
    """The columns and their verb, as in ``columns 'a', 'b' have``."""
    titles = list(titles)
    return f"{join_columns(titles)} {'has' if len(titles) == 1 else 'have'}"


def and_others(titles):
    """A sentence for the other columns of which a message holds; empty if there are none."""
    titles = list(titles)
    return f" The same holds for {join_columns(titles)}." if titles else ""


def first_of(n_cells, what, titles):
    """Text after the place of a cell if there are others of its kind; empty if there is none.

    `what` is the name of such cells in messages, as in ``missing cells``; `titles` are those of all
    columns that have some.
    """
    titles = list(titles)
    where = f" in {join_columns(titles)}" if len(titles) > 1 else ""
    return f", the first of {n_cells:,} {what}{where}" if n_cells > 1 else ""


def some_of(values):
    """The first few of some values in a message."""
    return ", ".join(map(repr, values[:N_NAMES])) + (", ..." if len(values) > N_NAMES else "")


def enumerated(values):
    """Values as in ``8 and 9`` and ``7, 8 and 9``."""
    values = list(map(str, values))
    return " and ".join([", ".join(values[:-1]), values[-1]] if len(values) > 1 else values)


def format_number(value):
    """A number as messages print it: short, unless that hides what is wrong with it."""
    short = f"{float(value):.6g}"
    return str(value) if float(short).is_integer() and float(short) != value else short
