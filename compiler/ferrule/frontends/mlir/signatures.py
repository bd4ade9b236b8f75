"""The signature of a call of an MLIR function, from the function's type and the user's specs.

Each dynamic size is a symbol of its own, except where the operations of the function require two of
them to be equal, which the type does not express.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.examples import is_compact, spec_of
from ferrule.frontends.mlir.expressions import (
    ArgumentValue,
    Expression,
    FloatConstant,
    LoopValue,
    Operation,
    SizeOf,
)
from ferrule.frontends.mlir.kinds import DTYPES, Buffer, FunctionType, Kind, Number
from ferrule.specs import DType, Param, Signature, Sym, Tensor, as_dtype, sym_int, sym_int64
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import Dim, is_name, make
from ferrule.specs.params import Scalar

_SIGNLESS: Final = ("i8", "i16", "i32", "i64")
_NO_DIMS: Final[Mapping[int, Dim]] = MappingProxyType({})


def signature_of(
    function: FunctionType,
    name: str | None,
    specs: Mapping[str, Any],
    signature: Signature | None,
) -> Signature:
    """The signature that follows from the type, refined by specs of some parameters, or the given
    one.

    Raises CompileError for specs of parameters that do not exist, and for specs that accept
    arguments that the function cannot take.
    """
    rows = list(zip(function.names, function.arguments, strict=True))
    if signature is not None:
        return _checked(function, signature)
    _check_names(function, specs)
    given = {
        argument: _given(argument, kind, specs) for argument, kind in rows if argument in specs
    }
    dims = _tied(function, given)
    params = tuple(
        given[argument] if argument in given else derived(argument, kind, dims.get(position, {}))
        for position, (argument, kind) in enumerate(rows)
    )
    if name is None and not is_name(function.symbol):
        raise CompileError(
            f"@{function.symbol} is no identifier: name=… says what the function is called"
        )
    _check_written(function, params)
    _check_ties(function, params)
    made = Signature(function.symbol if name is None else name, params)
    _check_relations(function, made)
    return made


def _check_names(function: FunctionType, specs: Mapping[str, Any]) -> None:
    for each in specs:
        if each not in function.names:
            there = ", ".join(function.names) or "none"
            raise CompileError(
                Diagnostic(
                    f"there is a spec of {each!r}, which is no argument of @{function.symbol}",
                    expected=there,
                )
            )


def _given(name: str, kind: Kind, specs: Mapping[str, Any]) -> Param:
    spec = spec_of(name, specs[name])
    require_fit(spec, kind, name)
    return spec


def _tied(function: FunctionType, given: Mapping[str, Param]) -> dict[int, dict[int, Dim]]:
    """The tied sizes by argument and axis: a number, the size in the spec of one of them, or a new
    symbol."""
    found: dict[int, dict[int, Dim]] = {}
    for tie in function.ties:
        numbers = [each for each in tie.places if isinstance(each, int)]
        places = [each for each in tie.places if not isinstance(each, int)]
        said = [
            spec.shape[axis]
            for position, axis in places
            if isinstance(spec := given.get(function.names[position]), Tensor)
            and isinstance(spec.shape[axis], (int, Sym))
        ]
        symbol = sym_int if tie.is_small else sym_int64
        dim = next(iter([*numbers, *said]), None)
        for position, axis in places:
            dim = symbol(divisibility=tie.multiple) if dim is None else dim
            found.setdefault(position, {})[axis] = dim
    for place, expression in function.relations:
        _relate(function, found, place, expression)
    return found


def _relate(
    function: FunctionType,
    found: dict[int, dict[int, Dim]],
    place: tuple[int, int],
    expression: Expression,
) -> None:
    """Sets a size, and all that are tied to it, to the value of an expression."""
    dim, before = _value(function, found, expression), found.get(place[0], {}).get(place[1])
    for sizes in found.values():
        sizes.update({axis: dim for axis, known in sizes.items() if known == before})
    found.setdefault(place[0], {})[place[1]] = dim


def _value(function: FunctionType, found: dict[int, dict[int, Dim]], expression: Expression) -> Dim:
    match expression:
        case int():
            return expression
        case SizeOf(position, axis):
            kind = function.arguments[position]
            assert isinstance(kind, Buffer)
            known = kind.shape[axis]
            dims = found.setdefault(position, {})
            return dims.setdefault(axis, sym_int64() if known is None else known)
        case Operation(operator, left, right):
            return make(operator, *(_value(function, found, each) for each in (left, right)))
    raise CompileError(f"@{function.symbol} asserts that a size equals {expression}, no size")


def _check_relations(function: FunctionType, signature: Signature) -> None:
    """Raises CompileError for sizes that may not be what the function asserts."""
    for (position, axis), expression in function.relations:
        param = signature.params[position]
        assert isinstance(param, Tensor)
        wanted = size(expression, signature)
        if param.shape[axis] != wanted:
            names = [f"{param.name}.shape[{axis}]"]
            _refuse_tie(function, names, str(param.shape[axis]), str(wanted))


def size(found: Expression, signature: Signature) -> Dim:
    """A size as an expression over the parameters of a signature."""
    match found:
        case int():
            return found
        case SizeOf(position, axis):
            tensor = signature.params[position]
            assert isinstance(tensor, Tensor)
            return tensor.shape[axis]
        case ArgumentValue(position):
            param = signature.params[position]
            assert isinstance(param, Scalar)
            return param.value
        case LoopValue(depth):
            return loop_value(depth)
        case Operation(operator, left, right):
            return make(operator, size(left, signature), size(right, signature))
        case FloatConstant(value):
            raise CompileError(f"a launch has the size {value}, expected an integer")


@dataclass(frozen=True, slots=True)
class _Counted:
    """The key of the counter of a loop around launches."""

    depth: int


def loop_value(depth: int) -> Sym:
    """The number that the loop counts; the loop is nested in this many others."""
    return Sym(_Counted(depth), f"i{depth}", 64)


def _check_ties(function: FunctionType, params: Sequence[Param]) -> None:
    """Raises CompileError for sizes that may not be as the function asserts, if it does not check
    them itself."""
    for tie in function.ties if function.relies else ():
        names, dims = [], list[Dim]()
        for each in tie.places:
            if isinstance(each, int):
                dims.append(each)
                continue
            param = params[each[0]]
            assert isinstance(param, Tensor)
            names.append(f"{param.name}.shape[{each[1]}]")
            dims.append(param.shape[each[1]])
        if any(dim != dims[0] for dim in dims):
            _refuse_tie(function, names, f"{' and '.join(map(str, dims))}", "equal sizes")
        if dims[0] != 0 and not _is_multiple(dims[0], tie.multiple):
            _refuse_tie(function, names, str(dims[0]), f"a multiple of {tie.multiple}")
        if tie.is_small and not _is_small(dims[0]):
            _refuse_tie(function, names, f"{dims[0]} of 64 bits", "a size of 32 bits")


def _refuse_tie(function: FunctionType, names: Sequence[str], got: str, wanted: str) -> None:
    raise CompileError(
        Diagnostic(
            f"@{function.symbol} asserts something of {' and '.join(names)} that its specs do not "
            f"ensure: got {got}",
            expected=wanted,
        )
    )


def _is_multiple(dim: Dim, number: int) -> bool:
    known = dim if isinstance(dim, int) else dim.divisibility if isinstance(dim, Sym) else 1
    return known % number == 0


def _is_small(dim: Dim) -> bool:
    return dim < 1 << 31 if isinstance(dim, int) else isinstance(dim, Sym) and dim.width == 32


def derived(name: str, kind: Kind, dims: Mapping[int, Dim] = _NO_DIMS) -> Param:
    """The parameter for a type; `dims` are used where the type's sizes are dynamic."""
    if isinstance(kind, Number):
        return Scalar(name, DTYPES[kind.kind])
    assert isinstance(kind, Buffer)
    shape = _dims(kind.shape, dims)
    strides = None if kind.strides is None else _dims(kind.strides)
    dtype = DTYPES[kind.element]
    return Tensor(name, shape, dtype, strides=strides, read_only=kind.is_value, align=kind.align)


def _dims(sizes: tuple[int | None, ...], known: Mapping[int, Dim] = _NO_DIMS) -> list[Dim]:
    return [
        (known[axis] if axis in known else sym_int64()) if size is None else size
        for axis, size in enumerate(sizes)
    ]


def _checked(function: FunctionType, signature: Signature) -> Signature:
    given, wanted = len(signature.params), len(function.arguments)
    if given != wanted:
        raise CompileError(
            f"@{function.symbol} takes {wanted} arguments, but the signature has {given}: "
            f"{signature}"
        )
    for param, kind in zip(signature.params, function.arguments, strict=True):
        require_fit(param, kind, param.name)
    _check_written(function, signature.params)
    _check_ties(function, signature.params)
    _check_relations(function, signature)
    return signature


def _check_written(function: FunctionType, params: Sequence[Param]) -> None:
    """Raises CompileError for a read-only spec of an argument that the function writes to."""
    for position, by in function.written.items():
        param = params[position]
        if isinstance(param, Tensor) and param.read_only:
            raise CompileError(
                Diagnostic(
                    f"the spec of {param.name!r} says that it is only read (read_only=True), but "
                    f"@{function.symbol} writes to it, or may: {by}",
                    hint="leave read_only out of the spec, or have the module write elsewhere",
                )
            )


def require_fit(spec: Param, kind: Kind, name: str) -> None:
    """Raises CompileError for a spec that accepts arguments that do not have this type."""
    problems = list(_problems(spec, kind))
    if problems:
        text = kind.text if isinstance(kind, Buffer) else getattr(kind, "kind", "")
        raise CompileError(
            Diagnostic(
                f"the spec of {name!r} does not fit {text}: {problems[0]}",
                notes=tuple(problems[1:]),
            )
        )


def _problems(spec: Param, kind: Kind) -> Iterator[str]:
    match kind, spec:
        case Number(), Scalar():
            yield from _dtype_problems(kind.kind, spec.dtype)
        case Number(), _:
            yield f"expected a number, but got a {type(spec).__name__}"
        case Buffer(), Tensor(packed=False):
            yield from _dtype_problems(kind.element, spec.dtype)
            yield from _layout_problems(kind, spec)
        case _:
            yield f"expected a tensor, but got a {type(spec).__name__}"


def _dtype_problems(element: str, dtype: DType) -> Iterator[str]:
    wanted = as_dtype(DTYPES[element])
    same = dtype is wanted
    if element in _SIGNLESS:
        same = same or (dtype.kind == "uint" and dtype.bits == wanted.bits)
    if not same:
        yield f"expected {wanted.name}, but got {dtype.name}"


def _layout_problems(kind: Buffer, spec: Tensor) -> Iterator[str]:
    if len(spec.shape) != len(kind.shape):
        yield f"expected {len(kind.shape)} dims, but got {len(spec.shape)}"
        return
    for axis, (size, given) in enumerate(zip(kind.shape, spec.shape, strict=True)):
        if size is not None and given != size:
            yield f"expected shape[{axis}] to be {size}, but got {given}"
    if kind.align is not None and spec.align % kind.align:
        yield f"expected an alignment of {kind.align} bytes for its vectors, but got {spec.align}"
    if kind.strides is None:
        if not is_compact(spec):
            yield "expected a compact row-major tensor: it has no strides of its own"
        return
    for axis, (stride, given) in enumerate(zip(kind.strides, spec.strides, strict=True)):
        if stride is not None and given != stride:
            yield f"expected strides[{axis}] to be {stride}, but got {given}"


# ---- the results of a call ----


def returns(results: Sequence[Kind]) -> DType | list[DType | Tensor] | None:
    """The results in the form that `conventions.Memref` takes: nothing, a number, or a list."""
    if not results:
        return None
    if len(results) == 1 and isinstance(results[0], Number):
        return as_dtype(DTYPES[results[0].kind])
    return [_result(position, each) for position, each in enumerate(results)]


def _result(position: int, kind: Kind) -> DType | Tensor:
    if isinstance(kind, Number):
        return as_dtype(DTYPES[kind.kind])
    assert isinstance(kind, Buffer)
    found = derived(f"result{position}", Buffer(kind.text, kind.element, kind.shape, None))
    assert isinstance(found, Tensor)
    return found
