"""Gradients of operators: a function of the user's, a compiled one, or torch's own refusal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

from ferrule import specs
from ferrule.compiler.operators.gradients import Backward, Names, backward_of
from ferrule.compiler.operators.gradients import result_names as names_of_results
from ferrule.compiler.operators.torch.calls import new_tensor
from ferrule.compiler.operators.torch.plans import Kind, Plan
from ferrule.compiler.operators.torch.shapes import loosely_bound
from ferrule.runtime import Function
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class Saved:
    """What the forward call keeps for the backward one: `tensors`, then `others`, by name."""

    tensors: tuple[str, ...]
    others: tuple[str, ...]


def result_names(plan: Plan) -> tuple[str, ...]:
    """The names of the operator's results: `result`, or `result0` …, then those of `out`."""
    arguments = plan.signature.arguments
    made = [arguments[each.position].name for each in plan.made]
    return names_of_results(len(plan.results), made)


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
    others = tuple(name for name in save if kinds[name] is not Kind.TENSOR)
    context = sys.modules["torch"].autograd.function.FunctionCtx
    for name in others:
        if hasattr(context, name) or name in _OF_THE_CONTEXT:
            raise ValueError(
                f"torch_op {plan.name!r}: save has {name!r}, which is a name of torch's context; "
                f"give the parameter another one"
            )
    return Saved(tensors, others)


_OF_THE_CONTEXT: Final = frozenset({"needs_input_grad", "saved_tensors", "ferrule_absent"})
"""Attributes that a context has only in a call."""


def setup_of(
    plan: Plan, saved: Saved, backward: Backward | None = None
) -> Callable[[Any, Any, Any], None]:
    """The function that keeps the saved values in torch's context of a call.

    A result whose gradient a compiled backward function does not take has none.
    """
    names = [each.name for each in plan.arguments]
    results = result_names(plan)
    plain = () if backward is None else without_gradient(plan, backward)

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        outputs = output if isinstance(output, tuple) else (output,)
        values = {
            **dict(zip(results, outputs, strict=False)),
            **dict(zip(names, inputs, strict=True)),
        }
        ctx.save_for_backward(*(values[name] for name in saved.tensors))
        for name in saved.others:
            setattr(ctx, name, values[name])
        if plain:
            ctx.mark_non_differentiable(*(outputs[i] for i in plain))
        ctx.ferrule_absent = frozenset(name for name in names if values[name] is None)

    return setup_context


def without_gradient(plan: Plan, backward: Backward) -> tuple[int, ...]:
    """The tensors among the results whose gradients the backward function does not take."""
    kinds = [*plan.results, *(Kind.TENSOR for _ in plan.made)]
    taken = {source for source in backward.sources if isinstance(source, int)}
    return tuple(i for i, kind in enumerate(kinds) if kind is Kind.TENSOR and i not in taken)


def _names(plan: Plan, saved: Saved) -> Names:
    """The operator's tensors, results and saved values."""
    inputs = tuple(each.name for each in plan.arguments if each.kind is Kind.TENSOR)
    every = (*saved.tensors, *saved.others)
    return Names(f"torch_op {plan.name!r}", inputs, result_names(plan), every)


def gradients(plan: Plan, saved: Saved, backward: Backward, operator: Any) -> Callable[..., Any]:
    """The function that torch calls for the gradients of the operator's inputs."""
    names = [each.name for each in plan.arguments]
    forgotten = [
        (i, each.name)
        for i, each in enumerate(plan.arguments)
        if each.kind in (Kind.TENSOR, Kind.TENSORS) and each.name not in backward.inputs
    ]

    def run(ctx: Any, *grads: Any) -> Any:
        for i, name in forgotten:
            needed = ctx.needs_input_grad[i]
            if any(needed) if isinstance(needed, (list, tuple)) else needed:
                raise RuntimeError(_no_gradient_of(plan, name))
        values: dict[str, Any] = dict(zip(saved.tensors, ctx.saved_tensors, strict=True))
        values |= {name: getattr(ctx, name) for name in saved.others}
        arguments = [
            laid_out(param, grads[source]) if isinstance(source, int) else values[source]
            for source, param in zip(backward.sources, backward.params, strict=True)
        ]
        given = operator(*arguments)
        listed = given if isinstance(given, tuple) else (given,)
        found = dict(zip(backward.inputs, listed, strict=True))
        wanted = tuple(None if name in ctx.ferrule_absent else found.get(name) for name in names)
        return wanted if len(wanted) > 1 else wanted[0]

    return run


def laid_out(param: specs.Param, tensor: Any) -> Any:
    """A gradient of a result with the strides that the backward function takes: autograd gives it
    with any, also expanded."""
    item = param.item if isinstance(param, specs.Optional) else param
    if not isinstance(item, specs.Tensor) or tensor.dim() != len(item.shape):
        return tensor.contiguous()
    rows = specs.compact_strides(item.shape, range(len(item.shape))[::-1])
    sizes = {symbol for dim in item.shape for symbol in specs.symbols_of(dim)}
    is_open = any({*specs.symbols_of(stride)} - sizes for stride in item.strides)
    if item.strides == rows or is_open:
        return tensor.contiguous()
    made = new_tensor(item, loosely_bound((item,), (tensor,)), tensor.device)
    return made.copy_(tensor)


def _no_gradient_of(plan: Plan, name: str) -> str:
    return (
        f"{plan.name}: {name} requires a gradient, and the backward function writes no "
        f"grad_{name}: write one, or detach() the tensor"
    )


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
        return saved, backward_of(_names(plan, saved), backward.signature)
    if not callable(backward):
        raise TypeError(
            f"torch_op {plan.name!r}: backward must be a compiled function, or a function "
            f"backward(ctx, *grads), but got {backward!r}"
        )
    return saved, None
