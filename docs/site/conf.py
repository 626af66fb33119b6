"""Settings of Sphinx; `make docs` assembles the pages and builds the site from them."""

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from docs.site import source_pages  # noqa: E402 - the folder of the repository is known only now

project = "Discreet"
author = "the authors of Discreet"
html_title = "Discreet"
extensions = ["myst_parser", "sphinx.ext.linkcode"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
linkcode_resolve = source_pages.linkcode_resolve

smartquotes = False  # two hyphens are an option, not a dash
add_module_names = False
python_use_unqualified_type_names = True  # pages write them in full, so that links are right
python_maximum_signature_line_length = 88
highlight_language = "text"  # a block that says nothing is for a terminal

html_theme = "furo"
html_static_path = [str(Path(__file__).parent / "static")]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b5fa5", "color-brand-content": "#0b5fa5"},
    "dark_css_variables": {"color-brand-primary": "#7cc0ff", "color-brand-content": "#7cc0ff"},
}


def setup(app: Any) -> None:
    """Adds pages of source."""
    app.connect("build-finished", source_pages.write_source_pages)
