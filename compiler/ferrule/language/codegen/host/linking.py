"""What a body needs: the code that it includes, bodies and wrappers of compiled functions that it
calls and decoders of received values; symbols; and what calls of it from Python do around it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from ferrule.compiler.artefacts import Fault, Part
from ferrule.compiler.cuda.code import DeviceCode, joined_code
from ferrule.compiler.options import GilPolicy
from ferrule.compiler.wrapper.builder import wrapper_parts
from ferrule.compiler.wrapper.callee import DecodedCall
from ferrule.compiler.wrapper.hot import Unfit
from ferrule.compiler.wrapper.leaves import SLOT_BYTES
from ferrule.language.codegen.errors import CodegenError
from ferrule.language.ir import ops
from ferrule.runtime import Function
from ferrule.runtime.abi import SYMBOL_PREFIX
from ferrule.runtime.entry.key import CallTraits
from ferrule.runtime.linking.links import Link
from ferrule.runtime.llvm.writer import Value, Writer, i32
from ferrule.specs import Signature
from ferrule.specs.deferred import dataclass
from ferrule.specs.params import EnvStream

_RESULT: Final = Value("ptr", "%result")
_DECODER: Final = "received"


def parts_of(program: ops.Program) -> tuple[Part, ...]:
    """The code that a program's body calls, each once."""
    found = {part.symbol: part for part in map(_part, program.host.facts.ops) if part}
    return tuple(found.values())


def links_of(program: ops.Program) -> tuple[Link, ...]:
    """The undefined symbols of a program's body, each once."""
    return tuple(dict.fromkeys(_links(program)))


def _links(program: ops.Program) -> Iterator[Link]:
    for op in program.host.facts.ops:
        match op:
            case ops.Call(callee=ops.Extern(link=link)):
                yield link
            case (
                ops.Call(callee=ops.Linked(links=links))
                | ops.CallBody(callee=ops.Linked(links=links))
            ):
                yield from links


def sources_of(program: ops.Program) -> dict[str, Function]:
    """The functions of this process that a program calls as functions of other objects, by
    symbol."""
    found: dict[str, Function] = {}
    for op in program.host.facts.ops:
        match op:
            case ops.Call(callee=ops.Extern(link=link, source=source)) if source is not None:
                found[link.symbol] = source
            case (
                ops.Call(callee=ops.Linked(sources=sources))
                | ops.CallBody(callee=ops.Linked(sources=sources))
            ):
                found.update(sources)
    return found


def device_code_of(program: ops.Program, own: DeviceCode | None) -> DeviceCode | None:
    """The kernels of a program, and those of the functions that become a part of it.

    Raises CodegenError if they are for different architectures.
    """
    codes = [] if own is None else [own]
    for op in program.host.facts.ops:
        match op:
            case (
                ops.Call(callee=ops.Linked(code=code)) | ops.CallBody(callee=ops.Linked(code=code))
            ) if code is not None and code not in codes:
                codes.append(code)
    if len({frozenset(code.archs) for code in codes}) > 1:
        raise CodegenError(
            "the functions that it calls have kernels for "
            + " and ".join(sorted({",".join(code.archs) for code in codes}))
            + ": compile them for the same GPU architectures"
        )
    return joined_code(codes)


def traits_of(
    program: ops.Program, signature: Signature, *, on_gpu: bool, release_gil: GilPolicy = "auto"
) -> CallTraits:
    """The traits of a program; `on_gpu`: its kernels are launched with the CUDA driver.

    Straight-line code keeps the GIL unless `release_gil` says otherwise: loops, launches, new
    tensors, calls and output release it.
    """
    host = program.host.facts
    long = any("blocks" in op.effects for op in host.ops)
    calls = host.has(ops.Call)
    called = [call.callee.traits for call in host.each(ops.CallBody)]
    long = long or any(each.releases_gil for each in called)
    asks = any(isinstance(param, EnvStream) for param in signature.params)
    return CallTraits(
        releases_gil=long if release_gil == "auto" else release_gil,
        uses_stream=on_gpu or asks or calls or any(each.uses_stream for each in called),
        allocates=calls or host.has(ops.Alloc) or any(each.allocates for each in called),
    )


def _part(op: ops.Op) -> Part | None:
    match op:
        case ops.CallBody(callee=callee):
            return body_part(callee)
        case ops.Call(callee=ops.Linked() as callee):
            return wrapper_part(callee)
        case ops.Receive():
            return receive_part(op)
    return None


def body_part(callee: ops.Linked) -> Part:
    """The body of a linked function, under a unique name."""
    return _named(f"body.{callee.name}", callee.body)


def wrapper_part(callee: ops.Linked) -> Part:
    """The wrapper of a linked function, with its body, under a unique name."""
    return _named(f"wrapper.{callee.name}", callee.wrapper)


def receive_part(op: ops.Receive) -> Part:
    """The function `i32 (handle, any, 1, leaves)` that decodes the value of a `Receive`."""
    signature = Signature(_DECODER, (op.param,))
    built = wrapper_parts(signature, _Leave(), (), (), op.location, op.shown, is_result=True)
    try:
        text = built.build(hot=True)
    except Unfit:
        text = built.build(hot=False)
    return _named("receive", Part("", SYMBOL_PREFIX + _DECODER, text))


def _named(what: str, part: Part) -> Part:
    """The part under a unique name."""
    return replace(part, symbol=f"ferrule_{what}.{part.digest}")


@dataclass(frozen=True, slots=True)
class _Leave:
    """A convention that calls nothing: it stores the leaves, then the symbols, in slots."""

    def emit(self, writer: Writer, call: DecodedCall) -> Value:
        """See `Callee`."""
        (param,) = call.signature.params
        found = [*call.leaves(param), *map(call.slots.load_symbol, call.signature.symbols)]
        for position, value in enumerate(found):
            writer.store(value, writer.offset(_RESULT, SLOT_BYTES * position))
        return i32(0)

    def faults(self, signature: Signature) -> tuple[Fault, ...]:
        """None."""
        return ()
