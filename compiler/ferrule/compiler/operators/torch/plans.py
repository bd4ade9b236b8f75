"""What an operator of torch takes and gives back, from the signature of the compiled function.

Each argument of the operator is one argument of the function, in the same order and with the same
name. A tensor that the function writes is a mutated argument, or, where the caller says so, a
result: the operator makes the tensor and gives it back. What a schema of torch cannot say is
refused here, before anything is registered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any, Final

from ferrule import specs
from ferrule.compiler.operators.torch.words import device_name
from ferrule.specs import params
from ferrule.specs.deferred import dataclass


class Kind(Enum):
    """How an operator takes or gives a value; the word is the type in torch's schema."""

    TENSOR = "Tensor"
    INT = "SymInt"
    FLOAT = "float"
    BOOL = "bool"
    ADDRESS = "int"
    TEXT = "str"
    DTYPE = "ScalarType"
    DEVICE = "Device"
    TENSORS = "Tensor[]"
    INTS = "SymInt[]"


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of the operator: the function's argument at `position`.

    `written` is whether the function may write to the tensor, or to the tensors in the list.
    """

    name: str
    position: int
    kind: Kind
    optional: bool
    written: bool
    keyword_only: bool
    default: Any


@dataclass(frozen=True, slots=True)
class Made:
    """A tensor that the operator makes for the function's argument at `position`."""

    position: int
    param: specs.Tensor


@dataclass(frozen=True, slots=True)
class Plan:
    """An operator: `results` are what the function returns, then come the tensors of `made`.

    `packs` is whether the function returns a tuple.
    """

    name: str
    signature: specs.Signature
    arguments: tuple[Argument, ...]
    made: tuple[Made, ...]
    results: tuple[Kind, ...]
    packs: bool

    @property
    def namespace(self) -> str:
        """The part of the name before `::`."""
        return self.name.partition("::")[0]

    @property
    def short(self) -> str:
        """The part of the name behind `::`."""
        return self.name.partition("::")[2]

    @property
    def candidates(self) -> tuple[specs.Signature, ...]:
        """The signatures among which a call chooses; one, if there is no choice."""
        return candidates_of(self.signature)

    @property
    def mutates(self) -> bool:
        """Whether a call writes to one of its arguments."""
        return any(each.written for each in self.arguments)

    def tensors(self) -> Iterator[Argument]:
        """The arguments that are one tensor, or none."""
        return (each for each in self.arguments if each.kind is Kind.TENSOR)


_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*::[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_NO_OPERATORS: Final = frozenset({"name", "None", "True", "False", "def", "import", "from"})
_TAKEN: Final = frozenset({"aten", "prim", "prims", "torch", "onnx", "quantized", "inductor"})


def candidates_of(signature: specs.Signature) -> tuple[specs.Signature, ...]:
    """The candidates of an overload, or the signature itself."""
    return signature.candidates if isinstance(signature, specs.Overloads) else (signature,)


def plan_of(name: str, signature: specs.Signature, out: Sequence[str] = ()) -> Plan:
    """The operator of a function; `out` names the written parameters that it makes.

    Raises ValueError for a name that is none, for an `out` that is no written tensor, and for a
    parameter or result that a schema of torch cannot say.
    """
    check_name(name)
    every = [_plan(name, each, tuple(out)) for each in candidates_of(signature)]
    first = every[0]
    for other in every[1:]:
        _check_alike(first, other)
    arguments = tuple(_merged(column) for column in zip(*(p.arguments for p in every), strict=True))
    return Plan(name, signature, arguments, first.made, first.results, first.packs)


def check_name(name: str) -> None:
    """ValueError unless this is the name of an operator: `namespace::name`."""
    if not isinstance(name, str):
        raise TypeError(f"torch_op: the name must be a text 'namespace::name', but got {name!r}")
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"torch_op: the name must be 'namespace::name', both identifiers of ASCII letters, "
            f"digits and underscores, but got {name!r}"
        )
    if (short := name.partition("::")[2]) in _NO_OPERATORS or short.startswith("__"):
        raise ValueError(
            f"torch_op: torch.ops has attributes with the name of {name!r}; choose another one"
        )
    if name.partition("::")[0] in _TAKEN:
        raise ValueError(
            f"torch_op: the namespace of {name!r} is torch's own; use the name of your package"
        )


def _plan(name: str, signature: specs.Signature, out: tuple[str, ...]) -> Plan:
    made = tuple(_made(name, signature, each) for each in out)
    if len(set(out)) < len(out):
        raise ValueError(f"torch_op {name!r}: out={list(out)} has a name twice")
    taken = {each.position for each in made}
    arguments = tuple(
        _argument(name, signature, i) for i in range(len(signature.arguments)) if i not in taken
    )
    if not any(each.kind in (Kind.TENSOR, Kind.TENSORS) for each in arguments):
        raise ValueError(
            f"torch_op {name!r}: {signature} takes no tensor that exists before the call, and "
            f"torch chooses an operator's code by the device of its tensors; call the function "
            f"itself"
        )
    results, packs = _results(name, signature)
    return Plan(name, signature, arguments, made, results, packs)


def _made(name: str, signature: specs.Signature, wanted: str) -> Made:
    names = [param.name for param in signature.arguments]
    if wanted not in names:
        raise ValueError(
            f"torch_op {name!r}: out has {wanted!r}, which is no parameter of {signature}"
        )
    position = names.index(wanted)
    param = signature.arguments[position]
    if not isinstance(param, specs.Tensor) or param.read_only:
        why = "is only read" if isinstance(param, specs.Tensor) else "is no tensor"
        raise ValueError(
            f"torch_op {name!r}: out has {wanted!r}, but {signature.describe(param)} {why}: out "
            f"names the tensors that the function writes, which the operator then makes and returns"
        )
    if param.packed:
        raise ValueError(
            f"torch_op {name!r}: out has {wanted!r}, whose elements share bytes; give it as an "
            f"argument"
        )
    if may_share(param):
        raise ValueError(
            f"torch_op {name!r}: out has {wanted!r}, but {signature.describe(param)} has several "
            f"elements in one place; give it strides that are not 0"
        )
    return Made(position, param)


def may_share(param: specs.Tensor) -> bool:
    """Whether the strides of a spec alone put elements into one place."""
    known = [s for n, s in zip(param.shape, param.strides, strict=True) if n not in (0, 1)]
    constant = [stride for stride in known if isinstance(stride, int)]
    return 0 in constant or len(set(constant)) < len(constant)


def may_overlap(plan: Plan, argument: Argument) -> bool:
    """Whether a call can give a tensor whose elements share places: the spec leaves a stride
    open."""
    found = (each.arguments[argument.position] for each in plan.candidates)
    return any(_is_open(tensor) for param in found for tensor in _tensors_in(param))


def _is_open(tensor: specs.Tensor) -> bool:
    sizes = {symbol for dim in tensor.shape for symbol in specs.symbols_of(dim)}
    strides = {symbol for dim in tensor.strides for symbol in specs.symbols_of(dim)}
    return bool(strides - sizes) or may_share(tensor)


def overlaps(plan: Plan, argument: Argument) -> str:
    """The error text for a written tensor that was expanded."""
    return (
        f"{plan.name}: {argument.name} is written, and several of its elements are in one place, "
        f"as expand() makes them: give a copy, {argument.name}.clone()"
    )


def unfit(plan: Plan, kind: Kind) -> str:
    """The error text for a result of this kind that torch has no room for."""
    if kind is Kind.INT:
        return (
            f"{plan.name}: a result is above {specs.Int64.range[1]}, the largest int of torch: "
            "return it as an element of a tensor"
        )
    return f"{plan.name}: torch cannot take a result"


def _argument(name: str, signature: specs.Signature, position: int) -> Argument:
    param = signature.arguments[position]
    if not param.name.isascii():
        raise ValueError(
            f"torch_op {name!r}: torch's schemas have ASCII names, but a parameter is "
            f"{param.name!r}"
        )
    item = param.item if isinstance(param, specs.Optional) else param
    try:
        kind, written = kind_of(item)
    except ValueError as error:
        raise ValueError(
            f"torch_op {name!r}: {signature.describe(param)} has no type in torch's schemas: "
            f"{error}"
        ) from None
    return Argument(
        param.name,
        position,
        kind,
        isinstance(param, specs.Optional),
        written,
        position >= signature.positional,
        param.default,
    )


def kind_of(param: specs.Param) -> tuple[Kind, bool]:
    """How an operator takes a parameter, and whether the function may write to it.

    Raises ValueError, which says what to write instead.
    """
    match param:
        case params.Tensor(read_only=read_only):
            return Kind.TENSOR, not read_only
        case params.Scalar(dtype=dtype):
            return _of_number(dtype), False
        case params.Constant(value=value):
            return _CONSTANTS[type(value)], False
        case params.Pointer() | params.Stream():
            return Kind.ADDRESS, False
        case params.String():
            return Kind.TEXT, False
        case params.DataType():
            return Kind.DTYPE, False
        case params.Device():
            return Kind.DEVICE, False
        case params.Shape():
            return Kind.INTS, False
        case params.Tuple(items=items, fields=False) if items:
            return _of_items(items)
        case params.Array(item=item) | params.List(item=item) if item is not None:
            return _of_items((item,))
    raise ValueError(
        "torch has tensors, numbers, text, dtypes, devices, and lists of tensors or ints; "
        "give each part a parameter of its own"
    )


_CONSTANTS: Final = {bool: Kind.BOOL, int: Kind.INT, float: Kind.FLOAT, str: Kind.TEXT}


def _of_number(dtype: specs.DType) -> Kind:
    match dtype.kind:
        case "float":
            return Kind.FLOAT
        case "bool":
            return Kind.BOOL
    return Kind.INT


def _of_items(items: Sequence[specs.Param]) -> tuple[Kind, bool]:
    kinds = [kind_of(item) for item in items]
    lists = {Kind.TENSOR: Kind.TENSORS, Kind.INT: Kind.INTS}
    found = {kind for kind, _ in kinds}
    if len(found) > 1 or not found <= lists.keys():
        raise ValueError(
            "torch's lists hold tensors alone or ints alone; give each item a parameter of its own"
        )
    return lists[found.pop()], any(written for _, written in kinds)


def _results(name: str, signature: specs.Signature) -> tuple[tuple[Kind, ...], bool]:
    result = signature.result
    if result is None:
        return (), False
    if (kept := may_return(signature)) is not None:
        raise ValueError(
            f"torch_op {name!r}: {signature} may return its argument {kept}, and an operator of "
            f"torch returns new tensors: leave it out of the results, torch knows that it is "
            f"written, or call the function itself"
        )
    kinds = tuple(_result(name, signature, each) for each in result_specs(signature))
    return kinds, isinstance(result, params.Tuple)


def may_return(signature: specs.Signature) -> str | None:
    """The name of an argument that a result may be: one that is kept, beside a tensor as result."""
    if not any(isinstance(each, params.Tensor) for each in result_specs(signature)):
        return None
    kept = (each for each in signature.arguments if any(t.owning for t in _tensors_in(each)))
    return next((each.name for each in kept), None)


def _result(name: str, signature: specs.Signature, result: specs.Param) -> Kind:
    match result:
        case params.Tensor():
            return Kind.TENSOR
        case params.Scalar(dtype=dtype):
            return _of_number(dtype)
        case params.String():
            return Kind.TEXT
    raise ValueError(
        f"torch_op {name!r}: the function returns {signature.kind_of_result()}, and an operator "
        f"of torch gives tensors, numbers and text back, or a tuple of these"
    )


def _check_alike(first: Plan, other: Plan) -> None:
    """ValueError unless one schema describes both candidates of an overload."""
    if _shape_of(first) != _shape_of(other):
        raise ValueError(
            f"torch_op {first.name!r}: the candidates {first.signature} and {other.signature} "
            f"take or return different things, and an operator has one schema; make an operator "
            f"of each"
        )


def _shape_of(plan: Plan) -> tuple[object, ...]:
    arguments = [(a.name, a.kind, a.optional, a.keyword_only) for a in plan.arguments]
    made = [each.position for each in plan.made]
    return arguments, made, plan.results, plan.packs


def _merged(column: Sequence[Argument]) -> Argument:
    """The argument of all candidates: written, if one of them writes it."""
    first = column[0]
    written = any(each.written for each in column)
    return Argument(
        first.name,
        first.position,
        first.kind,
        first.optional,
        written,
        first.keyword_only,
        first.default,
    )


def keys_of(plan: Plan) -> tuple[str, ...]:
    """The device types of the tensors that the operator takes, in torch's words."""
    found: dict[str, None] = {}
    for signature in plan.candidates:
        for param in signature.arguments:
            for tensor in _tensors_in(param):
                found[device_name(tensor.device)] = None
    return tuple(found)


def _tensors_in(param: specs.Param) -> Iterator[specs.Tensor]:
    match param:
        case params.Tensor():
            yield param
        case params.Optional(item=item):
            yield from _tensors_in(item)
        case params.Tuple(items=items):
            for item in items:
                yield from _tensors_in(item)
        case params.Array(item=item) | params.List(item=item) if item is not None:
            yield from _tensors_in(item)


def no_gradient(plan: Plan, argument: Argument) -> str:
    """The message for a tensor that requires a gradient in an operator that writes arguments."""
    if argument.written:
        return (
            f"{plan.name}() writes to {argument.name}, which requires grad: an in-place operation "
            f"on it has no gradient; call it under torch.no_grad() or with {argument.name}.detach()"
        )
    written = ", ".join(each.name for each in plan.arguments if each.written)
    return (
        f"{plan.name}() writes to {written}, and operators that write their arguments don't "
        f"support automatic differentiation, but {argument.name} requires grad; call it under "
        f"torch.no_grad(), or make the operator with out= and backward="
    )


def result_specs(signature: specs.Signature) -> tuple[specs.Param, ...]:
    """What a function returns, one by one: the items of a tuple."""
    if isinstance(signature.result, params.Tuple):
        return signature.result.items
    return () if signature.result is None else (signature.result,)


def made_specs(plan: Plan, signature: specs.Signature) -> list[specs.Tensor]:
    """The tensors that the operator makes, as one candidate describes them."""
    found = [signature.arguments[each.position] for each in plan.made]
    return [param for param in found if isinstance(param, specs.Tensor)]
