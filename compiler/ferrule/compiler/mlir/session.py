"""One MLIR context: parses, runs passes, translates, and records MLIR's diagnostics.

It runs in the process of `child`: in upstream's bindings a failed translation crashes the process,
and so do assertions of passes.  Each step is reported before it begins, and diagnostics are
reported at once, so that the parent has both if the process ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from ferrule.compiler.errors import CompileError, Span
from ferrule.compiler.mlir.bindings import Bindings
from ferrule.compiler.mlir.diagnostics import UNNAMED, MlirMessage, Step, failure, span_of
from ferrule.compiler.mlir.floats import readable

Report = Callable[[MlirMessage | Step], None]


_NEWER: Final = re.compile(r"\bnocreateundeforpoison (?=[^\"\n]*\}$)", re.M)
"""Attributes that the oldest supported LLVM of llvmlite cannot read; intrinsics have them
anyway."""


class Session:
    """A context with every dialect of the bindings; made by `opened`."""

    __slots__ = ("_bindings", "_report", "_said", "_step")

    def __init__(self, bindings: Bindings, report: Report) -> None:
        self._bindings: Final = bindings
        self._report: Final = report
        self._said: list[MlirMessage] = []
        self._step = Step("")

    @property
    def ir(self) -> Any:
        """The module `ir` of the bindings."""
        return self._bindings.ir

    @property
    def package(self) -> str:
        """The name of the package with the bindings."""
        return self._bindings.package

    def parse(self, text: str | bytes, name: str = "the module", *, file: str = UNNAMED) -> Any:
        """The module of a text or of bytecode, verified; `name` and `file` are for messages.

        Raises CompileError with MLIR's lines and the place.
        """
        source = "" if isinstance(text, bytes) else text
        # Upstream reads a text up to the first NUL and silently ignores the rest.
        if "\0" in source:
            raise CompileError(f"MLIR cannot read {name}: it has a NUL at {source.index(chr(0))}")
        with self._doing(Step(f"read {name}", source, file=file)):
            return self.ir.Module.parse(text)

    def run(self, module: Any, pipeline: str, name: str = "") -> None:
        """Run passes on a module; `pipeline` is like `builtin.module(canonicalize,cse)`, and `name`
        replaces it in messages.

        Raises CompileError for an unknown pass, a wrong option, and if a pass fails.
        """
        with self._doing(Step(f"read the pipeline {pipeline!r}")):
            passes = self._bindings.passmanager.PassManager.parse(pipeline)
        with self._doing(self._next(f"run {name or f'the pipeline {pipeline!r}'}")):
            passes.run(module.operation)

    def translate(self, module: Any) -> str:
        """The LLVM IR of a module of the dialects `llvm`, `nvvm` and their like."""
        with self._doing(self._next("translate the module to LLVM IR")):
            text = str(self._bindings.llvm.translate_module_to_llvmir(module.operation))
        return readable(_NEWER.sub("", text))

    def translate_gpu(self, module: Any) -> dict[str, str]:
        """The LLVM IR of each `gpu.module` in a module, by its name; inside are `nvvm` and `llvm`.

        The operations in them are moved out of the module.
        """
        found = [each for each in module.body.operations if each.operation.name == "gpu.module"]
        return {_symbol(each): self.translate(self._outside(each)) for each in found}

    def _outside(self, gpu_module: Any) -> Any:
        """A module of its own with the operations of a `gpu.module`."""
        operation = gpu_module.operation
        outside = self.ir.Module.create(operation.location)
        for inner in list(operation.regions[0].blocks[0].operations):
            if inner.operation.name != "gpu.module_end":
                inner.operation.detach_from_parent()
                outside.body.append(inner)
        return outside

    def place(self, operation: Any) -> Span | None:
        """The source span of an operation, None if it is not known."""
        return span_of(str(operation.location), self._step)

    def _next(self, doing: str) -> Step:
        """A step on the source that was read last."""
        return replace(self._step, doing=doing)

    def hear(self, diagnostic: Any) -> bool:
        """Record a diagnostic; MLIR calls this for each."""
        self._keep(MlirMessage.of(diagnostic))
        return True

    def _keep(self, said: MlirMessage) -> None:
        if said not in self._said:
            self._said.append(said)
            self._report(said)

    @contextmanager
    def _doing(self, step: Step) -> Iterator[None]:
        self._said.clear()
        if step.source:
            self._step = step
        self._report(step)
        try:
            yield
        except (self._bindings.ir.MLIRError, ValueError, RuntimeError) as error:
            for diagnostic in getattr(error, "error_diagnostics", ()):
                self._keep(MlirMessage.of(diagnostic))
            raise CompileError(failure(step, self._said, str(error))) from None


def _symbol(operation: Any) -> str:
    return str(operation.operation.attributes["sym_name"].value)


@contextmanager
def opened(bindings: Bindings, report: Report) -> Iterator[Session]:
    """A session, whose context is current meanwhile."""
    session = Session(bindings, report)
    with bindings.ir.Context() as context:
        # Its threads would call the handler while the main thread waits for them with the GIL.
        context.enable_multithreading(False)
        context.emit_error_diagnostics = True
        handler = context.attach_diagnostic_handler(session.hear)
        try:
            yield session
        finally:
            handler.detach()
