"""LLVM IR of kernels to PTX, in a separate process.

LLVM aborts the process if a back end has no instruction for an operation, such as NVPTX for
`llvm.exp`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ferrule.compiler.errors import CompileError
from ferrule.compiler.mlir.child import alone
from ferrule.compiler.mlir.diagnostics import Step
from ferrule.compiler.mlir.session import Report

_KNOWN: Final = ("llvm.", "__nvvm_reflect", "vprintf", "__assertfail")
"""Functions that LLVM or the driver replaces."""


def to_ptx(texts: str | Sequence[str], archs: Sequence[str], opt_level: int = 3) -> dict[str, str]:
    """The PTX of modules together, by architecture, each one of `archs.known_archs`.

    Functions of libdevice that they call become part of it.  Raises CompileError for a text that is
    not LLVM IR, for an undefined function, for an operation that PTX has no instruction for, and if
    there is no libdevice.
    """
    each = (texts,) if isinstance(texts, str) else tuple(texts)
    return alone(_to_ptx, each, tuple(archs), opt_level)


def _to_ptx(
    report: Report, texts: tuple[str, ...], archs: tuple[str, ...], opt_level: int
) -> dict[str, str]:
    return {arch: _ptx(report, texts, arch, opt_level) for arch in archs}


def _ptx(report: Report, texts: tuple[str, ...], arch: str, opt_level: int) -> str:
    from llvmlite import binding as llvm

    from ferrule.compiler.cuda import archs
    from ferrule.compiler.cuda.libdevice import link_libdevice
    from ferrule.compiler.cuda.selection import select_ptx
    from ferrule.runtime.llvm.passes import link_in, run_pipeline

    report(Step("read the kernels", "", "LLVM"))
    machine = archs.machine(arch, archs.features(arch, texts), opt_level)
    context = llvm.create_context()
    try:
        module, *others = (llvm.parse_assembly(text, context) for text in texts)
        for other in others:
            link_in(module, other)
        module.triple, module.data_layout = archs.TRIPLE, str(machine.target_data)
        module.verify()
    except RuntimeError as error:
        raise CompileError(f"LLVM cannot read the kernels: {error}") from None
    with module:
        link_libdevice(module, context)
        _require_functions(module)
        report(Step(f"make PTX of the kernels for {arch}", "", "LLVM"))
        options = llvm.create_pipeline_tuning_options(speed_level=min(opt_level, 3))
        run_pipeline(module, machine, options)
        return select_ptx(module, machine, context)


def _require_functions(module: object) -> None:
    """Raise CompileError for a function that PTX would only declare."""
    functions = module.functions  # type: ignore[attr-defined]
    missing = [each.name for each in functions if each.is_declaration]
    missing = [name for name in missing if not name.startswith(_KNOWN)]
    if missing:
        raise CompileError(f"the kernels call {', '.join(missing)}, which is nowhere")
