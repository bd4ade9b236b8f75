"""From example arguments and annotations to specs.

An example says what it stands for through `__ferrule_spec__`; numbers, DSL scalars and real
tensors are known here.  Anything else is a CompileError that says what can stand there.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.language.faces import Tensor as TensorAnnotation
from ferrule.specs import (
    BY_DLPACK,
    DEVICE_NAMES,
    Boolean,
    DType,
    Float32,
    Int32,
    Numeric,
    Param,
    Scalar,
    SupportsSpec,
    Tensor,
)


@dataclass(frozen=True, slots=True)
class Examples:
    """A function's parameters with their examples, in order; `given` are those that a call gave."""

    params: tuple[Param, ...]
    given: dict[str, Any]


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """A function's Python signature, with string annotations evaluated where they can be."""
    try:
        return inspect.signature(function, eval_str=True)
    except (NameError, SyntaxError, TypeError):
        return inspect.signature(function)


def bind_examples(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Examples:
    """The specs of a function's parameters.  Raises CompileError where an example cannot be one."""
    name = getattr(function, "__name__", repr(function))
    signature = signature_of(function)
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise CompileError(f"{name}: parameters such as *{parameter.name} are not supported")
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise CompileError(
            Diagnostic(
                f"{name}: the example arguments do not fit: {error}",
                expected=f"one example for each parameter of {name}{signature}",
            )
        ) from None
    given = dict(bound.arguments)
    bound.apply_defaults()
    params = tuple(
        _spec(name, parameter, bound.arguments[parameter.name])
        for parameter in signature.parameters.values()
    )
    return Examples(params, given)


def _spec(function: str, parameter: inspect.Parameter, example: Any) -> Param:
    name, annotation = parameter.name, parameter.annotation
    if isinstance(example, SupportsSpec):
        spec = example.__ferrule_spec__(name)
    elif hasattr(type(example), "__dlpack__"):
        spec = tensor_spec(name, example)
    else:
        spec = _scalar(function, parameter, example)
    wanted = _kind_of_annotation(annotation)
    if wanted is not None and wanted is not type(spec):
        raise CompileError(
            f"{function}: the parameter {name!r} is annotated as "
            f"{getattr(annotation, '__name__', annotation)}, but its example is {example!r}"
        )
    return spec


def _kind_of_annotation(annotation: Any) -> type[Tensor] | type[Scalar] | None:
    if annotation is TensorAnnotation:
        return Tensor
    if isinstance(annotation, DType):
        return Scalar
    return None


def _scalar(function: str, parameter: inspect.Parameter, example: Any) -> Scalar:
    """A scalar parameter: its dtype comes from the annotation, else from the example."""
    name, annotation = parameter.name, parameter.annotation
    default = parameter.default
    try:
        dtype = _scalar_dtype(annotation, example)
        if dtype is None:
            raise TypeError(f"{example!r} ({type(example).__name__})")
        if not isinstance(example, DType):
            dtype(example)
        if default is parameter.empty or isinstance(default, DType):
            return Scalar(name, dtype)
        return Scalar(name, dtype, default)
    except (TypeError, ValueError, OverflowError) as error:
        raise CompileError(
            Diagnostic(
                f"{function}: the example for the parameter {name!r} cannot be used: {error}",
                expected="a fake tensor, a tensor, a number, or a dtype such as fe.Float32",
            )
        ) from None


def _scalar_dtype(annotation: Any, example: Any) -> DType | None:
    if isinstance(annotation, DType):
        return annotation
    match example:
        case DType():
            return example
        case Numeric():
            return type(example)
        case bool():
            return Boolean
        case int():
            return Int32
        case float():
            return Float32
    return None


def tensor_spec(name: str, tensor: Any) -> Tensor:
    """The spec of a real tensor: its exact shape, strides, dtype and device.

    Raises CompileError for one that DLPack does not give out.
    """
    import tvm_ffi

    try:
        view = tvm_ffi.from_dlpack(tensor)
    except Exception as error:
        raise CompileError(
            f"the tensor for the parameter {name!r} cannot be taken through DLPack: {error}"
        ) from None
    dtype = BY_DLPACK.get(_dlpack_word(view.dtype))
    if dtype is None:
        raise CompileError(f"the tensor for {name!r} has the dtype {view.dtype}, which is unknown")
    device = DEVICE_NAMES[view.device.dlpack_device_type()]
    strides = tuple(int(s) for s in view.strides)
    return Tensor(name, tuple(int(s) for s in view.shape), dtype, strides=strides, device=device)


def _dlpack_word(dtype: Any) -> int:
    return int(dtype.type_code) | int(dtype.bits) << 8 | int(dtype.lanes) << 16
