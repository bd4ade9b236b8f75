"""Configuration of Sphinx. The pages are Markdown; `make docs` builds them, warnings are errors."""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# The pages of `reference/` are made anew: what is public, and its docstrings, are in the source.
runpy.run_path(str(ROOT / "docs/reference.py"))["write"](ROOT / "docs/reference")

project = "ferrule"
author = "the authors of ferrule"
copyright = author
release = version = runpy.run_path(str(ROOT / "specs/ferrule/specs/_version.py"))["__version__"]

# Of notebooks and Markdown: https://myst-nb.readthedocs.io
extensions = ["myst_nb"]
myst_enable_extensions = ["deflist"]
exclude_patterns = ["_build", "*.py", "gallery/plots.py"]

# ---- the gallery: programs with cells, which the build runs ----

sys.path.insert(0, str(ROOT / "docs"))
lacking = runpy.run_path(str(ROOT / "docs/cells.py"))["lacking"]

nb_custom_formats = {".py": "cells.read"}
nb_execution_mode = "force"
nb_execution_timeout = 120
nb_execution_raise_on_error = True
nb_execution_excludepatterns = [
    f"gallery/{each.name}" for each in ROOT.glob("docs/gallery/*.py") if lacking(each)
]
nb_ipywidgets_js = {}  # nothing from elsewhere
nb_merge_streams = True
nb_number_source_lines = False
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))  # for its processes
myst_heading_anchors = 3
html_theme = "furo"
html_title = f"ferrule {release}"
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["pages.css"]
