"""The operation of MLIR's dialect `llvm` for each instruction of LLVM IR, by its opcode."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ferrule.compiler.mlir.llvmtext import FLAGS, Literal, Name, Reader, Typed

if TYPE_CHECKING:
    from ferrule.compiler.mlir.instructions import FunctionText


def _compare(writer: FunctionText, reader: Reader, here: str) -> str:
    is_float = reader.text.lstrip().startswith("fcmp")
    reader.skip(*FLAGS)
    predicate = reader.next()
    kind, left = reader.typed()
    reader.expect(",")
    operands = f"{writer.operand((kind, left))}, {writer.operand((kind, reader.value()))}"
    return f'llvm.{"fcmp" if is_float else "icmp"} "{predicate}" {operands} : {kind}'


def _load(writer: FunctionText, reader: Reader, here: str) -> str:
    atomic = reader.take("atomic")
    reader.skip(*FLAGS)
    kind = reader.type()
    reader.expect(",")
    address = writer.operand(reader.typed())
    order = f" atomic {reader.next()}" if atomic else ""
    return f"llvm.load {address}{order}{_alignment(reader)} : !llvm.ptr -> {kind}"


def _store(writer: FunctionText, reader: Reader, here: str) -> str:
    atomic = reader.take("atomic")
    reader.skip(*FLAGS)
    kind, value = reader.typed()
    reader.expect(",")
    operands = f"{writer.operand((kind, value))}, {writer.operand(reader.typed())}"
    order = f" atomic {reader.next()}" if atomic else ""
    return f"llvm.store {operands}{order}{_alignment(reader)} : {kind}, !llvm.ptr"


def _alignment(reader: Reader) -> str:
    found = re.search(r", align (\d+)", reader.text[reader.at :])
    return f" {{alignment = {found[1]} : i64}}" if found else ""


def _step(writer: FunctionText, reader: Reader, here: str) -> str:
    reader.skip(*FLAGS)
    kind = reader.type()
    operands = []
    while reader.take(","):
        operands.append(reader.typed())
    return writer.step(kind, operands)


def _alloca(writer: FunctionText, reader: Reader, here: str) -> str:
    kind = reader.type()
    count: Typed = ("i32", Literal("1"))
    if reader.peek() == "," and not re.match(r", align", reader.text[reader.at :]):
        reader.expect(",")
        count = reader.typed()
    given = f"({count[0]}) -> !llvm.ptr"
    return f"llvm.alloca {writer.operand(count)} x {kind}{_alignment(reader)} : {given}"


def _select(writer: FunctionText, reader: Reader, here: str) -> str:
    reader.skip(*FLAGS)
    condition = reader.typed()
    reader.expect(",")
    kind, first = reader.typed()
    reader.expect(",")
    second = reader.typed()
    values = [writer.operand(each) for each in (condition, (kind, first), second)]
    return f"llvm.select {', '.join(values)} : i1, {kind}"


def _insert(writer: FunctionText, reader: Reader, here: str) -> str:
    kind, whole = reader.typed()
    reader.expect(",")
    inner = writer.operand(reader.typed())
    return f"llvm.insertvalue {inner}, {writer.operand((kind, whole))}{_path(reader)} : {kind}"


def _extract(writer: FunctionText, reader: Reader, here: str) -> str:
    kind, whole = reader.typed()
    return f"llvm.extractvalue {writer.operand((kind, whole))}{_path(reader)} : {kind}"


def _path(reader: Reader) -> str:
    found = []
    while reader.peek() == "," and re.match(r", \d", reader.text[reader.at :]):
        reader.expect(",")
        found.append(reader.next())
    return f"[{', '.join(found)}]"


def _branch(writer: FunctionText, reader: Reader, here: str) -> str:
    if reader.take("label"):
        return f"llvm.br {writer.successor(here, reader.next())}"
    condition = writer.operand(reader.typed())
    found = []
    for _ in range(2):
        reader.expect(",")
        reader.expect("label")
        found.append(writer.successor(here, reader.next()))
    return f"llvm.cond_br {condition}, {found[0]}, {found[1]}"


def _switch(writer: FunctionText, reader: Reader, here: str) -> str:
    kind, value = reader.typed()
    given = writer.operand((kind, value))
    reader.expect(",")
    reader.expect("label")
    otherwise = writer.successor(here, reader.next())
    reader.expect("[")
    cases = []
    while reader.take("]") is None:
        reader.type()
        number = reader.next()
        reader.expect(",")
        reader.expect("label")
        cases.append(f"{number}: {writer.successor(here, reader.next())}")
    return f"llvm.switch {given} : {kind}, {otherwise} [{', '.join(cases)}]"


def _return(writer: FunctionText, reader: Reader, here: str) -> str:
    if reader.take("void"):
        return "llvm.return"
    kind, value = reader.typed()
    return f"llvm.return {writer.operand((kind, value))} : {kind}"


def _call(writer: FunctionText, reader: Reader, here: str) -> str:
    reader.skip(*FLAGS, "fastcc", "ccc")
    reader.attributes_before_type()
    result = reader.type()
    listed = _function_type(reader)
    callee = reader.value()
    reader.expect("(")
    given: list[Typed] = []
    while reader.take(")") is None:
        given.append(reader.typed())
        reader.take(",")
    target = "" if isinstance(callee, Name) and callee.text[0] == "@" else None
    if target is None:
        target = writer.operand(("!llvm.ptr", callee))
    values = ", ".join(writer.operand(each) for each in given)
    kinds = ", ".join(kind for kind, _ in given)
    returns = "()" if result == "!llvm.void" else result
    if target:
        return f"llvm.call {target}({values}) : !llvm.ptr, ({kinds}) -> {returns}"
    assert isinstance(callee, Name)
    name = callee.text[1:].strip('"')
    if name.startswith("llvm."):
        arrow = f" -> {returns}" if returns != "()" else " -> ()"
        return f'llvm.call_intrinsic "{name}"({values}) : ({kinds}){arrow}'
    vararg = ""
    if listed is not None:
        short = result.removeprefix("!llvm.")
        vararg = f" vararg(!llvm.func<{short} ({', '.join(listed)}, ...)>)"
    return f'llvm.call @"{name}"({values}){vararg} : ({kinds}) -> {returns}'


def _function_type(reader: Reader) -> list[str] | None:
    """The fixed parameters of a variadic callee."""
    if reader.peek() != "(":
        return None
    reader.expect("(")
    found: list[str] = []
    while reader.take(")") is None:
        if reader.take("...") is None:
            found.append(reader.type().removeprefix("!llvm."))
        reader.take(",")
    return found


def _unary(name: str) -> Callable[[FunctionText, Reader, str], str]:
    def write(writer: FunctionText, reader: Reader, here: str) -> str:
        reader.skip(*FLAGS)
        kind, value = reader.typed()
        return f"llvm.{name} {writer.operand((kind, value))} : {kind}"

    return write


def _exchange(writer: FunctionText, reader: Reader, here: str) -> str:
    reader.skip("weak", *FLAGS)
    operands = [reader.typed()]
    while reader.take(","):
        operands.append(reader.typed())
    success, failure = reader.next(), reader.next()
    values = ", ".join(writer.operand(each) for each in operands)
    given = f"!llvm.ptr, {operands[1][0]}"
    return f"llvm.cmpxchg {values} {success} {failure}{_alignment(reader)} : {given}"


def _read_modify_write(writer: FunctionText, reader: Reader, here: str) -> str:
    reader.skip(*FLAGS)
    operation = reader.next()
    named = {"and": "_and", "or": "_or", "xor": "_xor"}.get(operation, operation)
    address = reader.typed()
    reader.expect(",")
    kind, value = reader.typed()
    order = reader.next()
    operands = f"{writer.operand(address)}, {writer.operand((kind, value))}"
    return f"llvm.atomicrmw {named} {operands} {order}{_alignment(reader)} : !llvm.ptr, {kind}"


HANDLERS: Final[dict[str, Callable[[FunctionText, Reader, str], str]]] = {
    "icmp": _compare,
    "fcmp": _compare,
    "load": _load,
    "store": _store,
    "getelementptr": _step,
    "alloca": _alloca,
    "select": _select,
    "insertvalue": _insert,
    "extractvalue": _extract,
    "br": _branch,
    "switch": _switch,
    "ret": _return,
    "call": _call,
    "unreachable": lambda writer, reader, here: "llvm.unreachable",
    "fneg": _unary("fneg"),
    "freeze": _unary("freeze"),
    "cmpxchg": _exchange,
    "atomicrmw": _read_modify_write,
    "fence": lambda writer, reader, here: f"llvm.fence {reader.next()}",
}
"""Handlers by opcode.  Arguments: the writer, the rest of the line after the opcode, and the
block."""
