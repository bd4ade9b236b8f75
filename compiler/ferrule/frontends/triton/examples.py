"""From examples to arguments: the examples that `compile` gets for the parameters of a kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from ferrule import specs
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.examples import is_compact, sizes_seen, spec_of
from ferrule.frontends.strides import Read
from ferrule.frontends.told import Told, plain
from ferrule.frontends.triton.arguments import (
    Argument,
    Arguments,
    ConstantArgument,
    Default,
    Descriptor,
    DescriptorArgument,
    Fixed,
    Hint,
    IntegerArgument,
    NumberArgument,
    Output,
    PointerArgument,
    Reinterpreted,
    inner,
)
from ferrule.frontends.triton.foreign import own
from ferrule.frontends.triton.installed import Kernel, KernelParameter
from ferrule.frontends.triton.tensors import REFERENCE, Tensors
from ferrule.frontends.triton.types import DTYPES, is_float, read_type
from ferrule.specs import Dim, DType, Numeric, Param, Scalar, Signature, SupportsSpec, Sym, Tensor
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import is_dim
from ferrule.specs.requirements import kept


def arguments_of(
    kernel: Kernel, name: str, given: Mapping[str, Any], sizes: Sequence[str] = ()
) -> Arguments:
    """The arguments of a kernel from the examples of its parameters, by name; `sizes` are names of
    sizes by which configurations are chosen.

    Raises CompileError for a parameter without an example, and for an invalid example.
    """
    reader = _Reader(kernel, name, Tensors(kernel.name))
    return reader.read(given, sizes)


@dataclass(slots=True)
class _Reader:
    """Reads the examples of one kernel."""

    kernel: Kernel
    name: str
    tensors: Tensors
    called: dict[str, Dim] = field(default_factory=dict)

    def read(self, given: Mapping[str, Any], sizes: Sequence[str] = ()) -> Arguments:
        self.tensors.know_symbols(given)
        examples = {each.name: self._example(each, given) for each in self.kernel.parameters}
        constants = constants_of(self.kernel, given)
        passed = (each for name, each in examples.items() if name not in self.kernel.constexprs)
        self.tensors.know_sizes(passed, constants.values())
        for parameter in self.kernel.parameters:
            example = examples[parameter.name]
            if not parameter.is_constexpr:
                self.tensors.read(parameter.name, example)
        self.tensors.read_outputs(examples)
        self.tensors.know_numbers([*examples.values(), *sizes])
        self._call_functions(examples)
        each = tuple(
            self._argument(parameter, examples[parameter.name])
            for parameter in self.kernel.parameters
        )
        tensors = PointerArgument | DescriptorArgument
        made = tuple(a.tensor for a in each if isinstance(a, tensors) and a.made)
        required = tuple(self._requirements(examples, each))
        signature = Signature(self.name, tuple(self._parameters(each)), requires=required)
        return Arguments(signature, made, each, self.kernel.tuples)

    def _example(self, parameter: KernelParameter, given: Mapping[str, Any]) -> Any:
        """The given example, the default, or the symbol of this name."""
        name = parameter.name
        if name in given:
            return given[name]
        if parameter.has_default:
            return _default(parameter)
        if name in self.tensors.symbols and not parameter.is_constexpr:
            return self.tensors.symbols[name]
        kind = "constexprs" if parameter.is_constexpr else "signature"
        raise CompileError(
            Diagnostic(
                f"{self.kernel.name}: there is nothing for the parameter {name!r}",
                expected="an example for each of " + ", ".join(self.kernel.names),
                hint=f"add it to `{kind}`, or name a size so in the shape of a tensor",
            )
        )

    def _parameters(self, arguments: tuple[Argument, ...]) -> Iterator[Param]:
        for argument in arguments:
            match argument:
                case PointerArgument(made=False) | DescriptorArgument(made=False):
                    yield argument.tensor
                case (
                    IntegerArgument(scalar=Scalar() as scalar)
                    | NumberArgument(scalar=Scalar() as scalar)
                ):
                    yield scalar

    def _call_functions(self, examples: Mapping[str, Any]) -> None:
        """Call the functions that give numbers, before the strides that they read are taken."""
        for parameter in self.kernel.parameters:
            example = examples[parameter.name]
            if not (parameter.is_constexpr or _is_constexpr(example)) and self._is_function(
                parameter.name, example
            ):
                self.called[parameter.name] = self._called(parameter.name, example)

    def _is_function(self, name: str, example: Any) -> bool:
        is_type = isinstance(example, type | DType)
        return callable(example) and not is_type and name not in self.tensors.specs

    def _requirements(
        self, examples: Mapping[str, Any], arguments: tuple[Argument, ...]
    ) -> Iterator[specs.Requirement]:
        """The bounds of symbols that are parameters of their own; a divisor is the hint's."""
        for argument in arguments:
            example = examples.get(argument.name)
            if not isinstance(argument, IntegerArgument) or argument.scalar is None:
                continue
            if isinstance(example, Sym):
                yield from kept(argument.scalar.value, replace(example, divisibility=1))

    # ---- arguments ----

    def _argument(self, parameter: KernelParameter, example: Any) -> Argument:
        name = parameter.name
        value = getattr(example, "value", None) if _is_constexpr(example) else example
        if parameter.is_constexpr or _is_constexpr(example) or value is None:
            return ConstantArgument(name, plain(value))
        tensor = self.tensors.specs.get(name)
        if tensor is not None:
            return self._tensor_argument(name, tensor, example)
        if isinstance(example, str):
            return self._text_argument(name, example)
        if name in self.called:
            return IntegerArgument(name, self.called[name])
        if isinstance(example, Sym) and not self.tensors.is_known(example):
            dtype = specs.Int32 if example.width == 32 else specs.Int64
            scalar = Scalar(name, dtype)
            size = replace(scalar.value, min=example.min, max=example.max)
            return IntegerArgument(name, size, scalar, _hint(example.divisibility))
        if isinstance(example, specs.Compound | Sym):
            return IntegerArgument(name, self._checked(name, example))
        return self._number(parameter, example)

    def _tensor_argument(self, name: str, tensor: Tensor, example: Any) -> Argument:
        if isinstance(example, Descriptor):
            return self._descriptor_argument(name, tensor, example)
        hint: Hint | None = 16 if tensor.align >= 16 else None
        if isinstance(example, Reinterpreted):
            return PointerArgument(name, tensor, hint, read_as=self._read_as(name, tensor, example))
        if isinstance(example, Output):
            return PointerArgument(name, tensor, hint, made=True, fill=example.fill)
        return PointerArgument(name, tensor, hint)

    def _descriptor_argument(
        self, name: str, tensor: Tensor, example: Descriptor
    ) -> DescriptorArgument:
        compact = is_compact(tensor)
        if example.flatten and not (compact and len(example.block) <= len(tensor.shape)):
            raise CompileError(
                f"{self.tensors.what(name)} cannot be flattened for a block of "
                f"{len(example.block)} dims: it is a tensor of {len(tensor.shape)} dims"
                f"{'' if compact else ' that is not compact'}"
            )
        made = example.example if isinstance(example.example, Output) else None
        return DescriptorArgument(
            name,
            tensor,
            example.block,
            example.padding,
            example.layout,
            example.rounded,
            made=made is not None,
            fill=made.fill if made else None,
            flatten=example.flatten,
            pixels=example.pixels,
        )

    def _read_as(self, name: str, tensor: Tensor, example: Reinterpreted) -> DType:
        if example.dtype.bits == tensor.dtype.bits:
            return example.dtype
        raise CompileError(
            f"{self.tensors.what(name)} is a tensor of {tensor.dtype.name} that is read as "
            f"{example.dtype.name}: elements of another size"
        )

    def _text_argument(self, name: str, text: str) -> Argument:
        reference = REFERENCE.fullmatch(text.replace(" ", ""))
        if reference is not None:
            return IntegerArgument(name, self.tensors.referred(name, text, reference))
        if text in self.tensors.symbols:
            return IntegerArgument(name, self.tensors.symbols[text])
        if text.isidentifier() and text not in DTYPES:
            known = ", ".join(self.tensors.symbols) or "no tensor has a size with a name"
            raise CompileError(
                Diagnostic(
                    f"{self.tensors.what(name)} is {text!r}, which is no type and no size",
                    expected=f"a size ({known}), or a number of {', '.join(DTYPES)}",
                    hint="None and numbers are no texts" if text in ("None", "True") else None,
                )
            )
        read = read_type(text, self.tensors.what(name))
        return self._scalar(Scalar(name, read.dtype), 16 if read.hint == "16" else _one(read.hint))

    def _called(self, name: str, example: Callable[[Signature], Any]) -> Dim:
        read: set[Read] = set()
        signature = Signature(self.name, tuple(self.tensors.watched(read)))
        read.clear()
        try:
            found = example(signature)
        except Exception as error:
            raise CompileError(
                Diagnostic(
                    f"{self.tensors.what(name)} is a function that fails: "
                    f"{type(error).__name__}: {error}",
                    expected=f"a function of the tensors: {signature}",
                )
            ) from error
        if not is_dim(found):
            raise CompileError(
                f"{self.tensors.what(name)} is a function that gives {found!r}, which is no size"
            )
        dim: Dim = found
        self.tensors.take_strides(read)
        return self._checked(name, dim)

    def _checked(self, name: str, dim: Dim) -> Dim:
        if not self.tensors.is_known(dim):
            raise CompileError(
                Diagnostic(
                    f"{self.tensors.what(name)} is {specs.format_dim(dim, {})}, and a symbol of it "
                    "is in no tensor",
                    hint="give the symbol to a tensor's shape or strides, or to a parameter of "
                    "its own",
                )
            )
        return dim

    def _number(self, parameter: KernelParameter, example: Any) -> Argument:
        name, annotated = parameter.name, DTYPES.get(parameter.type)
        match example:
            case Fixed(value=bool() | float() as value):
                return NumberArgument(name, value)
            case Fixed(value=int() as value):
                return IntegerArgument(name, self._fitting(name, value))
            case Default(value=value):
                kind = annotated or _kind_of(value)
                return self._scalar(Scalar(name, kind, value), None)
            case Scalar():
                return self._scalar(Scalar(name, example.dtype, example.default), None)
            case Numeric():
                return self._scalar(Scalar(name, type(example)), None)
            case DType():
                return self._scalar(Scalar(name, example), None)
            case bool():
                return NumberArgument(name, Scalar(name, specs.Boolean))
            case int() if annotated is not None and annotated.kind not in ("int", "uint"):
                return NumberArgument(name, Scalar(name, annotated))
            case int():
                return self._integer(name, example, annotated)
            case float():
                own = annotated if annotated and is_float(parameter.type) else specs.Float32
                return NumberArgument(name, Scalar(name, own))
            case SupportsSpec():
                spec = spec_of(name, example, rename=True)
                if isinstance(spec, Scalar):
                    return self._scalar(spec, None)
        raise CompileError(
            Diagnostic(
                f"{self.tensors.what(name)} is {example!r}",
                expected="a tensor, a fake tensor or a spec; a number or its dtype; a text such as "
                '"*fp32[m, n]", "i32" or "x.strides[0]"; a size; like(…), empty(…) or '
                "descriptor(…); None",
                hint="a value that is compiled into the kernel goes into `constexprs`",
            )
        )

    def _integer(self, name: str, value: int, annotated: DType | None) -> Argument:
        """The argument for an integer example: Triton takes 32 bits if the value fits."""
        fitting = _kind_of(self._fitting(name, value))
        hint: Hint | None = 1 if value == 1 else 16 if value % 16 == 0 else None
        return self._scalar(Scalar(name, annotated or fitting), hint)

    def _fitting(self, name: str, value: int) -> int:
        if -(1 << 63) <= value < 1 << 64:
            return value
        raise CompileError(f"{self.tensors.what(name)} is {value}, which fits no 64 bits")

    def _scalar(self, scalar: Scalar, hint: Hint | None) -> Argument:
        if scalar.dtype.kind in ("int", "uint"):
            return IntegerArgument(scalar.name, scalar.value, scalar, hint)
        return NumberArgument(scalar.name, scalar)


def constants_of(kernel: Kernel, examples: Mapping[str, Any]) -> dict[str, int]:
    """The integers among a kernel's examples that are compiled in, except those marked by `fixed`,
    and defaults."""
    found = {}
    for name, example in examples.items():
        value = example.value if _is_constexpr(example) else example
        if not (_is_constexpr(example) or name in kernel.constexprs):
            continue
        if isinstance(value, int) and not isinstance(value, bool | Told):
            found[name] = int(value)
    return found


def tied_constants(kernel: Kernel, examples: Mapping[str, Any]) -> dict[str, int]:
    """The constants that equal a size of a real tensor, or that size rounded up to a power of two:
    they may be computed from an example."""
    passed = (inner(each) for name, each in examples.items() if name not in kernel.constexprs)
    sizes = sizes_seen(passed)
    known = sizes | {1 << (size - 1).bit_length() for size in sizes}
    return {name: each for name, each in constants_of(kernel, examples).items() if each in known}


def _is_constexpr(example: Any) -> bool:
    """Whether it is one of Triton's wrapped constants."""
    return type(example).__name__ == "constexpr"


def _default(parameter: KernelParameter) -> Any:
    value = own(parameter.default, parameter.name)
    is_number = isinstance(value, bool | int | float) and not parameter.is_constexpr
    return Default(value) if is_number else value


def _kind_of(value: bool | int | float) -> DType:
    """The dtype that Triton chooses for a number: 32 bits if it fits."""
    match value:
        case bool():
            return specs.Boolean
        case float():
            return specs.Float32
    wide = specs.Int64 if value < 1 << 63 else specs.Uint64
    return specs.Int32 if -(1 << 31) <= value < 1 << 31 else wide


def _hint(divisibility: int) -> Hint | None:
    return 16 if divisibility % 16 == 0 else None


def _one(text: str | None) -> Hint | None:
    return 1 if text == "1" else None
