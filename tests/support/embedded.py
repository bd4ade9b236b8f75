"""The example of the guide to embedding."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

EXAMPLE = Path(__file__).parents[2] / "examples" / "tiny_dsl.py"


@cache
def tiny_dsl() -> ModuleType:
    """The tiny language of the guide."""
    spec = importlib.util.spec_from_file_location("tiny_dsl", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
