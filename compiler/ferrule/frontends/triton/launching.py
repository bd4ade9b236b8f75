"""From compiled specialisations to a calling convention: which kernel a call launches, and how.

The parameters of a compiled kernel are those of its Python function except the folded ones, in
order, followed by hidden addresses that Triton adds (two since version 3.5): memory for all blocks
of the launch, null if the kernel needs none.  The cubin shows how many there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any, ClassVar, Final

from llvmlite import ir

from ferrule import specs
from ferrule.compiler import conventions
from ferrule.compiler.artefacts import Fault, literal
from ferrule.compiler.conventions.arguments import Argument, parameters
from ferrule.compiler.conventions.base import Call
from ferrule.compiler.conventions.protocol import CallingConvention
from ferrule.compiler.cuda.code import DeviceCode
from ferrule.compiler.cuda.tilings import DataType
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.triton.archs import ByArchitecture
from ferrule.frontends.triton.arguments import DescriptorArgument, Pixels
from ferrule.frontends.triton.counting import Counted, Counts
from ferrule.frontends.triton.facts import DescriptorLayout, Scratch
from ferrule.frontends.triton.grids import Grid
from ferrule.frontends.triton.offline import Compiled
from ferrule.frontends.triton.specialise import Assumption, Specialisation
from ferrule.runtime.llvm.layouts import I64
from ferrule.specs import Condition, Dim, Param, Tensor
from ferrule.specs.deferred import dataclass

HIDDEN: Final = ("global_scratch", "profile_scratch")
"""The hidden parameters, in order."""

_SWIZZLES: Final = ("none", "32B", "64B", "128B")
_DRIVER: Final = {8: DataType.FLOAT32_FTZ, 9: DataType.FLOAT64, 10: DataType.BFLOAT16}
"""Triton numbers these types in another order than the driver."""

_DTYPES: Final = {
    DataType.UINT8: specs.Uint8,
    DataType.UINT16: specs.Uint16,
    DataType.UINT32: specs.Uint32,
    DataType.INT32: specs.Int32,
    DataType.UINT64: specs.Uint64,
    DataType.INT64: specs.Int64,
    DataType.FLOAT16: specs.Float16,
    DataType.FLOAT32: specs.Float32,
    DataType.FLOAT64: specs.Float64,
    DataType.BFLOAT16: specs.BFloat16,
}


@dataclass(frozen=True, slots=True)
class Candidate:
    """A specialisation with its code and the grid with which it is launched."""

    specialisation: Specialisation
    compiled: tuple[Compiled, ...]
    grid: Grid


@dataclass(frozen=True, slots=True)
class Assuming:
    """Executes a call whose assumptions hold; otherwise the call raises a ValueError that names the
    violated one."""

    name: str
    assumptions: tuple[Assumption, ...]
    steps: tuple[CallingConvention, ...]
    when: Condition | None = None

    def codes(self) -> Sequence[DeviceCode]:
        """See `CallingConvention`."""
        return [code for step in self.steps for code in step.codes()]

    def results(self) -> Sequence[Param]:
        """See `CallingConvention`."""
        return ()

    def emit(self, call: Call) -> None:
        """See `CallingConvention`."""
        for assumption in self.assumptions:
            values = []
            message = f"{literal(f'{self.name}: {assumption.text}, for which the kernel was')} "
            message += "compiled"
            if assumption.shown is not None:
                values.append(call.size(assumption.shown, assumption.text))
                message += ", but got {}"
            call.assume(specs.format_condition(assumption.condition, call.signature.symbols))
            holds = call.condition(assumption.condition)
            call.refuse(call.emitter.not_(holds), Fault("ValueError", message), values)
        for step in self.steps:
            call.make(step)


def convention(
    name: str, candidates: Sequence[Candidate], *, whole: bool, counts: Counts | None = None
) -> CallingConvention:
    """The convention that launches the first of these candidates that fits a call.

    `whole`: the conditions select a candidate; otherwise there is one candidate, whose conditions
    must hold.  `counts` are those of the candidates' names.
    """
    if len(candidates) == 1 and not whole:
        (only,) = candidates
        assumptions = only.specialisation.conditions
        step = _counted(_by_architecture(name, only, None), only, counts)
        return Assuming(name, assumptions, (step,)) if assumptions else step
    choices = []
    for each in candidates:
        when: Condition | None = None
        for assumption in each.specialisation.conditions:
            when = assumption.condition if when is None else when & assumption.condition
        choices.append(_counted(_by_architecture(name, each, when), each, counts))
        if when is None:
            break
    return choices[0] if choices[0].when is None else conventions.FirstOf(choices)


def _counted(step: CallingConvention, each: Candidate, counts: Counts | None) -> CallingConvention:
    if counts is None:
        return step
    number = counts.place(each.specialisation.name)
    return conventions.Sequence([Counted(number), step], when=step.when)


def _by_architecture(name: str, each: Candidate, when: Condition | None) -> CallingConvention:
    if len(each.compiled) == 1:
        return _launch(each, each.compiled[0], when)
    launches = tuple(_launch(each, compiled, None) for compiled in each.compiled)
    return ByArchitecture(name, each.compiled, launches, when)


def _launch(each: Candidate, compiled: Compiled, when: Condition | None) -> CallingConvention:
    """The launch of one kernel, with the memory that it needs."""
    facts = compiled.facts
    visible = list(_visible(each.specialisation, compiled))
    hidden = _hidden_count(compiled, visible)
    scratch = (facts.global_scratch, facts.profile_scratch)[:hidden]
    blocks = reduce(lambda left, right: left * right, (*each.grid, facts.ctas))
    wanted = list(zip(HIDDEN, scratch, strict=False))
    made = {name: _temporary(name, blocks, each) for name, each in wanted if each.size}
    last = [
        _Aligned(made[name], each.align) if name in made else conventions.NULL
        for name, each in wanted
    ]
    launch = _launched(compiled, each.grid, [*visible, *last], when if not made else None)
    if not made:
        return launch
    return conventions.Sequence([launch], temporaries=list(made.values()), when=when)


def _launched(
    compiled: Compiled, grid: Grid, given: Sequence[Argument], when: specs.Condition | None
) -> conventions.CudaLaunch:
    """The launch; CompileError for a launch that no GPU can execute: too many warps, too much
    shared memory."""
    facts, (x, y, z) = compiled.facts, grid
    try:
        return conventions.CudaLaunch(
            compiled.code,
            facts.kernel,
            given,
            (x * facts.ctas, y, z),
            facts.block,
            facts.shared,
            cluster=None if facts.ctas == 1 else (facts.ctas, 1, 1),
            cluster_scheduling=None if facts.ctas == 1 else "spread",
            cooperative=facts.cooperative,
            use_pdl=facts.use_pdl,
            when=when,
        )
    except ValueError as error:
        raise CompileError(f"{facts.kernel} cannot be launched: {error}") from None


@dataclass(frozen=True, slots=True)
class _Aligned:
    """The first address in a tensor that is a multiple of `to` bytes."""

    tensor: Tensor
    to: int
    size: ClassVar[int] = 8
    align: ClassVar[int] = 8

    def store(self, call: Call, place: ir.Value, what: str) -> None:
        """See `InMemory`."""
        b, e = call.emitter.builder, call.emitter
        address = b.ptrtoint(call.address(self.tensor.data), I64)
        e.store(
            e.binary("and", b.add(address, e.const_i64(self.to - 1)), e.const_i64(-self.to)), place
        )


def _temporary(name: str, blocks: Dim, wanted: Scratch) -> Tensor:
    """Memory for all blocks, with space to align it."""
    return Tensor(name, (blocks * wanted.size + wanted.align,), specs.Uint8, device="cuda")


def _hidden_count(compiled: Compiled, visible: Sequence[Argument]) -> int:
    """The number of parameters that Triton added, according to the cubin."""
    kernel = compiled.code.parameters(compiled.facts.kernel)
    count = sum(len(parameters(argument)) for argument in visible)
    hidden = kernel.sizes[count:]
    if len(hidden) > len(HIDDEN) or any(size != 8 for size in hidden):
        raise CompileError(
            Diagnostic(
                f"{kernel} has {len(kernel.sizes)} parameters, {count} of them its own: Triton "
                f"added {len(hidden)} of {', '.join(map(str, hidden))} bytes",
                expected=f"at most {len(HIDDEN)} addresses: {', '.join(HIDDEN)}",
                hint="this version of Triton is newer than this frontend: use an older one",
            )
        )
    return len(hidden)


# ---- descriptors ----


def _visible(specialisation: Specialisation, compiled: Compiled) -> Iterator[Argument]:
    """The arguments of the kernel in a call: a descriptor is its tensor map, or its fields,
    followed by sizes and strides."""
    layouts = iter(compiled.facts.descriptors)
    sizes = compiled.code.parameters(compiled.facts.kernel).sizes
    count = 0
    for packed in specialisation.packed:
        given: list[Argument]
        if not isinstance(packed, DescriptorArgument):
            given = [packed]
        elif compiled.facts.descriptors:
            given = list(_descriptor(packed, next(layouts, None)))
        else:
            given = list(_taken_apart(packed, sizes[count:]))
        count += sum(len(parameters(each)) for each in given)
        yield from given


def _taken_apart(argument: DescriptorArgument, kernel: Sequence[int]) -> Iterator[Argument]:
    """A descriptor for a GPU without TMA: address, sizes and strides as int64, flags of one byte
    (the second only in newer versions of Triton), then the values that follow a tensor map.
    `kernel` contains the sizes of the parameters from here on."""
    tensor = argument.viewed
    yield argument.tensor.data
    for size in (*tensor.shape, *tensor.strides):
        yield conventions.cast(size, specs.Int64)
    flags = (argument.padding == "nan", argument.rounded)
    for flag, size in zip(flags, kernel[1 + 2 * len(tensor.shape) :], strict=False):
        if size != 1:
            break
        yield conventions.cast(int(flag), specs.Boolean)
    yield from _behind(tensor)


def _behind(tensor: Tensor) -> Iterator[Argument]:
    for size in tensor.shape:
        yield conventions.cast(size, specs.Int32)
    for stride in tensor.strides:
        yield conventions.cast(stride, specs.Int64)


def _descriptor(argument: DescriptorArgument, layout: DescriptorLayout | None) -> Iterator[Any]:
    """`CUtensorMap`, then the sizes as int32 and the strides in elements as int64."""
    if layout is None or layout.swizzle >= len(_SWIZZLES):
        raise CompileError(
            f"the descriptor {argument.name!r} is of a kind that cannot be made here: "
            "launch the kernel with Triton"
        )
    try:
        yield _tensor_map(argument, layout)
    except ValueError as error:
        raise CompileError(f"the descriptor {argument.name!r} cannot be encoded: {error}") from None
    yield from _behind(argument.viewed)


def _tensor_map(argument: DescriptorArgument, layout: DescriptorLayout) -> conventions.TensorMap:
    tensor = argument.viewed
    kind = _element(argument, layout)
    shape = (*tensor.shape[:-1], tensor.shape[-1] * 2) if layout.fp4_padded else tensor.shape
    modes: dict[str, Any] = {
        "shape": shape,
        "strides": tensor.strides,
        "swizzle": _SWIZZLES[layout.swizzle],
        "l2_promotion": "128B",
        "oob_fill": "nan" if argument.padding == "nan" else "zero",
        "padded_fp4": layout.fp4_padded,
        "dtype": specs.TFloat32 if argument.rounded else kind,
    }
    if not layout.is_im2col:
        return conventions.TensorMap(argument.tensor, layout.block, **modes)
    assert argument.pixels is not None
    return _im2col(argument, argument.pixels, layout, modes)


def _element(argument: DescriptorArgument, layout: DescriptorLayout) -> specs.DType | None:
    """The dtype of a map's elements; None for those of 4 bits."""
    if layout.fp4_padded:
        return None
    tensor = argument.viewed
    element = _DRIVER.get(layout.element) or DataType(layout.element)
    dtype = _DTYPES.get(element)
    if dtype is None or dtype.bits != tensor.dtype.bits:
        raise CompileError(
            f"the descriptor {argument.name!r} has elements of {tensor.dtype.name}, but Triton "
            f"wants a tensor map of {element.name.lower()}"
        )
    return dtype


def _im2col(
    argument: DescriptorArgument, pixels: Pixels, layout: DescriptorLayout, modes: dict[str, Any]
) -> conventions.Im2colMap:
    count, channels = layout.block
    corners = pixels.lower, pixels.upper
    return conventions.Im2colMap(
        argument.tensor, channels, count, *corners, pixels.element_strides, **modes
    )
