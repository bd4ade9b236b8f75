"""Calls while JAX traces: arguments become arrays and attributes, outputs get their sizes.

All that can be wrong before anything runs is an error here: of the arguments with the words of a
call, and of `out`.
"""

from __future__ import annotations

import inspect
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Final

import numpy as np

from ferrule import specs
from ferrule.compiler.operators.dims import Mismatch
from ferrule.compiler.operators.jax.frames import ABSENT
from ferrule.compiler.operators.jax.gradients import Gradient, gradient_of
from ferrule.compiler.operators.jax.plans import (
    Argument,
    Kind,
    Plan,
    axes_of_rank,
    output_names,
    plan_of,
    writing,
)
from ferrule.compiler.operators.jax.registration import registered
from ferrule.compiler.operators.jax.sizes import Array, expected_shape, outputs_of
from ferrule.compiler.operators.jax.varying import axes_of, varied
from ferrule.compiler.operators.jax.words import dtype_of
from ferrule.compiler.operators.torch.refusals import Description, checks_of
from ferrule.runtime import Function
from ferrule.specs.deferred import dataclass

Wanted = dict[str, Any]
"""What `out` says, by the names of outputs: None is the signature's size."""


@dataclass(eq=False)  # without slots: JAX keeps weak references to what it traces
class JaxCall:
    """An operation of JAX; `jax_call` makes it.

    `sizes` is what `out` says, or a function of the arguments that says it.
    """

    plan: Plan
    target: str
    sizes: Any
    options: dict[str, Any]
    parameters: inspect.Signature
    checks: Function | None = field(default=None)
    gradient: Gradient | None = field(default=None)

    @classmethod
    def of(
        cls,
        function: Function,
        out: Any,
        name: str | None,
        vmap_method: str | None,
        *,
        has_side_effect: bool,
        backward: Function | Callable[..., Any] | None = None,
        save: Sequence[str] = (),
        written: Sequence[str] = (),
    ) -> JaxCall:
        """The call, with its handler registered in XLA.

        Parameters in `written` are outputs even if the function does not write to them.
        """
        signature = writing(function.signature, written)
        _check_method(vmap_method)
        wanted = None if out is None or _is_function(out) else _by_name(signature, out)
        plan = plan_of(signature, None if wanted is None else _made(signature, wanted))
        if not plan.outputs and not has_side_effect:
            raise ValueError(
                f"jax_call: {signature} writes and returns nothing, so that JAX would leave the "
                f"call out; pass has_side_effect=True"
            )

        def operation(function: Function, made: list[str]) -> JaxCall:
            chosen = None if name is None else f"{name}.backward"
            return cls.of(function, made, chosen, vmap_method, has_side_effect=has_side_effect)

        gradient = gradient_of(plan, save, backward, operation)
        target = registered(plan, function, name)
        options = {"vmap_method": vmap_method, "has_side_effect": has_side_effect}
        sizes = wanted if wanted is not None else out
        return cls(plan, target, sizes, options, _parameters(plan), gradient=gradient)

    @property
    def __signature__(self) -> inspect.Signature:
        return self.parameters

    @property
    def __name__(self) -> str:
        return self.plan.name

    def __repr__(self) -> str:
        return f"<jax_call of {self.plan.signature}, {self.target!r} in XLA>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        values, wanted = self._values(args, kwargs), self._wanted(args, kwargs)
        arrays = [a.name for a in self.plan.arrays() if values[a.name] is not None]
        axes = axes_of(values[name] for name in arrays)
        values |= {name: varied(values[name], axes) for name in arrays}
        if self.gradient is None:
            return self._made(values, wanted)
        return self.gradient.differentiable(
            self.plan, lambda given: self._made(given, wanted), values
        )

    def _made(self, values: Mapping[str, Any], wanted: Sequence[Array | None]) -> Any:
        """What XLA's call gives for these arguments."""
        import jax

        plan = self.plan
        arrays = {a.position: values[a.name] for a in plan.given() if a.is_array}
        numbers = {a.position: values[a.name] for a in plan.given() if not a.is_array}
        outputs = self._outputs(arrays, numbers, wanted)
        present = [a for a in plan.arrays() if arrays[a.position] is not None]
        attributes = {a.name: _attribute(a, values[a.name]) for a in plan.attributes()}
        call = jax.ffi.ffi_call(
            self.target,
            [jax.ShapeDtypeStruct(each.shape, each.dtype) for each in outputs],
            input_layouts=[self._axes(a, arrays[a.position].ndim) for a in present],
            output_layouts=[self._axes_of_output(i, o) for i, o in enumerate(outputs)],
            input_output_aliases={
                i: a.output for i, a in enumerate(present) if a.output is not None
            },
            **self.options,
        )
        axes = axes_of(arrays[a.position] for a in present)
        given = (arrays[a.position] for a in present)
        results = [varied(each, axes) for each in call(*given, **attributes)]
        return results[0] if len(results) == 1 else tuple(results) if results else None

    # ---- arguments ----

    def _values(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The values of the arguments by name: arrays of JAX, and numbers of Python."""
        name = self.plan.name
        try:
            given = self.parameters.bind(*args, **kwargs)
        except TypeError as error:
            shown = f"{name}{self.parameters}"
            raise TypeError(f"{name}(): {error}, when calling `{shown}`") from None
        given.apply_defaults()
        return {a.name: self._value(a, given.arguments[a.name]) for a in self.plan.given()}

    def _value(self, argument: Argument, value: Any) -> Any:
        if value is None and argument.optional:
            return None
        if argument.is_array:
            return _array(self.plan, argument, value)
        return _number(self.plan, argument, value)

    # ---- outputs ----

    def _wanted(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Array | None]:
        said = self.sizes
        if said is None:
            return [None] * len(self.plan.outputs)
        if _is_function(said):
            said = _by_name(self.plan.signature, said(*args, **kwargs))
        found = [said.get(each.name) for each in self.plan.outputs]
        called = (each(*args, **kwargs) if _is_function(each) else each for each in found)
        return [None if each is None else _struct(each) for each in called]

    def _outputs(
        self,
        arrays: Mapping[int, Any],
        numbers: Mapping[int, Any],
        wanted: Sequence[Array | None],
    ) -> tuple[Array, ...]:
        """The outputs of the first candidate that the arguments fit."""
        told = {
            position: None if each is None else Array(tuple(each.shape), each.dtype)
            for position, each in arrays.items()
        }
        reasons: list[str] = []
        for signature in self.plan.candidates:
            try:
                _check_numbers(signature, numbers)
                return outputs_of(self.plan, signature, told, wanted, numbers)
            except Mismatch as mismatch:
                reasons.append(str(mismatch))
        self._explain(told, numbers, wanted)
        raise ValueError(f"{self.plan.signature} refuses its arguments: {'; '.join(reasons)}")

    def _explain(
        self,
        arrays: Mapping[int, Array | None],
        numbers: Mapping[int, Any],
        wanted: Sequence[Array | None],
    ) -> None:
        """Raise the error of the call, whose checks run on descriptions of the arrays."""
        said = [each for each in (*arrays.values(), *wanted) if each is not None]
        if not all(isinstance(size, int) for each in said for size in each.shape):
            return
        if self.checks is None:
            self.checks = checks_of(self.plan.signature)
        owners: list[object] = []
        values: list[Any] = []
        for argument in self.plan.arguments:
            value = numbers.get(argument.position)
            if argument.is_array:
                described = arrays.get(argument.position)
                if argument.made:
                    described = wanted[argument.output or 0] or self._fitting(argument, arrays)
                value = None if described is None else self._stand_in(argument, described, owners)
            values.append(value)
        try:
            self.checks(*values)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{error}{_about_x64(error)}") from None

    def _fitting(self, argument: Argument, arrays: Mapping[int, Array | None]) -> Array:
        """An output that fits the arrays as well as any, so that the error is one of theirs."""
        signature = self.plan.candidates[0]
        tensor = signature.arguments[argument.position]
        assert isinstance(tensor, specs.Tensor)
        given = [signature.arguments[i] for i in arrays]
        shape = expected_shape(tensor, given, list(arrays.values()))
        return Array(shape, tensor.dtype.name)

    def _stand_in(self, argument: Argument, array: Array, owners: list[object]) -> Any:
        strides, running = [0] * len(array.shape), 1
        for axis in reversed(self._axes(argument, len(array.shape))):
            strides[axis] = running
            running *= array.shape[axis]
        dtype = dtype_of(array.dtype)
        word = 0 if dtype is None else dtype.dlpack
        device = self.plan.device
        tensor, owner = Description(array.shape, tuple(strides), word, device, 0).stand_in()
        owners.append(owner)
        return tensor

    def _axes(self, argument: Argument, rank: int) -> tuple[int, ...]:
        return axes_of_rank(self.plan.specs_of(argument.position), rank)

    def _axes_of_output(self, i: int, output: Array) -> tuple[int, ...]:
        position = self.plan.outputs[i].position
        found = [self.plan.results[i]] if position is None else self.plan.specs_of(position)
        return axes_of_rank(found, len(output.shape))


def _about_x64(error: Exception) -> str:
    """What to do where an array had 64 bits before JAX took it."""
    import jax

    if jax.config.jax_enable_x64 or not re.search(r"expected dtype=\w*64", str(error)):
        return ""
    return "; JAX has arrays of 64 bits after jax.config.update('jax_enable_x64', True)"


_METHODS: Final = (
    "sequential",
    "sequential_unrolled",
    "expand_dims",
    "broadcast_all",
    "legacy_vectorized",
    None,
)


def _check_method(method: object) -> None:
    if method not in _METHODS:
        listed = ", ".join(map(repr, _METHODS))
        raise ValueError(f"jax_call: vmap_method must be one of {listed}, but got {method!r}")


def _is_function(out: Any) -> bool:
    return callable(out) and not hasattr(out, "shape")


def _by_name(signature: specs.Signature, out: Any) -> Wanted:
    """The entries of `out` by the names of the outputs. Raises TypeError or ValueError for anything
    else as `out`."""
    names = output_names(signature)
    if isinstance(out, Mapping):
        unknown = [each for each in out if each not in names]
        if unknown:
            listed = ", ".join(names) or "none"
            raise ValueError(
                f"jax_call: out has {unknown[0]!r}, which {signature} does not write or return; "
                f"its outputs are {listed}"
            )
        return {name: _said(name, each) for name, each in out.items()}
    if _is_struct(out):
        out = (out,)
    if isinstance(out, str) or not isinstance(out, Sequence):
        raise TypeError(_no_out(out))
    if out and all(isinstance(each, str) for each in out):
        return _by_name(signature, dict.fromkeys(out))
    if len(out) > len(names):
        raise ValueError(
            f"jax_call: out has {len(out)} entries, but {signature} has {len(names)} outputs: "
            f"{', '.join(names) or 'none'}"
        )
    return {name: _said(name, each) for name, each in zip(names, out, strict=False)}


def _is_struct(each: Any) -> bool:
    return hasattr(each, "shape") and hasattr(each, "dtype")


def _said(name: str, each: Any) -> Any:
    if each is not None and not _is_struct(each) and not _is_function(each):
        raise TypeError(f"{_no_out(each)}, for {name}")
    return each


def _no_out(out: Any) -> str:
    return (
        f"jax_call: out must be a jax.ShapeDtypeStruct, a list or a dict of them by name, a list "
        f"of names, or a function that returns one of these, but got {out!r}"
    )


def _struct(each: Any) -> Array:
    if not _is_struct(each):
        raise TypeError(_no_out(each))
    return Array(tuple(each.shape), np.dtype(each.dtype))


def _made(signature: specs.Signature, wanted: Wanted) -> tuple[str, ...]:
    parameters = {param.name for each in _every(signature) for param in each.arguments}
    return tuple(name for name in wanted if name in parameters)


def _every(signature: specs.Signature) -> tuple[specs.Signature, ...]:
    return signature.candidates if isinstance(signature, specs.Overloads) else (signature,)


def _parameters(plan: Plan) -> inspect.Signature:
    """The parameters of a call, as Python binds them."""
    found: list[inspect.Parameter] = []
    keyword_only = False
    for argument in plan.given():
        required = argument.default is specs.REQUIRED
        behind = required and found and found[-1].default is not inspect.Parameter.empty
        keyword_only = keyword_only or argument.keyword_only or bool(behind)
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        found.append(
            inspect.Parameter(
                argument.name,
                inspect.Parameter.KEYWORD_ONLY if keyword_only else kind,
                default=inspect.Parameter.empty if required else argument.default,
            )
        )
    return inspect.Signature(found)


def _array(plan: Plan, argument: Argument, value: Any) -> Any:
    import jax

    if not isinstance(value, (jax.Array, np.ndarray, np.generic, bool, int, float, complex)):
        raise TypeError(
            f"{plan.name}: {argument.name} is {plan.signature.kind(_first(plan, argument))}, so a "
            f"call in JAX takes an array of JAX or NumPy, but got {type(value).__name__}"
        )
    array = jax.numpy.asarray(value)
    _check_narrowed(plan, argument, value, array)
    if dtype_of(array.dtype) is None:
        raise TypeError(
            f"{plan.name}: {argument.name} is {plan.signature.kind(_first(plan, argument))}, but "
            f"got an array of {array.dtype}, which has no elements of whole bytes that a compiled "
            f"function reads"
        )
    return array


def _check_narrowed(plan: Plan, argument: Argument, value: Any, array: Any) -> None:
    """ValueError for integers that lose their upper half where JAX has no arrays of 64 bits."""
    if not isinstance(value, (np.ndarray, np.generic)) or value.dtype.kind not in "iu":
        return
    if value.dtype.itemsize <= array.dtype.itemsize or not np.size(value):
        return
    least, most = np.min(value), np.max(value)
    limits = np.iinfo(array.dtype)
    if least < limits.min or most > limits.max:
        worst = most if most > limits.max else least
        raise ValueError(
            f"{plan.name}: {argument.name} has {worst}, but JAX makes an array of {array.dtype} of "
            f"it; it has arrays of 64 bits after jax.config.update('jax_enable_x64', True)"
        )


def _first(plan: Plan, argument: Argument) -> specs.Param:
    return plan.candidates[0].arguments[argument.position]


def _number(plan: Plan, argument: Argument, value: Any) -> Any:
    """The number as Python has it."""
    import jax

    if isinstance(value, jax.core.Tracer):
        raise TypeError(
            f"{plan.name}: {argument.name} is a number, which is a static part of the program, but "
            f"got a traced value: pass it through static_argnums of jax.jit, or compile the "
            f"function with a tensor of shape () there"
        )
    if isinstance(value, specs.Numeric):
        value = value.value
    try:
        return _CONVERSIONS[argument.kind](value)
    except (TypeError, ValueError):
        raise TypeError(
            f"{plan.name}: {argument.name} must be {argument.kind.value}, but got {value!r}"
        ) from None


def _as_bool(value: Any) -> bool:
    if value not in (0, 1):
        raise TypeError
    return bool(value)


def _as_float(value: Any) -> float:
    if isinstance(value, (str, bytes)):
        raise TypeError
    return float(value)


_CONVERSIONS: Final = {Kind.INT: operator.index, Kind.FLOAT: _as_float, Kind.BOOL: _as_bool}


def _check_numbers(signature: specs.Signature, numbers: Mapping[int, Any]) -> None:
    """Mismatch for a number that the candidate does not take."""
    for position, value in numbers.items():
        param = signature.arguments[position]
        item = param.item if isinstance(param, specs.Optional) else param
        if value is None:
            continue
        if isinstance(item, specs.Scalar):
            _check_range(item, value)
        elif isinstance(item, specs.Constant) and value != item.value:
            raise Mismatch(f"{param.name} is {value!r}, but must be {item.value!r}")


def _check_range(scalar: specs.Scalar, value: Any) -> None:
    # An attribute of XLA is an int64.
    if not -(1 << 63) <= value < 1 << 63 and scalar.dtype.is_integer:
        raise Mismatch(f"{scalar.name} is {value}, which no attribute can be")
    try:
        scalar.dtype(value)
    except (TypeError, OverflowError) as error:
        raise Mismatch(str(error)) from None


def _attribute(argument: Argument, value: Any) -> Any:
    """The attribute that says an argument's value, or of an optional array whether it is there."""
    if value is None:
        return ABSENT
    if argument.is_array:
        return np.bool_(True)
    return _ATTRIBUTES[argument.kind](value)


class Bits(np.float64):
    """A number that equals another one of the same bits alone.

    JAX keeps programs by their attributes, and `0.0 == -0.0`; a nan would be a new program for each
    call.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bits) and self.tobytes() == other.tobytes()

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.tobytes())


_ATTRIBUTES: Final = {Kind.INT: np.int64, Kind.FLOAT: Bits, Kind.BOOL: np.bool_}
