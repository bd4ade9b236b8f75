"""`wgmma` in MLIR: the same inline assembly as `codegen.cuda.warpgroups`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from ferrule.language.codegen.cuda import warpgroups
from ferrule.language.codegen.passes.unrolled import fragments_of
from ferrule.language.faces.tensor_cores import SharedMatrix
from ferrule.language.ir import ops, tensor_cores
from ferrule.language.mlir import memory
from ferrule.language.mlir.device.arch import EmitOp
from ferrule.language.mlir.functions import FunctionText
from ferrule.specs import Float32


def control(f: FunctionText, kernel: ops.Function, op: ops.Control) -> None:
    """A fence or a wait; see `codegen.cuda.warpgroups.control`."""
    given = [each for each in fragments_of(kernel) if each in f.values]
    _hold(f, given)
    f.t.line(_assembly(warpgroups.control_text(op), "~{memory}", [], f, "!llvm.void"))
    _hold(f, given)


def _hold(f: FunctionText, fragments: Iterable[ops.Value]) -> None:
    for fragment in fragments:
        places = _places(f, fragment)
        kind = _kind(fragment)
        constraints = warpgroups.passed(fragment.tensor.dtype, len(places))
        _store(f, places, kind, "", constraints, _loaded(f, places, kind))


def _product(f: FunctionText, op: ops.WarpgroupMma) -> None:
    """A product."""
    t, places, kind = f.t, _places(f, op.d), _kind(op.d)
    given = _loaded(f, places, kind)
    if op.of_a is None:
        given += _loaded(f, _places(f, op.a), "i32")
    else:
        given.append(_descriptor(f, op.a, op.of_a))
    given.append(_descriptor(f, op.b, op.of_b))
    given.append(t.cast("extui", f.values[op.accumulate], "i32"))
    _store(f, places, kind, *warpgroups.instruction(op), given)


def _descriptor(f: FunctionText, pointer: ops.Value, layout: SharedMatrix) -> str:
    t, place = f.t, memory.pointer(f, pointer)
    address = t.op(f"llvm.ptrtoint {place} : {t.types[place]} to i32", "i32")
    bits = t.binary("and", address, t.integer(warpgroups.ADDRESS_BITS, "i32"))
    start = t.cast("extui", t.arith("shrui", bits, t.integer(4, "i32")), "i64")
    return t.binary("or", start, t.const_i64(_signed(warpgroups.descriptor(layout))))


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


def _kind(fragment: ops.Value) -> str:
    return "f32" if fragment.tensor.dtype is Float32 else "i32"


def _places(f: FunctionText, fragment: ops.Value) -> list[str]:
    start, type_ = memory.pointer(f, fragment), fragment.tensor
    spans = zip(type_.shape, type_.strides, strict=True)
    count = 1 + sum((size - 1) * stride for size, stride in spans)
    text = f"llvm.getelementptr {start}[{{}}] : (!llvm.ptr) -> !llvm.ptr, i32"
    words = range(int(count) // tensor_cores.words(fragment))
    return [f.t.op(text.format(position), "!llvm.ptr") for position in words]


def _loaded(f: FunctionText, places: Sequence[str], kind: str) -> list[str]:
    form = f"{{alignment = 4 : i64}} : !llvm.ptr -> {kind}"
    return [f.t.op(f"llvm.load {place} {form}", kind) for place in places]


def _store(
    f: FunctionText,
    places: Sequence[str],
    kind: str,
    text: str,
    constraints: str,
    given: Sequence[str],
) -> None:
    several = f"!llvm.struct<({', '.join([kind] * len(places))})>" if len(places) > 1 else kind
    found = f.t.op(_assembly(text, constraints, given, f, several), several)
    for position, place in enumerate(places):
        part = f"llvm.extractvalue {found}[{position}] : {several}"
        word = f.t.op(part, kind) if len(places) > 1 else found
        f.t.line(f"llvm.store {word}, {place} {{alignment = 4 : i64}} : {kind}, !llvm.ptr")


def _assembly(
    text: str, constraints: str, given: Sequence[str], f: FunctionText, result: str
) -> str:
    types = ", ".join(f.t.types[value] for value in given)
    return (
        f'llvm.inline_asm has_side_effects asm_dialect = att "{text}", "{constraints}" '
        f"{', '.join(given)} : ({types}) -> {result}"
    )


EMITTERS: Final[Mapping[type[ops.Op], EmitOp]] = MappingProxyType({ops.WarpgroupMma: _product})
