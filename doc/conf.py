"""Configuration of Sphinx.

The documentation builds without network. Links to scikit-learn, NumPy, SciPy, pandas and joblib
follow the pattern of their pages (``_extensions/other_projects.py``); with the environment variable
``SKLEARN_BOLTZ_DOC_INTERSPHINX`` they come from the projects' inventories.
"""

import inspect
import os
import sys
import tomllib
from html import escape
from pathlib import Path

import matplotlib
from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from numpydoc.docscrape_sphinx import SphinxDocString
from numpydoc.xref import DEFAULT_LINKS
from sklearn.base import BaseEstimator, TransformerMixin
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

import sklearn_boltz
from sklearn_boltz import batches, inspection, restricted, statistics, units

logger = logging.getLogger(__name__)

matplotlib.use("agg")
sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "sklearn_boltz"
author = "The sklearn_boltz developers"
copyright = author
with (Path(__file__).parents[1] / "pyproject.toml").open("rb") as file:
    CONFIGURATION = tomllib.load(file)
release = CONFIGURATION["project"]["version"]
version = ".".join(release.split(".")[:2])

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "sphinx_copybutton",
    "sphinx_design",
    "markdown_page",
    "other_projects",
    "parameter_groups",
    "thumbnails",
]
if os.environ.get("SKLEARN_BOLTZ_DOC_INTERSPHINX"):
    extensions.append("sphinx.ext.intersphinx")
intersphinx_mapping = {
    "python": ("https://docs.python.org/3", None),
    "numpy": ("https://numpy.org/doc/stable", None),
    "scipy": ("https://docs.scipy.org/doc/scipy", None),
    "sklearn": ("https://scikit-learn.org/stable", None),
    "pandas": ("https://pandas.pydata.org/docs", None),
    "joblib": ("https://joblib.readthedocs.io/en/stable", None),
}

root_doc = "index"
templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates", "**/GALLERY_HEADER.rst"]
default_role = "py:obj"  # names in docstrings are links where they are public
add_module_names = False

# API pages.
autosummary_generate = True
autodoc_typehints = "none"
autodoc_preserve_defaults = True
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
# An attribute that is a property has the description of its class, like all others, and not the
# first sentence of its own docstring.
process_param = SphinxDocString._process_param
SphinxDocString._process_param = lambda self, param, desc, _: process_param(
    self, param, desc, False
)
# Types of parameters that are links. Most of numpydoc's own need inventories.
DEFAULT_LINKS.clear()
numpydoc_xref_param_type = True
numpydoc_xref_ignore = "all"
numpydoc_xref_aliases = {
    "ndarray": "numpy.ndarray",
    "Generator": "numpy.random.Generator",
    "RandomState": "numpy.random.RandomState",
    "DataFrame": "pandas.DataFrame",
    "Bunch": "sklearn.utils.Bunch",
    "UnitType": "sklearn_boltz.units.UnitType",
}
# The pages of the guide that an API page leads to.
NETWORKS = ["user_guide/networks", "user_guide/fvbm"]
DATA = ["user_guide/tables", "user_guide/columns"]
GUIDE = {
    "FSLLDensity": ["user_guide/fsll", "user_guide/density"],
    "FVBMPseudoLikelihood": NETWORKS,
    "SparseFVBM": NETWORKS,
    "MaximumEntropy": ["user_guide/fvbm", "user_guide/how_to/spikes"],
    "SDCPRBM": ["user_guide/density", "user_guide/tuning", "user_guide/rbm"],
    "TAPRBM": ["user_guide/tap", "user_guide/tuning"],
    "TAPDBM": ["user_guide/tap", "user_guide/tuning"],
    "InfiniteRBM": ["user_guide/infinite_rbm", "user_guide/choosing"],
    "BoltzmannImputer": DATA,
    "BoltzmannClassifier": ["user_guide/classification"],
    "BoltzmannOutlierDetector": ["user_guide/outliers"],
    "RBMClassifier": ["user_guide/classification"],
    "Batches": ["user_guide/scale"],
    "log_likelihood": ["user_guide/likelihood", "user_guide/tuning"],
    "log_pseudo_likelihood": ["user_guide/likelihood", "user_guide/tuning"],
    "tap_log_likelihood": ["user_guide/tap", "user_guide/tuning"],
    "mutational_effect": ["user_guide/how_to/alignments"],
    "sequence_weights": ["user_guide/how_to/alignments"],
    "fwht": ["user_guide/fsll"],
    "make_alignment": ["user_guide/how_to/alignments"],
    "read_alignment": ["user_guide/how_to/alignments"],
    "ContactMapDisplay": ["user_guide/how_to/alignments"],
    "CouplingDisplay": ["user_guide/networks"],
    "HistoryDisplay": ["user_guide/likelihood", "user_guide/how_to/progress_bars"],
    "LadderDisplay": ["user_guide/likelihood"],
    "LandscapeDisplay": ["user_guide/tap"],
    "MomentsDisplay": ["user_guide/how_to/spikes", "user_guide/samples"],
    "PairEffectDisplay": ["user_guide/networks"],
    "ReceptiveFieldDisplay": ["user_guide/rbm"],
    "SampleDisplay": ["user_guide/samples"],
}
for name in statistics.__all__:
    GUIDE[name] = NETWORKS
for name in ["local_minima", "thermodynamics"]:
    GUIDE[name] = ["user_guide/fvbm", "user_guide/how_to/ising"]
for name in [
    "autocorrelation_time",
    "estimate_inverse_temperature",
    "r_hat",
    "swendsen_wang",
    "to_bqm",
    "to_ising",
]:
    GUIDE[name] = ["user_guide/how_to/annealer", "user_guide/how_to/ising"]
for unit in ["Bernoulli", "Categorical", "Gaussian", "Stacked", "TruncatedGaussian"]:
    GUIDE[unit] = [*DATA, "user_guide/units"]
for unit in ["TruncatedGaussBernoulli", "UnitType"]:
    GUIDE[unit] = ["user_guide/units", "user_guide/tap"]
# Properties of classes that are not listed among the attributes of their docstrings.
PROPERTIES = {}
for module in [sklearn_boltz, batches, statistics, inspection, restricted, units]:
    for class_name, of_class in inspect.getmembers(module, inspect.isclass):
        own = inspect.getmembers(of_class, lambda member: isinstance(member, property))
        own = [name for name, _ in own if not name.startswith("_") and not name.endswith("_")]
        if own:
            PROPERTIES[class_name] = own
# What every scikit-learn estimator has is not repeated on each page.
autosummary_context = {
    "guide": GUIDE,
    "properties": PROPERTIES,
    "common_methods": sorted(
        name
        for name in {*dir(BaseEstimator), *dir(TransformerMixin), "set_callbacks"}
        if not name.startswith("_") and name != "fit_transform"
    ),
}

# Gallery.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"__init__\.py|quick_start\.py",
    "doc_module": ("sklearn_boltz",),
    "backreferences_dir": os.path.join("api", "generated", "backreferences"),
    "within_subsection_order": "FileNameSortKey",
    "minigallery_sort_order": "thumbnails.place",
    "plot_gallery": True,
    "parallel": True,  # as many as -j
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "reset_modules": ("thumbnails.use_style",),
    "min_reported_time": 1000,
    "write_computation_times": False,
    "remove_config_comments": True,
    # What draws has shown itself.
    "ignore_repr_types": r"matplotlib|sklearn_boltz\.inspection",
    "image_srcset": ["2x"],
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# HTML.
html_theme = "pydata_sphinx_theme"
html_title = f"sklearn_boltz {version}"
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_show_sourcelink = False
html_copy_source = False
REPOSITORY = CONFIGURATION["tool"]["sklearn_boltz"]["repository"]
html_theme_options = {
    "external_links": [{"name": "Repository", "url": REPOSITORY}] if REPOSITORY else [],
    "navbar_end": ["theme-switcher", "navbar-icon-links"],
    "logo": {"text": "sklearn_boltz"},
    "navbar_align": "left",
    "navbar_persistent": ["search-button"],
    "header_links_before_dropdown": 6,
    "show_nav_level": 1,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "secondary_sidebar_items": ["page-toc"],
}
# Room for lines of code and for tables; the gallery's pages lead on to one another.
WIDE = [
    *["index", "install", "gallery", "how_good", "benchmarks", "cite", "contributing", "security"],
    "auto_examples/*",
]
html_sidebars = {page: [] for page in WIDE}
html_math_renderer = "mathml"


def mathml(node, *, as_block):
    """Translate a formula to MathML, which browsers show without a script or a network."""
    source = node.astext().replace(r"\dots", r"\ldots")
    try:
        return tex2mathml(source, as_block=as_block)
    except MathError as error:
        logger.warning("formula %r: %s", source, error, location=node)
        return f"<code>{escape(source)}</code>"


def visit_inline_math(translator, node):
    """Write a formula within a line."""
    translator.body.append(mathml(node, as_block=False))
    raise nodes.SkipNode


def visit_displayed_math(translator, node):
    """Write a displayed formula, with its number if it has one."""
    translator.body.append(translator.starttag(node, "div", CLASS="math-block"))
    translator.body.append(mathml(node, as_block=True))
    if node["number"]:
        translator.body.append(f'<span class="eqno">({node["number"]})</span>')
    translator.body.append("</div>\n")
    raise nodes.SkipNode


class PlainQuotesInTypes(SphinxTransform):
    """Leave the quotes in the types of parameters as they are in code: default="auto"."""

    default_priority = 740  # before the typographic quotes

    def apply(self):
        """Exclude the types, which are the classifiers of definition lists."""
        for node in self.document.findall(nodes.classifier):
            node["support_smartquotes"] = False


def drop_modules_without_source(app):
    """Keep compiled modules out of the list of sources, which has no page for them."""
    sources = getattr(app.env, "_viewcode_modules", {})
    for name in [name for name, source in sources.items() if not source]:
        del sources[name]
    return []


def setup(app):
    """Register the renderer of formulas, and what goes before the pages of the sources."""
    app.connect("html-collect-pages", drop_modules_without_source, priority=400)
    app.add_transform(PlainQuotesInTypes)
    app.add_html_math_renderer("mathml", (visit_inline_math, None), (visit_displayed_math, None))
