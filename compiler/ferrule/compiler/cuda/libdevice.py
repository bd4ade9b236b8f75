"""libdevice, NVIDIA's library of mathematical functions as LLVM bitcode: finding and linking it.

Its functions are those of the libdevice user's guide; a module gets only the functions that it
calls.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

from llvmlite import binding as llvm

from ferrule.compiler.cuda.assembly import find_ptxas
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.runtime.llvm.passes import link_in

PREFIX: Final = "__nv_"
_FILE: Final = "libdevice.10.bc"
_BELOW: Final = Path("nvvm") / "libdevice" / _FILE


@cache
def libdevice() -> bytes:
    """The bitcode.  CompileError if there is none."""
    for path in _places():
        if path.is_file():
            return path.read_bytes()
    raise CompileError(
        Diagnostic(
            f"there is no {_FILE}, which --libdevice needs",
            hint="install the package nvidia-cuda-nvcc, or set CUDA_HOME to a CUDA toolkit; "
            "without --libdevice ferrule's own functions are used",
        )
    )


def _places() -> Iterator[Path]:
    """The possible paths: from cuda-pathfinder, in a toolkit, or in a Python package."""
    if importlib.util.find_spec("cuda") and importlib.util.find_spec("cuda.pathfinder"):
        pathfinder = importlib.import_module("cuda.pathfinder")
        find = getattr(pathfinder, "find_bitcode_lib", None)
        try:
            found = None if find is None else find("device")
        except RuntimeError:
            found = None
        if found is not None:
            yield Path(found)
    homes = (os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH"))
    yield from (Path(home) / _BELOW for home in homes if home)
    spec = importlib.util.find_spec("nvidia")
    for folder in () if spec is None else spec.submodule_search_locations or ():
        yield from sorted(Path(folder).glob(f"*/{_BELOW}"))
    ptxas = find_ptxas()
    if ptxas is not None:
        yield Path(ptxas).resolve().parent.parent / _BELOW
    yield Path("/usr/local/cuda") / _BELOW


def link_libdevice(module: Any, context: Any) -> None:
    """Link the functions of libdevice that a module calls into it."""
    if not any(function.name.startswith(PREFIX) for function in module.functions):
        return
    kept = {function.name for function in module.functions if not function.is_declaration}
    library = llvm.parse_bitcode(libdevice(), context)
    library.triple, library.data_layout = module.triple, module.data_layout
    link_in(module, library)
    for function in module.functions:
        if not function.is_declaration and function.name not in kept:
            function.linkage = "internal"
    module.verify()
