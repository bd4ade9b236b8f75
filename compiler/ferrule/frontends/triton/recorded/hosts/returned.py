"""What a recorded host function returns beside tensors that it makes: numbers and texts, and
tensors of its caller, as they are or in another shape."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, TypeAlias

from ferrule import specs
from ferrule.compiler.conventions import Give, Made, View, cast
from ferrule.compiler.conventions.arguments import Cast
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.triton.recorded.followed import tree_of_number
from ferrule.frontends.triton.recorded.hosts.parameters import is_same, of_python
from ferrule.frontends.triton.recorded.log import Compared, Log
from ferrule.frontends.triton.recorded.nodes import Tree
from ferrule.frontends.triton.recorded.numbers.base import Number, numbers_inside
from ferrule.frontends.triton.recorded.numbers.deciding import with_line
from ferrule.frontends.triton.recorded.reading import Reading
from ferrule.frontends.triton.recorded.tensors import is_torch
from ferrule.frontends.triton.recorded.together import Together
from ferrule.specs import Dim, Tensor
from ferrule.specs.conditions import Real
from ferrule.specs.deferred import dataclass

_KINDS = (bool, int, float, str)
Value: TypeAlias = "Dim | Cast | View | Made | Tensor | str"


@dataclass(frozen=True, slots=True)
class Plain:
    """A number or text that a host function returned, and how a number was made of sizes."""

    value: bool | int | float | str
    tree: Tree | None = None

    @property
    def kind(self) -> str:
        """The name of its type."""
        return type(self.value).__name__


@dataclass(frozen=True, slots=True)
class Shown:
    """A tensor that a host function returned: how its sizes were made, and what is `held` of a call
    for it to be that.

    Of a caller's tensor `name` says that it is this one as it was given, None that it is a view:
    then how its strides were made, and where it begins.
    """

    shape: Sequence[Tree]
    held: Sequence[Compared] = ()
    strides: Sequence[Tree] = ()
    offset: Tree | None = None
    name: str | None = None


def shown(reading: Reading, result: Any) -> Shown:
    """How a tensor was made that a host function returned."""
    if reading.is_made(result):
        _, held = reading.log.again(partial(reading.hold_whole, result, in_order=True))
        return Shown(reading.trees(result), held)
    name = reading.names.get(id(result))
    if name is not None:
        return Shown(reading.trees(result), name=name)

    def ask() -> tuple[Sequence[Any], Any]:
        strides = reading.sizes(result, "stride", tuple(result.stride()))
        return strides, reading.offset(result)

    (strides, offset), held = reading.log.again(ask)
    return Shown(reading.trees(result), held, [*map(_tree, strides)], _tree(offset))


def _tree(number: Any) -> Any:
    return number.tree if isinstance(number, Number) else number


def plain_results(results: Sequence[Any]) -> list[Plain | None]:
    """The results that are no tensors; while it is recorded."""
    for each in results:
        for number in numbers_inside(each):
            if tree_of_number(number) is None:
                number.take()
    return [*map(_plain, results)]


def _plain(result: Any) -> Plain | None:
    if isinstance(result, Number):
        return Plain(result.number, tree_of_number(result))
    value = of_python(result)
    return Plain(value) if type(value) in _KINDS else None


def check_results(results: Sequence[Any]) -> None:
    """Raises CompileError for a result that no function returns."""
    for each in results:
        if each is None or is_torch(each) or _plain(each) is not None:
            continue
        raise CompileError(
            Diagnostic(
                f"a result of the recording is a {type(each).__name__}",
                expected="a tensor, a number, a bool, a text, None, or a tuple of these",
                hint="return these alone, in a function around it; "
                "launches.compile(results=…) names those of a recording",
            )
        )


def number_given(launch: Together, each: Sequence[Plain], what: str, logs: Sequence[Log]) -> Value:
    """What a call gives back for a result: a number is what the host function computes in it.

    Raises CompileError for one that is another one in each recording, and follows from nothing.
    """
    trees, values = [one.tree for one in each], [one.value for one in each]
    if all(type(value) is int for value in values):
        return launch.followed(trees, tuple(map(int, values)), what)
    if all(type(value) is float for value in values):
        numbers = [float(value) for value in values]
        found = launch.following.real(trees, numbers)
        if found is not None:
            known = found.number if isinstance(found, Real) else found
            return cast(known, specs.Float64)
        launch.following.pin(trees, numbers, what)
    first = values[0]
    for other in values[1:]:
        if not is_same(other, first):
            error = CompileError(
                Diagnostic(
                    f"{what} is {first!r} in one recording and {other!r} in another",
                    expected="the same in all recordings, or what follows from sizes and arguments",
                    hint="compile recordings of each side, and join them with fe.overload",
                )
            )
            raise with_line(error, logs)
    if isinstance(first, str):
        return first
    return cast(int(first), "bool") if isinstance(first, bool) else cast(first, specs.Float64)


def giving(values: Sequence[Value]) -> Iterator[Give]:
    """The step that gives values back, if there are any."""
    if values:
        yield Give(*values)
