"""The kernel of an operator in Python, for signatures that the boxed kernel does not take.

It does what the boxed kernel does, through the compiled function's own call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ferrule.compiler.operators.torch.calls import (
    Candidates,
    as_results,
    device_of,
    given_values,
    new_tensor,
    refuse_gradients,
    refuse_overlaps,
)
from ferrule.compiler.operators.torch.plans import Kind, Plan, made_specs, unfit
from ferrule.runtime import Function
from ferrule.specs import Int64


def python_kernel(plan: Plan, function: Function) -> Callable[..., Any]:
    """The function that torch's dispatcher calls with the operator's arguments."""
    candidates = Candidates(plan)

    def kernel(*args: Any, **kwargs: Any) -> Any:
        values = given_values(plan, args, kwargs)
        refuse_gradients(plan, values)
        refuse_overlaps(plan, values)
        made = _made(plan, candidates, values)
        positional, named = _arguments(plan, values, made)
        try:
            result = function(*positional, **named)
        except RuntimeError:
            raise
        except Exception as error:
            # An operator's errors are RuntimeErrors, whichever kernel it has.
            raise RuntimeError(str(error)) from None
        return as_results([*_results(plan, result), *made])

    return kernel


def _made(plan: Plan, candidates: Candidates, values: list[Any]) -> list[Any]:
    if not plan.made:
        return []
    signature, symbols = candidates.chosen(values)
    device = device_of(plan, values)
    return [new_tensor(param, symbols, device) for param in made_specs(plan, signature)]


def _arguments(plan: Plan, values: list[Any], made: list[Any]) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of the function by position and by name."""
    found = {each.position: value for each, value in zip(plan.made, made, strict=True)}
    for argument, value in zip(plan.arguments, values, strict=True):
        is_list = argument.kind in (Kind.TENSORS, Kind.INTS) and value is not None
        found[argument.position] = tuple(value) if is_list else value
    ordered = [found[i] for i in range(len(found))]
    first = plan.signature.positional
    names = [param.name for param in plan.signature.arguments[first:]]
    return ordered[:first], dict(zip(names, ordered[first:], strict=True))


def _results(plan: Plan, result: Any) -> list[Any]:
    if not plan.results:
        return []
    items = list(result) if plan.packs else [result]
    return [_plain(plan, kind, item) for kind, item in zip(plan.results, items, strict=True)]


def _plain(plan: Plan, kind: Kind, value: Any) -> Any:
    """A text as Python's own class: torch takes no subclass.  RuntimeError for a number above
    its ints."""
    if kind is Kind.INT and value > Int64.range[1]:
        raise RuntimeError(unfit(plan, kind))
    return str(value) if kind is Kind.TEXT else value
