"""What an operator's fake kernel and its Python kernel share: arguments, candidates, results."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ferrule import specs
from ferrule.compiler.operators.dims import Mismatch, Symbols
from ferrule.compiler.operators.torch.plans import (
    Kind,
    Plan,
    keys_of,
    may_overlap,
    no_gradient,
    overlaps,
)
from ferrule.compiler.operators.torch.refusals import Description, checks_of, hint
from ferrule.compiler.operators.torch.shapes import (
    bound,
    check_required,
    loosely_bound,
    value_of,
)
from ferrule.compiler.operators.torch.words import torch_dtype
from ferrule.runtime import Function
from ferrule.specs.deferred import dataclass


def given_values(plan: Plan, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """The values of the operator's arguments, with defaults, in order."""
    named = dict(kwargs)
    values: list[Any] = []
    for i, argument in enumerate(plan.arguments):
        value = args[i] if i < len(args) else named.get(argument.name, argument.default)
        values.append(value)
    return values


def each_of(value: Any) -> Sequence[Any]:
    """The items of a list argument, or the one value."""
    return value if isinstance(value, (list, tuple)) else (value,)


def refuse_gradients(plan: Plan, values: Sequence[Any]) -> None:
    """RuntimeError for an operator that writes arguments, where autograd would have to know it."""
    torch = sys.modules["torch"]
    if not plan.mutates or not torch.is_grad_enabled():
        return
    for argument, value in zip(plan.arguments, values, strict=True):
        if any(isinstance(x, torch.Tensor) and x.requires_grad for x in each_of(value)):
            raise RuntimeError(no_gradient(plan, argument))


def refuse_overlaps(plan: Plan, values: Sequence[Any]) -> None:
    """RuntimeError for a written tensor with several elements in one place."""
    for argument, value in zip(plan.arguments, values, strict=True):
        if argument.written and may_overlap(plan, argument):
            for each in each_of(value):
                if each is not None and _shares(each):
                    raise RuntimeError(overlaps(plan, argument))


def _shares(tensor: Any) -> bool:
    if any(isinstance(size, int) and size == 0 for size in tensor.shape):
        return False
    dims = zip(tensor.shape, tensor.stride(), strict=True)
    return any(isinstance(s, int) and s == 0 and bool(n > 1) for n, s in dims)


@dataclass(slots=True, eq=False)
class Candidates:
    """The candidates of a plan, and the function that says why none fits; made when needed."""

    plan: Plan
    checks: Function | None = None

    def chosen(self, values: Sequence[Any]) -> tuple[specs.Signature, Symbols]:
        """The candidate that a call runs, and its sizes.  Raises RuntimeError, as the call does,
        if none accepts the arguments."""
        reasons: list[str] = []
        for signature in self.plan.candidates:
            try:
                given = self._given(signature)
                symbols = bound(given, values)
                check_required(signature, given, values, symbols)
                return signature, symbols
            except Mismatch as mismatch:
                reasons.append(str(mismatch))
        self._explain(values)
        raise RuntimeError(f"{self.plan.name} refuses its arguments: {'; '.join(reasons)}")

    def _given(self, signature: specs.Signature) -> tuple[specs.Param, ...]:
        return tuple(signature.arguments[a.position] for a in self.plan.arguments)

    def _explain(self, values: Sequence[Any]) -> None:
        """Raise the error of the call, whose checks run on descriptions of the tensors."""
        if self.checks is None:
            self.checks = checks_of(self.plan.signature)
        owners: list[object] = []
        try:
            device = keys_of(self.plan)[0]
            self.checks(*[_stand_in(each, owners, device) for each in self._all(values)])
        except (TypeError, ValueError) as error:
            raise RuntimeError(str(error)) from None

    def _all(self, values: Sequence[Any]) -> list[Any]:
        """The values of all parameters of the function, with descriptions of what is made."""
        signature = self.plan.candidates[0]
        found = {a.position: v for a, v in zip(self.plan.arguments, values, strict=True)}
        if self.plan.made:
            symbols = loosely_bound(self._given(signature), values)
            device = device_of(self.plan, values)
            for each in self.plan.made:
                found[each.position] = _made(each.param, symbols, device)
        return [found[i] for i in range(len(found))]


def _made(tensor: specs.Tensor, symbols: Symbols, device: Any) -> Description:
    shape, strides = (
        tuple(hint(value_of(dim, symbols)) for dim in dims)
        for dims in (tensor.shape, tensor.strides)
    )
    return Description(shape, strides, tensor.dtype.dlpack, device.type, device.index or 0)


def _stand_in(value: Any, owners: list[object], device: str) -> Any:
    """What the checks are given instead; a tensor of the meta device stands for one of `device`."""
    if isinstance(value, sys.modules["torch"].Tensor):
        value = Description.of(value)
    if isinstance(value, Description) and value.device == "meta":
        value = replace(value, device=device)
    if isinstance(value, Description):
        tensor, owner = value.stand_in()
        owners.append(owner)
        return tensor
    if isinstance(value, (list, tuple)):
        return tuple(_stand_in(each, owners, device) for each in value)
    return value


def new_tensor(tensor: specs.Tensor, symbols: Symbols, device: Any) -> Any:
    """A tensor of torch with the sizes and strides of a spec."""
    torch = sys.modules["torch"]
    shape, strides = (
        tuple(value_of(dim, symbols) for dim in dims) for dims in (tensor.shape, tensor.strides)
    )
    return torch.empty_strided(shape, strides, dtype=torch_dtype(tensor.dtype), device=device)


def device_of(plan: Plan, values: Sequence[Any]) -> Any:
    """The device of the first tensor among the arguments."""
    for argument, value in zip(plan.arguments, values, strict=True):
        if argument.kind is Kind.TENSOR and value is not None:
            return value.device
        if argument.kind is Kind.TENSORS and value:
            return value[0].device
    raise ValueError(f"{plan.name}: a call needs a tensor")


def as_results(results: Sequence[Any]) -> Any:
    """What a kernel gives back: nothing, one value, or a tuple."""
    return results[0] if len(results) == 1 else tuple(results) if results else None
