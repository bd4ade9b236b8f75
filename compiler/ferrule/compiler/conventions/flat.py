"""C functions with flat arguments, called by the wrapper itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from ferrule.compiler.artefacts import Fault, literal
from ferrule.compiler.wrapper.decoded import DecodedCall, Expression
from ferrule.compiler.wrapper.leaves import leaves_of
from ferrule.runtime.llvm.writer import Value, Writer, i32
from ferrule.specs import Compound, Data, Dim, Param, Signature, Sym
from ferrule.specs.expr import is_dim
from ferrule.specs.params import Optional, Scalar, Tuple, Union


@dataclass(frozen=True, slots=True)
class Narrow:
    """A size as a 32-bit integer; a ValueError at the call where it does not fit."""

    size: Dim


@dataclass(frozen=True, slots=True)
class FlatCall:
    """Calls a C function with flat arguments, written as expressions of a signature.

        FlatCall("axpy", (sig["x"].data, sig["x"].shape[0], sig["alpha"]))

    calls `void axpy(float* x, int32_t n, float alpha)`.  The arguments are

    * `.data` of a tensor: the address of its first element;
    * a size: a symbol has its own width, an expression and a number are int64_t, in a `Narrow` they
      are int32_t;
    * a parameter: its leaves, with the C types of what `artefacts.Body` says of them; a 2-byte
      float is an uint16_t.

    `returns` is "nothing" for a function of type void, or "status" for one that returns an int, 0
    where all went well: any other is a RuntimeError of the call.  A size that overflows or does not
    fit is a ValueError, and nothing is called.

    Raises TypeError for an argument that is none of these, ValueError for a symbol that is no C
    identifier and, when the wrapper is built, for an argument that is of another signature.
    """

    symbol: str
    arguments: tuple[Expression | Narrow, ...]
    returns: Literal["nothing", "status"] = "nothing"

    def __post_init__(self) -> None:
        if not (self.symbol.isascii() and self.symbol.isidentifier()):
            raise ValueError(f"FlatCall: {self.symbol!r} is no name of a C function")
        object.__setattr__(self, "arguments", tuple(self.arguments))
        for position, argument in enumerate(self.arguments):
            inner = argument.size if isinstance(argument, Narrow) else argument
            if not is_dim(inner) and (inner is not argument or not isinstance(inner, _PARTS)):
                raise TypeError(
                    f"FlatCall: argument #{position} of {self.symbol} must be a parameter, its "
                    f".data, or a size, but got {argument!r}"
                )

    def faults(self, signature: Signature) -> Sequence[Fault]:
        """One for each argument that is a size, and one for the status."""
        sizes = [
            Fault("ValueError", f"{literal(self._name(signature, position))} does not fit its type")
            for position in self._sizes()
        ]
        return (*sizes, Fault("RuntimeError", f"{literal(self.symbol)} returned {{}}"))

    def _sizes(self) -> list[int]:
        """The positions of the arguments that can have no value."""
        return [i for i, each in enumerate(self.arguments) if isinstance(each, Narrow | Compound)]

    def _name(self, signature: Signature, position: int) -> str:
        argument: Any = self.arguments[position]
        size = argument.size if isinstance(argument, Narrow) else argument
        return f"argument #{position} of {self.symbol}, {signature.format(size)},"

    def emit(self, writer: Writer, call: DecodedCall) -> Value:
        """See `Callee`."""
        unfit: list[tuple[int, Value]] = []
        values: list[Value] = []
        for position, argument in enumerate(self.arguments):
            for flag in _arguments(writer, call, argument, values):
                unfit.append((1 + self._sizes().index(position), flag))
        if not unfit:
            return self._call(writer, call, values)
        return self._guarded(writer, call, values, unfit)

    def _guarded(
        self,
        writer: Writer,
        call: DecodedCall,
        values: list[Value],
        unfit: list[tuple[int, Value]],
    ) -> Value:
        """The call, made where no size is unfit; the status."""
        refused = i32(0)
        for number, flag in reversed(unfit):
            refused = writer.select(flag, i32(number), refused)
        start, fits = writer.here, writer.block("fits")
        with writer.apart() as last:
            behind = writer.block("called")
        writer.cond_branch(writer.icmp("eq", refused, i32(0)), fits, behind)
        writer.at(fits)
        status = self._call(writer, call, values)
        end = writer.here
        writer.branch(behind)
        writer.arrange(last)
        writer.at(behind)
        return writer.phi("i32", [(refused, start), (status, end)], "status")

    def _call(self, writer: Writer, call: DecodedCall, values: list[Value]) -> Value:
        if self.returns == "nothing":
            writer.call_void(self.symbol, values)
            return i32(0)
        status = writer.call(self.symbol, "i32", values)
        writer.store(writer.cast("sext", status, "i64"), call.values)
        failed = writer.icmp("ne", status, i32(0))
        return writer.select(failed, i32(1 + len(self._sizes())), i32(0))


_PARTS: Final = (Data, *get_args(Param))


def _arguments(
    writer: Writer, call: DecodedCall, argument: Expression | Narrow, values: list[Value]
) -> list[Value]:
    """Adds the values that an argument becomes; the flags of what is wrong with them."""
    flags: list[Value] = []
    match argument:
        case Narrow(size=size):
            (value,) = call.evaluate(size, flags.append)
            narrow = writer.cast("trunc", value, "i32")
            if value.type == "i64":
                back = writer.cast("sext", narrow, "i64")
                flags.append(writer.icmp("ne", back, value))
            values.append(narrow)
        case Data() | Sym() | Compound() | int():
            values += call.evaluate(argument, flags.append)
        case _:
            found = call.evaluate(argument, flags.append)
            pairs = zip(found, _are_signed(argument), strict=True)
            values += [_extended(value, signed) for value, signed in pairs]
    return flags


def _extended(value: Value, signed: bool) -> Value:
    """An argument as C passes it: the caller extends what is narrower than an int."""
    if value.type not in ("i8", "i16"):
        return value
    return Value(f"{value.type} {'signext' if signed else 'zeroext'}", value.ref)


def _are_signed(param: Param) -> list[bool]:
    """Of each leaf whether it is a signed integer."""
    match param:
        case Scalar(dtype=dtype):
            return [dtype.kind == "int"]
        case Tuple(items=items):
            return [sign for item in items for sign in _are_signed(item)]
        case Optional(item=item):
            return [False, *_are_signed(item)]
        case Union(members=members):
            return [False, *(sign for member in members for sign in _are_signed(member))]
    return [False] * len(leaves_of(param))
