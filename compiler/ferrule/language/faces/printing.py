"""`fe.print_tensor`, written in the kernel language itself."""

from __future__ import annotations

from typing import Any, Final

from ferrule.language import layouts
from ferrule.language.faces.base import outside, printf
from ferrule.language.faces.base import range as range_
from ferrule.language.layouts import flatten, rank

_FORMATS: Final = {"float": "% f", "uint": "%u", "bool": "%s"}
_INDENT: Final = " " * 7


def in_memory(tensor: Any) -> Any:
    """A tensor as it is, a vector as a fragment with its elements."""
    outside("print_tensor")


def has_coordinates(tensor: Any) -> bool:
    """Whether the elements of a tensor are coordinates, and not in memory."""
    outside("print_tensor")


def print_tensor(tensor: Any, *, verbose: bool = False) -> None:
    """Prints a tensor or a vector at run time: its address, its type, and its elements, which may
    be coordinates.

    The first mode counts rows, the second one the elements of a row, and those after it count
    matrices.  `verbose`: one line for each element, with its coordinate.  In a kernel each thread
    that comes here prints.
    """
    found = in_memory(tensor)
    flat = flatten(found)
    printf("tensor({}, data=", found, end=" (" if verbose else "\n")
    if verbose:
        printf("")
        _lines(flat, ())
    else:
        printf(_INDENT, end="")
        _nested(flat, (), 0)
    printf(")")


def _size(tensor: Any, mode: int) -> Any:
    return layouts.size(tensor, mode=[mode])


def _element(before: Any, tensor: Any, at: Any, after: Any, end: Any = "") -> None:
    """Prints an element between texts; numbers for the first text are in front of it."""
    text, *numbers = before
    if has_coordinates(tensor):
        found = tensor[at]
        space = "" if numbers else " "
        printf(text + space + _shown(found) + after, *numbers, *_numbers(found), end=end)
    else:
        printf(text + _format(tensor) + after, *numbers, tensor[at], end=end)


def _shown(coordinate: Any) -> str:
    """The format of a coordinate."""
    if isinstance(coordinate, tuple):
        return "(" + ",".join([_shown(each) for each in coordinate]) + ")"
    return "%d"


def _numbers(coordinate: Any) -> Any:
    """The numbers of a coordinate."""
    found = flatten(coordinate)
    return found if isinstance(found, tuple) else (found,)


def _format(tensor: Any) -> str:
    return _FORMATS.get(tensor.element_type.kind, "%d")


def _lines(tensor: Any, at: Any) -> None:
    """The elements at these first coordinates, each in a line."""
    if len(at) == rank(tensor):
        coordinate = ",".join(["%d"] * len(at))
        _element(("\t(" + coordinate + ")= ", *at), tensor, at, "", "\n")
    else:
        for i in range_(_size(tensor, len(at))):
            _lines(tensor, (*at, i))


def _nested(tensor: Any, at: Any, depth: Any) -> None:
    """The elements at these last coordinates, in as many brackets as there are modes left."""
    left = rank(tensor) - len(at)
    if left == 0:
        _element(("",), tensor, at, "")
    elif left == 1:
        _column(tensor, at)
    elif left == 2:
        _rows(tensor, at, depth)
    else:
        printf("[", end="")
        for i in range_(_size(tensor, left - 1)):
            if i > 0:
                printf(",\n\n" + _INDENT + " " * (depth + 1), end="")
            _nested(tensor, (i, *at), depth + 1)
        printf("]", end="")


def _column(tensor: Any, at: Any) -> None:
    for i in range_(_size(tensor, 0)):
        if i > 0:
            printf(",\n" + _INDENT, end="")
        _element(("[",), tensor, (i, *at), ", ]")


def _rows(tensor: Any, at: Any, depth: Any) -> None:
    printf("[", end="")
    for i in range_(_size(tensor, 0)):
        if i > 0:
            printf(",\n" + _INDENT + " " * (depth + 1), end="")
        printf("[", end="")
        for j in range_(_size(tensor, 1)):
            _element(("",), tensor, (i, j, *at), ", ")
        printf("]", end="")
    printf("]", end="")
