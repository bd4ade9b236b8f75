"""Gradients of operators: a function of the user's, a compiled one, or torch's own refusal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ferrule import specs
from ferrule.compiler.operators.torch.plans import Kind, Plan
from ferrule.runtime import Function
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class Saved:
    """What the forward call keeps for the backward one: `tensors`, then `others`, by name."""

    tensors: tuple[str, ...]
    others: tuple[str, ...]


def result_names(plan: Plan) -> tuple[str, ...]:
    """The names of the operator's results: `result`, or `result0` …, then those of `out`."""
    count = len(plan.results)
    own = ["result"] if count == 1 else [f"result{i}" for i in range(count)]
    arguments = plan.signature.arguments
    return (*own, *(arguments[each.position].name for each in plan.made))


def saved_of(plan: Plan, save: Sequence[str]) -> Saved:
    """The tensors and other values with these names.  Raises ValueError for an unknown name."""
    kinds = {each.name: each.kind for each in plan.arguments}
    results = [*plan.results, *(Kind.TENSOR for _ in plan.made)]
    kinds |= dict(zip(result_names(plan), results, strict=True))
    for name in save:
        if name not in kinds:
            known = ", ".join(kinds)
            raise ValueError(
                f"torch_op {plan.name!r}: save has {name!r}, which is no argument or result of the "
                f"operator; these are {known}"
            )
        if kinds[name] is Kind.TENSORS:
            raise ValueError(
                f"torch_op {plan.name!r}: save has {name!r}, a list of tensors; save tensors that "
                f"have names of their own"
            )
    tensors = tuple(name for name in save if kinds[name] is Kind.TENSOR)
    return Saved(tensors, tuple(name for name in save if kinds[name] is not Kind.TENSOR))


def setup_of(plan: Plan, saved: Saved) -> Callable[[Any, Any, Any], None]:
    """The function that keeps the saved values in torch's context of a call."""
    names = [each.name for each in plan.arguments]
    results = result_names(plan)

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        outputs = output if isinstance(output, tuple) else (output,)
        values = {
            **dict(zip(results, outputs, strict=False)),
            **dict(zip(names, inputs, strict=True)),
        }
        ctx.save_for_backward(*(values[name] for name in saved.tensors))
        for name in saved.others:
            setattr(ctx, name, values[name])

    return setup_context


@dataclass(frozen=True, slots=True)
class Backward:
    """How a compiled function gives the gradients.

    `plan` is its operator, whose results are the gradients of the inputs `inputs`; `sources` say
    where each argument comes from: a saved name, or the position of the result whose gradient it
    is.
    """

    inputs: tuple[str, ...]
    sources: tuple[str | int, ...]


def backward_of(plan: Plan, saved: Saved, signature: specs.Signature) -> Backward:
    """Where the arguments of a compiled backward function come from, by their names.

    Raises ValueError for a name that says nothing.
    """
    results = {f"grad_{name}": i for i, name in enumerate(result_names(plan))}
    if len(results) == 1:
        results["grad"] = 0
    inputs = {f"grad_{each.name}": each.name for each in plan.arguments if each.kind is Kind.TENSOR}
    known = {*saved.tensors, *saved.others}
    made: list[str] = []
    sources: list[str | int] = []
    for param in signature.arguments:
        if _is_written(param) and param.name in inputs:
            made.append(inputs[param.name])
        elif param.name in results:
            sources.append(results[param.name])
        elif param.name in known:
            sources.append(param.name)
        else:
            raise ValueError(_no_source(plan, signature, param, [*results, *known], [*inputs]))
    if not made:
        raise ValueError(
            f"torch_op {plan.name!r}: the backward {signature} writes no gradient; it writes to "
            f"parameters with the names {', '.join(inputs)}"
        )
    return Backward(tuple(made), tuple(sources))


def _is_written(param: specs.Param) -> bool:
    return isinstance(param, specs.Tensor) and not param.read_only


def _no_source(
    plan: Plan, signature: specs.Signature, param: specs.Param, sources: list[str], made: list[str]
) -> str:
    return (
        f"torch_op {plan.name!r}: nothing says what {signature.describe(param)} of the backward "
        f"function is: its parameters are gradients of results and saved values, by the names "
        f"{', '.join(sources)}, and the gradients that it writes, {', '.join(made)}"
    )


def gradients(plan: Plan, saved: Saved, backward: Backward, operator: Any) -> Callable[..., Any]:
    """The function that torch calls for the gradients of the operator's inputs."""
    names = [each.name for each in plan.arguments]

    def run(ctx: Any, *grads: Any) -> Any:
        values: dict[str, Any] = dict(zip(saved.tensors, ctx.saved_tensors, strict=True))
        values |= {name: getattr(ctx, name) for name in saved.others}
        arguments = [
            grads[source].contiguous() if isinstance(source, int) else values[source]
            for source in backward.sources
        ]
        given = operator(*arguments)
        listed = given if isinstance(given, tuple) else (given,)
        found = dict(zip(backward.inputs, listed, strict=True))
        wanted = tuple(found.get(name) for name in names)
        return wanted if len(wanted) > 1 else wanted[0]

    return run


def plan_backward(
    plan: Plan, save: Sequence[str], backward: Function | Callable[..., Any] | None
) -> tuple[Saved, Backward | None] | None:
    """What the backward function needs; None without one.

    Raises ValueError for an operator that writes its arguments, and TypeError for what is no
    function.
    """
    if backward is None:
        if save:
            raise ValueError(f"torch_op {plan.name!r}: save={list(save)} needs a backward")
        return None
    if plan.mutates:
        written = [each.name for each in plan.arguments if each.written]
        raise ValueError(
            f"torch_op {plan.name!r} writes to {', '.join(written)}, and torch differentiates "
            f"operators that write nothing: name what the operator makes, out={written}"
        )
    saved = saved_of(plan, save)
    if isinstance(backward, Function):
        return saved, backward_of(plan, saved, backward.signature)
    if not callable(backward):
        raise TypeError(
            f"torch_op {plan.name!r}: backward must be a compiled function, or a function "
            f"backward(ctx, *grads), but got {backward!r}"
        )
    return saved, None
