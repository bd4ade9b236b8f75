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
from ferrule.frontends.mlir.kinds import DTYPES, Buffer, FunctionType, Kind, Number
from ferrule.specs import DType, Param, Signature, Sym, Tensor, as_dtype, sym_int64
from ferrule.specs.expr import Dim, is_name
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
    return Signature(function.symbol if name is None else name, params)


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
    for ties in function.ties:
        numbers = [each for each in ties if isinstance(each, int)]
        places = [each for each in ties if not isinstance(each, int)]
        said = [
            spec.shape[axis]
            for position, axis in places
            if isinstance(spec := given.get(function.names[position]), Tensor)
            and isinstance(spec.shape[axis], (int, Sym))
        ]
        dim = next(iter([*numbers, *said]), None)
        for position, axis in places:
            dim = sym_int64() if dim is None else dim
            found.setdefault(position, {})[axis] = dim
    return found


def derived(name: str, kind: Kind, dims: Mapping[int, Dim] = _NO_DIMS) -> Param:
    """The parameter for a type; `dims` are used where the type's sizes are dynamic."""
    if isinstance(kind, Number):
        return Scalar(name, DTYPES[kind.kind])
    assert isinstance(kind, Buffer)
    shape = _dims(kind.shape, dims)
    strides = None if kind.strides is None else _dims(kind.strides)
    dtype = DTYPES[kind.element]
    return Tensor(name, shape, dtype, strides=strides, read_only=kind.is_value)


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
    if kind.strides is None:
        if not is_compact(spec):
            yield "expected a compact row-major tensor: it has no strides of its own"
        return
    for axis, (stride, given) in enumerate(zip(kind.strides, spec.strides, strict=True)):
        if stride is not None and given != stride:
            yield f"expected strides[{axis}] to be {stride}, but got {given}"
