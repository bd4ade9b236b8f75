"""Specs of the parameters of a foreign function, from a spec, an example, or a dtype."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import field, replace
from math import prod
from typing import Any, Final, get_args

import numpy as np

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.given import brief, names
from ferrule.specs import (
    Boolean,
    Dim,
    DType,
    Float64,
    Int64,
    Param,
    Signature,
    SupportsSpec,
    Sym,
    as_dtype,
    sym_int32,
    sym_int64,
)
from ferrule.specs.copies import changed
from ferrule.specs.deferred import dataclass
from ferrule.specs.params import Scalar, Tensor, row_major_strides

_KINDS = get_args(Param)
_OF_PYTHON: Final = {bool: Boolean, int: Int64, float: Float64}
_EXPECTED: Final = "a fake tensor, a spec such as specs.Tensor(...), a real tensor, or a dtype"


def tensor_named(specs: Iterable[Param], name: str, what: str = "results") -> Tensor:
    """The tensor of this name, which the argument `what` contains; CompileError if there is
    none."""
    tensors = [spec for spec in specs if isinstance(spec, Tensor)]
    for tensor in tensors:
        if tensor.name == name:
            return tensor
    raise CompileError(
        Diagnostic(
            f"{what} names {name!r}",
            expected=f"an array: {', '.join(each.name for each in tensors) or 'there is none'}",
        )
    )


def parted(specs: Iterable[Param], results: Any) -> tuple[tuple[Param, ...], list[Tensor]]:
    """The parameters of a call, and the arrays that it allocates: those that `results` names.

    Raises TypeError for a value that is not a name, CompileError for the name of no parameter.
    """
    listed, returned = list(specs), names(results)
    made = [tensor_named(listed, each) for each in returned]
    return tuple(each for each in listed if each.name not in returned), made


def named_results(signature: Signature, results: Any) -> tuple[Signature, list[Any]]:
    """The signature without the tensors that `results` names, and the results: specs that are in
    no signature stay as they are.  Raises CompileError for the name of no parameter."""
    is_list = isinstance(results, list | tuple)
    if not is_list or not any(isinstance(each, str) for each in results):
        return signature, results
    listed = list(signature.params)
    made = [tensor_named(listed, each) if isinstance(each, str) else each for each in results]
    out = {each for each in results if isinstance(each, str)}
    count = len(listed)
    first, last = signature.positional_only, count - signature.keyword_only
    left = replace(
        signature,
        params=tuple(each for each in listed if each.name not in out),
        positional_only=sum(each.name not in out for each in listed[:first]),
        keyword_only=sum(each.name not in out for each in listed[last:]),
    )
    return left, made


@dataclass(frozen=True, slots=True)
class Seen:
    """The properties of a real tensor: sizes and strides in elements, and whether its address is a
    multiple of 16."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: DType
    aligned: bool


@dataclass(slots=True)
class SeenSizes:
    """The sizes that may differ between calls, from the real tensors that are examples for one
    function.

    A size of 1 stays 1, because the kernel usually broadcasts or ignores that axis.  A size that
    occurs in tensors of different shapes becomes one symbol, because the kernel presumably iterates
    over these tensors together.  If it occurs in one shape only, however many tensors have that
    shape, each axis has its own symbol, so that a square matrix need not stay square.  `constant`
    are sizes and strides that stay constant.
    """

    shapes: list[tuple[int, ...]] = field(default_factory=list)
    constant: frozenset[int] = frozenset()
    known: dict[object, Sym] = field(default_factory=dict)

    @classmethod
    def of(
        cls, examples: Iterable[Any], numbers: Iterable[int] = (), constants: Iterable[int] = ()
    ) -> SeenSizes:
        """The sizes of all real tensors among the examples, including those in tuples and lists.

        `numbers` are passed to every call: if one of them is a size, a stride or the number of
        elements of a tensor, all sizes of this tensor stay constant, because they belong together.
        `constants` are compiled in: a size that equals one of them stays constant, and so do all
        sizes of a tensor whose number of elements or stride equals one.
        """
        all_seen, kept = list(_seen(examples)), {each for each in numbers if each > 1}
        compiled = {each for each in constants if each > 1}
        constant = kept | compiled
        for each in all_seen:
            computed = {*each.strides, prod(each.shape)} - {*each.shape}
            if kept & {*each.shape, *computed} or compiled & computed:
                constant.update(each.shape)
        return cls(list(dict.fromkeys(each.shape for each in all_seen)), frozenset(constant))

    def dims(self, shape: tuple[int, ...]) -> list[Dim]:
        """The dims of a tensor of this shape."""
        return [self._dim(shape, axis) for axis in range(len(shape))]

    def stride(self, step: int) -> Dim:
        """The stride of a tensor with gaps."""
        return step if step == 1 or step in self.constant else sym_int64()

    def _dim(self, shape: tuple[int, ...], axis: int) -> Dim:
        size = shape[axis]
        if size == 1 or size in self.constant:
            return size
        shared = any(size in other for other in self.shapes if other != shape)
        return self.known.setdefault(size if shared else (shape, axis), sym_int32())


def sizes_seen(examples: Iterable[Any]) -> set[int]:
    """The sizes, strides and numbers of elements, except 1, of the real tensors among the
    examples."""
    found = (
        number
        for each in _seen(examples)
        for number in (*each.shape, *each.strides, prod(each.shape))
    )
    return {number for number in found if number > 1}


def _seen(examples: Iterable[Any]) -> Iterator[Seen]:
    for example in examples:
        if isinstance(example, tuple | list):
            yield from _seen(example)
        elif isinstance(example, Seen):
            yield example
        elif is_real(example):
            # A tensor that cannot be read is refused later, when its spec is made.
            with suppress(CompileError):
                yield seen("", example)


def is_real(example: Any) -> bool:
    """Whether an example is a tensor with data."""
    plain = not isinstance(example, (*_KINDS, SupportsSpec))
    return plain and hasattr(type(example), "__dlpack__")


def spec_of(
    name: str,
    example: Any,
    *,
    rename: bool = False,
    constant: int = 0,
    sizes: SeenSizes | None = None,
) -> Param:
    """The spec of the parameter of this name.

    `example` is a spec of that name (with `rename`, of any name); an object with a spec of its own,
    such as a fake tensor; a real tensor, of which dtype, rank, strides of 1, alignment, and the
    last `constant` dims are used; or the dtype of a number, of ferrule, NumPy or Python, or its
    name.  `sizes` are those of all real tensors among the function's examples.  Raises CompileError
    for anything else.
    """
    if isinstance(example, _KINDS):
        return _named(name, example, rename)
    if isinstance(example, SupportsSpec):
        return example.__ferrule_spec__(name)
    if isinstance(example, Seen) or hasattr(type(example), "__dlpack__"):
        found = example if isinstance(example, Seen) else seen(name, example)
        return tensor_like(name, found, constant, sizes)
    dtype = _dtype(example)
    try:
        if dtype is not None:
            return Scalar(name, dtype)
    except (TypeError, ValueError) as error:
        said = f"the example of the parameter {name!r} is {dtype}, which no number of a call has"
        raise CompileError(Diagnostic(f"{said}: {error}", expected=_EXPECTED)) from None
    said = f"the example of the parameter {name!r} is {brief(example)}"
    raise CompileError(Diagnostic(said, expected=_EXPECTED))


def seen(name: str, tensor: Any) -> Seen:
    """The properties of a real tensor.  Raises CompileError for a tensor that DLPack cannot
    pass."""
    from ferrule.runtime.values.views import view_of

    try:
        view = view_of(tensor)
    except (TypeError, ValueError, BufferError, RuntimeError) as error:
        said = str(error).partition("\n")[0]
        raise CompileError(
            Diagnostic(
                f"the tensor for the parameter {name!r} cannot be taken through DLPack: {said}",
                hint=_instead(name, str(getattr(getattr(tensor, "dtype", None), "kind", ""))),
            )
        ) from None
    # 16 bytes is what vector loads of a GPU and SSE need.
    is_aligned = view.address % 16 == 0
    return Seen(tuple(view.shape), tuple(view.strides), view.dtype, is_aligned)


def _instead(name: str, kind: str) -> str | None:
    """What to hand over instead of an array of NumPy of this kind, which no call can get."""
    if kind == "V":
        return (
            f"a record has no dtype in a call: let each of its fields be an array, {name}['field']"
        )
    if kind in ("M", "m"):
        return f"times are integers in a call: {name}.view('int64')"
    return None


def tensor_like(name: str, like: Seen, constant: int = 0, sizes: SeenSizes | None = None) -> Tensor:
    """The spec of tensors with the properties of an example: the same rank; compact if the example
    is, otherwise with its strides of 1; aligned to 16 bytes if the example is.

    The last `constant` dims keep their sizes; the others are those of `sizes`.
    """
    free, known = max(0, len(like.shape) - constant), sizes or SeenSizes()
    shape: list[Dim] = [*known.dims(like.shape[:free]), *like.shape[free:]]
    if like.strides == row_major_strides(like.shape):
        strides = row_major_strides(shape)
    else:
        strides = (*map(known.stride, like.strides[:free]), *like.strides[free:])
    align = max(16, like.dtype.itemsize) if like.aligned else None
    return Tensor(name, shape, like.dtype, strides=strides, align=align)


def is_compact(tensor: Tensor) -> bool:
    """Whether the spec guarantees that a tensor has no gaps, in row-major order."""
    return tensor.strides == row_major_strides(tensor.shape)


def _dtype(example: Any) -> DType | None:
    """The dtype that an example names, in the notation of ferrule, NumPy or Python; None if it is
    no dtype."""
    if isinstance(example, type) and example in _OF_PYTHON:
        return _OF_PYTHON[example]
    if isinstance(example, np.dtype) or _is_numpy_type(example):
        example = np.dtype(example).name
    try:
        return as_dtype(example)
    except (TypeError, ValueError):
        return None


def _is_numpy_type(example: Any) -> bool:
    return isinstance(example, type) and issubclass(example, np.generic)


def _named(name: str, spec: Any, rename: bool) -> Param:
    if spec.name != name and not rename:
        raise CompileError(
            Diagnostic(
                f"the spec of the parameter {name!r} has the name {spec.name!r}",
                hint=f"write {type(spec).__name__}({name!r}, ...)",
            )
        )
    found: Param = spec if spec.name == name else changed(spec, name=name)
    return found
