"""Configuration of Sphinx. The pages are Markdown; `make docs` builds them, warnings are errors."""

from __future__ import annotations

import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# The pages of `reference/` are made anew: what is public, and its docstrings, are in the source.
runpy.run_path(str(ROOT / "docs/reference.py"))["write"](ROOT / "docs/reference")

project = "ferrule"
author = "the authors of ferrule"
copyright = author
release = version = runpy.run_path(str(ROOT / "specs/ferrule/specs/_version.py"))["__version__"]

extensions = ["myst_parser"]
myst_enable_extensions = ["deflist"]
exclude_patterns = ["_build"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = f"ferrule {release}"
html_copy_source = False
