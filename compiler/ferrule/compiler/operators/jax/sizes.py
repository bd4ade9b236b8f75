"""The sizes of outputs, and what of a call can be compared while JAX traces it.

JAX tells shapes and dtypes of arrays before anything runs. They bind the symbols of the signature
as in a call, so that the outputs that the function makes follow from the arrays that are given.
A size that JAX itself only has as a symbol, which `jax.export` makes, is computed with and never
compared: the call does that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ferrule import specs
from ferrule.compiler.operators.dims import Mismatch, Symbolic, Symbols
from ferrule.compiler.operators.jax.plans import Plan, axes_of
from ferrule.compiler.operators.jax.words import dtype_of, jax_dtype
from ferrule.compiler.operators.torch.plans import result_specs
from ferrule.specs import params
from ferrule.specs.binding import ACTUAL, Binding, Place, bindings_of, places_of
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import Dim, Sym


@dataclass(frozen=True, slots=True)
class Array:
    """What JAX tells of an array: its sizes, and a dtype of JAX."""

    shape: tuple[Any, ...]
    dtype: Any

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


def _smaller(left: Any, right: Any) -> Any:
    import jax

    return jax.core.min_dim(left, right)


def _larger(left: Any, right: Any) -> Any:
    import jax

    return jax.core.max_dim(left, right)


value_of: Final = Symbolic(
    _smaller, _larger, lambda size: isinstance(size, int) and size == 0
).value


def bound(given: Sequence[specs.Param], arrays: Sequence[Array | None]) -> Symbols:
    """The values of the symbols that these parameters tell.  Raises Mismatch if they do not fit."""
    for param, array in zip(given, arrays, strict=True):
        _check(param, array)
    symbols: Symbols = {}
    for binding in _bindings(tuple(given)):
        found = (_actual(each, arrays) for each in binding.places)
        actual = next((each for each in found if each is not None), None)
        if actual is not None:
            symbols[binding.symbol] = value_of(binding.solution, {**symbols, ACTUAL: actual})
    for place in places_of(tuple(given)):
        _compare(place, _actual(place, arrays), symbols)
    for symbol, value in symbols.items():
        if isinstance(value, int) and value % symbol.divisibility:
            raise Mismatch(f"{symbol} is no multiple of {symbol.divisibility}")
        low, high = symbol.interval()
        if isinstance(value, int) and not low <= value <= high:
            raise Mismatch(f"{symbol} is {value}, expected {low}..{high}")
    return symbols


def expected_shape(
    tensor: specs.Tensor, given: Sequence[specs.Param], arrays: Sequence[Array | None]
) -> tuple[int, ...]:
    """The sizes that a call would want of a tensor, as far as arrays that it refuses tell them."""
    symbols: Symbols = {}
    for param, array in zip(given, arrays, strict=True):
        item = param.item if isinstance(param, params.Optional) else param
        if isinstance(item, params.Tensor) and array is not None:
            for dim, size in zip(item.shape, array.shape, strict=False):
                if isinstance(dim, Sym):
                    symbols.setdefault(dim, size)
    return tuple(_size_or_none(dim, symbols) for dim in tensor.shape)


def _size_or_none(dim: Dim, symbols: Symbols) -> int:
    try:
        return int(value_of(dim, symbols))
    except (KeyError, Mismatch):
        return 0


def _bindings(given: tuple[specs.Param, ...]) -> tuple[Binding, ...]:
    """Where symbols get their values; without parameters whose sizes an output alone can tell."""
    try:
        return bindings_of(given)
    except ValueError:
        telling = tuple(each if _binds(each) else _without_sizes(each) for each in given)
    try:
        return bindings_of(telling)
    except ValueError:
        return ()


def _binds(param: specs.Param) -> bool:
    try:
        bindings_of((param,))
    except ValueError:
        return False
    return True


def _without_sizes(param: specs.Param) -> specs.Param:
    return specs.Scalar(param.name, specs.Int32)


def _check(param: specs.Param, array: Array | None) -> None:
    item = param.item if isinstance(param, params.Optional) else param
    if not isinstance(item, params.Tensor) or array is None:
        return
    if not _is_taken(item, dtype_of(array.dtype)):
        raise Mismatch(f"{item.name} has the dtype {array.dtype}")
    if len(array.shape) != len(item.shape):
        raise Mismatch(f"{item.name} has {len(array.shape)} dims")


_BYTES: Final = (specs.Int8, specs.Uint8)


def _is_taken(tensor: specs.Tensor, dtype: specs.DType | None) -> bool:
    if tensor.dtype in _BYTES and not tensor.exact:
        return dtype in _BYTES
    return dtype is tensor.dtype


def _actual(place: Place, arrays: Sequence[Array | None]) -> Any:
    """The size or stride at a place; None where it is absent or has no meaning."""
    array = arrays[place.path[0]]
    if array is None:
        return None
    if place.kind == "shape":
        return array.shape[place.axis]
    sizes = [each for each in array.shape if isinstance(each, int)]
    size = array.shape[place.axis]
    if 0 in sizes or (isinstance(size, int) and size == 1):
        return None
    assert isinstance(place.param, specs.Tensor)
    axes = axes_of(place.param)
    stride: Any = 1
    for axis in axes[axes.index(place.axis) + 1 :]:
        stride = stride * array.shape[axis]
    return stride


def _compare(place: Place, actual: Any, symbols: Symbols) -> None:
    if not isinstance(actual, int):
        return
    try:
        expected = value_of(place.dim, symbols)
    except KeyError:
        return
    if isinstance(expected, int) and actual != expected:
        raise Mismatch(f"{place.name} is {actual}, but must be {expected}")


def outputs_of(
    plan: Plan,
    signature: specs.Signature,
    arrays: Mapping[int, Array | None],
    wanted: Sequence[Array | None],
    numbers: Mapping[int, Any],
) -> tuple[Array, ...]:
    """The outputs of a call of one candidate; `arrays` and `numbers` are those that are given, by
    position.

    `wanted` are the outputs as the caller says they are, None where he does not.  Raises Mismatch
    where the arrays do not fit, and ValueError where an output does not, or nothing tells its size.
    """
    positions = sorted(arrays)
    given = [signature.arguments[i] for i in positions]
    symbols = bound(given, [arrays[i] for i in positions])
    _check_required(signature, symbols, numbers)
    written = [each.position or 0 for each in plan.outputs[len(plan.results) :]]
    specified: list[specs.Param | Array | None] = [*result_specs(signature)]
    specified += [arrays[i] if i in arrays else signature.arguments[i] for i in written]
    return tuple(
        _output(plan, signature, i, each, symbols, said)
        for i, (each, said) in enumerate(zip(specified, wanted, strict=True))
    )


def _check_required(
    signature: specs.Signature, symbols: Symbols, numbers: Mapping[int, Any]
) -> None:
    """Raises Mismatch unless the requirements hold whose sizes are all known."""
    known = dict(symbols)
    for position, value in numbers.items():
        param = signature.arguments[position]
        if isinstance(param, specs.Scalar) and param.dtype.kind != "float":
            known[param.value] = int(value)
    for required in signature.requires:
        if not all(isinstance(known.get(symbol), int) for symbol in required.symbols):
            continue
        try:
            holds = specs.holds(required.condition, known)
        except (OverflowError, ZeroDivisionError):
            holds = False
        if not holds:
            raise Mismatch(f"it requires {required.text(signature.known)}")


def _output(
    plan: Plan,
    signature: specs.Signature,
    position: int,
    made: specs.Param | Array | None,
    symbols: Symbols,
    wanted: Array | None,
) -> Array:
    name = plan.outputs[position].name
    if isinstance(made, Array):
        return _agreeing(plan, name, made, wanted)
    if isinstance(made, specs.Scalar):
        return _agreeing(plan, name, Array((), jax_dtype(made.dtype)), wanted)
    assert isinstance(made, specs.Tensor)
    param = made
    if wanted is not None:
        if len(wanted.shape) != len(param.shape):
            raise ValueError(
                f"jax_call: out says that {name} is {wanted}, but {plan.signature} makes it with "
                f"{len(param.shape)} dims"
            )
        _bind_output(param, wanted, symbols)
    try:
        shape = tuple(value_of(dim, symbols) for dim in param.shape)
    except KeyError as error:
        unknown = signature.names.get(error.args[0], error.args[0])
        raise ValueError(
            f"jax_call: no array tells the size {unknown} of {name}, which {plan.name} makes: give "
            f"out={{{name!r}: jax.ShapeDtypeStruct(shape, dtype)}}"
        ) from None
    if any(isinstance(size, int) and size < 0 for size in shape):
        raise ValueError(
            f"jax_call: {name}, which {plan.name} makes, would have the shape {shape} of these "
            f"arguments, and no size is negative"
        )
    dtype = jax_dtype(param.dtype)
    if wanted is not None and _is_taken(param, dtype_of(wanted.dtype)):
        dtype = wanted.dtype
    return _agreeing(plan, name, Array(shape, dtype), wanted)


def _bind_output(param: specs.Tensor, wanted: Array, symbols: Symbols) -> None:
    """Sizes that no array told are those of the output that is asked for."""
    for dim, size in zip(param.shape, wanted.shape, strict=True):
        if isinstance(dim, Sym):
            symbols.setdefault(dim, size)


def _agreeing(plan: Plan, name: str, made: Array, wanted: Array | None) -> Array:
    if wanted is None:
        return made
    same = len(made.shape) == len(wanted.shape) and made.dtype == wanted.dtype
    pairs = zip(made.shape, wanted.shape, strict=False)
    if not same or any(a != b for a, b in pairs if isinstance(a, int) and isinstance(b, int)):
        raise ValueError(
            f"jax_call: out says that {name} is {wanted}, but {plan.signature} makes it {made} of "
            f"these arguments"
        )
    return wanted
