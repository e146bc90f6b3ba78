"""Sphinx: the documentation site. ``make docs`` builds it."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from bench import __version__

project = "bench"
author = "The bench authors"
copyright = "the bench authors, Apache-2.0"
release = version = __version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "cards",
]
exclude_patterns = ["examples", "_build"]
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb"}

nb_execution_mode = "off"
"""The notebook's outputs are stored with it; CI runs its cells and compares."""
myst_enable_extensions = ["attrs_block", "attrs_inline", "colon_fence"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_class_signature = "separated"
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = "bench"
html_static_path = ["../bench/site/assets/logo.svg", "site.css"]
html_css_files = ["site.css"]
html_logo = html_favicon = "../bench/site/assets/logo.svg"
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True, "top_of_page_buttons": []}
