"""For processes that a test starts: PyTorch is not there, see conftest.py."""

import sys

# tvm-ffi imports it where it is, which takes longer than most of these processes.
sys.modules["torch"] = None  # type: ignore[assignment]
