"""How `make docs` builds the manual: Sphinx, from Markdown, without a network."""

from scheduler_app.version import __version__

project = "RRule Scheduler"
author = "The RRule Scheduler authors"
copyright = "the RRule Scheduler authors, MIT licence"
version = release = __version__

extensions = ["myst_parser"]
# "[text](#heading)" within a page, and "page.md#heading" between pages.
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence", "deflist"]
nitpicky = True

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["tables.css"]
html_title = "RRule Scheduler"
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "friendly"
pygments_dark_style = "github-dark"
