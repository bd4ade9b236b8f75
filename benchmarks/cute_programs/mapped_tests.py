"""Runs the tests that CuTe DSL's repository has, with ferrule in the place of `cutlass`.

    python benchmarks/cute_programs/mapped_tests.py [--gpu ARCH] ARGUMENT-OF-PYTEST...

"cuda" is an emulated GPU, as for programs.  `pycute`, whose tests are of CuTe's layouts, has
ferrule's functions by those names: a name that ferrule lacks is missing there too.
`-p no:test_sharding` leaves out a plugin of that repository, which chooses tests for its machines.
"""

from __future__ import annotations

import importlib
import os
import sys
from types import ModuleType
from typing import Any

import pytest

PLUGIN = "no:test_sharding"


def _pycute() -> ModuleType:
    """A module of the functions of layouts, with the constructor that pycute calls Layout."""
    import ferrule as fe

    def layout(shape: Any, stride: Any = None) -> Any:
        return fe.make_layout(shape) if stride is None else fe.make_layout(shape, stride=stride)

    module = ModuleType("pycute")
    vars(module).update({name: getattr(fe, name) for name in dir(fe) if name[0].islower()})
    vars(module)["Layout"] = layout
    return module


def main() -> None:
    """Runs them, and ends as pytest does."""
    given = sys.argv[1:]
    gpu = "emulated:sm_90a"
    if given[:1] == ["--gpu"]:
        gpu, given = given[1], given[2:]
    os.environ["FERRULE_GPU"] = gpu
    os.environ["TVM_FFI_SKIP_DLPACK_C_EXCHANGE_API"] = "1"
    importlib.import_module("ferrule.as_cutlass")
    sys.modules["pycute"] = _pycute()
    import cuda_torch

    cuda_torch.install()
    sys.exit(pytest.main(["-p", PLUGIN, *given]))


if __name__ == "__main__":
    main()
