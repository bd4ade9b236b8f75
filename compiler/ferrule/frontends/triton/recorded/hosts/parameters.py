"""The parameters of a compiled host function: those of the host function, at their places, with
their names and defaults.

A recording is right for the values that it was given.  So a parameter that no launch takes is
checked by each call: it has the recorded value.  One whose value no call can check, as a dtype or
an object, is left out; what stands behind it is passed by name, so that no place means another.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field
from functools import reduce
from typing import Any, Final

from ferrule.compiler.conventions import Require
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.given import brief
from ferrule.frontends.triton.recorded.checks import require_same
from ferrule.frontends.triton.recorded.reading import Reading
from ferrule.frontends.triton.recorded.sizes import Sizes
from ferrule.frontends.triton.recorded.tensors import is_torch, recorded
from ferrule.specs import Condition, NoneValue, Param, Scalar, Signature, Tensor, compare_float
from ferrule.specs.conditions import equal
from ferrule.specs.deferred import dataclass
from ferrule.specs.params import Constant
from ferrule.specs.params.base import REQUIRED

_NO_DEFAULT: Final = inspect.Parameter.empty
_UNKNOWN: Final = object()
"""The default of what is passed on by `*args` or `**kwargs`: another function may have one."""


@dataclass(frozen=True, slots=True)
class Given:
    """A parameter of a host function, and its value in one recording.

    `by_name`: callers pass it by name alone.  `is_rest`: it is one of `*args`, without a name.
    `storage` is the memory of a tensor.
    """

    name: str
    value: Any
    default: Any = _NO_DEFAULT
    by_name: bool = False
    is_rest: bool = False
    storage: int | None = None


def givens(bound: inspect.BoundArguments) -> list[Given]:
    """The parameters of a host function in a call of it, in their order."""
    found: list[Given] = []
    for name, each in bound.signature.parameters.items():
        value = bound.arguments.get(name, each.default)
        if each.kind is each.VAR_POSITIONAL:
            several = enumerate(bound.arguments.get(name, ()))
            found += [_given(f"{name}_{at}", one, _UNKNOWN, is_rest=True) for at, one in several]
        elif each.kind is each.VAR_KEYWORD:
            named = bound.arguments.get(name, {}).items()
            found += [_given(key, one, _UNKNOWN, by_name=True) for key, one in named]
        else:
            by_name = each.kind is each.KEYWORD_ONLY
            found.append(_given(name, value, each.default, by_name=by_name))
    return found


def given_to(reading: Reading, bound: inspect.BoundArguments) -> None:
    """Put what a host function gets in the place of its arguments, under the names of `givens`; of
    defaults too, which are other numbers in another call."""
    bound.apply_defaults()
    for name, each in bound.signature.parameters.items():
        value = bound.arguments[name]
        if each.kind is each.VAR_POSITIONAL:
            value = tuple(reading.given(f"{name}_{at}", one) for at, one in enumerate(value))
        elif each.kind is each.VAR_KEYWORD:
            value = {key: reading.given(key, one) for key, one in value.items()}
        else:
            value = reading.given(name, value)
        bound.arguments[name] = value


def _given(name: str, value: Any, default: Any, **more: bool) -> Given:
    storage = recorded(name, value).storage if is_torch(value) else None
    return Given(name, value, default, storage=storage, **more)


@dataclass(slots=True)
class Parameters:
    """The parameters of a function of several recordings.

    `several` are those of each host function, `taken` what launches take, by name, and `tensors`
    the tensors of the first recording by their memory.  `fixed` are names that a person left out.
    """

    function: str
    several: Sequence[Sequence[Given]]
    taken: Mapping[str, Tensor | Scalar]
    tensors: Mapping[int, Tensor]
    sizes: Sizes
    fixed: Collection[str] = ()
    places: list[Param] = field(default_factory=list)
    named: list[Param] = field(default_factory=list)
    checks: list[Require] = field(default_factory=list)
    _has_gap: bool = False

    def signature(self) -> Signature:
        """The signature.  Raises CompileError for a parameter that would mean another value."""
        self._check_names()
        for each in zip(*self.several, strict=True):
            self._place(each)
        placed = {id(each) for each in (*self.places, *self.named)}
        left = [each for each in self.taken.values() if id(each) not in placed]
        (self.named if self._has_gap or self.named else self.places).extend(left)
        params = (*self.places, *self.named)
        return Signature(self.function, params, keyword_only=len(self.named))

    def _check_names(self) -> None:
        names = [[each.name for each in one] for one in self.several]
        require_same(self.function, "gives", names)
        for name in self.fixed:
            if name not in names[0]:
                raise CompileError(
                    Diagnostic(
                        f"fixed names {name!r}, which is no parameter of {self.function}",
                        expected=", ".join(names[0]) or "nothing, it has no parameters",
                    )
                )

    def _place(self, each: Sequence[Given]) -> None:
        first = each[0]
        taken = self._taken(first)
        if taken is not None and first.name in self.fixed:
            raise CompileError(
                f"fixed names {first.name!r}, which a launch of {self.function} takes"
            )
        param = taken
        if taken is None and first.name not in self.fixed:
            param = self._checked(each)
        if param is None:
            self._leave_out(each)
        elif first.by_name or self._has_gap:
            self.named.append(param)
        else:
            self.places.append(param)

    def _leave_out(self, each: Sequence[Given]) -> None:
        first = each[0]
        self._has_gap = self._has_gap or not first.by_name
        is_default = all(is_same(one.value, one.default) for one in each)
        if is_default or first.default is _NO_DEFAULT or first.name in self.fixed:
            return
        default = "" if first.default is _UNKNOWN else f", and its default is {_of(first.default)}"
        raise CompileError(
            Diagnostic(
                f"{self.function}: {first.name} is {_of(first.value)} in a recording{default}: "
                "calls could not say which of them they mean",
                hint=f"compile(…, fixed=[{first.name!r}]) leaves it out: calls do what was "
                "recorded; or record a function around it that has no such parameter",
            )
        )

    def _taken(self, given: Given) -> Param | None:
        """What launches take of it."""
        if given.storage is None:
            return self.taken.get(given.name)
        tensor = self.tensors.get(given.storage)
        return self.taken.get(tensor.name) if tensor is not None else None

    # ---- values that calls are held to ----

    def _checked(self, each: Sequence[Given]) -> Param | None:
        """A parameter that has the recorded values alone; None if no call can check that."""
        name, values = each[0].name, [one.value for one in each]
        default = each[0].default
        kinds = {type(value) for value in values}
        if kinds == {type(None)}:
            return NoneValue(name, None if default is None else REQUIRED)
        if len(kinds) > 1 or not kinds <= {bool, int, float, str}:
            return None
        if all(is_same(value, values[0]) for value in values):
            is_default = all(
                is_same(value, one.default) for one, value in zip(each, values, strict=True)
            )
            return _constant(name, values[0], values[0] if is_default else REQUIRED)
        return self._number(name, values, default) if kinds != {str} else None

    def _number(self, name: str, values: Sequence[Any], default: Any) -> Param | None:
        """A number that differs between recordings: it is a size, or is one of the recorded ones
        together with the sizes of its recording."""
        kind = type(values[0])
        if kind is int and not all(-(1 << 63) <= each < 1 << 63 for each in values):
            return None
        dtype = {int: "int64", bool: "bool", float: "float64"}[kind]
        param = Scalar(name, dtype, default if type(default) is kind else REQUIRED)
        size = self.sizes.found(tuple(values)) if kind is int and self.sizes.symbols else None
        if size is not None:
            said = f"so it was in all recordings: record calls in which {name} is another number"
            self.checks.append(Require(equal(param.value, size), said))
        else:
            said = f"{name} is a recorded number, with the sizes of its recording: add a recording"
            self.checks.append(Require(self._one_of(param, values), said))
        return param

    def _one_of(self, param: Scalar, values: Sequence[Any]) -> Condition:
        return reduce(lambda a, b: a | b, self._cases(param, values))

    def _cases(self, param: Scalar, values: Sequence[Any]) -> Iterator[Condition]:
        for at, value in enumerate(values):
            is_value: Condition = (
                compare_float("eq", param, value)
                if param.dtype.kind == "float"
                else equal(param.value, int(value))
            )
            sizes = (equal(symbol, known[at]) for symbol, known in self.sizes.symbols.items())
            yield reduce(lambda a, b: a & b, sizes, is_value)


@dataclass(frozen=True, slots=True)
class FreeNumber:
    """A number that differs between recordings, with its values: callers give it."""

    scalar: Scalar
    values: tuple[Any, ...]


def free_numbers(several: Sequence[Sequence[Given]], fixed: Collection[str]) -> list[FreeNumber]:
    """The integers and floats among the arguments of a host function that differ."""
    found = []
    for each in zip(*several, strict=False):
        first, values = each[0], tuple(one.value for one in each)
        kind = type(first.value)
        if {type(value) for value in values} not in ({int}, {float}) or first.name in fixed:
            continue
        if all(is_same(value, values[0]) for value in values):
            continue
        if kind is int and not all(-(1 << 63) <= value < 1 << 63 for value in values):
            continue
        default = first.default if type(first.default) is kind else REQUIRED
        dtype = "int64" if kind is int else "float64"
        found.append(FreeNumber(Scalar(first.name, dtype, default), values))
    return found


def _constant(name: str, value: Any, default: Any) -> Param | None:
    if type(value) is int and not -(1 << 63) <= value < 1 << 63:
        return None
    return Constant(name, value, default)


def is_same(value: Any, other: Any) -> bool:
    """Whether two values are the same one: floats by their text, for NaN and -0.0."""
    if value is other:
        return True
    if type(value) is not type(other):
        return False
    if type(value) is float:
        return repr(value) == repr(other)
    try:
        return bool(value == other)
    except Exception:  # of objects of other libraries, whose comparison may raise anything
        return False


def _of(value: Any) -> str:
    return "not given" if value is _NO_DEFAULT else brief(value)
