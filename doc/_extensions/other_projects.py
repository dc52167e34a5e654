"""Links to other projects' documentation that need no network.

The names of scikit-learn, NumPy, SciPy, pandas and joblib become addresses by the pattern of their
API pages. Intersphinx, where it is switched on, comes first and knows better.
"""

from docutils import nodes

PAGES = {
    "sklearn": "https://scikit-learn.org/stable/modules/generated/{}.html",
    "numpy": "https://numpy.org/doc/stable/reference/generated/{}.html",
    "scipy": "https://docs.scipy.org/doc/scipy/reference/generated/{}.html",
    "pandas": "https://pandas.pydata.org/docs/reference/api/{}.html",
    "joblib": "https://joblib.readthedocs.io/en/stable/generated/{}.html",
}
# Pages that are not where the pattern has them.
NUMPY_RANDOM = "https://numpy.org/doc/stable/reference/random"
ELSEWHERE = {
    "numpy.random.Generator": f"{NUMPY_RANDOM}/generator.html#numpy.random.Generator",
    "numpy.random.RandomState": f"{NUMPY_RANDOM}/legacy.html#numpy.random.RandomState",
}


def address(kind, name):
    """Return the address of a name, or None if it belongs to no project that is known."""
    pattern = PAGES.get(name.partition(".")[0])
    if pattern is None or kind not in {"class", "func", "exc", "obj", "meth", "attr"}:
        return None
    if name in ELSEWHERE:
        return ELSEWHERE[name]
    # Methods have a place on the page of their class.
    page = name.rpartition(".")[0] if kind in {"meth", "attr"} else name
    return f"{pattern.format(page)}#{name}"


def link(app, env, node, content):
    """Resolve a reference of the Python domain that nothing else has resolved."""
    if node.get("refdomain") != "py":
        return None
    target = address(node["reftype"], node["reftarget"])
    if target is None:
        return None
    project = node["reftarget"].partition(".")[0]
    reference = nodes.reference("", "", internal=False, refuri=target, reftitle=f"in {project}")
    reference += content
    return reference


def setup(app):
    """Come after intersphinx."""
    app.connect("missing-reference", link, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
