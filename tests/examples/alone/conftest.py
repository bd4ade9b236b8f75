"""The programs of examples/cute, on the CPU and on an emulated GPU.

A process finds one libcuda, and other tests have a stand-in of their own: so these files run in a
process of their own, from tests/examples/test_alone.py. By hand:

    FERRULE_ALONE=1 python -m pytest tests/examples/alone
"""

from __future__ import annotations

import os

collect_ignore_glob = [] if os.environ.get("FERRULE_ALONE") else ["test_*.py"]
