"""Kernels that are launched differently on different GPUs.

Triton chooses shared memory, warps and tensor maps for each architecture: if these differ, a
function has a launch for each, and the GPU of the call selects one.  The compute capability is
queried once for each device, and the choice is cached.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from llvmlite import ir

from ferrule.compiler.artefacts import Fault, literal
from ferrule.compiler.conventions.base import Call
from ferrule.compiler.conventions.protocol import CallingConvention
from ferrule.compiler.cuda.code import DeviceCode
from ferrule.compiler.cuda.launcher.driver import CALLS, LIBRARY, Attribute
from ferrule.compiler.cuda.launcher.images import images_of
from ferrule.compiler.cuda.launcher.libcuda import RTLD_NOW
from ferrule.compiler.cuda.launcher.state import MAX_DEVICES
from ferrule.frontends.triton.offline import Compiled
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I1, I32, I64, PTR
from ferrule.specs import Condition, Param
from ferrule.specs.deferred import dataclass

_CAPABILITY: Final = "triton_capability"
_TYPE: Final = ir.FunctionType(I32, [I32])


@dataclass(frozen=True, slots=True)
class ByArchitecture:
    """Executes the launch for the GPU of the call; the call raises CudaError if there is none.

    `choices` are the launches of `compiled`, in the same order, the oldest architecture first.
    """

    name: str
    compiled: tuple[Compiled, ...]
    choices: tuple[CallingConvention, ...]
    when: Condition | None = None

    def codes(self) -> Sequence[DeviceCode]:
        """See `CallingConvention`."""
        return [code for choice in self.choices for code in choice.codes()]

    def results(self) -> Sequence[Param]:
        """See `CallingConvention`."""
        return ()

    def emit(self, call: Call) -> None:
        """See `CallingConvention`."""
        e = call.emitter
        wanted = e.call(self._define_choice(e), [call.device], "choice")
        done = e.block("launched")
        for number, choice in enumerate(self.choices):
            on, other = e.block("for.arch"), e.block("other.arch")
            e.cond_branch(e.icmp("eq", wanted, e.const_i32(number)), on, other)
            e.at(on)
            archs = ", ".join(self.compiled[number].code.archs)
            with call.steps.block(f"on a GPU that runs {archs}:"):
                call.make(choice)
            e.branch(done)
            e.at(other)
        own = e.builder.neg(e.builder.sext(wanted, I64))
        ten = e.const_i64(10)
        shown = [e.builder.udiv(own, ten), e.builder.urem(own, ten)]
        call.refuse(ir.Constant(I1, 1), self._none(), shown)
        e.branch(done)
        e.at(done)

    def _define_choice(self, e: Emitter) -> ir.Function:
        """`i32 triton_choice(i32 device)`: the number of the choice for a device; if there is none,
        the negative of ten times its compute capability.

        On a machine without a driver or a GPU the result is the first choice, whose launch reports
        the error.
        """
        table = ir.GlobalVariable(
            e.module, ir.ArrayType(I32, MAX_DEVICES), e.module.get_unique_name("triton.known")
        )
        table.linkage = "internal"
        table.initializer = ir.Constant(table.value_type, None)
        table.type = PTR
        name = e.module.get_unique_name("triton.choice")
        with e.define(name, I32, [I32], linkage="internal") as function:
            (device,) = function.args
            place = e.index(table, I32, e.builder.zext(device, I64))
            is_kept = e.icmp("ult", device, e.const_i32(MAX_DEVICES))
            with e.if_then(is_kept, likely=True):
                # The number of the choice plus one: 0 means that it is not known yet.
                known = e.builder.load_atomic(place, "monotonic", 4, typ=I32)
                with e.if_then(e.icmp("sgt", known, e.const_i32(0)), likely=True):
                    e.ret(e.binary("sub", known, e.const_i32(1)))
            own = e.call(_capability(e), [device], "capability")
            with e.if_then(e.icmp("eq", own, e.const_i32(0)), likely=False):
                e.ret(e.const_i32(0))
            number = self._served(e, own)
            none = e.icmp("slt", number, e.const_i32(0))
            with e.if_then(e.binary("and", is_kept, e.not_(none))):
                more = e.binary("add", number, e.const_i32(1))
                e.builder.atomic_rmw("xchg", place, more, "monotonic")
            e.ret(e.select(none, e.builder.neg(own), number))
        return function

    def _served(self, e: Emitter, own: ir.Value) -> ir.Value:
        """The number of the choice for a compute capability, -1 if there is none."""
        number: ir.Value = e.const_i32(-1)
        for capability in sorted(self._capabilities(), reverse=True):
            best = self._best(capability)
            if best is not None:
                known = e.icmp("eq", own, e.const_i32(capability))
                number = e.select(known, e.const_i32(best), number)
        return number

    def _capabilities(self) -> set[int]:
        """The compute capabilities that exist, as far as they are known."""
        own = {image.number for each in self.compiled for image in images_of(each.code)}
        return own | {*range(80, 90), *range(90, 100), *range(100, 130)}

    def _best(self, capability: int) -> int | None:
        """The choice whose image for this GPU is the newest."""
        found = [
            (max(image.number for image in images_of(each.code)), number)
            for number, each in enumerate(self.compiled)
            if each.serves(capability)
        ]
        return max(found)[1] if found else None

    def _none(self) -> Fault:
        archs = ", ".join(arch for each in self.compiled for arch in each.code.archs)
        message = (
            f"{literal(self.name)} was compiled for {literal(archs)}, but the GPU has compute "
            "capability {}.{}"
        )
        return Fault("CudaError", message)


def _capability(e: Emitter) -> ir.Function:
    """`i32 triton_capability(i32 device)`: ten times the compute capability, 0 if it is not
    available.

    Device -1 stands for the current device, or for device 0 if there is none.
    """
    if _CAPABILITY not in e.module.globals:
        attributes = ("cold", "noinline")
        with e.define(
            _CAPABILITY, I32, [I32], linkage="internal", attributes=attributes
        ) as function:
            e.ret(_asked(e, function.args[0]))
    return e.symbol(_CAPABILITY, _TYPE)


def _asked(e: Emitter, device: ir.Value) -> ir.Value:
    """The compute capability from the driver; the function returns 0 if the driver does not give
    it."""
    library = e.call("dlopen", [e.cstring(LIBRARY), e.const_i32(RTLD_NOW)])
    with e.if_then(e.is_null(library), likely=False):
        e.ret(e.const_i32(0))
    functions = {}
    for name in ("cuInit", "cuCtxGetDevice", "cuDeviceGetAttribute"):
        functions[name] = e.call("dlsym", [library, e.cstring(name)])
        with e.if_then(e.is_null(functions[name]), likely=False):
            e.ret(e.const_i32(0))

    def ask(name: str, *arguments: ir.Value) -> None:
        result = e.call_pointer(functions[name], CALLS[name], list(arguments))
        with e.if_then(e.icmp("ne", result, e.const_i32(0)), likely=False):
            e.ret(e.const_i32(0))

    ask("cuInit", e.const_i32(0))
    ordinal, value = e.alloca(I32, name="ordinal"), e.alloca(I32, name="value")
    e.store(device, ordinal)
    with e.if_then(e.icmp("slt", device, e.const_i32(0))):
        e.store(e.const_i32(0), ordinal)
        name = "cuCtxGetDevice"
        e.call_pointer(functions[name], CALLS[name], [ordinal])
    found = []
    for attribute in (Attribute.COMPUTE_CAPABILITY_MAJOR, Attribute.COMPUTE_CAPABILITY_MINOR):
        which = [e.const_i32(attribute), e.load(ordinal, I32)]
        ask("cuDeviceGetAttribute", value, *which)
        found.append(e.load(value, I32))
    return e.binary("add", e.binary("mul", found[0], e.const_i32(10)), found[1])
