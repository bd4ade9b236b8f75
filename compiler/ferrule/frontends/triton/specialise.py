"""Triton's assumptions about the arguments of a kernel, and how a call is checked against them.

Triton compiles a kernel for properties of the arguments that it gets (the launcher of its version
3.6 and newer): an integer that is 1 is folded into the code and is no parameter any more; an
integer or address that is a multiple of 16 is assumed to be one; an integer that fits 32 bits has
32 bits.  A function checks each call: by its specs where these express the property, otherwise by
conditions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final, TypeAlias

from ferrule import specs
from ferrule.compiler.conventions import arguments as conventions
from ferrule.compiler.errors import CompileError
from ferrule.frontends.triton.arguments import (
    Arguments,
    ConstantArgument,
    DescriptorArgument,
    IntegerArgument,
    NumberArgument,
    PointerArgument,
)
from ferrule.frontends.triton.installed import Kernel, KernelParameter
from ferrule.frontends.triton.levels import Assumed, Specialise, levels
from ferrule.frontends.triton.tuples import nest
from ferrule.frontends.triton.types import DTYPES, INTEGERS, is_float, number_type, pointer_type
from ferrule.specs import Condition, Dim, DType, Scalar, divisibility_of, symbols_of
from ferrule.specs.conditions import Real
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import Sym, ValueOf
from ferrule.specs.intervals import interval, is_bounded

INT32_MIN: Final = -(1 << 31)
INT32_MAX: Final = (1 << 31) - 1

Packed: TypeAlias = "conventions.Argument | DescriptorArgument"
"""A descriptor is packed later, when it is known how the compiled kernel reads it."""


@dataclass(frozen=True, slots=True)
class Assumption:
    """A condition of a specialisation, and its text in an error."""

    condition: Condition
    text: str
    shown: Dim | None = None


@dataclass(frozen=True, slots=True)
class Specialisation:
    """One way to compile a kernel.

    `types` by parameter (tuples of types for tuples), `constants` and `attributes` by path are the
    arguments of Triton's compiler; `conditions` must hold in a call; `packed` are the arguments of
    the compiled kernel, without those that Triton adds.  `name` is that of the variant.
    """

    types: Mapping[str, Any]
    constants: Mapping[tuple[int, ...], Any]
    attributes: Mapping[tuple[int, ...], list[list[Any]]]
    conditions: tuple[Assumption, ...]
    packed: tuple[Packed, ...]
    name: str = ""

    def is_like(self, other: Specialisation) -> bool:
        """Whether Triton compiles the same for both."""
        ours, theirs = ((each.types, each.constants, each.attributes) for each in (self, other))
        return ours == theirs


def specialisations(
    kernel: Kernel, arguments: Arguments, asked: Specialise
) -> tuple[tuple[Specialisation, ...], bool]:
    """The specialisations to compile, the most special first, and whether the last one accepts
    every call that the signature accepts.

    "check" gives one, with the properties of the examples as assumptions.  "dispatch" gives one
    for each of its `levels` at which something else is assumed.  A sequence gives the assumptions
    of each.
    """
    found: list[Specialisation] = []
    for assumed in levels(kernel, arguments, asked):
        made = _Specialiser(kernel, arguments, assumed).make()
        if not any(made.is_like(each) for each in found):
            found.append(made)
    return tuple(found), asked == "dispatch"


@dataclass(slots=True)
class _Specialiser:
    kernel: Kernel
    arguments: Arguments
    assumed: Assumed
    types: dict[str, str] = field(default_factory=dict)
    constants: dict[tuple[int, ...], Any] = field(default_factory=dict)
    attributes: dict[tuple[int, ...], list[list[Any]]] = field(default_factory=dict)
    conditions: list[Assumption] = field(default_factory=list)
    packed: list[Packed] = field(default_factory=list)

    def make(self) -> Specialisation:
        for parameter, argument in zip(self.kernel.parameters, self.arguments.each, strict=True):
            match argument:
                case ConstantArgument(value=value):
                    self._fold(parameter, value)
                case PointerArgument():
                    self._pointer(parameter, argument)
                case IntegerArgument():
                    self._integer(parameter, argument)
                case NumberArgument():
                    self._number(parameter, argument)
                case DescriptorArgument():
                    self._descriptor(parameter, argument)
        return Specialisation(
            self._nested_types(),
            self.constants,
            self.attributes,
            tuple(self.conditions),
            tuple(self.packed),
            self.assumed.name,
        )

    def _nested_types(self) -> dict[str, Any]:
        """The types by the parameters of the kernel, before tuples were flattened."""
        tuples = self.kernel.tuples
        return {
            name: nest(tuples.get(name, name), self.types.__getitem__)
            for name in self.kernel.function.arg_names
        }

    def _what(self, name: str) -> str:
        return f"{self.kernel.name}: {name}"

    def _fold(self, parameter: KernelParameter, value: Any) -> None:
        self.types[parameter.name] = "constexpr"
        self.constants[parameter.path] = value

    def _divisible(self, parameter: KernelParameter) -> None:
        self.attributes[parameter.path] = [["tt.divisibility", 16]]

    def _pointer(self, parameter: KernelParameter, argument: PointerArgument) -> None:
        name, tensor = parameter.name, argument.tensor
        if parameter.type and not parameter.type.startswith("*"):
            raise CompileError(
                f"{self._what(name)} is annotated as {parameter.type}, but the example is a tensor"
            )
        found = pointer_type(argument.read_as or tensor.dtype, self._what(name))
        # Triton refuses a kernel that writes to what is said to be read only.
        is_read = parameter.reads or tensor.read_only
        self.types[name] = parameter.type or ("*k" + found[1:] if is_read else found)
        self.packed.append(argument.data)
        if not (parameter.specialised and parameter.aligned):
            return
        guaranteed = argument.is_aligned
        if name in self.assumed.divisible and not guaranteed:
            text = f"the address of {name} must be a multiple of 16 bytes"
            self.conditions.append(Assumption(specs.aligned(argument.data, 16), text))
        if guaranteed or name in self.assumed.divisible:
            self._divisible(parameter)

    def _integer(self, parameter: KernelParameter, argument: IntegerArgument) -> None:
        name, size = parameter.name, argument.size
        if is_float(parameter.type):
            self.types[name] = parameter.type
            given = size if argument.scalar is None else argument.scalar
            self.packed.append(conventions.cast(given, DTYPES[parameter.type]))
            return
        if parameter.specialised and not parameter.type:
            if size == 1 or name in self.assumed.one:
                if size != 1:
                    self._assume(specs.equal(size, 1), f"{name} must be 1", size)
                self._fold(parameter, 1)
                return
        self.types[name] = self._integer_type(parameter, argument)
        self._pack(argument, DTYPES[self.types[name]])
        if not (parameter.specialised and parameter.aligned):
            return
        guaranteed = not _is_scalar(size) and divisibility_of(size) % 16 == 0
        if name in self.assumed.divisible and not guaranteed:
            self._assume(specs.divisible(size, 16), f"{name} must be a multiple of 16", size)
        if guaranteed or name in self.assumed.divisible:
            self._divisible(parameter)

    def _assume(self, condition: Condition, text: str, shown: Dim) -> None:
        self.conditions.append(Assumption(condition, text, shown))

    def _integer_type(self, parameter: KernelParameter, argument: IntegerArgument) -> str:
        """The type that Triton would choose for every value that a call can pass."""
        if parameter.type in INTEGERS:
            return parameter.type
        if parameter.type:
            raise CompileError(
                f"{self._what(parameter.name)} is annotated as {parameter.type}, but the example "
                "is an integer"
            )
        if argument.scalar is not None and parameter.name not in self.assumed.narrow:
            return number_type(argument.scalar.dtype, self._what(parameter.name))
        size = argument.size
        if isinstance(size, int):
            fits = INT32_MIN <= size <= INT32_MAX
            return "i32" if fits else "i64" if size < 1 << 63 else "u64"
        low, high = interval(size) if is_bounded(size) else (INT32_MIN - 1, INT32_MAX + 1)
        if isinstance(size, Sym) and size.width == 32:
            return "i32"
        if INT32_MIN <= low and high <= INT32_MAX:
            return "i32"
        if parameter.name not in self.assumed.narrow:
            return "i64"
        text = f"{parameter.name} must fit 32 bits"
        self._assume((size >= INT32_MIN) & (size <= INT32_MAX), text, size)
        return "i32"

    def _pack(self, argument: IntegerArgument, dtype: DType) -> None:
        scalar = argument.scalar
        if scalar is not None:
            same = scalar.dtype is dtype
            self.packed.append(scalar if same else conventions.cast(scalar, dtype))
        elif isinstance(argument.size, Sym) and argument.size.width == dtype.bits:
            self.packed.append(argument.size)
        else:
            self.packed.append(self._cast(argument.name, argument.size, dtype))

    def _cast(self, name: str, value: Dim, dtype: DType) -> Packed:
        try:
            return conventions.cast(value, dtype)
        except ValueError:
            raise CompileError(
                f"{self._what(name)} is {value}, which fits no {dtype.name}"
            ) from None

    def _number(self, parameter: KernelParameter, argument: NumberArgument) -> None:
        given, name = argument.scalar, parameter.name
        kind = specs.Boolean if isinstance(given, bool) else specs.Float32
        own = given.dtype if isinstance(given, Scalar) else kind
        found = parameter.type or number_type(own, self._what(name))
        dtype = DTYPES.get(found)
        if dtype is None or (found in INTEGERS and own.kind == "float"):
            raise CompileError(
                f"{self._what(name)} is annotated as {parameter.type}, but the example is "
                f"{own.name}"
            )
        self.types[name] = found
        if isinstance(given, Scalar) and own is dtype:
            self.packed.append(given)
        elif isinstance(given, Real):
            self.packed.append(conventions.cast(given.number, dtype))
        else:
            number = int(given) if isinstance(given, bool) else given
            self.packed.append(conventions.cast(number, dtype))

    def _descriptor(self, parameter: KernelParameter, argument: DescriptorArgument) -> None:
        name, tensor = parameter.name, argument.viewed
        element = pointer_type(tensor.dtype, self._what(name))[1:]
        if argument.pixels is None and len(argument.block) != len(tensor.shape):
            raise CompileError(
                f"{self._what(name)}: the block {argument.block} has {len(argument.block)} dims, "
                f"but the tensor has {len(tensor.shape)}"
            )
        if tensor.strides[-1:] != (1,):
            raise CompileError(
                f"{self._what(name)}: a descriptor is of a tensor whose last stride is 1, "
                f"but that of the example is {tensor.strides[-1]}"
            )
        block = ",".join(map(str, argument.block))
        layout = f",{argument.layout}" if argument.layout else ""
        kind = ""
        if argument.pixels is not None:
            kind, layout = "_im2col", f",input_rank={len(tensor.shape)}{layout}"
        self.types[name] = f"tensordesc{kind}<{element}[{block}]{layout}>"
        self.packed.append(argument)


def _is_scalar(size: Dim) -> bool:
    return any(isinstance(symbol.key, ValueOf) for symbol in symbols_of(size))
