"""Configuration of Sphinx.

The documentation builds without network. Links to the documentation of other projects are
made where the environment variable ``SKLEARN_BOLTZ_DOC_INTERSPHINX`` is set.
"""

import os
from html import escape
from importlib.metadata import version as version_of

import matplotlib
from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sklearn.base import BaseEstimator, TransformerMixin
from sphinx.util import logging

logger = logging.getLogger(__name__)

matplotlib.use("agg")

project = "sklearn_boltz"
author = "The sklearn_boltz developers"
copyright = author
release = version_of("sklearn_boltz")
version = ".".join(release.split(".")[:2])

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "sphinx_copybutton",
    "sphinx_design",
]
if os.environ.get("SKLEARN_BOLTZ_DOC_INTERSPHINX"):
    extensions.append("sphinx.ext.intersphinx")
intersphinx_mapping = {
    "python": ("https://docs.python.org/3", None),
    "numpy": ("https://numpy.org/doc/stable", None),
    "scipy": ("https://docs.scipy.org/doc/scipy", None),
    "sklearn": ("https://scikit-learn.org/stable", None),
    "joblib": ("https://joblib.readthedocs.io/en/stable", None),
}

root_doc = "index"
templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates", "**/GALLERY_HEADER.rst"]
default_role = "literal"
add_module_names = False

# API pages.
autosummary_generate = True
autodoc_typehints = "none"
autodoc_preserve_defaults = True
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
# What every scikit-learn estimator has is not repeated on each page.
autosummary_context = {
    "common_methods": sorted(
        name
        for name in {*dir(BaseEstimator), *dir(TransformerMixin), "set_callbacks"}
        if not name.startswith("_") and name != "fit_transform"
    )
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
    "plot_gallery": True,
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
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
html_theme_options = {
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
WIDE = "index", "install", "developer_guide", "reproduced", "auto_examples/*"
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


def setup(app):
    """Register the renderer of formulas."""
    app.add_html_math_renderer("mathml", (visit_inline_math, None), (visit_displayed_math, None))
