"""Warp's types as specs, and as arguments of Warp's kernels.

`array_t` of Warp 1.19 (`warp/native/array.h`) has 56 bytes: `{data, grad, i32 shape[4], i32
strides[4], u16 ndim, u16 flags}`, strides in bytes.  Vectors, matrices (in row-major order),
quaternions and transforms are their elements one after the other; a struct is a C struct.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from ferrule.compiler.conventions.arguments import NULL, Argument, cast
from ferrule.compiler.conventions.c.structs import Struct
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.examples import Seen, SeenSizes, is_real, seen, spec_of
from ferrule.specs import (
    DType,
    Param,
    Signature,
    as_dtype,
    sym_int32,
    sym_int64,
)
from ferrule.specs.params import Scalar, Tensor, Tuple, row_major_strides

MAX_DIMS: Final = 4
"""The greatest number of dims of arrays and launches, a constant in Warp."""

_NAMES: Final = (
    "int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 bfloat16 float32 float64 bool"
)


class Types:
    """Warp's types, from the installed version of Warp."""

    def __init__(self, warp: Any) -> None:
        self._array_type: Final = warp.array
        known = ((getattr(warp, name, None), name) for name in _NAMES.split())
        self._scalars: Final[Mapping[Any, DType]] = {
            kind: as_dtype(name) for kind, name in known if kind is not None
        }

    def spec(self, name: str, kind: Any) -> Param:
        """The spec of a parameter of this type: any sizes, any strides.

        Raises CompileError for types that no argument of a call can have.
        """
        if kind in self._scalars:
            return Scalar(name, self._scalars[kind])
        # Written as `wp.array(dtype=...)`, or as `wp.array[...]`.
        if self._array_type in (type(kind), getattr(kind, "_concrete_cls", None)):
            return self._tensor(name, kind)
        shape = self.shape(kind)
        if shape is not None:
            return _elements(name, shape, self._scalars[kind._wp_scalar_type_])
        if hasattr(kind, "vars") and hasattr(kind, "ctype"):
            items = [self.spec(field, var.type) for field, var in kind.vars.items()]
            return Tuple(name, tuple(items), fields=True)
        raise CompileError(
            Diagnostic(
                f"the parameter {name!r} of the kernel is of type {_shown(kind)}",
                expected="an array, number, vector, matrix, quaternion or struct of these",
                hint="launch this kernel through Warp",
            )
        )

    def sizes(
        self, kinds: Mapping[str, Any], examples: Mapping[str, Any], constants: Iterable[int]
    ) -> SeenSizes:
        """The sizes of the real tensors among the examples, which have the names of `kinds`,
        without the dims of their elements; sizes that equal one of `constants` stay constant."""
        found: list[Seen] = []
        for name, example in examples.items():
            if is_real(example) and name in kinds:
                each = seen(name, example)
                rank = len(each.shape) - len(self._elements(kinds[name]))
                found.append(replace(each, shape=each.shape[:rank], strides=each.strides[:rank]))
        return SeenSizes.of(found, constants=constants)

    def narrowed(self, name: str, kind: Any, example: Any, sizes: SeenSizes) -> Param:
        """The spec of a parameter of this type, narrowed by an example or spec.

        Raises CompileError for a value that is no example, and for an example that does not fit the
        type.
        """
        wanted = self.spec(name, kind)
        # The dims of a real tensor's elements are constant.
        given = spec_of(name, example, constant=len(self._elements(kind)), sizes=sizes)
        if not self._fits(given, wanted, kind):
            raise CompileError(
                Diagnostic(
                    f"specs[{name!r}] does not fit the kernel's parameter: {_described(given)}",
                    expected=f"a spec or example of {_described(wanted)}",
                )
            )
        return given

    def arrays(self, path: str, spec: Param, kind: Any) -> Iterator[tuple[str, Tensor, int]]:
        """The arrays of a parameter of this type, including those in a struct: the path of each,
        its spec, and its number of dims without those of its elements."""
        match spec:
            case Tensor():
                yield path, spec, kind.ndim
            case Tuple(items=items, fields=True):
                for item, (field, var) in zip(items, kind.vars.items(), strict=True):
                    yield from self.arrays(f"{path}.{field}", item, var.type)

    def packed(self, spec: Param, kind: Any) -> Argument:
        """The argument of a kernel for a parameter of this type with this spec."""
        match spec:
            case Tensor():
                return _array_struct(spec, kind.ndim)
            case Tuple(items=items, fields=True):
                pairs = zip(items, _field_types(kind), strict=True)
                return Struct([self.packed(item, field) for item, field in pairs])
            case Tuple():
                return _flat(spec)
        return spec

    def _elements(self, kind: Any) -> tuple[int, ...]:
        """The dims of an array's elements."""
        return self.shape(getattr(kind, "dtype", None)) or ()

    def shape(self, kind: Any) -> tuple[int, ...] | None:
        """The shape of a vector, matrix, quaternion or transform; None for other types."""
        if not (isinstance(kind, type) and issubclass(kind, ctypes.Array)):
            return None
        shape = getattr(kind, "_shape_", None)
        scalar = getattr(kind, "_wp_scalar_type_", None)
        return tuple(shape) if shape is not None and scalar in self._scalars else None

    def _tensor(self, name: str, kind: Any) -> Tensor:
        shape = self.shape(kind.dtype)
        scalar = kind.dtype if shape is None else kind.dtype._wp_scalar_type_
        if scalar not in self._scalars:
            raise CompileError(
                Diagnostic(
                    f"the elements of the array {name!r} are of type {_shown(kind.dtype)}",
                    expected="numbers, vectors, matrices, quaternions or transforms",
                )
            )
        inner = shape or ()
        dims = [sym_int32() for _ in range(kind.ndim)]
        strides = [sym_int64() for _ in dims]
        return Tensor(
            name,
            (*dims, *inner),
            self._scalars[scalar],
            strides=(*strides, *_compact(inner)),
        )

    def _fits(self, given: Any, wanted: Param, kind: Any) -> bool:
        """Whether a spec accepts only values that the kernel's parameter accepts."""
        match wanted:
            case Tensor(dtype=dtype, shape=shape, strides=strides):
                rank = kind.ndim
                return (
                    isinstance(given, Tensor)
                    and given.dtype is dtype
                    and len(given.shape) == len(shape)
                    and given.shape[rank:] == shape[rank:]
                    and given.strides[rank:] == strides[rank:]
                )
            case Scalar(dtype=dtype):
                return isinstance(given, Scalar) and given.dtype is dtype
            case Tuple(items=items, fields=True):
                return (
                    isinstance(given, Tuple)
                    and given.fields
                    and [each.name for each in given.items] == [each.name for each in items]
                    and all(map(self._fits, given.items, items, _field_types(kind)))
                )
        return isinstance(given, type(wanted)) and repr(given) == repr(wanted)


def _field_types(kind: Any) -> list[Any]:
    return [var.type for var in kind.vars.values()]


def _elements(name: str, shape: tuple[int, ...], dtype: DType) -> Tuple:
    """A tuple of numbers; for a matrix, a tuple of rows."""
    outer, *inner = shape
    if not inner:
        return Tuple(name, tuple(Scalar(str(i), dtype) for i in range(outer)))
    return Tuple(name, tuple(_elements(str(i), tuple(inner), dtype) for i in range(outer)))


def _flat(spec: Param) -> Argument:
    if isinstance(spec, Tuple):
        return Struct([_flat(item) for item in spec.items])
    return spec


def _array_struct(tensor: Tensor, rank: int) -> Struct:
    """An `array_t`, see above; the dims of the array are followed by those of its elements."""
    missing = [cast(0, "int32")] * (MAX_DIMS - rank)
    return Struct(
        [
            tensor.data,
            NULL,
            *(cast(dim, "int32") for dim in tensor.shape[:rank]),
            *missing,
            *(cast(stride, "int32") for stride in tensor.byte_strides[:rank]),
            *missing,
            cast(rank, "uint16"),
            cast(0, "uint16"),
        ]
    )


def _compact(shape: tuple[int, ...]) -> tuple[Any, ...]:
    return row_major_strides(shape)


def _described(spec: Param) -> str:
    return Signature("kernel", (spec,)).describe(spec)


def _shown(kind: Any) -> str:
    return getattr(kind, "__name__", None) or repr(kind)
