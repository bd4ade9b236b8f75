"""What stands for a parameter of somebody else's function: a spec, an example, a dtype."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, get_args

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.specs import Param, SupportsSpec, as_dtype
from ferrule.specs.params import Scalar, Tensor

_KINDS = get_args(Param)


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


def spec_of(name: str, example: Any) -> Param:
    """The spec of the parameter of this name.

    `example` is a spec of that name, anything that says its own, as fake tensors do, or the dtype
    of a number.  Raises CompileError for anything else.
    """
    if isinstance(example, _KINDS):
        return _named(name, example)
    if isinstance(example, SupportsSpec):
        return example.__ferrule_spec__(name)
    try:
        return Scalar(name, as_dtype(example))
    except (TypeError, ValueError):
        raise CompileError(
            Diagnostic(
                f"the example of the parameter {name!r} is {example!r}",
                expected="a fake tensor, a spec such as specs.Tensor(...), or a dtype",
            )
        ) from None


def _named(name: str, spec: Any) -> Param:
    if spec.name != name:
        raise CompileError(
            Diagnostic(
                f"the spec of the parameter {name!r} has the name {spec.name!r}",
                hint=f"write {type(spec).__name__}({name!r}, ...)",
            )
        )
    found: Param = spec
    return found
