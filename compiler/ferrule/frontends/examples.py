"""What stands for a parameter of somebody else's function: a spec, an example, a dtype."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
    SupportsSpec,
    as_dtype,
    compact_strides,
    sym_int32,
    sym_int64,
)
from ferrule.specs.changing import changed
from ferrule.specs.params import Scalar, Tensor

_KINDS = get_args(Param)
_OF_PYTHON: Final = {bool: Boolean, int: Int64, float: Float64}
_EXPECTED: Final = "a fake tensor, a spec such as specs.Tensor(...), a real tensor, or a dtype"


def tensor_named(specs: Iterable[Param], name: str) -> Tensor:
    """The tensor of this name, which a call makes and returns; CompileError where there is none."""
    tensors = [spec for spec in specs if isinstance(spec, Tensor)]
    for tensor in tensors:
        if tensor.name == name:
            return tensor
    raise CompileError(
        Diagnostic(
            f"results names {name!r}",
            expected=f"an array: {', '.join(each.name for each in tensors) or 'there is none'}",
        )
    )


def parted(specs: Iterable[Param], results: Any) -> tuple[tuple[Param, ...], list[Tensor]]:
    """The parameters of a call, and the arrays that it makes: those that `results` names.

    Raises TypeError for what is no name, CompileError for one that is not there.
    """
    listed, returned = list(specs), names(results)
    made = [tensor_named(listed, each) for each in returned]
    return tuple(each for each in listed if each.name not in returned), made


def spec_of(name: str, example: Any, *, rename: bool = False, constant: int = 0) -> Param:
    """The spec of the parameter of this name.

    `example` is a spec of that name, or with `rename` of any; what says its own spec, as fake
    tensors do; a real tensor, of which dtype and rank count, steps of 1 and alignment, and the last
    dims, as many as `constant`; or the dtype of a number, of ferrule, NumPy or Python, or its name.
    Raises CompileError for anything else.
    """
    if isinstance(example, _KINDS):
        return _named(name, example, rename)
    if isinstance(example, SupportsSpec):
        return example.__ferrule_spec__(name)
    if hasattr(type(example), "__dlpack__"):
        return _of_real_tensor(name, example, constant)
    dtype = _dtype(example)
    try:
        if dtype is not None:
            return Scalar(name, dtype)
    except (TypeError, ValueError) as error:
        said = f"the example of the parameter {name!r} is {dtype}, which no number of a call has"
        raise CompileError(Diagnostic(f"{said}: {error}", expected=_EXPECTED)) from None
    said = f"the example of the parameter {name!r} is {brief(example)}"
    raise CompileError(Diagnostic(said, expected=_EXPECTED))


def _of_real_tensor(name: str, tensor: Any, constant: int = 0) -> Tensor:
    """The spec of a real tensor: its dtype and rank, any sizes; aligned to 16 bytes if it is.

    Sizes and strides of the last dims, as many as `constant`, are those that it has.
    Raises CompileError for what DLPack cannot hand over.
    """
    from ferrule.runtime.views import view_of

    try:
        view = view_of(tensor)
    except (TypeError, ValueError, BufferError, RuntimeError) as error:
        raise CompileError(
            f"the tensor for the parameter {name!r} cannot be taken through DLPack: "
            + str(error).partition("\n")[0]
        ) from None
    is_aligned = view.address % 16 == 0
    return tensor_like(name, view.shape, view.strides, view.dtype, is_aligned, constant)


def tensor_like(
    name: str,
    sizes: Sequence[int],
    steps: Sequence[int],
    dtype: DType,
    aligned: bool,
    constant: int = 0,
) -> Tensor:
    """The spec of tensors like one of these sizes and strides, in elements: of the same rank, and
    compact if it is, else with the strides of 1 that it has; `aligned` to 16 bytes.

    The last dims, as many as `constant`, are as they are.
    """
    free = max(0, len(sizes) - constant)
    shape: list[Dim] = [*(sym_int32() for _ in sizes[:free]), *sizes[free:]]
    order = tuple(reversed(range(len(shape))))
    if tuple(steps) == compact_strides(tuple(sizes), order):
        strides = compact_strides(shape, order)
    else:
        outer = (1 if step == 1 else sym_int64() for step in steps[:free])
        strides = (*outer, *steps[free:])
    align = max(16, dtype.itemsize) if aligned else None
    return Tensor(name, shape, dtype, strides=strides, align=align)


def is_compact(tensor: Tensor) -> bool:
    """Whether a tensor has no gaps, row by row, as far as its spec tells."""
    order = tuple(reversed(range(len(tensor.shape))))
    return tensor.strides == compact_strides(tensor.shape, order)


def _dtype(example: Any) -> DType | None:
    """The dtype that an example names, as ferrule, NumPy or Python write it; None for no dtype."""
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
