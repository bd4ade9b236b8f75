"""Launches of kernels on a GPU as `gpu.launch_func`, with the structs that the kernels take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ferrule.language.codegen.cuda.parameters import (
    KernelParameter,
    MapParameter,
    ScalarParameter,
    SymbolParameter,
    TensorParameter,
    kernel_parameters,
)
from ferrule.language.ir import ops
from ferrule.language.mlir import memory, outside
from ferrule.language.mlir.device import dim_type, parameter_type
from ferrule.language.mlir.functions import FunctionText
from ferrule.specs import Boolean, Dim
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class Launches:
    """Emits the launches of one program; `names` are those of its kernels in the `gpu.module`."""

    program: ops.Program
    names: Mapping[str, str]
    module: str

    def fails(self, op: ops.Launch) -> bool:
        """Whether a launch may end the host function: it may if a parameter is a tensor map."""
        parameters = kernel_parameters(self.program.kernel(op.kernel))
        return any(isinstance(each, MapParameter) for each in parameters)

    def launch(self, f: FunctionText, op: ops.Launch) -> None:
        """Emits one launch.  Settings that only CUDA's launches have (priorities, events) are shown
        in a comment."""
        t, kernel = f.t, self.program.kernel(op.kernel)
        given = dict(zip(kernel.params, op.arguments, strict=True))
        arguments = [_argument(f, each, given) for each in kernel_parameters(kernel)]
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
        name = f'@{self.module}::@"{self.names[kernel.name]}"'
        t.line(f"gpu.launch_func {stream}{name}{sizes}{smem} args({listed})")


def _sizes(f: FunctionText, sizes: Sequence[ops.Value]) -> str:
    return f"({', '.join(f.t.as_index(f.values[size]) for size in sizes)})"


def _argument(
    f: FunctionText,
    parameter: KernelParameter,
    given: Mapping[ops.Value, ops.Value],
) -> str:
    t, kind = f.t, parameter_type(parameter)
    match parameter:
        case TensorParameter(value):
            found = t.op(f"llvm.mlir.poison : {kind}", kind)
            found = _inserted(f, memory.pointer(f, given[value]), found, "0")
            for number in parameter.numbers():
                size, place = _size(f, number.dim), ", ".join(map(str, number.positions))
                found = _inserted(f, size, found, place)
            return found
        case ScalarParameter(value):
            scalar = f.values[given[value]]
            return t.cast("extui" if value.type is Boolean else "bitcast", scalar, kind)
        case SymbolParameter(symbol):
            return _size(f, symbol)
        case MapParameter(value, boxes):
            return outside.tensor_map(f, given[value], boxes)


def _inserted(f: FunctionText, part: str, into: str, place: str) -> str:
    kind = f.t.types[into]
    return f.t.op(f"llvm.insertvalue {part}, {into}[{place}] : {kind}", kind)


def _size(f: FunctionText, dim: Dim) -> str:
    """A size in the type that it has in a parameter."""
    return f.t.cast("trunci", f.dim(dim), dim_type(dim))
