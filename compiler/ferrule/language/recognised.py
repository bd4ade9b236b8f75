"""Recognises examples by their class: streams, numbers, real tensors.

It imports none of the packages that define them.
"""

from __future__ import annotations

import sys
import types
import typing
from collections.abc import Sequence
from typing import Any, Final

from ferrule.compiler.errors import CompileError
from ferrule.specs import Boolean, DType, Float32, Int32, Int64, Numeric, Sym, params
from ferrule.specs.dtypes import BY_NAME

UNIONS: Final = (typing.Union, types.UnionType)
"""The origins of annotations such as `A | B`."""


def is_stream_annotation(annotation: Any) -> bool:
    """Whether this is cuda-python's CUstream, as a class or as a string."""
    name = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return name.rpartition(".")[2] == "CUstream"


def is_stream(example: Any) -> bool:
    """Whether this is a stream of cuda-python, of torch, or of the CUDA stream protocol."""
    kind = type(example)
    if hasattr(kind, "__cuda_stream__"):
        return True
    root, name = kind.__module__.partition(".")[0], kind.__name__
    return (root, name) in (("cuda", "CUstream"), ("cuda", "cudaStream_t"), ("torch", "Stream"))


def is_event(example: Any) -> bool:
    """Whether this is an event of cuda-python: a handle, which a launch records."""
    kind = type(example)
    return kind.__module__.partition(".")[0] == "cuda" and kind.__name__ in _EVENTS


_EVENTS: Final = ("CUevent", "cudaEvent_t")


def hints_of(cls: type) -> dict[str, Any]:
    """The annotations of a class by field, evaluated where they can be."""
    try:
        return typing.get_type_hints(cls)
    except (NameError, TypeError, AttributeError):
        return dict(getattr(cls, "__annotations__", {}))


def scalar_dtype(example: Any) -> DType | None:
    """The dtype of a number: a dtype itself, the own dtype of NumPy's and ferrule's numbers, or the
    default."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(example, numpy.generic):
        return BY_NAME.get(example.dtype.name)
    match example:
        case DType():
            return example
        case Numeric():
            return type(example)
        case Sym(width=width):
            return Int32 if width == 32 else Int64
        case bool():
            return Boolean
        case int():
            return Int32
        case float():
            return Float32
    return None


def tensor_spec(name: str, tensor: Any, dynamic: bool = False) -> params.Tensor:
    """The spec of a real tensor: its exact shape, strides, dtype and device, or, if it is
    `dynamic`, that of tensors of other sizes and strides with the same innermost dim."""
    from ferrule import runtime

    try:
        spec: params.Tensor
        if dynamic:
            example = runtime.from_dlpack(tensor)
            example = example.mark_layout_dynamic(_innermost(example.shape, example.stride))
            spec = example.__ferrule_spec__(name)
        else:
            spec = runtime.tensor_spec(name, tensor)
        return spec
    except (TypeError, ValueError, BufferError, RuntimeError) as error:
        raise CompileError(
            f"the tensor for the parameter {name!r} cannot be taken through DLPack: {error}"
        ) from error.__cause__


def _innermost(shape: Sequence[object], strides: Sequence[object]) -> int | None:
    """The dim with stride 1, the last of several: one with more than one element, if there is."""
    unit = [axis for axis, stride in enumerate(strides) if stride == 1]
    long = [axis for axis in unit if shape[axis] != 1]
    return max(long or unit, default=None)
