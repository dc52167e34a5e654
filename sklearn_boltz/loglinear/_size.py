"""Whether the tables of all joint states are too large, and what to do then."""

import math

from sklearn_boltz.numerics._memory import SMALL, available_memory, shown_bytes

# Binary columns that fit in the memory of a laptop.
USUAL_COLUMNS = 26


def check_size(n_values, names, *, max_states, itemsize):
    """Refuse too many joint states of columns that share a table before anything is allocated.

    `names` is a function that returns what the columns are called in a message; `itemsize` are the
    bytes of an entry of the two tables.
    """
    size = math.prod(n_values)
    if size <= max_states and 2 * size * itemsize <= SMALL:
        return
    memory = available_memory()

    def fits(size, itemsize=itemsize):
        return size <= max_states and (memory is None or 2 * size * itemsize <= memory)

    if fits(size):
        return
    names = names()
    sentences = [_what(size, names), *_limit(size, max_states, itemsize, memory)]
    remedy = None
    if itemsize > 4 and fits(size, 4):
        remedy = f"With dtype=np.float32 they take {shown_bytes(8 * size)}, which fits."
    elif memory is not None and 2 * size * itemsize <= memory:
        remedy = f"max_states={size} would fit into memory."
    if remedy is not None:
        sentences.append(remedy)
    if max(n_values) > 2 and fits(2 ** len(names)):
        sentences.append(
            "Use fewer values: merge rare strings, or bin numbers by KBinsDiscretizer."
            f"{_most(n_values, names)}"
        )
    elif max(n_values) > 2 and len(names) > 1:
        sentences.append(f"Leave columns out, or use fewer values.{_most(n_values, names)}")
    if len(names) > 1 and size > 2**USUAL_COLUMNS:
        sentences.append(f"FSLLDensity is meant for up to about {USUAL_COLUMNS} binary columns.")
    if len(names) > 1 and (size > 2**USUAL_COLUMNS or remedy is None):
        sentences.append(
            "For more, take FVBMPseudoLikelihood (a pairwise network) or SDCPRBM (a density); "
            "both take columns of categories, too."
        )
    raise ValueError(" ".join(sentences))


def _what(size, names):
    """Description of the variables that are too large."""
    if len(names) == 1:
        return f"{names[0][0].upper()}{names[0][1:]} has {_count(size)} values."
    return f"The {len(names):,} columns that are not constant have {_count(size)} joint states."


def _limit(size, max_states, itemsize, memory):
    """Which limit is exceeded, and the memory where the numbers tell something."""
    if size > max_states:
        yield f"max_states is {max_states:,}."
    needed = 2 * size * itemsize
    if memory is not None and (size <= max_states or needed <= memory):
        yield f"The two tables take {shown_bytes(needed)}, and {shown_bytes(memory)} are available."


def _most(n_values, names):
    """Which columns have the most values, in a sentence; nothing for a single column."""
    if len(names) == 1:
        return ""
    order = sorted(range(len(names)), key=lambda i: -n_values[i])[:3]
    most = ", ".join(f"{names[i]} ({n_values[i]:,})" for i in order if n_values[i] > 2)
    return f" The most are in {most}."


def _count(size):
    """A number of states, short also where it has hundreds of digits."""
    if size >= 2**20 and size.bit_count() == 1:  # a power of two
        return f"2**{size.bit_length() - 1}"
    return f"{size:,}" if size < 10**15 else f"about 10**{round(math.log10(size))}"
