"""What a call in a traced function of JAX takes and gives, from the signature of the function.

Tensors are arrays and numbers are attributes, which XLA keeps with the call. JAX's arrays are never
written, so that each tensor which the function writes is an output: one that is made, or one whose
memory is that of an array that is given (an alias). The outputs are the function's own results,
then the written tensors, in the order of the parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any, Final

from ferrule import specs
from ferrule.compiler.operators.gradients import result_names
from ferrule.compiler.operators.jax.words import number_of
from ferrule.compiler.operators.torch.plans import candidates_of, may_return, result_specs
from ferrule.specs import params
from ferrule.specs.copies import changed
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import make


class Kind(Enum):
    """How a call takes a value."""

    ARRAY = "an array"
    INT = "an int"
    FLOAT = "a float"
    BOOL = "a bool"
    STREAM = "the stream"


@dataclass(frozen=True, slots=True)
class Argument:
    """The function's argument at `position`.

    `made`: the call makes the array, and its caller does not give it. `output` is the position of
    what is written among the outputs; None if it is only read.
    """

    name: str
    position: int
    kind: Kind
    optional: bool
    made: bool
    output: int | None
    keyword_only: bool
    default: Any

    @property
    def is_array(self) -> bool:
        """Whether the argument is an array, or None."""
        return self.kind is Kind.ARRAY

    @property
    def given(self) -> bool:
        """Whether a caller gives it."""
        return not self.made and self.kind is not Kind.STREAM

    @property
    def attribute(self) -> bool:
        """Whether an attribute tells its value, or whether it is there."""
        return self.given and (self.optional or not self.is_array)


@dataclass(frozen=True, slots=True)
class Output:
    """An array that a call gives back: a result of the function, or the argument at `position`."""

    name: str
    position: int | None


@dataclass(frozen=True, slots=True)
class Plan:
    """What calls take and give; `results` are the first of `outputs`.

    `packs` is whether the function returns a tuple.
    """

    signature: specs.Signature
    arguments: tuple[Argument, ...]
    outputs: tuple[Output, ...]
    results: tuple[specs.Param, ...]
    packs: bool

    @property
    def candidates(self) -> tuple[specs.Signature, ...]:
        """The signatures among which a call chooses; one, if there is no choice."""
        return candidates_of(self.signature)

    @property
    def name(self) -> str:
        """The function's name."""
        return self.signature.name

    def given(self) -> tuple[Argument, ...]:
        """The arguments that a caller gives."""
        return tuple(each for each in self.arguments if each.given)

    def arrays(self) -> tuple[Argument, ...]:
        """The arrays that XLA hands over, in this order."""
        return tuple(each for each in self.given() if each.is_array)

    def attributes(self) -> tuple[Argument, ...]:
        """The attributes, in XLA's order."""
        return tuple(sorted((a for a in self.given() if a.attribute), key=lambda a: a.name))

    @property
    def device(self) -> str:
        """The device of the tensors."""
        found = (tensor.device or "cpu" for s in self.candidates for tensor in _tensors(s))
        return next(found, "cpu")

    def specs_of(self, position: int) -> tuple[specs.Param, ...]:
        """What the candidates say of an argument, without its being optional."""
        return tuple(_item(each.arguments[position]) for each in self.candidates)


PLATFORMS: Final = {"cpu": "cpu", "cuda": "CUDA"}
"""XLA's platforms by the devices of tensors."""


def output_names(signature: specs.Signature) -> tuple[str, ...]:
    """The names of the outputs: `result`, or `result0` …, then the written parameters."""
    first = candidates_of(signature)[0]
    return result_names(len(result_specs(first)), _written(signature))


def writing(signature: specs.Signature, names: Sequence[str]) -> specs.Signature:
    """A signature whose tensors with these names count as written."""
    if not names or isinstance(signature, specs.Overloads):
        return signature
    return replace(
        signature,
        params=tuple(
            changed(each, read_only=False)
            if isinstance(each, specs.Tensor) and each.name in names
            else each
            for each in signature.params
        ),
    )


def _written(signature: specs.Signature) -> list[str]:
    """The names of the arguments to which a candidate writes."""
    candidates = candidates_of(signature)
    names: dict[str, None] = {}
    for i, param in enumerate(candidates[0].arguments):
        if any(_writes(each.arguments[i]) for each in candidates if i < len(each.arguments)):
            names[param.name] = None
    return list(names)


def _writes(param: specs.Param) -> bool:
    item = _item(param)
    return isinstance(item, params.Tensor) and not item.read_only


def _item(param: specs.Param) -> specs.Param:
    return param.item if isinstance(param, params.Optional) else param


def plan_of(signature: specs.Signature, made: Sequence[str] | None = None) -> Plan:
    """The plan of a function that makes the written tensors with these names, by default all.

    Raises ValueError for a name that is no written tensor, and for parameters and results that no
    call in JAX has.
    """
    names = _written(signature)
    chosen = tuple(names if made is None else made)
    for each in chosen:
        if each not in names:
            raise ValueError(_not_written(signature, each))
    every = [_plan(each, names, chosen) for each in candidates_of(signature)]
    for other in every[1:]:
        _check_alike(every[0], other)
    first = every[0]
    plan = Plan(signature, first.arguments, first.outputs, first.results, first.packs)
    _check_devices(plan)
    return plan


def _not_written(signature: specs.Signature, name: str) -> str:
    names = ", ".join(output_names(signature)) or "none"
    return (
        f"jax_call: out has {name!r}, but {signature} does not write or return it; its outputs are "
        f"{names}"
    )


def _plan(signature: specs.Signature, written: list[str], made: tuple[str, ...]) -> Plan:
    for param in signature.arguments:
        if param.name in made and not _writes(param):
            raise ValueError(
                f"jax_call: {signature} does not write to {param.name}, as other candidates do, so "
                f"that nothing would be in the output: leave {param.name} out of out"
            )
    if (kept := may_return(signature)) is not None:
        raise ValueError(
            f"jax_call: {signature} may return its argument {kept}, and the arrays that XLA hands "
            f"over cannot be kept: leave it out of the results, a written argument is an output"
        )
    results = result_specs(signature)
    for result in results:
        _check_result(signature, result)
    names = [each for each in written if each in {p.name for p in signature.arguments}]
    order = {name: len(results) + i for i, name in enumerate(names)}
    arguments = tuple(
        _argument(signature, i, order.get(param.name), param.name in made)
        for i, param in enumerate(signature.arguments)
    )
    listed = [Output(name, None) for name in output_names(signature)[: len(results)]]
    listed += [Output(a.name, a.position) for a in arguments if a.output is not None]
    packs = isinstance(signature.result, params.Tuple)
    return Plan(signature, arguments, tuple(listed), results, packs)


def _argument(
    signature: specs.Signature, position: int, output: int | None, made: bool
) -> Argument:
    param = signature.arguments[position]
    kind, optional = _kind(signature, param), isinstance(param, params.Optional)
    if optional and output is not None:
        raise ValueError(
            f"jax_call: {signature.describe(param)} of {signature.name} is written if it is there, "
            f"but a call in JAX always has the same outputs; compile the function for a tensor, or "
            f"without it"
        )
    keyword_only = position >= signature.positional
    return Argument(param.name, position, kind, optional, made, output, keyword_only, param.default)


def _kind(signature: specs.Signature, param: specs.Param) -> Kind:
    match _item(param):
        case params.Tensor() as tensor:
            _check_dtype(signature, tensor)
            return Kind.ARRAY
        case params.Scalar(dtype=dtype):
            return _of_number(dtype)
        case params.Constant(value=bool()):
            return Kind.BOOL
        case params.Constant(value=int()):
            return Kind.INT
        case params.Constant(value=float()):
            return Kind.FLOAT
        case params.Stream():
            return Kind.STREAM
    raise ValueError(
        f"jax_call: {signature.describe(param)} of {signature.name} is no array and no number; "
        f"calls in JAX take these alone, so give each part a parameter of its own"
    )


def _of_number(dtype: specs.DType) -> Kind:
    match dtype.kind:
        case "float":
            return Kind.FLOAT
        case "bool":
            return Kind.BOOL
    return Kind.INT


def _check_dtype(signature: specs.Signature, tensor: specs.Tensor) -> None:
    if tensor.packed or number_of(tensor.dtype) is None:
        raise ValueError(
            f"jax_call: {signature.describe(tensor)} of {signature.name} has a dtype that arrays "
            f"of JAX do not have in memory as a compiled function reads it; use one with elements "
            f"of whole bytes"
        )


def _check_result(signature: specs.Signature, result: specs.Param) -> None:
    match result:
        case params.Tensor(device=None | "cpu", packed=False, dtype=dtype) if number_of(dtype):
            return
        case params.Scalar(dtype=dtype) if dtype.name not in _NO_RESULTS:
            return
    raise ValueError(
        f"jax_call: {signature.name} returns {signature.kind_of_result()}, and a call in JAX gives "
        f"arrays on the CPU and numbers back, but none of {', '.join(_NO_RESULTS)}; let the "
        f"function write to a parameter"
    )


_NO_RESULTS: Final = ("bfloat16", "float16", "uint64")
"""The dtypes of numbers that are functions of a library to round, or an object of tvm-ffi."""


def _check_alike(first: Plan, other: Plan) -> None:
    if _form(first) != _form(other):
        raise ValueError(
            f"jax_call: the candidates {first.signature} and {other.signature} take or return "
            f"different things; call each of them, fe.jax_call(candidate)"
        )


def _form(plan: Plan) -> tuple[object, ...]:
    arguments = [(a.name, a.kind, a.optional, a.output) for a in plan.arguments]
    results = [each.dtype if isinstance(each, specs.Scalar) else None for each in plan.results]
    return arguments, results, plan.packs


def _check_devices(plan: Plan) -> None:
    found = {tensor.device or "cpu" for s in plan.candidates for tensor in _tensors(s)}
    if len(found) > 1 or not found <= PLATFORMS.keys():
        listed = ", ".join(sorted(found))
        raise ValueError(
            f"jax_call: {plan.signature} has tensors on {listed}; a call in JAX has all on the CPU "
            f"or all on a CUDA GPU"
        )


def _tensors(signature: specs.Signature) -> Iterator[specs.Tensor]:
    for param in signature.arguments:
        item = _item(param)
        if isinstance(item, specs.Tensor):
            yield item


def axes_of(tensor: specs.Tensor) -> tuple[int, ...]:
    """The axes from the one that varies slowest to the fastest, in dense memory.

    Where strides are open, the order is row-major.
    """
    left = list(range(len(tensor.shape)))
    running: specs.Dim = 1
    fast: list[int] = []
    while left:
        axis = next((i for i in reversed(left) if tensor.strides[i] == running), None)
        if axis is None:
            return (*left, *reversed(fast))
        left.remove(axis)
        fast.append(axis)
        running = make("mul", running, tensor.shape[axis])
    return tuple(reversed(fast))


def axes_of_rank(found: Sequence[specs.Param], rank: int) -> tuple[int, ...]:
    """The order of axes for an array with so many dims, by the first candidate that has so many."""
    tensors = (each for each in found if isinstance(each, specs.Tensor))
    fitting = (axes_of(each) for each in tensors if len(each.shape) == rank)
    return next(fitting, tuple(range(rank)))
