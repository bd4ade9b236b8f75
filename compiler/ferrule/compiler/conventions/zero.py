"""`Zero`: fills memory with zeros, for code that accumulates or writes only a part."""

from __future__ import annotations

from llvmlite import ir

from ferrule.compiler.conventions.arguments import shown
from ferrule.compiler.conventions.base import Call
from ferrule.compiler.conventions.protocol import PlainStep
from ferrule.compiler.cuda.launcher.faults import failures
from ferrule.runtime.abi import DeviceType
from ferrule.runtime.llvm.layouts import I32
from ferrule.specs import Condition, Data, Param, Tensor, compact_strides
from ferrule.specs.conditions import checked_condition
from ferrule.specs.deferred import dataclass
from ferrule.specs.params import EnvStream, Stream


@dataclass(frozen=True, slots=True, init=False)
class Zero(PlainStep):
    """Sets all bytes of these tensors to 0: on the CPU at once, on a GPU in the order of `stream`,
    by default the caller's current stream.

        Sequence([Zero(partial), first, second], temporaries=[partial])

    A tensor is a parameter, a result, a temporary, or the `.data` of one, compact and row-major; on
    a GPU it needs a function that launches kernels there.  `zero=` of `build` does it for results.
    Raises TypeError for other objects, ValueError for an empty list, and for tensors that are
    read-only or not compact.
    """

    tensors: tuple[Tensor, ...]
    stream: Param | None
    when: Condition | None

    def __init__(
        self,
        *tensors: Tensor | Data,
        stream: Param | None = None,
        when: Condition | None = None,
    ) -> None:
        if not tensors:
            raise ValueError("Zero: expected a tensor, Zero(y)")
        if stream is not None and not isinstance(stream, (Stream, EnvStream)):
            raise TypeError(f"Zero: stream must be a stream parameter, but got {shown(stream)}")
        object.__setattr__(self, "tensors", tuple(map(_checked, tensors)))
        object.__setattr__(self, "stream", stream)
        object.__setattr__(self, "when", None if when is None else checked_condition(when))

    def emit(self, call: Call) -> None:
        """See `CallingConvention`."""
        for tensor in self.tensors:
            fill(call, tensor, None if self.stream is None else call.leaves(self.stream)[0])


def _checked(given: object) -> Tensor:
    tensor = given.tensor if isinstance(given, Data) and given.offset == 0 else given
    if not isinstance(tensor, Tensor):
        raise TypeError(f"Zero: expected a tensor, or the .data of one, but got {shown(given)}")
    if tensor.read_only:
        raise ValueError(f"Zero: {tensor.name} is read-only")
    if tensor.strides != compact_strides(tensor.shape, range(len(tensor.shape))[::-1]):
        raise ValueError(f"Zero: {tensor.name} has strides of its own, and gaps are not filled")
    return tensor


def fill(call: Call, tensor: Tensor, stream: ir.Value | None) -> None:
    """Emit code that sets all bytes of a compact tensor to 0.

    Raises ValueError for a tensor on a GPU in a function without launches.
    """
    e, at = call.emitter, call.address(tensor.data)
    size = call.size(tensor.nbytes, f"the bytes of {tensor.name}")
    call.fills(tensor)
    call.say(f"fill {tensor.name} with zeros")
    device, launcher = call.device_type(tensor), call.innermost_launcher()
    managed = device is DeviceType.CUDA_MANAGED
    if call.on_host(tensor) or (managed and launcher is None):
        # The address of an empty tensor may be null, which C forbids for memset even with size 0.
        with e.if_then(e.icmp("ne", size, e.const_i64(0)), likely=True):
            e.call("memset", [at, ir.Constant(I32, 0), size])
        return
    if launcher is None or not (managed or device is DeviceType.CUDA):
        raise ValueError(
            f"{call.signature.name}: {tensor.name} is on a GPU, and nothing is launched there: "
            f"let the code that is called fill it with zeros"
        )
    on = launcher.current_stream(call.device) if stream is None else stream
    cleared = launcher.clear(at, size, on, call.values)
    call.require(cleared, failures(f"for the zeros of {tensor.name}", None))
