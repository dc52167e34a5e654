"""How much memory there is, and refusals of what does not fit, before it is allocated."""

import os
import sys
from functools import wraps
from inspect import getattr_static
from pathlib import Path
from types import FunctionType

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None

PROC, CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")
# Less is granted without a look at the memory.
SMALL = 2**26
# A column of more values is perhaps what takes the memory.
MANY_VALUES = 100
# Methods of estimators whose arrays grow with the rows.
READ_ROWS = (
    "score_samples", "free_energy", "transform", "mean_hidden", "predict", "predict_proba",
    "predict_log_proba", "predict_column_proba", "impute", "explain", "log_pseudo_likelihood",
)  # fmt: skip


def available_memory():
    """Bytes of memory that can be had now, or None where the system does not tell.

    The least of what the machine has, what the control groups of the process leave, as those of a
    container, and what a limit of its address space leaves.
    """
    found = [_of_machine(), *_of_control_groups(), _of_address_space()]
    return min((n_bytes for n_bytes in found if n_bytes is not None), default=None)


def check_memory(n_bytes, what, remedy):
    """Refuse what does not fit into memory.

    The least number of bytes that is certain to be needed will do. `what` needs it, the subject of
    a sentence, and `remedy` is what the user can do, in sentences.
    """
    n_bytes = int(n_bytes)
    if n_bytes <= SMALL:
        return
    memory = available_memory()
    # Where the system tells nothing, there is still an end of all addresses.
    memory = sys.maxsize if memory is None else memory
    if n_bytes > memory:
        raise ValueError(
            f"{what} would take {shown_bytes(n_bytes)} of memory, and {shown_bytes(memory)} are "
            f"available. {remedy}"
        )


def out_of_memory(estimator, error):
    """The error of an estimator for one of an array that could not be allocated."""
    # Of an estimator inside of this one, the cause is NumPy's.
    found, table = error.__cause__ or error, vars(estimator).get("_encoder")
    remedy = "Use fewer rows at a time, or fewer columns."
    n_values = [] if table is None else table.n_categories
    if max(n_values, default=0) > MANY_VALUES:
        j = int(n_values.argmax())
        title = table.columns[j].title
        remedy = f"Merge rare values of {title}, which has {n_values[j]:,}, or use fewer rows."
    reason = f"{found}".rstrip(".") or "there is not enough memory"
    return MemoryError(f"{type(estimator).__name__}: {reason}. {remedy}")


def tell_of_memory(cls):
    """Have methods of a class name it where there is not enough memory."""
    for name in READ_ROWS:
        method = getattr_static(cls, name, None)
        if isinstance(method, FunctionType) and not hasattr(method, "tells_of_memory"):
            setattr(cls, name, _telling(method))


def _telling(method):
    @wraps(method)
    def telling(self, *args, **kwargs):
        try:
            return method(self, *args, **kwargs)
        except MemoryError as error:
            raise out_of_memory(self, error) from error.__cause__ or error

    telling.tells_of_memory = True
    return telling


def check_drawn(estimator, n_samples, itemsize=8):
    """Refuse to draw more rows from an estimator than fit into memory."""
    check_memory(
        int(n_samples) * estimator.n_features_in_ * itemsize,
        f"{type(estimator).__name__}.sample: {n_samples:,} rows of "
        f"{estimator.n_features_in_:,} columns",
        "Draw fewer at a time.",
    )


def shown_bytes(number):
    """A number of bytes as messages print it."""
    if number >= 10_000 * 2**30:  # perhaps too large for a float
        return "more than 10,000 GiB"
    for unit in ("bytes", "KiB", "MiB"):
        if number < 1024:
            return f"{number:.4g} {unit}"
        number /= 1024
    return f"{number:.4g} GiB"


def _of_machine():
    try:
        return _entries(PROC / "meminfo")["MemAvailable:"] * 1024
    except (OSError, KeyError):
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError, AttributeError):
        return None


def _of_control_groups():
    """Memory that each control group of the process leaves, in either version of the interface."""
    try:
        lines = (PROC / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        number, controllers, path = line.split(":", 2)
        if number == "0":
            root, names = CGROUPS, ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            root = CGROUPS / "memory"
            names = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
        else:
            continue
        # A limit holds for all groups below it. In a container the path may be that on its host:
        # then no folder but the root is there.
        folder = root / path.strip("/")
        while True:
            yield _left_by(folder, *names)
            if folder == root:
                break
            folder = folder.parent


def _left_by(folder, limit, usage, reclaimable):
    """Bytes that a control group leaves, or None if it has no limit."""
    try:
        left = int((folder / limit).read_text()) - int((folder / usage).read_text())
        # Files that were read a while ago give way.
        return max(0, left + _entries(folder / "memory.stat").get(reclaimable, 0))
    except (OSError, ValueError):  # "max"
        return None


def _of_address_space():
    if resource is None:
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return None
    try:
        n_pages = int((PROC / "self" / "statm").read_text().split()[0])
    except OSError:  # not Linux
        return None
    return max(0, limit - n_pages * resource.getpagesize())


def _entries(path):
    """Lines of a name and a number."""
    rows = (line.split() for line in path.read_text().splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) > 1}
