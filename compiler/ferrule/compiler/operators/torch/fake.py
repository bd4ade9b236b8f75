"""The fake kernel of an operator: the results for tensors that have sizes and no elements."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from ferrule import specs
from ferrule.compiler.operators.dims import Symbols
from ferrule.compiler.operators.torch.calls import (
    Candidates,
    as_results,
    device_of,
    each_of,
    given_values,
    new_tensor,
    refuse_gradients,
    refuse_overlaps,
)
from ferrule.compiler.operators.torch.plans import Plan, made_specs, result_specs


def fake_kernel(plan: Plan) -> Callable[..., Any]:
    """The function that torch calls with fake or meta tensors.

    It raises the error of the call for arguments that the call refuses by their sizes, strides,
    dtypes or devices.
    """
    candidates = Candidates(plan)

    def fake(*args: Any, **kwargs: Any) -> Any:
        values = given_values(plan, args, kwargs)
        refuse_gradients(plan, values)
        signature, symbols = candidates.chosen(values)
        refuse_overlaps(plan, values)
        count_writes(plan, values)
        device = device_of(plan, values)
        results = [_result(plan, each, symbols, device) for each in result_specs(signature)]
        made = made_specs(plan, signature)
        results += [_result(plan, each, symbols, device) for each in made]
        return as_results(results)

    return fake


def traced_writes(plan: Plan) -> Callable[..., Any]:
    """The rule for tensors that torch functionalizes: their writes are counted, then torch goes on.

    torch compiles a copy of the program that writes nothing; whether a saved tensor was overwritten
    is asked of the tensors that the program has.
    """

    def rule(mode: Any, function: Any, types: Any, args: Any, kwargs: Any = None) -> Any:
        count_writes(plan, given_values(plan, args, kwargs or {}))
        return mode.__torch_dispatch__(function, types, args, kwargs or {})

    return rule


def count_writes(plan: Plan, values: Sequence[Any]) -> None:
    """Count the writes of tensors that a kernel in machine code never sees."""
    torch = sys.modules["torch"]
    for argument, value in zip(plan.arguments, values, strict=True):
        if argument.written:
            for each in each_of(value):
                if isinstance(each, torch.Tensor) and not each.is_inference():
                    torch.autograd.graph.increment_version(each)


def _result(plan: Plan, result: specs.Param, symbols: Symbols, device: Any) -> Any:
    if not isinstance(result, specs.Tensor):
        raise _data_dependent(plan)
    for dim in result.shape:
        for symbol in specs.symbols_of(dim):
            if symbol not in symbols:
                symbols[symbol] = sys.modules["torch"].library.get_ctx().new_dynamic_size()
    return new_tensor(result, symbols, device)


def _data_dependent(plan: Plan) -> Exception:
    """torch's error for a value that only the call knows, at which a traced graph ends."""
    from torch._subclasses.fake_tensor import DataDependentOutputException

    namespace = getattr(sys.modules["torch"].ops, plan.namespace)
    return DataDependentOutputException(getattr(namespace, plan.short).default)
