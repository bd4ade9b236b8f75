"""`torch_op`: a compiled function as an operator of PyTorch.

An operator has a schema, and torch traces it: `torch.compile`, `torch.export`, autograd, fake
tensors and `torch.func` take it as they take torch's own. All of it follows from the signature of
the compiled function.

The way: `plans` says what the operator takes and gives, `schema` writes it in torch's words;
`boxed` generates the kernel that torch's dispatcher calls, with `unboxing` and `made` as its parts,
`pythonic` is the kernel for signatures that it does not take; `fake` computes sizes without
memory, with `shapes`, and `refusals` for the errors; `autograd` finds the gradients;
`registration` puts it all into torch's registry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, count
from typing import Any

from ferrule.compiler.operators.gradients import Backward
from ferrule.compiler.operators.torch.allocation import check_backward, checked
from ferrule.compiler.operators.torch.autograd import (
    Saved,
    gradients,
    plan_backward,
    setup_of,
)
from ferrule.compiler.operators.torch.fake import fake_kernel
from ferrule.compiler.operators.torch.plans import Plan, plan_of
from ferrule.compiler.operators.torch.registration import (
    check_new,
    checked_schema,
    is_taken,
    kernel_of,
    refuse_gradients,
    register,
    register_gradients,
)
from ferrule.compiler.operators.torch.symbols import load_torch
from ferrule.runtime import Function


def torch_op(
    function: Function,
    name: str,
    *,
    out: Sequence[str] = (),
    backward: Function | Callable[..., Any] | None = None,
    save: Sequence[str] = (),
    vmap: Callable[..., Any] | None = None,
    replace: bool = False,
) -> Any:
    """Make an operator of torch of a compiled function, and return it: `torch.ops.ns.name`.

    `name` is `"namespace::name"`. Tensors that the function writes are mutated arguments of the
    operator; `out` names those that the operator makes itself, with the sizes of the signature,
    and returns behind the function's own results.

    `backward` gives the gradients of an operator that writes no argument. It is either a compiled
    function, whose parameters are, by their names, gradients of results (`grad`, or `grad_y` of the
    result `y`), values in `save`, and the gradients of arguments that it writes (`grad_x`); or a
    Python function `backward(ctx, *grads)` that returns a gradient or None for each argument, with
    `ctx.saved_tensors` in the order of `save`, and what else is saved as attributes of `ctx`.
    Without it the operator has no gradient, as torch says of its own. `save` names arguments and
    results; the function's own are `result`, or `result0` ….

    `vmap` is the function of `torch.library.register_vmap`. `replace` takes the place of an
    operator of this name that `torch_op` made.

    Calls are checked as calls of the function are; an operator's refusals are RuntimeErrors.

    Raises ValueError or TypeError for what no operator can be, before anything is registered, and
    ImportError without PyTorch.
    """
    if not isinstance(function, Function):
        raise TypeError(
            f"torch_op takes a compiled function, but got {function!r}; compile it first: "
            f"fe.compile(f, ...)"
        )
    torch = load_torch("fe.torch_op")
    plan = checked(plan_of(name, function.signature, _listed("out", out)))
    found = plan_backward(plan, _listed("save", save), backward)
    if vmap is not None and not callable(vmap):
        raise TypeError(f"torch_op: vmap must be a function, but got {vmap!r}")
    schema = checked_schema(plan)
    check_new(name, replace=replace)
    kernel = kernel_of(plan, function)
    gradient = _gradient(plan, found, backward)
    made = register(plan, kernel, fake_kernel(plan), schema)
    if gradient is not None:
        register_gradients(made, plan, *gradient)
    elif not plan.mutates:
        refuse_gradients(made, plan)
    if vmap is not None:
        torch.library.register_vmap(name, vmap, lib=made.library)
    return getattr(getattr(torch.ops, plan.namespace), plan.short)


def _gradient(
    plan: Plan,
    found: tuple[Saved, Backward | None] | None,
    backward: Function | Callable[..., Any] | None,
) -> tuple[Callable[..., Any], Callable[..., None]] | None:
    """The function for the gradients, and the one that saves what it needs."""
    if found is None or backward is None:
        return None
    saved, compiled = found
    if compiled is None:
        return backward, setup_of(plan, saved)
    assert isinstance(backward, Function)
    names = [f"grad_{each}" for each in compiled.inputs]
    check_backward(plan, plan_of(plan.name, backward.signature, names))
    operator = torch_op(backward, _free_name(f"{plan.name}_backward"), out=names)
    return gradients(plan, saved, compiled, operator), setup_of(plan, saved, compiled)


def _free_name(name: str) -> str:
    """The name, or with a number behind it: graphs still call the operator that has it."""
    names = chain([name], (f"{name}{number}" for number in count(2)))
    return next(each for each in names if not is_taken(each))


def _listed(what: str, names: Sequence[str]) -> tuple[str, ...]:
    if isinstance(names, str) or not all(isinstance(each, str) for each in names):
        raise TypeError(f"torch_op: {what} is a list of names, but got {names!r}")
    return tuple(names)
