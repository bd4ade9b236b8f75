"""Gradients of calls in JAX: a function of the user's, or a compiled one, in a `custom_vjp`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ferrule import specs
from ferrule.compiler.operators.gradients import Backward, Names, backward_of
from ferrule.compiler.operators.jax.plans import Plan
from ferrule.compiler.operators.jax.varying import axes_of, varied
from ferrule.runtime import Function
from ferrule.specs.deferred import dataclass

Values = Mapping[str, Any]
"""Arguments of a call by name: arrays of JAX, numbers of Python, or None."""


@dataclass(frozen=True, slots=True)
class Gradient:
    """What gives the gradients of a call, of the values in `save`.

    `compiled` says where the arguments of `backward` come from, if it is the operation of a
    compiled function; else it is a Python function.
    """

    save: tuple[str, ...]
    backward: Callable[..., Any]
    compiled: Backward | None

    def differentiable(self, plan: Plan, call: Callable[[Values], Any], values: Values) -> Any:
        """What the call gives, and JAX can differentiate."""
        import jax

        names = [a.name for a in plan.arrays() if values[a.name] is not None]

        axes = axes_of(values[name] for name in names)

        def run(*arrays: Any) -> Any:
            return call({**values, **dict(zip(names, arrays, strict=True))})

        def forward(*arrays: Any) -> tuple[Any, tuple[Any, ...]]:
            given = {**values, **dict(zip(names, arrays, strict=True))}
            results = differentiable(*arrays)  # not the bare call: gradients of gradients come here
            every = {**dict(zip(_results(plan), _listed(results), strict=True)), **given}
            kept = [every[name] for name in self.save]
            return results, tuple(each if _is_array(each) else None for each in kept)

        def backward(kept: tuple[Any, ...], grads: Any) -> tuple[Any, ...]:
            saved = {
                name: values.get(name) if each is None else each
                for name, each in zip(self.save, kept, strict=True)
            }
            found = self._gradients(plan, saved, _listed(grads))
            gradients = (found.get(name) for name in names)
            return tuple(None if each is None else varied(each, axes) for each in gradients)

        differentiable = jax.custom_vjp(run)
        differentiable.defvjp(forward, backward)
        return differentiable(*(values[name] for name in names))

    def _gradients(self, plan: Plan, saved: Values, grads: Sequence[Any]) -> dict[str, Any]:
        if self.compiled is not None:
            arguments = (
                grads[each] if isinstance(each, int) else saved[each]
                for each in self.compiled.sources
            )
            given = _listed(self.backward(*arguments))
            return dict(zip(self.compiled.inputs, given, strict=True))
        inputs = [a.name for a in plan.arrays()]
        found = self.backward(*saved.values(), *grads)
        listed = found if isinstance(found, (tuple, list)) else (found,)
        if len(listed) != len(inputs):
            raise ValueError(
                f"jax_call: the backward of {plan.signature} returned {len(listed)} gradients, but "
                f"the arrays of a call are {', '.join(inputs)}: one for each, None where there is "
                f"none"
            )
        return dict(zip(inputs, listed, strict=True))


def gradient_of(
    plan: Plan,
    save: Sequence[str],
    backward: Function | Callable[..., Any] | None,
    operation: Callable[[Function, list[str]], Callable[..., Any]],
) -> Gradient | None:
    """What `backward` and `save` of `jax_call` say; None without them.

    `operation` makes a call of a compiled function with these outputs. Raises TypeError or
    ValueError for what gives no gradients.
    """
    if isinstance(save, str) or not all(isinstance(each, str) for each in save):
        raise TypeError(f"jax_call: save is a list of names, but got {save!r}")
    if backward is None:
        if save:
            raise ValueError(f"jax_call: save={list(save)} needs a backward")
        return None
    names = _names(plan, tuple(save))
    if isinstance(backward, Function):
        found = backward_of(names, backward.signature)
        _check_whole(plan, found, backward.signature)
        made = [f"grad_{each}" for each in found.inputs]
        return Gradient(names.saved, operation(backward, made), found)
    if not callable(backward):
        raise TypeError(
            f"jax_call: backward must be a compiled function, or a function of the values in save "
            f"and the gradients of the results, but got {backward!r}"
        )
    return Gradient(names.saved, backward, None)


def _check_whole(plan: Plan, found: Backward, signature: specs.Signature) -> None:
    """ValueError for a gradient that a compiled function forgets: JAX would take it as zero."""
    instead = "or give a Python function that calls it, and says None there"
    for argument in plan.arrays():
        if argument.name not in found.inputs and _is_real(plan.specs_of(argument.position)):
            raise ValueError(
                f"jax_call: the backward {signature} writes no grad_{argument.name}, so that the "
                f"gradient of {argument.name} would be zero: write it, {instead}"
            )
    for i, output in enumerate(plan.outputs):
        made = (plan.results[i],) if output.position is None else plan.specs_of(output.position)
        if i not in found.sources and _is_real(made):
            raise ValueError(
                f"jax_call: the backward {signature} takes no grad_{output.name}, so that what "
                f"comes from {output.name} would be left out: take it, {instead}"
            )


def _is_real(found: Sequence[specs.Param]) -> bool:
    """Whether one of these has elements that JAX differentiates."""
    kinds = {each.dtype.kind for each in found if isinstance(each, (specs.Tensor, specs.Scalar))}
    return not kinds <= {"int", "uint", "bool"}


def _names(plan: Plan, save: tuple[str, ...]) -> Names:
    written = [a.name for a in plan.arrays() if a.output is not None]
    if written:
        raise ValueError(
            f"jax_call: {', '.join(written)} of {plan.signature} is given and written, and a call "
            f"with a backward makes all that it writes: name it in out, or write a jax.custom_vjp"
        )
    results = _results(plan)
    known = [*(a.name for a in plan.given()), *results]
    for name in save:
        if name not in known:
            raise ValueError(
                f"jax_call: save has {name!r}, which is no argument or result of {plan.signature}; "
                f"these are {', '.join(known)}"
            )
    return Names("jax_call", tuple(a.name for a in plan.arrays()), results, save)


def _results(plan: Plan) -> tuple[str, ...]:
    return tuple(each.name for each in plan.outputs)


def _listed(found: Any) -> Sequence[Any]:
    return found if isinstance(found, (tuple, list)) else (found,)


def _is_array(value: Any) -> bool:
    import jax

    return isinstance(value, jax.Array)
