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
from enum import Enum
from typing import Any, Final

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.given import brief
from ferrule.frontends.triton.recorded.checks import require_same
from ferrule.frontends.triton.recorded.following import Following
from ferrule.frontends.triton.recorded.reading import Reading
from ferrule.frontends.triton.recorded.tensors import is_torch, recorded
from ferrule.specs import NoneValue, Param, Scalar, Signature, Tensor
from ferrule.specs.deferred import dataclass
from ferrule.specs.params import Constant
from ferrule.specs.params.base import REQUIRED

_NO_DEFAULT: Final = inspect.Parameter.empty
_DTYPES: Final = {int: "int64", bool: "bool", float: "float64"}
_PLAIN: Final = (int, float, complex, str, bytes)
_OF_PYTHON: Final = 1 << 9
"""The flag of classes that a program makes."""
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
    following: Following
    fixed: Collection[str] = ()
    places: list[Param] = field(default_factory=list)
    named: list[Param] = field(default_factory=list)
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
        if all(is_same(one.value, one.default) for one in each):
            return
        self._check_same(each)
        if first.default is _NO_DEFAULT or first.name in self.fixed:
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

    def _check_same(self, each: Sequence[Given]) -> None:
        """Raises CompileError for what no call gives, and is another value in another recording, or
        is a plain value: a call without it would mean one of them."""
        first = each[0]
        is_one = all(is_same(one.value, first.value) for one in each)
        plain = [of_python(one.value) for one in each]
        if is_one and (first.name in self.fixed or not isinstance(plain[0], _PLAIN)):
            return
        is_object = not any(map(_has_equality, plain))
        if not is_one and (not _are_told(plain) or (is_object and first.name in self.fixed)):
            return
        if not is_one and is_object:
            self._refuse_objects(first)
        others = [_of(one.value) for one in each if not is_same(one.value, first.value)]
        another = f" in one recording and {others[0]} in another" if others else ""
        raise CompileError(
            Diagnostic(
                f"{self.function}: {first.name} is {_of(first.value)}{another}, which no parameter "
                "of a call can tell",
                expected="a bool, integers of 64 bits, or floats; or a text, or None, that is the "
                "same in all recordings",
                hint="compile recordings of each value, and join them with fe.overload; or record "
                f"a function around it that has no {first.name}",
            )
        )

    def _refuse_objects(self, first: Given) -> None:
        raise CompileError(
            Diagnostic(
                f"{self.function}: {first.name} is another {type(first.value).__name__} in each "
                "recording, whose class has no equality: what the host function reads of it may "
                "differ",
                expected="the same object in all recordings, or one of a class with __eq__, as a "
                "dataclass",
                hint=f"compile(…, fixed=[{first.name!r}]) says that calls do what was recorded "
                "with any of these objects",
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
        name, values = each[0].name, [of_python(one.value) for one in each]
        default = of_python(each[0].default)
        kinds = {type(value) for value in values}
        if kinds == {type(None)}:
            return NoneValue(name, None if default is None else REQUIRED)
        if all(is_same(value, values[0]) for value in values):
            is_default = all(
                is_same(value, of_python(one.default))
                for one, value in zip(each, values, strict=True)
            )
            return _constant(name, values[0], values[0] if is_default else REQUIRED)
        dtype = _DTYPES.get(kinds.pop()) if len(kinds) == 1 else None
        if dtype is None or not all(map(_fits, values)):
            return None
        param = Scalar(name, dtype, default if type(default) is type(values[0]) else REQUIRED)
        self.following.choose(param, values)
        return param


def texts_of(given: Sequence[Given], names: Collection[str]) -> tuple[Any, ...]:
    """The texts among the values of these parameters, or None, in their order."""
    return tuple(of_python(each.value) for each in given if each.name in names)


def names_of_texts(several: Sequence[Sequence[Given]]) -> set[str]:
    """The parameters that are texts, or None in some recordings, and not the same in all."""
    found = set()
    for each in zip(*several, strict=False):
        values = [of_python(one.value) for one in each]
        kinds = {type(value) for value in values}
        if str in kinds and kinds <= {str, type(None)} and len({*values}) > 1:
            found.add(each[0].name)
    return found


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
        if not all(map(_fits, values)):
            continue
        default = first.default if type(first.default) is kind else REQUIRED
        dtype = "int64" if kind is int else "float64"
        found.append(FreeNumber(Scalar(first.name, dtype, default), values))
    return found


def _constant(name: str, value: Any, default: Any) -> Param | None:
    is_known = type(value) in (bool, int, float, str) and _fits(value)
    return Constant(name, value, default) if is_known else None


def _fits(value: Any) -> bool:
    """Whether a call can give it: an integer has 64 bits there."""
    return type(value) is not int or -(1 << 63) <= value < 1 << 63


def of_python(value: Any) -> Any:
    """A number of NumPy, or one of an enumeration, as Python's; anything else as it is."""
    if type(value).__module__ == "numpy" and callable(getattr(value, "item", None)):
        value = value.item() if getattr(value, "shape", None) == () else value
    kinds = (each for each in (int, float, str) if issubclass(type(value), each))
    kind = next(kinds, None)
    return kind(value.value) if kind is not None and isinstance(value, Enum) else value


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


def _are_told(values: Sequence[Any]) -> bool:
    """Whether it says something that these are unequal.  The context of a function of autograd is
    another one in each recording, and says nothing; tensors are told as tensors."""
    if any(is_torch(each) for value in values for each in _parts(value)):
        return False
    return not all(map(_is_context, values))


def _is_context(value: Any) -> bool:
    """Whether this is the context of a function of autograd."""
    return any(each.__module__ == "torch.autograd.function" for each in type(value).__mro__)


def _has_equality(value: Any) -> bool:
    """Whether a value can be told from others of its class.  One of a class of Python without an
    equality is no other one because it is another object."""
    kind: Any = type(value)
    return kind.__eq__ is not object.__eq__ or not kind.__flags__ & _OF_PYTHON


def _parts(value: Any) -> Iterator[Any]:
    """What is in a container."""
    if isinstance(value, Mapping):
        value = tuple(value.values())
    if isinstance(value, tuple | list):
        for each in value:
            yield from _parts(each)
    else:
        yield value


def _of(value: Any) -> str:
    return "not given" if value is _NO_DEFAULT else brief(value)
