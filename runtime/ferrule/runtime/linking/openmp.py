"""Loads the OpenMP runtime of an installed package, so that generated code finds it.

Generated code finds a runtime that the process has loaded, or that the system's loader finds. A
package installs its runtime into a folder that the loader does not search: `offer` loads it.
"""

from __future__ import annotations

import ctypes
import os
import site
import sys
from functools import cache
from typing import Final

_FILE: Final = "libiomp5.so"
"""The library of the package intel-openmp, which is the extra `openmp` on x86-64."""


@cache
def offer() -> str | None:
    """Load the runtime of an installed package, once; returns its path, or None if there is none.

    Only generated code uses it; other libraries keep their own runtime.  No thread is started.
    """
    user = [site.USER_BASE] if site.ENABLE_USER_SITE and site.USER_BASE else []
    for prefix in dict.fromkeys((sys.prefix, *user, sys.base_prefix)):
        path = os.path.join(prefix, "lib", _FILE)
        if os.path.exists(path):
            try:
                ctypes.CDLL(path)
            except OSError:
                continue
            return path
    return None
