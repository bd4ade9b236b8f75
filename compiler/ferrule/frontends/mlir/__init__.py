"""Functions of MLIR modules: `fe.frontends.mlir.compile(module)`.

    fn = fe.frontends.mlir.compile('''
        func.func @scale(%x: memref<?xf32>, %y: memref<?xf32>, %by: f32) { … }
    ''')
    fn(x, y, 2.0)

The module is lowered by MLIR in a process of its own, see `ferrule.compiler.mlir`; what comes out,
LLVM IR or PTX, is called as any other code.  Nothing of MLIR is needed to call the function, or to
load what is exported of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from ferrule.compiler.errors import CompileError
from ferrule.compiler.mlir.child import in_child
from ferrule.compiler.options import Options, parse_options
from ferrule.frontends.given import texts
from ferrule.frontends.mlir.lowering import Lowered, Request, lower
from ferrule.frontends.mlir.modules import read_module
from ferrule.frontends.mlir.targets import require_target, with_target

if TYPE_CHECKING:
    from ferrule.runtime import Function
    from ferrule.specs import Signature

__all__ = ["compile"]

_NO_SPECS: Final[Mapping[str, Any]] = MappingProxyType({})


def compile(
    module: object,
    function: str | None = None,
    *,
    specs: Mapping[str, Any] = _NO_SPECS,
    signature: Signature | None = None,
    target: str | Sequence[str] | None = None,
    pipeline: str | None = None,
    libraries: Sequence[str] = (),
    asserts: bool = True,
    checks: bool = False,
    name: str | None = None,
    doc: str | None = None,
    options: str | Options | None = None,
) -> Function:
    """The function of an MLIR module that the `func.func` of this name is, the only public one by
    default.

    `module`: its text, which has a line break or a brace, its bytecode, the path of a file of
    either, or a module of any package's bindings.
    Parameters follow from the function's type: a memref or tensor is a tensor, a dynamic size a
    symbol, the same for sizes that the function's operations need to be the same, a strided layout
    its strides; `index`, integers and floats are numbers.
    `specs` refines some of them by name, with specs or fake tensors; `signature` says all of them.
    Tensors are not written to, unless the argument is marked `bufferization.writable = true`.

    `pipeline` lowers the module to the dialect `llvm`, as `builtin.module(…)`, in place of the
    passes of `pipelines`; where kernels are launched it gets the module with its launches
    outlined, and lowers what is in each `gpu.module`.  `libraries` have functions that the module
    only declares.  A `cf.assert` that fails is a RuntimeError of the call, and so are sizes that an
    operation cannot have; `checks=True` adds the indices of loads and stores, and all of these to a
    `pipeline`.  `asserts=False` leaves all of them out, and memory safety with them.
    `target` is "cpu", or for kernels an architecture such as "sm_90a", or several; by default the
    module says which, and the architecture is that of `FERRULE_GPU_ARCH` or the first GPU.

    Raises ImportError without MLIR, CompileError with MLIR's diagnostics for a module or pipeline
    that is wrong, for types that no argument has, for host code between launches that is no
    arithmetic of sizes, and for another target than the module's; OSError for a file that cannot be
    read, TypeError for what is no module, no text, or no list of libraries.
    """
    chosen = with_target(parse_options(options), target)
    request = Request(function, pipeline, asserts, checks)
    named = texts("libraries", libraries)
    lowered = in_child(lower, read_module(module), request)
    require_target(lowered.function.symbol, chosen, launches=bool(lowered.launches))
    # Imported here, for the process of MLIR imports this module too.
    from ferrule.compiler.building import build
    from ferrule.frontends.mlir.signatures import signature_of

    wanted = signature_of(lowered.function, name, specs, signature)
    if lowered.launches:
        from ferrule.frontends.mlir.launching import device_code, launching

        code = device_code(lowered.kernels, chosen)
        convention = launching(lowered.launches, code, wanted)
        used = replace(chosen, gpu_arch=None, cubin=False, ptxas_options="")
        return build(wanted, convention, options=used, doc=doc)
    return build(wanted, _call(lowered, wanted, named), options=chosen, doc=doc)


def _call(lowered: Lowered, signature: Signature, libraries: Sequence[str]) -> Any:
    """The convention that calls the lowered function."""
    from ferrule.compiler.conventions.memref import Memref
    from ferrule.compiler.hostcode import HostCode
    from ferrule.frontends.mlir.bfloat16 import without_bfloat
    from ferrule.frontends.mlir.float16 import with_conversions
    from ferrule.frontends.mlir.returned import returns
    from ferrule.frontends.mlir.support import with_support

    text = without_bfloat(with_conversions(with_support(lowered.host)))
    try:
        code = HostCode.from_llvm(text, libraries=libraries)
    except CompileError as error:
        raise CompileError(f"@{lowered.function.symbol} as LLVM IR: {error}") from None
    return Memref(
        lowered.function.symbol,
        signature.params,
        returns=returns(lowered.function.results),
        code=code,
        raises=lowered.raises,
    )
