"""The wrapper of an overloaded function: it tries its candidates in order.

Each candidate becomes a function, `i32 (ptr args, i32 num_args, ptr result, i32 way)`, which
returns the status of a wrapper, or 1 if it refuses the arguments, without a message.  The hot path
may refuse arguments that the checker would accept; it returns 2 if that is possible.  In this case
the checker must confirm the refusal before a later candidate that could accept the same call is
tried.  Two candidates never accept the same call if, for example, they need different dtypes at one
place.  So the dispatch costs a call and a few compares for each candidate before the match.

A call that every candidate refuses gets one error, which combines the results of all checks.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Final

from ferrule.compiler.artefacts import HostModule
from ferrule.compiler.support.entries import REFUSE, REFUSE_ONE
from ferrule.compiler.support.refusals import CHECKS
from ferrule.compiler.wrapper.builder import VALUE_SLOTS, WrapperParts, wrapper_parts
from ferrule.compiler.wrapper.callee import BodyCall
from ferrule.compiler.wrapper.distinct import exclude_each_other
from ferrule.compiler.wrapper.hot import Hot, Unfit
from ferrule.compiler.wrapper.leaves import Slots, leaves_of
from ferrule.runtime.abi import SYMBOL_PREFIX
from ferrule.runtime.llvm.writer import NULL, Value, Writer, i32, i64
from ferrule.specs import Signature
from ferrule.specs.deferred import dataclass
from ferrule.specs.overloads import Overloads


class Way(IntEnum):
    """The path on which a candidate checks the arguments."""

    HOT = 0
    CHECKER = 1


_ARGS, _NUM_ARGS, _RESULT, _WAY = (
    Value(kind, f"%{name}")
    for kind, name in (("ptr", "args"), ("i32", "num_args"), ("ptr", "result"), ("i32", "way"))
)
_HANDLE: Final = Value("ptr", "%handle")
_ATTRIBUTES: Final = "noinline optnone"
_REFUSED: Final = i32(1)
_IN_DOUBT: Final = i32(2)


def build_overloads(signature: Overloads, modules: Sequence[HostModule]) -> str:
    """The wrapper as LLVM text; `modules` are the modules of the candidates, in order."""
    writer = Writer()
    shown = None if signature.shown is None else str(signature)
    candidates = [
        _candidate(f"{signature.name}.candidate{i}", each, module, shown)
        for i, (each, module) in enumerate(zip(signature.candidates, modules, strict=True))
    ]
    for candidate in candidates:
        candidate.define(writer)
    parameters = (_HANDLE, _ARGS, _NUM_ARGS, _RESULT)
    with writer.define(SYMBOL_PREFIX + signature.name, "i32", parameters, _ATTRIBUTES):
        _try_all(writer, signature.candidates, candidates)
        _refuse(writer, signature, candidates)
    return writer.text()


def _candidate(name: str, signature: Signature, module: HostModule, shown: str | None) -> Candidate:
    body = module.body
    callee = BodyCall(body)
    faults = callee.faults(signature)
    parts = wrapper_parts(signature, callee, body.relations, faults, body.location, shown)
    return Candidate(name, parts)


def _try_all(
    writer: Writer, signatures: Sequence[Signature], candidates: Sequence[Candidate]
) -> None:
    """Try the candidates one after the other; in the code that follows, all have refused the
    call."""
    doubtful: dict[int, Value] = {}
    for position, signature in enumerate(signatures):
        for before in list(doubtful):
            if not exclude_each_other(signatures[before], signature):
                _ask_checker(writer, candidates[before], doubtful.pop(before))
        doubtful[position] = _try(writer, candidates[position], Way.HOT)
    for position, status in doubtful.items():
        _ask_checker(writer, candidates[position], status)


def _try(writer: Writer, candidate: Candidate, way: Way) -> Value:
    """Return the status of a candidate unless it refuses the call; the status of the refusal."""
    arguments = [_ARGS, _NUM_ARGS, _RESULT, i32(way)]
    status = writer.call(candidate.name, "i32", arguments)
    taken, other = writer.block("taken"), writer.block("other")
    writer.cond_branch(writer.icmp("sgt", status, i32(0)), other, taken)
    writer.at(taken)
    writer.ret(status)
    writer.at(other)
    return status


def _ask_checker(writer: Writer, candidate: Candidate, status: Value) -> None:
    """Let the checker decide about a candidate whose hot path refused the call without
    certainty."""
    ask, behind = writer.block("ask"), writer.block("behind")
    writer.cond_branch(writer.icmp("eq", status, _IN_DOUBT), ask, behind)
    writer.at(ask)
    _try(writer, candidate, Way.CHECKER)
    writer.branch(behind)
    writer.at(behind)


def _refuse(writer: Writer, signature: Overloads, candidates: Sequence[Candidate]) -> None:
    """Set the error of a call that every candidate refuses."""
    checks = writer.alloca("i64", 2 * len(candidates), name="checks")
    slots = max(each.slots for each in candidates)
    out = writer.alloca("i64", slots, name="out")
    for i, candidate in enumerate(candidates):
        at = writer.index(checks, CHECKS, i)
        table, program = candidate.parts.table, candidate.parts.program
        writer.store(writer.bytes_constant(table), at)
        writer.store(writer.bytes_constant(program), writer.offset(at, CHECKS.offset("program")))
    text = f"No candidate of `{signature.name}` takes these arguments:"
    head = writer.bytes_constant(text.encode() + b"\0")
    function = REFUSE if signature.shown is None else REFUSE_ONE
    arguments = [checks, i64(len(candidates)), head, _ARGS, _NUM_ARGS, out]
    writer.call_void(function, arguments, "cold")
    writer.ret(i32(-1))


@dataclass(frozen=True, slots=True)
class Candidate:
    """One function of an overload, and the parts of its wrapper."""

    name: str
    parts: WrapperParts

    @property
    def slots(self) -> int:
        """Room for the leaves and symbols of a call."""
        signature = self.parts.signature
        leaves = sum(len(leaves_of(param)) for param in signature.params)
        return max(1, leaves + len(signature.symbols))

    def define(self, writer: Writer) -> None:
        """Define the function."""
        try:
            self._define(writer, hot=True)
        except Unfit:
            self._define(writer, hot=False)

    def _define(self, writer: Writer, *, hot: bool) -> None:
        parameters = (_ARGS, _NUM_ARGS, _RESULT, _WAY)
        with writer.define(self.name, "i32", parameters, _ATTRIBUTES):
            values = writer.alloca("i64", VALUE_SLOTS, name="values")
            slots = Slots(self.parts.signature, writer)
            with writer.apart() as behind:
                accepted = writer.block("accepted")
                writer.at(accepted)
                self.parts.call(writer, values, slots)
                refused, doubt, check = map(writer.block, ("refused", "in_doubt", "check"))
                for block, answer in ((refused, _REFUSED), (doubt, _IN_DOUBT)):
                    writer.at(block)
                    writer.ret(answer)
                writer.at(check)
                status = self._check(writer, values, slots)
                fits = writer.icmp("eq", status, i32(0))
                writer.cond_branch(fits, accepted, refused)
            start = writer.block("hot")
            writer.cond_branch(writer.icmp("eq", _WAY, i32(Way.HOT)), start, check)
            writer.at(start)
            if hot:
                self.parts.accept(Hot(writer, slots, doubt, refused))
            writer.branch(accepted if hot else doubt)
            writer.arrange(behind)

    def _check(self, writer: Writer, values: Value, slots: Slots) -> Value:
        """The status of the checker; without a table of messages it sets no error."""
        program = writer.bytes_constant(self.parts.program)
        arguments = [NULL, program, _ARGS, _NUM_ARGS, values, slots.base]
        return writer.call("ferrule_check", "i32", arguments, "cold")
