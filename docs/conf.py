"""How the pages are built: `make docs`."""

from __future__ import annotations

import logging
import sys
import warnings
from pathlib import Path
from typing import Any

import cloakgp

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))
# The report on the papers is made of items and kept results in experiments/.
sys.path.insert(0, str(HERE.parent))

project = "cloakgp"
author = "The cloakgp authors"
copyright = "The cloakgp authors. BSD-3-Clause"
version = release = cloakgp.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "examples_first",
    "mathml",
    "proofs",
    "refusals",
    "thumbnails",
    "reproduction",
]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
exclude_patterns = ["auto_examples/**/*.ipynb", "auto_examples/**/*.py", "auto_examples/**/*.md5"]
templates_path = ["_templates"]

html_theme = "furo"
html_math_renderer = "mathml"
html_title = "cloakgp"
html_static_path = ["_static", "../experiments/reproduction/kept/pictures"]
# JSON Schemas of what commands write, beside the pages.
html_extra_path = ["../src/cloakgp/report/schemas"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_search_scorer = str(HERE / "scorer.js")

myst_enable_extensions = ["deflist", "colon_fence", "dollarmath", "amsmath"]
myst_heading_anchors = 3
default_role = "autolink"
autodoc_typehints = "none"
autosummary_generate = True
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf: dict[str, Any] = {
    "examples_dirs": "../gallery",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "gallery_order.by_teaching",
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 30,
    "download_all_examples": False,
    # Its page of times would load scripts from elsewhere.
    "write_computation_times": False,
    "abort_on_example_error": False,
    "only_warn_on_example_error": False,
    "plot_gallery": "True",
    "capture_repr": ("_repr_html_", "__repr__"),
    # A display is its picture, which is shown already.
    "ignore_repr_types": r"cloakgp\.plots|matplotlib",
    "image_srcset": ["2x"],
    "reset_modules": ("matplotlib",),
}

linkcheck_anchors = False
linkcheck_timeout = 20
linkcheck_retries = 2

# Who runs a database or a cluster tells of each step.
for busy in ("alembic", "distributed"):
    logging.getLogger(busy).setLevel(logging.WARNING)
# What examples warn of is about the examples, which are read beside it.
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")


def _is_of_scikit_learn(
    app: Any, what: str, name: str, thing: Any, skip: bool, options: Any
) -> Any:
    """Leave out what estimators inherit from scikit-learn: it is described there."""
    del app, what, name, options
    module = getattr(thing, "__module__", None) or ""
    return True if module.startswith("sklearn") else skip


def setup(app: Any) -> None:
    """Connect what is above."""
    app.connect("autodoc-skip-member", _is_of_scikit_learn)
