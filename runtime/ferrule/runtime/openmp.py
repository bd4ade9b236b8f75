"""An OpenMP runtime that a package has brought, made known to generated code.

Generated code finds a runtime that the process has loaded, or that the loader of the system knows.
Packages put theirs into a folder that the loader does not search: `offer` loads it from there.
"""

from __future__ import annotations

import ctypes
import os
import site
import sys
from functools import cache
from typing import Final

_FILE: Final = "libiomp5.so"
"""What the package intel-openmp installs, the extra `openmp` on x86-64."""


@cache
def offer() -> str | None:
    """Load the runtime of an installed package, once; its path, None where there is none.

    Only generated code sees it: other libraries keep theirs.  No thread is started.
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
