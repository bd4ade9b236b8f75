"""Several calls in one function: in order, or the first one whose condition holds."""

from __future__ import annotations

import collections.abc
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

from llvmlite import ir

from ferrule.compiler.artefacts import Fault, literal
from ferrule.compiler.conventions.arguments import listed
from ferrule.compiler.conventions.base import Call
from ferrule.compiler.conventions.c.outs import Out
from ferrule.compiler.conventions.protocol import CallingConvention, check_convention
from ferrule.compiler.conventions.steps import places_of
from ferrule.compiler.cuda.code import DeviceCode
from ferrule.compiler.host.steps import readable
from ferrule.runtime.llvm.layouts import I32
from ferrule.specs import Condition, Param, Tensor
from ferrule.specs.conditions import checked_condition, format_condition
from ferrule.specs.deferred import dataclass

_FIRST: Final = "if it is the first with {}:"


@dataclass(frozen=True, slots=True, init=False)
class Sequence:
    """Calls in order, each if its `when` holds.

        Sequence([first, second], temporaries=[partial])

    `temporaries` are tensors from the caller's allocator, which live until the last call has been
    made; they are uninitialised.  On a GPU, freeing them after asynchronous launches is safe with
    stream-ordered allocators, such as torch's; `.data` of one is their address.
    """

    steps: tuple[CallingConvention, ...]
    temporaries: tuple[Tensor, ...]
    when: Condition | None

    def __init__(
        self,
        steps: collections.abc.Sequence[CallingConvention],
        *,
        temporaries: collections.abc.Sequence[Tensor] = (),
        when: Condition | None = None,
    ) -> None:
        object.__setattr__(self, "steps", _checked_steps("Sequence", steps))
        object.__setattr__(self, "temporaries", listed(temporaries, "Sequence: temporaries"))
        object.__setattr__(self, "when", None if when is None else checked_condition(when))
        for tensor in self.temporaries:
            if not isinstance(tensor, Tensor):
                raise TypeError(f"Sequence: a temporary is a Tensor, but got {tensor!r}")
            if tensor.capacity is not None:
                raise ValueError(
                    f"Sequence: the temporary {tensor.name!r} has a capacity, which only a result "
                    f"has: let its size be what is allocated"
                )
        names = [tensor.name for tensor in self.temporaries]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise ValueError(f"Sequence: there are two temporaries {twice[0]!r}: name them apart")

    def codes(self) -> tuple[DeviceCode, ...]:
        """See `CallingConvention`."""
        return _codes(self.steps)

    def results(self) -> tuple[Param, ...]:
        """See `CallingConvention`; only an unconditional step can have results."""
        found: list[Param] = []
        for step in self.steps:
            # An `Out` that several steps list is given back once, at the first of them.
            known = {id(each) for each in found if not isinstance(each, Tensor)}
            new = [each for each in step.results() if id(each) not in known]
            outs = {id(out.param) for out in places_of(step) if isinstance(out, Out)}
            if step.when is not None and any(id(each) not in outs for each in new):
                raise ValueError(
                    "Sequence: a call that depends on a condition can give nothing back, for "
                    "otherwise there would be no value: write to a tensor of `results` instead"
                )
            found += new
        return tuple(found)

    def emit(self, call: Call) -> None:
        """See `CallingConvention`."""
        for tensor in self.temporaries:
            if any(tensor.name == param.name for param in call.signature.params):
                raise ValueError(
                    f"Sequence: the temporary {tensor.name!r} is a parameter, too: give it a name "
                    f"of its own"
                )
            call.allocate(tensor)
        with ExitStack() as opened:
            if (code := self._first_code()) is not None:
                opened.enter_context(call.entered(code))
            for step in self.steps:
                with call.where(step.when):
                    call.make(step)

    def _first_code(self) -> DeviceCode | None:
        """The code that enters the device for all steps: the only one, or one that every call
        launches."""
        codes = {id(code): code for step in self.steps for code in step.codes()}
        return next(iter(codes.values())) if len(codes) == 1 else _certain(self.steps)


@dataclass(frozen=True, slots=True, init=False)
class FirstOf:
    """The first of several calls whose `when` holds; a ValueError of the call if there is none.

    FirstOf([CudaLaunch(…, when=divisible(n, 4)), CudaLaunch(…)])
    """

    choices: tuple[CallingConvention, ...]
    when: Condition | None

    def __init__(
        self,
        choices: collections.abc.Sequence[CallingConvention],
        *,
        when: Condition | None = None,
    ) -> None:
        object.__setattr__(self, "choices", _checked_steps("FirstOf", choices))
        object.__setattr__(self, "when", None if when is None else checked_condition(when))
        for position, choice in enumerate(self.choices[:-1]):
            if choice.when is None:
                raise ValueError(
                    f"FirstOf: choice #{position} has no condition, so those behind it are never "
                    f"taken: give it a `when`, or put it last"
                )

    def codes(self) -> tuple[DeviceCode, ...]:
        """See `CallingConvention`."""
        return _codes(self.choices)

    def results(self) -> tuple[Param, ...]:
        """See `CallingConvention`."""
        if any(choice.results() for choice in self.choices):
            raise ValueError(
                "FirstOf: a choice can give nothing back: write to a tensor of `results` instead"
            )
        return ()

    def emit(self, call: Call) -> None:
        """See `CallingConvention`."""
        e = call.emitter
        done = e.block("chosen")
        for choice in self.choices:
            if choice.when is None:
                with call.steps.block("otherwise:"), call.apart():
                    call.make(choice)
                e.branch(done)
                break
            on, other = e.block("choice"), e.block("other")
            e.cond_branch(call.condition(choice.when), on, other)
            e.at(on)
            with call.steps.block(call.with_condition(_FIRST, choice.when)), call.apart():
                call.make(choice)
            e.branch(done)
            e.at(other)
        else:
            none = self._none(call)
            call.steps.add(f"otherwise {none.kind}: {readable(none.message)}")
            call.fail(ir.Constant(I32, call.fault(none)))
        e.at(done)

    def _none(self, call: Call) -> Fault:
        names = call.signature.symbols
        wanted = "; or ".join(
            format_condition(choice.when, names)
            for choice in self.choices
            if choice.when is not None
        )
        message = f"{call.signature.name} has no code for these sizes: expected {wanted}"
        return Fault("ValueError", literal(message))


def _checked_steps(
    what: str, steps: collections.abc.Sequence[CallingConvention]
) -> tuple[CallingConvention, ...]:
    if not isinstance(steps, collections.abc.Sequence):
        raise TypeError(f"{what}: expected a list of calls, but got {type(steps).__name__}")
    checked = tuple(steps)
    if not checked:
        raise ValueError(
            f"{what}: expected at least one call: what copies its argument calls memcpy, "
            f"CFunction('memcpy', [y.data, x.data, x.nbytes]) with results=[y], and what gives "
            f"its sizes, numbers, texts, tensors or objects back is Give(…)"
        )
    for position, step in enumerate(checked):
        check_convention(step, f"{what}: #{position}")
    return checked


def _certain(steps: collections.abc.Sequence[CallingConvention]) -> DeviceCode | None:
    """The first code of which every call launches a kernel."""
    for step in steps:
        if step.when is not None or isinstance(step, FirstOf):
            continue
        found = (
            _certain(step.steps) if isinstance(step, Sequence) else next(iter(step.codes()), None)
        )
        if found is not None:
            return found
    return None


def _codes(steps: collections.abc.Sequence[CallingConvention]) -> tuple[DeviceCode, ...]:
    return tuple(dict.fromkeys(_each_code(steps)))


def _each_code(steps: collections.abc.Sequence[CallingConvention]) -> Iterator[DeviceCode]:
    for step in steps:
        yield from step.codes()
