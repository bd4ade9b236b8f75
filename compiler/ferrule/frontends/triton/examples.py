"""From examples to arguments: what `compile` was given for each parameter of a kernel."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

from ferrule import specs
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.triton.arguments import (
    Argument,
    Arguments,
    ConstantArgument,
    Descriptor,
    DescriptorArgument,
    Hint,
    IntegerArgument,
    NumberArgument,
    Output,
    PointerArgument,
)
from ferrule.frontends.triton.installed import Kernel, KernelParameter
from ferrule.frontends.triton.types import TypeText, read_type
from ferrule.specs import Dim, DType, Numeric, Param, Scalar, Signature, SupportsSpec, Sym, Tensor
from ferrule.specs.expr import is_dim, sym_int64, symbols_of
from ferrule.specs.changing import changed

_REFERENCE: Final = re.compile(r"(\w+)\.(shape|stride|strides)\[(\d+)\]|(\w+)\.(numel)(?:\(\))?")


def like(source: str, *, dtype: DType | str | None = None) -> Output:
    """An example of a tensor that the function makes and returns, with the sizes of a parameter.

    It is compact, whatever the strides of the parameter; `dtype` is the parameter's by default.
    """
    return Output(source, None, None if dtype is None else specs.as_dtype(dtype))


def empty(shape: tuple[Dim | str, ...], dtype: DType | str) -> Output:
    """An example of a tensor that the function makes and returns.

    Sizes are numbers, expressions over the sizes of parameters, and names of these.
    """
    return Output(None, tuple(shape), specs.as_dtype(dtype))


def descriptor(
    example: Any, block_shape: tuple[int, ...], padding: Literal["zero", "nan"] = "zero"
) -> Descriptor:
    """An example of what `TensorDescriptor.from_tensor(tensor, block_shape, padding)` makes.

    Callers give the tensor; the function encodes the descriptor on each call.
    """
    return Descriptor(example, tuple(block_shape), padding)


def arguments_of(kernel: Kernel, name: str, given: Mapping[str, Any]) -> Arguments:
    """The arguments of a kernel from the examples of its parameters, by name.

    Raises CompileError for parameters without one, and for what is none.
    """
    reader = _Reader(kernel, name)
    return reader.read(given)


@dataclass(slots=True)
class _Reader:
    """Reads the examples of one kernel.

    `symbols` are the named symbols of texts; `tensors` the specs of tensors by parameter.
    """

    kernel: Kernel
    name: str
    symbols: dict[str, Sym] = field(default_factory=dict)
    tensors: dict[str, Tensor] = field(default_factory=dict)
    scalars: dict[str, Scalar] = field(default_factory=dict)

    def read(self, given: Mapping[str, Any]) -> Arguments:
        self._know_symbols(given)
        examples = {each.name: self._example(each, given) for each in self.kernel.parameters}
        for parameter in self.kernel.parameters:
            example = examples[parameter.name]
            if not parameter.is_constexpr:
                self._read_tensor(parameter.name, example)
        self._read_outputs(examples)
        each = tuple(
            self._argument(parameter, examples[parameter.name])
            for parameter in self.kernel.parameters
        )
        made = tuple(a.tensor for a in each if isinstance(a, PointerArgument) and a.made)
        return Arguments(Signature(self.name, tuple(self._parameters(each))), made, each)

    def _example(self, parameter: KernelParameter, given: Mapping[str, Any]) -> Any:
        """What was given, a default, or the symbol of this name."""
        name = parameter.name
        if name in given:
            return given[name]
        if parameter.has_default:
            return parameter.default
        if name in self.symbols and not parameter.is_constexpr:
            return self.symbols[name]
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
                case PointerArgument(made=False) | DescriptorArgument():
                    yield argument.tensor
                case IntegerArgument(scalar=Scalar() as scalar) | NumberArgument(scalar=scalar):
                    yield scalar

    # ---- symbols ----

    def _know_symbols(self, given: Mapping[str, Any]) -> None:
        """The named symbols of all examples; one in a text is new unless an example has it."""
        for name, example in given.items():
            inner = example.example if isinstance(example, Descriptor) else example
            if isinstance(inner, SupportsSpec) or isinstance(inner, Tensor):
                for dim in _dims(_spec(name, inner)):
                    self._know(dim)
            elif is_dim(inner):
                self._know(inner)
        texts = list(self._texts(given))
        for words, make in (("shape", specs.sym_int32), ("strides", specs.sym_int64)):
            for text in texts:
                for word in getattr(text, words) or ():
                    if specs.expr.is_name(word) and word not in self.symbols:
                        self.symbols[word] = make(symbol=word)

    def _know(self, dim: Dim) -> None:
        for symbol in symbols_of(dim):
            if symbol.name is not None:
                self.symbols.setdefault(symbol.name, symbol)

    def _texts(self, given: Mapping[str, Any]) -> Iterator[TypeText]:
        for name, example in given.items():
            inner = example.example if isinstance(example, Descriptor) else example
            if isinstance(inner, str) and "*" in inner:
                yield read_type(inner, self._what(name))

    def _dim(self, word: str) -> Dim:
        if word.isdecimal():
            return int(word)
        return self.symbols[word] if word else specs.sym_int32()

    # ---- tensors ----

    def _read_tensor(self, name: str, example: Any) -> None:
        inner = example.example if isinstance(example, Descriptor) else example
        if isinstance(inner, str) and "*" in inner:
            self.tensors[name] = self._tensor_of_text(name, read_type(inner, self._what(name)))
        elif isinstance(inner, Tensor) or isinstance(inner, SupportsSpec):
            spec = _spec(name, inner)
            if isinstance(spec, Tensor):
                self.tensors[name] = spec
        elif hasattr(type(inner), "__dlpack__") and not isinstance(inner, Output):
            self.tensors[name] = _of_real_tensor(name, inner)
        elif isinstance(example, Descriptor):
            raise CompileError(f"{self._what(name)} is no tensor: {inner!r}")

    def _tensor_of_text(self, name: str, text: TypeText) -> Tensor:
        shape = [self._dim(word) for word in text.shape]
        strides = None if text.strides is None else [self._dim(word) for word in text.strides]
        align = max(16, text.dtype.itemsize) if text.hint == "16" else None
        return Tensor(name, shape, text.dtype, strides=strides, align=align)

    def _read_outputs(self, examples: Mapping[str, Any]) -> None:
        outputs = [(n, e) for n, e in examples.items() if isinstance(e, Output)]
        for name, example in outputs:
            source = self._source(name, example)
            shape = source.shape if example.shape is None else self._shape(name, example.shape)
            dtype = example.dtype or source.dtype
            aligned = source.align if source.align >= 16 else None
            self.tensors[name] = Tensor(name, shape, dtype, align=aligned)

    def _source(self, name: str, example: Output) -> Tensor:
        if example.source is None:
            assert example.shape is not None and example.dtype is not None
            return Tensor(name, (), example.dtype, align=max(16, example.dtype.itemsize))
        if example.source not in self.tensors:
            raise CompileError(
                Diagnostic(
                    f"{self._what(name)} is to be like {example.source!r}, which is no tensor",
                    expected=", ".join(self.tensors) or "there is no tensor at all",
                )
            )
        return self.tensors[example.source]

    def _shape(self, name: str, shape: tuple[Dim | str, ...]) -> tuple[Dim, ...]:
        found = []
        for size in shape:
            if isinstance(size, str) and size not in self.symbols:
                raise CompileError(
                    Diagnostic(
                        f"{self._what(name)} has the size {size!r}, which no tensor has",
                        expected=", ".join(self.symbols) or "a number",
                    )
                )
            found.append(self.symbols[size] if isinstance(size, str) else size)
        return tuple(found)

    # ---- arguments ----

    def _argument(self, parameter: KernelParameter, example: Any) -> Argument:
        name = parameter.name
        value = getattr(example, "value", None) if _is_constexpr(example) else example
        if parameter.is_constexpr or _is_constexpr(example) or value is None:
            return ConstantArgument(name, value)
        tensor = self.tensors.get(name)
        if tensor is not None:
            return self._tensor_argument(name, tensor, example)
        if isinstance(example, str):
            return self._text_argument(name, example)
        if callable(example) and not isinstance(example, type | DType):
            return IntegerArgument(name, self._called(name, example))
        if isinstance(example, Sym) and not self._is_known(example):
            dtype = specs.Int32 if example.width == 32 else specs.Int64
            return self._scalar(Scalar(name, dtype), _hint(example.divisibility))
        if isinstance(example, specs.Compound | Sym):
            return IntegerArgument(name, self._checked(name, example))
        return self._number(name, example)

    def _tensor_argument(self, name: str, tensor: Tensor, example: Any) -> Argument:
        if isinstance(example, Descriptor):
            return DescriptorArgument(name, tensor, example.block, example.padding)
        hint: Hint | None = 16 if tensor.align >= 16 else None
        return PointerArgument(name, tensor, hint, made=isinstance(example, Output))

    def _text_argument(self, name: str, text: str) -> Argument:
        reference = _REFERENCE.fullmatch(text.replace(" ", ""))
        if reference is not None:
            return IntegerArgument(name, self._referred(name, text, reference))
        if text in self.symbols:
            return IntegerArgument(name, self.symbols[text])
        read = read_type(text, self._what(name))
        return self._scalar(Scalar(name, read.dtype), 16 if read.hint == "16" else _one(read.hint))

    def _referred(self, name: str, text: str, found: re.Match[str]) -> Dim:
        tensor = self.tensors.get(found[1] or found[4])
        axis = int(found[3] or 0)
        if tensor is None or (found[3] is not None and axis >= len(tensor.shape)):
            raise CompileError(
                Diagnostic(
                    f"{self._what(name)} is {text!r}, which there is not",
                    expected=", ".join(
                        f"{each.name}.shape[0…{len(each.shape) - 1}]"
                        for each in self.tensors.values()
                        if each.shape
                    ),
                )
            )
        if found[5]:
            return tensor.numel
        return tensor.shape[axis] if found[2] == "shape" else tensor.strides[axis]

    def _called(self, name: str, example: Callable[[Signature], Any]) -> Dim:
        signature = Signature(self.name, tuple(self.tensors.values()))
        found = example(signature)
        if not is_dim(found):
            raise CompileError(
                f"{self._what(name)} is a function that gives {found!r}, which is no size"
            )
        dim: Dim = found
        return self._checked(name, dim)

    def _is_known(self, dim: Dim) -> bool:
        known = {
            symbol
            for tensor in self.tensors.values()
            for each in _dims(tensor)
            for symbol in symbols_of(each)
        }
        return all(symbol in known for symbol in symbols_of(dim))

    def _checked(self, name: str, dim: Dim) -> Dim:
        if not self._is_known(dim):
            raise CompileError(
                Diagnostic(
                    f"{self._what(name)} is {specs.format_dim(dim, {})}, with a symbol that is in "
                    f"no tensor",
                    hint="give the symbol to a tensor's shape or strides, or to a parameter of "
                    "its own",
                )
            )
        return dim

    def _number(self, name: str, example: Any) -> Argument:
        match example:
            case Scalar():
                return self._scalar(Scalar(name, example.dtype, example.default), None)
            case Numeric():
                return self._scalar(Scalar(name, type(example)), None)
            case DType():
                return self._scalar(Scalar(name, example), None)
            case bool():
                return NumberArgument(name, Scalar(name, specs.Boolean))
            case int():
                return self._integer(name, example)
            case float():
                return NumberArgument(name, Scalar(name, specs.Float32))
            case SupportsSpec():
                spec = _spec(name, example)
                if isinstance(spec, Scalar):
                    return self._scalar(spec, None)
        raise CompileError(
            Diagnostic(
                f"{self._what(name)} is {example!r}",
                expected="a tensor, a fake tensor or a spec; a number or its dtype; a text such as "
                '"*fp32[m, n]", "i32" or "x.strides[0]"; a size; like(…), empty(…) or '
                "descriptor(…); None",
                hint="a value that is compiled into the kernel goes into `constexprs`",
            )
        )

    def _integer(self, name: str, value: int) -> Argument:
        """An example of an integer: Triton takes 32 bits where it fits."""
        wide = specs.Int64 if value < 1 << 63 else specs.Uint64
        dtype: DType = specs.Int32 if -(1 << 31) <= value < 1 << 31 else wide
        hint: Hint | None = 1 if value == 1 else 16 if value % 16 == 0 else None
        return self._scalar(Scalar(name, dtype), hint)

    def _scalar(self, scalar: Scalar, hint: Hint | None) -> Argument:
        if scalar.dtype.kind in ("int", "uint"):
            return IntegerArgument(scalar.name, scalar.value, scalar, hint)
        return NumberArgument(scalar.name, scalar)

    def _what(self, name: str) -> str:
        return f"{self.kernel.name}: the example of {name!r}"


def _spec(name: str, example: Any) -> Param:
    """The spec of an example under the name of a parameter."""
    if isinstance(example, get_args(Param)):
        return _renamed(example, name)
    spec: Param = example.__ferrule_spec__(name)
    return spec


def _renamed(spec: Param, name: str) -> Param:
    """The same spec under another name."""
    return spec if spec.name == name else changed(spec, name=name)


def _dims(spec: Param) -> tuple[Dim, ...]:
    return (*spec.shape, *spec.strides) if isinstance(spec, Tensor) else ()


def _is_constexpr(example: Any) -> bool:
    """Whether it is one of Triton's wrapped constants."""
    return type(example).__name__ == "constexpr"


def _hint(divisibility: int) -> Hint | None:
    return 16 if divisibility % 16 == 0 else None


def _one(text: str | None) -> Hint | None:
    return 1 if text == "1" else None


def _of_real_tensor(name: str, tensor: Any) -> Tensor:
    """The spec of a real tensor: its dtype and rank, any sizes; aligned to 16 bytes if it is."""
    from ferrule.runtime.views import view_of

    try:
        view = view_of(tensor)
    except (TypeError, ValueError, BufferError, RuntimeError) as error:
        raise CompileError(
            f"the tensor for the parameter {name!r} cannot be taken through DLPack: {error}"
        ) from None
    shape = [specs.sym_int32() for _ in view.shape]
    order = tuple(reversed(range(len(shape))))
    if view.strides == specs.compact_strides(view.shape, order):
        strides = specs.compact_strides(shape, order)
    else:
        strides = tuple(1 if step == 1 else sym_int64() for step in view.strides)
    align = max(16, view.dtype.itemsize) if view.address % 16 == 0 else None
    return Tensor(name, shape, view.dtype, strides=strides, align=align)
