"""Steps of a function that launches kernels which no other convention has: an assertion, a loop."""

from __future__ import annotations

from functools import partial

from ferrule.compiler.artefacts import Fault, literal
from ferrule.compiler.conventions import CallingConvention
from ferrule.compiler.conventions.base import Call
from ferrule.compiler.conventions.protocol import PlainStep
from ferrule.compiler.cuda.code import DeviceCode
from ferrule.specs import Condition, Dim, Param, Signature, Sym
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class Asserted(PlainStep):
    """A RuntimeError of the call, with this message, unless a condition holds."""

    condition: Condition
    message: str
    when: Condition | None = None

    def emit(self, call: Call) -> None:
        """See `CallingConvention`."""
        call.say(call.with_condition("assert {}", self.condition))
        failed = call.emitter.not_(call.condition(self.condition))
        call.refuse(failed, Fault("RuntimeError", literal(self.message)))


@dataclass(frozen=True, slots=True)
class Repeated:
    """Calls in order, so many times; `counted` is `start` at first, and then larger by `step` each
    time."""

    counted: Sym
    start: Dim
    step: Dim
    count: Dim
    steps: tuple[CallingConvention, ...]
    when: Condition | None = None

    def codes(self) -> tuple[DeviceCode, ...]:
        """See `CallingConvention`."""
        return tuple(dict.fromkeys(code for each in self.steps for code in each.codes()))

    def results(self) -> tuple[Param, ...]:
        """See `CallingConvention`."""
        return ()

    def emit(self, call: Call) -> None:
        """See `CallingConvention`."""
        e = call.emitter
        loop = call.steps.block(partial(self._line, call.signature))
        start, step = (call.size(each, "a step of a loop") for each in (self.start, self.step))
        with e.loop(call.size(self.count, "the count of a loop")) as index, loop, call.apart():
            outside = call.symbols
            value = e.builder.add(start, e.builder.mul(index, step))
            call.symbols = {**outside, self.counted: value}
            for each in self.steps:
                with call.where(each.when):
                    call.make(each)
            call.symbols = outside

    def _line(self, signature: Signature) -> str:
        count, start, step = map(signature.format, (self.count, self.start, self.step))
        return f"repeat {count} times, with {self.counted} from {start} on by {step}:"
