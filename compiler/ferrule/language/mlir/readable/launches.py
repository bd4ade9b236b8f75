"""Launches of kernels on a GPU as `gpu.launch_func`, in the text that people read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ferrule.language.codegen.cuda.parameters import (
    KernelParameter,
    MapParameter,
    ScalarParameter,
    SymbolParameter,
    TensorParameter,
)
from ferrule.language.ir import ops
from ferrule.language.mlir import requests as outside
from ferrule.language.mlir.functions import FunctionText
from ferrule.language.mlir.readable.kernels import parameter_type, parameters
from ferrule.language.mlir.text import quoted
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class Launches:
    """Emits the launches of one program; `names` are those of its kernels in the `gpu.module`."""

    program: ops.Program
    names: Mapping[str, str]
    module: str

    def launch(self, f: FunctionText, op: ops.Launch) -> None:
        """Emits one launch.  Settings that only CUDA's launches have (priorities, events) are shown
        in a comment."""
        t, kernel = f.t, self.program.kernel(op.kernel)
        given = dict(zip(kernel.params, op.arguments, strict=True))
        arguments = [self._argument(f, each, given) for each in parameters(kernel)]
        listed = ", ".join(f"{each} : {t.types[each]}" for each in arguments)
        said = op.options.words
        if said or op.priority or op.completion_event or op.programmatic_event:
            t.line(f"//{said or ' with a priority or events'}")
        stream = "" if op.stream is None else f"<{f.values[op.stream]} : !llvm.ptr> "
        clusters = f" clusters in {_sizes(f, op.cluster)}" if op.cluster else ""
        sizes = f"{clusters} blocks in {_sizes(f, op.grid)} threads in {_sizes(f, op.block)}"
        smem = ""
        if op.smem is not None:
            smem = f" dynamic_shared_memory_size {t.cast('trunci', f.values[op.smem], 'i32')}"
        name = f"@{self.module}::@{quoted(self.names[kernel.name])}"
        t.line(f"gpu.launch_func {stream}{name}{sizes}{smem} args({listed})")

    def _argument(
        self, f: FunctionText, parameter: KernelParameter, given: Mapping[ops.Value, ops.Value]
    ) -> str:
        match parameter:
            case TensorParameter(value):
                found, kind = f.values[given[value]], parameter_type(self.program, parameter)
                if f.t.types[found] == kind:
                    return found
                text = f"memref.cast {found} : {f.t.types[found]} to {kind}"
                return f.t.op(text, kind)
            case ScalarParameter(value):
                return f.values[given[value]]
            case SymbolParameter(symbol):
                return f.t.as_index(f.dim(symbol))
            case MapParameter(value, boxes):
                return outside.tensor_map(f, given[value], boxes)


def _sizes(f: FunctionText, sizes: Sequence[ops.Value]) -> str:
    return f"({', '.join(f.t.as_index(f.values[size]) for size in sizes)})"
