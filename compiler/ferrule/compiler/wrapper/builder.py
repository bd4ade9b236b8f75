"""The wrapper builder: from a signature to the LLVM text of `__tvm_ffi_<name>`.

The generated function is `i32 (ptr handle, ptr args, i32 num_args, ptr result)`.  It decodes and
checks every argument, calls the callee, sets `result` if the signature has a result (else it leaves
it None) and returns 0; or it sets an error and returns -1.  The body never runs unless every
argument passed.

There are two paths to the call.  The hot path is generated for the signature: it accepts the usual
valid arguments, without messages and calls.  All other arguments go to `ferrule_check`, which is
the same in every object: it runs the signature's check program, in the order in which errors are
reported, and either sets the error or finds that the call is valid.  Both paths store the values in
the same slots.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ferrule.compiler.artefacts import FAULT_ROOM, Fault, Location, Relation
from ferrule.compiler.checker.program import build_program
from ferrule.compiler.messages import catalogue
from ferrule.compiler.messages.table import Table
from ferrule.compiler.support.dispatch import needed_by
from ferrule.compiler.wrapper.accept import accept_arguments
from ferrule.compiler.wrapper.callee import Callee, DecodedCall
from ferrule.compiler.wrapper.devices import env_streams
from ferrule.compiler.wrapper.hot import Hot, Unfit
from ferrule.compiler.wrapper.leaves import Slots
from ferrule.runtime.abi import SYMBOL_PREFIX
from ferrule.runtime.llvm.layouts import ANY
from ferrule.runtime.llvm.writer import Block, Value, Writer, i32
from ferrule.specs import Requirement, Signature, ValueOf
from ferrule.specs.deferred import dataclass

if TYPE_CHECKING:
    from ferrule.compiler.wrapper.results import Results

VALUE_SLOTS: Final = FAULT_ROOM
"""The number of values that the buffer for messages holds."""

NUMBER: Final = "number of arguments"
REQUIREMENTS: Final = "requirements"

_HANDLE, _ARGS, _NUM_ARGS, _RESULT = (
    Value(kind, f"%{name}")
    for kind, name in (("ptr", "handle"), ("ptr", "args"), ("i32", "num_args"), ("ptr", "result"))
)
# LLVM's optimising instruction selection takes five times as long, and the code is not faster: a
# wrapper has nothing to optimise.
_ATTRIBUTES: Final = "noinline optnone"


def build_wrapper(
    signature: Signature,
    callee: Callee,
    relations: Sequence[Relation] = (),
    faults: Sequence[Fault] = (),
    *,
    location: Location | None = None,
    hot: bool = True,
) -> str:
    """The wrapper as LLVM text.

    `location` is the source of the function, for the traceback of an error.  `relations` are
    checked after the parameters.  `faults` are the meanings of a nonzero status of the callee.
    Without `hot`, every call goes to the checker.
    """
    wrapper = wrapper_parts(signature, callee, relations, faults, location)
    return wrapper.text() if hot else wrapper.build(hot=False)


def wrapper_parts(
    signature: Signature,
    callee: Callee,
    relations: Sequence[Relation],
    faults: Sequence[Fault],
    location: Location | None,
    shown: str | None = None,
    *,
    is_result: bool = False,
) -> WrapperParts:
    """The parts of a wrapper; `shown` is the signature in the messages of the checks."""
    messages = Table()
    program = build_program(signature, relations, messages, location, shown, is_result=is_result)
    numbers = [messages.add(catalogue.body_fault(fault)) for fault in faults]
    return WrapperParts(
        signature,
        callee,
        tuple(relations),
        program.data,
        messages.data(),
        numbers[:1],
        needed_by(program.ops, messages.shown),
    )


@dataclass(frozen=True, slots=True)
class WrapperParts:
    """The parts of a wrapper; `fault` has the number of the first fault's message.

    `needed` are the handlers of the support code that `program` and `table` refer to.
    """

    signature: Signature
    callee: Callee
    relations: tuple[Relation, ...]
    program: bytes
    table: bytes
    fault: Sequence[int]
    needed: frozenset[str]

    def text(self) -> str:
        """The wrapper, with a hot path if the signature allows one."""
        try:
            return self.build(hot=True)
        except Unfit:
            return self.build(hot=False)

    def build(self, *, hot: bool, writer: Writer | None = None) -> str:
        """The same with or without a hot path, by this writer."""
        writer = Writer() if writer is None else writer
        parameters = (_HANDLE, _ARGS, _NUM_ARGS, _RESULT)
        with writer.define(SYMBOL_PREFIX + self.signature.name, "i32", parameters, _ATTRIBUTES):
            values, slots = (
                writer.alloca("i64", VALUE_SLOTS, name="values"),
                Slots(self.signature, writer),
            )
            with writer.apart() as behind:
                accepted = writer.block("accepted")
                writer.at(accepted)
                self.call(writer, values, slots)
                slow = writer.block("slow")
                writer.at(slow)
                self._check(writer, values, slots, accepted)
            if hot:
                self.accept(Hot(writer, slots, slow))
                writer.topic = ""
                writer.branch(accepted)
            else:
                writer.branch(slow)
            writer.arrange(behind)
        return writer.text()

    def accept(self, hot: Hot) -> None:
        """Go on only with arguments that the hot path accepts."""
        hot.writer.topic = NUMBER
        hot.require_that(_NUM_ARGS, "eq", len(self.signature.arguments), certain=True)
        accept_arguments(hot, self.signature, _ARGS)
        hot.writer.topic = REQUIREMENTS
        for required in self.signature.requires:
            self._require(hot, required)
        for relation in self.relations:
            if not (hot.knows(relation.left) and hot.knows(relation.right)):
                raise Unfit
            left, right = hot.sizes.lower(relation.left), hot.sizes.lower(relation.right)
            hot.require_that(left.value, "eq", right.value)

    def _require(self, hot: Hot, required: Requirement) -> None:
        """Go on only if a requirement holds; accepted integers are read again."""
        for symbol in required.symbols:
            if isinstance(symbol.key, ValueOf) and symbol not in hot.known:
                names = [each.name for each in self.signature.arguments]
                at = ANY.size * names.index(symbol.key.param) + ANY.offset("v_int64")
                hot.known[symbol] = hot.writer.load(hot.writer.offset(_ARGS, at), "i64")
            elif symbol not in hot.known:
                raise Unfit
        hot.require(hot.condition(required.condition), certain=True)

    def _check(self, writer: Writer, values: Value, slots: Slots, accepted: Block) -> None:
        """Call the checker, which decides."""
        table, program = writer.bytes_constant(self.table), writer.bytes_constant(self.program)
        arguments = [table, program, _ARGS, _NUM_ARGS, values, slots.base]
        status = writer.call("ferrule_check", "i32", arguments, "cold")
        refused = writer.block("refused")
        writer.cond_branch(writer.icmp("eq", status, i32(0)), accepted, refused)
        writer.at(refused)
        writer.ret(i32(-1))

    def _results(self, writer: Writer) -> Results | None:
        """The result of the call; None if there is none."""
        if self.signature.result is None:
            return None
        from ferrule.compiler.wrapper.results import Results

        return Results(writer, self.signature)

    def call(self, writer: Writer, values: Value, slots: Slots) -> None:
        """Make the call and return; a nonzero status becomes the error of its fault."""
        streams = env_streams(writer, self.signature, _ARGS)
        results = self._results(writer)
        left = None if results is None else results.slots
        keep = None if results is None else results.keep
        call = DecodedCall(self.signature, _ARGS, values, slots, streams, left, keep)
        status = self.callee.emit(writer, call)
        if self.fault:
            fault, done = writer.block("fault"), writer.block("done")
            writer.cond_branch(writer.icmp("ne", status, i32(0)), fault, done)
            writer.at(fault)
            number = writer.binary("add", status, i32(self.fault[0] - 1))
            table = writer.bytes_constant(self.table)
            arguments = [table, number, _ARGS, _NUM_ARGS, values]
            writer.call_void("ferrule_raise", arguments, "cold")
            writer.ret(i32(-1))
            writer.at(done)
        if results is None:
            writer.ret(i32(0))
        else:
            results.emit(_RESULT)
