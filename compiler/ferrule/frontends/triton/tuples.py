"""Tuples as arguments: each element is a parameter of its own.

Triton accepts tuples, named tuples and nested tuples, and flattens them in place.  An element of
the parameter `p` is called `p_0`, of a named tuple `p_field`; callers of the function pass it under
this name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from ferrule.compiler.errors import CompileError
from ferrule.frontends.triton.installed import Kernel, KernelParameter

Shape: TypeAlias = "str | tuple[Shape, ...]"
"""The names of the elements, in the structure of the tuple."""


def flattened(kernel: Kernel, given: Mapping[str, Any]) -> tuple[Kernel, dict[str, Any]]:
    """The kernel with a parameter for each element of the tuples among the examples, and the
    examples of these.

    Raises CompileError if the name of an element is that of another parameter.
    """
    parameters: list[KernelParameter] = []
    shapes: dict[str, Shape] = {}
    examples = dict(given)
    for parameter in kernel.parameters:
        example = given.get(parameter.name, parameter.default)
        if parameter.is_constexpr or not isinstance(example, tuple | list):
            parameters.append(parameter)
            continue
        elements = list(_elements(parameter, example))
        parameters += [element for element, _ in elements]
        shapes[parameter.name] = _shape(parameter.name, example)
        examples.pop(parameter.name, None)
        examples |= {element.name: value for element, value in elements}
    names = [parameter.name for parameter in parameters]
    for name in names:
        if names.count(name) > 1:
            raise CompileError(
                f"{kernel.name}: an element of a tuple is called {name!r}, and so is another "
                "parameter: rename one in the kernel"
            )
    return replace(kernel, parameters=tuple(parameters), tuples=shapes), examples


def nest(shape: Any, value: Callable[[Any], Any]) -> Any:
    """A tuple of this shape, with a function's result for each element."""
    if not isinstance(shape, tuple | list):
        return value(shape)
    return _like(shape, [nest(each, value) for each in shape])


def _elements(parameter: KernelParameter, example: Any) -> Iterator[tuple[KernelParameter, Any]]:
    if not isinstance(example, tuple | list):
        yield parameter, example
        return
    for position, (key, element) in enumerate(zip(_keys(example), example, strict=True)):
        inner = replace(
            parameter,
            name=f"{parameter.name}_{key}",
            path=(*parameter.path, position),
            type="",
            has_default=False,
            default=None,
        )
        yield from _elements(inner, element)


def _shape(name: str, example: Any) -> Shape:
    if not isinstance(example, tuple | list):
        return name
    parts = [
        _shape(f"{name}_{key}", each) for key, each in zip(_keys(example), example, strict=True)
    ]
    shape: Shape = _like(example, parts)
    return shape


def _keys(example: Any) -> Any:
    return getattr(example, "_fields", range(len(example)))


def _like(example: Any, parts: list[Any]) -> Any:
    """A tuple of the same class if that is a named tuple, otherwise a plain one."""
    return type(example)(*parts) if hasattr(example, "_fields") else tuple(parts)
