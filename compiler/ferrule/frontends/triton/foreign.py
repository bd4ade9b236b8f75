"""Examples in the terms of other packages, which users of Triton's launcher have at hand.

These are Triton's own descriptors, reinterpreted tensors, stand-ins for tensors, and dtypes;
NumPy's numbers; dtypes of NumPy and PyTorch; the types of Python.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, Final

from ferrule import specs
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.examples import Seen
from ferrule.frontends.triton.arguments import Descriptor, Fixed, Pixels, Reinterpreted
from ferrule.frontends.triton.tuples import nest
from ferrule.frontends.triton.types import DTYPES, pointer_type
from ferrule.runtime.values.views import view_of
from ferrule.specs import DType, SupportsSpec
from ferrule.specs.dtypes import BY_NAME
from ferrule.specs.params import row_major_strides

_TYPES: Final = {int: specs.Int32, float: specs.Float32, bool: specs.Boolean}


def own(example: Any, name: str) -> Any:
    """The example of a parameter in ferrule's terms; an example that is already in these terms is
    unchanged.

    Raises CompileError for a descriptor that is not supported.
    """
    if isinstance(example, tuple | list):
        return nest(example, lambda each: own(each, name))
    if isinstance(example, str | int | float | DType) or example is None:
        return example
    kind = type(example)
    if kind.__module__.partition(".")[0] == "triton":
        return _of_triton(example, name)
    if kind.__module__ == "numpy" and kind.__name__ in ("bool", "bool_"):
        return bool(example)
    if isinstance(example, Integral):
        return int(example)
    if isinstance(example, Real):
        return float(example)
    if _is_buffer(example):
        return _buffer(example, name)
    return _dtype(example)


def fixed(example: Any) -> Any:
    """An example given by name: a number is the same in every call."""
    if isinstance(example, bool | int | float):
        return Fixed(example)
    return nest(example, fixed) if isinstance(example, tuple | list) else example


def _of_triton(example: Any, name: str) -> Any:
    match type(example).__name__:
        case "TensorDescriptor" | "TensorDescriptorIm2Col":
            return _descriptor(example, name)
        case "TensorWrapper" if _name(example.dtype) in DTYPES:
            return Reinterpreted(own(example.base, name), DTYPES[_name(example.dtype)])
        case "MockTensor":
            dtype = own(example.dtype, name)
            return pointer_type(dtype, name) if isinstance(dtype, DType) else f"*{dtype}"
        case "pointer_type":
            return f"*{_name(example.element_ty)}"
        case "dtype":
            return _name(example)
    return example


def _is_buffer(example: Any) -> bool:
    """Whether it is what Triton takes for a pointer, and no tensor of a package."""
    has_spec = isinstance(example, SupportsSpec) or hasattr(type(example), "__dlpack__")
    return (
        not has_spec and callable(getattr(example, "data_ptr", None)) and hasattr(example, "dtype")
    )


def _buffer(example: Any, name: str) -> Any:
    """An object with `data_ptr` and `dtype`, such as a view that a library makes: a tensor of its
    sizes and strides, or a vector."""
    dtype = own(example.dtype, name)
    dtype = DTYPES.get(dtype, dtype) if isinstance(dtype, str) else dtype
    if not isinstance(dtype, DType):
        return example
    if not hasattr(example, "shape"):
        return pointer_type(dtype, name)
    shape, stride = _plain(example.shape), getattr(example, "stride", None)
    strides = stride() if callable(stride) else row_major_strides(shape)
    return Seen(shape, _plain(strides), dtype, aligned=int(example.data_ptr()) % 16 == 0)


def _name(dtype: Any) -> str:
    """The name in a signature of one of Triton's dtypes, whose own names are "int8" and "uint8"."""
    return re.sub(r"^(u?)int(?=\d)", lambda found: found[1] or "i", str(dtype))


def _descriptor(given: Any, name: str) -> Descriptor:
    """The example for a `TensorDescriptor` of Triton or Gluon: callers pass its tensor."""
    try:
        view = view_of(given.base)
    except (TypeError, ValueError, BufferError, RuntimeError) as error:
        raise CompileError(
            Diagnostic(
                f"the base of the descriptor for {name!r} cannot be taken through DLPack: {error}",
                hint=f"give descriptor(example, {tuple(given.block_shape)}) with an example of "
                "the tensor",
            )
        ) from None
    layout = getattr(given, "layout", None)
    return Descriptor(
        Seen(_plain(given.shape), _plain(given.strides), view.dtype, aligned=True),
        _plain(given.block_shape),
        given.padding,
        "" if layout is None else repr(layout),
        bool(getattr(given, "round_f32_to_tf32", False)),
        pixels=_pixels(given) if hasattr(given, "pixel_box_lower_corner") else None,
    )


def _pixels(given: Any) -> Pixels:
    steps = given.element_strides or (1,) * len(given.shape)
    lower, upper = given.pixel_box_lower_corner, given.pixel_box_upper_corner
    return Pixels(_plain(lower), _plain(upper), _plain(steps))


def _plain(sizes: Sequence[Any]) -> tuple[int, ...]:
    return tuple(int(getattr(size, "value", size)) for size in sizes)


def _dtype(example: Any) -> Any:
    """A dtype of NumPy or PyTorch, or a type of Python, as ferrule's dtype; other values are
    unchanged."""
    if isinstance(example, type) and example in _TYPES:
        return _TYPES[example]
    kind = example if isinstance(example, type) else type(example)
    if kind.__module__.partition(".")[0] not in ("numpy", "torch"):
        return example
    names = (getattr(example, each, "") for each in ("name", "__name__"))
    shown = (str(example).removeprefix("torch."), *names)
    found = next((BY_NAME[name] for name in shown if name in BY_NAME), None)
    return example if found is None or not _is_dtype(example, kind) else found


def _is_dtype(example: Any, kind: type) -> bool:
    return isinstance(example, type) or "dtype" in kind.__name__.lower()
