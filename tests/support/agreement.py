"""One program run in every way that there is, and what comes out compared.

`run_all_ways(function, arguments)` runs a host function compiled for the CPU; its kernel IR in the
reference interpreter, with and without maths expanded into simple ops, threads upwards and
downwards; and the function itself in plain Python.  Compiled code and the interpreter agree bit by
bit (any NaN is any other), and in the class and words of an error.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

import interpreter
import numpy as np
from interpreter import Memory, scalars
from plain_python import examples, plain_python

import ferrule as fe
from ferrule.language.decorators import JitFunction
from ferrule.language.examples import bind_examples
from ferrule.language.ir import ops
from ferrule.language.ir.rules import divergence
from ferrule.language.ir.rules.verifier import verify
from ferrule.language.lowering.program import lower_program
from ferrule.language.mathlib import expand_maths
from ferrule.specs import Signature, Sym, evaluate, params
from ferrule.specs.binding import ACTUAL, Place, bindings_of


@dataclass(frozen=True)
class Outcome:
    """What a run leaves behind: its arguments, and the class and message of its error."""

    arguments: tuple[Any, ...]
    error: tuple[str, str] | None = None

    def arrays(self) -> list[Any]:
        """The arrays among the arguments."""
        return [array for array in _items(self.arguments) if isinstance(array, np.ndarray)]


def _items(value: Any) -> Iterator[Any]:
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from _items(item)
    else:
        yield value


def outcome(run: Callable[..., object], arguments: Sequence[Any]) -> Outcome:
    """Runs something on copies of these arguments."""
    given = copy.deepcopy(tuple(arguments))
    try:
        run(*given)
    except interpreter.Stopped as stopped:
        return Outcome(given, (stopped.kind, stopped.message))
    except AssertionError:
        raise
    except Exception as error:
        return Outcome(given, (type(error).__name__, str(error)))
    return Outcome(given)


@dataclass(frozen=True)
class Lowered:
    """A program of the kernel IR and its signature, ready to be interpreted."""

    program: ops.Program
    signature: Signature

    def expanded(self) -> Lowered:
        """The same with maths in simple ops."""
        program = expand_maths(self.program)
        verify(program)
        return Lowered(program, self.signature)


def interpreted(form: Lowered, order: interpreter.Order, *arguments: Any) -> None:
    """Interprets a program on these arguments."""
    given = [
        leaf
        for param, argument in zip(form.signature.params, arguments, strict=True)
        for leaf in leaves(param, argument)
    ]
    interpreter.run(form.program, given, symbols(form.signature, arguments), order)


def lowered(function: Callable[..., Any], *given: Any, fmad: bool | None = None) -> Lowered:
    """The kernel IR of a host function for these examples, verified."""
    plain = function.function if isinstance(function, JitFunction) else function
    bound = bind_examples(plain, given, {})
    signature = Signature(plain.__name__, bound.parameters)
    program = lower_program(
        plain, signature, bound.constants, bound.classes, bound.variadic, fmad=fmad
    )
    verify(program)
    return Lowered(program, signature)


def leaves(param: params.Param, argument: Any) -> Iterator[Any]:
    """What a body receives of an argument, as the interpreter takes it."""
    match param:
        case params.Tensor():
            yield Memory.of(argument)
        case params.Scalar(dtype=dtype):
            yield scalars.number(dtype, argument)
        case params.Shape() | params.NoneValue() | params.Constant():
            return
        case params.Tuple(items=items):
            for item, value in zip(items, argument, strict=True):
                yield from leaves(item, value)
        case params.Optional(item=item):
            yield argument is not None
            yield from [None] * _count(item) if argument is None else leaves(item, argument)
        case _:
            raise NotImplementedError(f"the interpreter takes no {type(param).__name__}")


def _count(param: params.Param) -> int:
    """The leaves of what did not come."""
    match param:
        case params.Tensor() | params.Scalar():
            return 1
        case params.Tuple(items=items):
            return sum(map(_count, items))
    return 0


def symbols(signature: Signature, arguments: Sequence[Any]) -> dict[Sym, int]:
    """The value of each symbol at a call with these arguments."""
    values: dict[Sym, int] = {}
    for binding in bindings_of(signature.params):
        found = (_actual(place, arguments) for place in binding.places)
        actual = next((value for value in found if value is not None), 1)
        values[binding.symbol] = evaluate(binding.solution, {**values, ACTUAL: actual})
    return values


def _actual(place: Place, arguments: Sequence[Any]) -> int | None:
    """The size or stride at a place; None where it means nothing or is not there."""
    value: Any = arguments
    for step in place.path:
        value = None if value is None else value[step]
    if value is None or place.kind == "dims":
        return None if value is None else int(value[place.axis])
    size = value.shape[place.axis]
    if place.kind == "shape":
        return int(size)
    return int(value.strides[place.axis] // value.itemsize) if size > 1 and value.size else None


@dataclass(frozen=True)
class Compiled:
    """A function that `run_all_ways` has compiled and called: what it left behind, and how far
    another way may be from that."""

    function: fe.Function
    arguments: tuple[Any, ...]
    found: Outcome
    tolerance: float


MORE_WAYS: list[Callable[[Compiled], None]] = []
"""What else runs each program, and compares; see `compiled_again`."""


Made: TypeAlias = "tuple[fe.Function, Lowered, Lowered]"
"""A compiled function, its kernel IR, and the same with maths in simple ops."""

_MADE: Final[dict[object, Made]] = {}
"""The programs of the last tests, by function and specs: most run with many arguments."""


def _made(function: Callable[..., Any], given: Sequence[Any], options: str) -> Made:
    """A program for these examples, which is compiled and lowered once for equal ones."""
    plain = _python(function)
    bound = bind_examples(plain, tuple(given), {})
    signature = str(Signature(plain.__name__, bound.parameters))
    key = plain, signature, repr((bound.constants, bound.classes, bound.variadic)), options
    made = _MADE.pop(key, None)
    if made is None:
        form = lowered(function, *given)
        made = fe.compile(function, *given, options=options), form, form.expanded()
    _MADE[key] = made
    if len(_MADE) > 32:
        del _MADE[next(iter(_MADE))]
    return made


def run_all_ways(
    function: Callable[..., Any],
    arguments: Sequence[Any],
    *,
    tolerance: float = 0.0,
    plain: bool = True,
    options: str = "--target cpu",
) -> Outcome:
    """Runs a program in all ways and compares; gives the outcome of the compiled function.

    `tolerance`: how far plain Python may be from the others in relation to a number, because it
    computes maths in its own way.  `plain`: False where the source means something else there.
    """
    made, form, simple = _made(function, examples(*arguments), options)
    compiled = outcome(made, arguments)
    for order in (interpreter.upwards, interpreter.downwards):
        wanted = outcome(partial(interpreted, simple, order), arguments)
        require_same(compiled, wanted, f"interpreted {order.__name__}")
    if tolerance:
        wanted = outcome(partial(interpreted, form, interpreter.upwards), arguments)
        require_same(compiled, wanted, "interpreted without expansion", tolerance)
    if plain:
        with plain_python():
            wanted = outcome(_python(function), arguments)
        require_same(compiled, wanted, "in plain Python", tolerance)
    for way in MORE_WAYS:
        way(Compiled(made, tuple(arguments), compiled, tolerance))
    return compiled


def _python(function: Callable[..., Any]) -> Callable[..., Any]:
    return function.function if isinstance(function, JitFunction) else function


def require_same(found: Outcome, wanted: Outcome, what: str, tolerance: float = 0.0) -> None:
    """Raises AssertionError where two outcomes differ."""
    if found.error is None or wanted.error is None:
        assert found.error == wanted.error, f"{found.error}, but {what} {wanted.error}"
    else:
        assert found.error[0] == wanted.error[0], f"{found.error}, but {what} {wanted.error}"
        assert found.error[1].startswith(wanted.error[1]), f"{found.error}, not {wanted.error}"
        if found.error[0] == divergence.KIND:
            return  # which threads still ran is open
    for ours, theirs in zip(found.arrays(), wanted.arrays(), strict=True):
        if tolerance:
            np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=0, err_msg=what)
        else:
            np.testing.assert_array_equal(ours, theirs, err_msg=what)
        if ours.dtype.kind == "f":
            known = ~np.isnan(ours)
            signs = np.signbit(ours), np.signbit(theirs)
            np.testing.assert_array_equal(signs[0][known], signs[1][known], err_msg=what)
