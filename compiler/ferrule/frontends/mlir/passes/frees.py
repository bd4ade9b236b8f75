"""In the process of MLIR: frees what a function allocated when a failed assertion ends it.

Upstream frees memory after its last use, which a call that ends early does not reach.

Memory that a function allocates and frees itself has a slot on its stack that records whether it is
allocated; this costs nothing once LLVM keeps the slot in a register.

All other memory, which is carried in a loop or passed to functions or to the caller, is in a list.
The C interface has a record on its stack: the message of a failed assertion, the newest allocation,
and a lock for the threads of OpenMP.  Each allocation is made larger, and has a node after its
bytes, with a pointer to the next older node and its own address.  The memory starts at the address
that malloc returned, so that other code, such as the caller of a function that returns it, can free
it as usual; the nodes are read only during the call.

A module that passes addresses to functions of libraries is not changed, because these may free
them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ferrule.compiler.mlir.session import Session
from ferrule.frontends.mlir.reading import attribute

ALLOCATE: Final = "ferrule_mlir_allocate"
RELEASE: Final = "ferrule_mlir_release"
BEGIN: Final = "ferrule_mlir_begin"
END: Final = "ferrule_mlir_end"
REPLACED: Final = {"malloc": ALLOCATE, "free": RELEASE}
"""The functions that replace these calls in a function that has the record's address."""

_LOCK: Final = "ferrule_mlir_lock"
_UNLOCK: Final = "ferrule_mlir_unlock"
_KEEP_NOTHING: Final = frozenset({"malloc", "free", "puts", "abort", "memrefCopy"})
"""External functions that free none of their arguments, except `free`, whose purpose it is."""

_HARMLESS: Final = ("llvm.getelementptr", "llvm.ptrtoint", "llvm.load", "llvm.icmp")
"""Operations that use an address without passing it on."""

_RECORD: Final = "!llvm.struct<(ptr, ptr, i32)>"
_NODE: Final = "!llvm.struct<(ptr, ptr)>"
_LEAF: Final = "attributes {noinline}"

_SUPPORT: Final = f"""
llvm.func @malloc(i64) -> !llvm.ptr
llvm.func @free(!llvm.ptr)
llvm.func internal @{BEGIN}(%record: !llvm.ptr) {{
  %none = llvm.mlir.zero : {_RECORD}
  llvm.store %none, %record : {_RECORD}, !llvm.ptr
  llvm.return
}}
llvm.func internal @{_LOCK}(%record: !llvm.ptr) {{
  %lock = llvm.getelementptr %record[0, 2] : (!llvm.ptr) -> !llvm.ptr, {_RECORD}
  %free = llvm.mlir.constant(0 : i32) : i32
  %held = llvm.mlir.constant(1 : i32) : i32
  llvm.br ^try
^try:
  %found = llvm.cmpxchg %lock, %free, %held acquire monotonic : !llvm.ptr, i32
  %mine = llvm.extractvalue %found[1] : !llvm.struct<(i32, i1)>
  llvm.cond_br %mine, ^done, ^try
^done:
  llvm.return
}}
llvm.func internal @{_UNLOCK}(%record: !llvm.ptr) {{
  %lock = llvm.getelementptr %record[0, 2] : (!llvm.ptr) -> !llvm.ptr, {_RECORD}
  %free = llvm.mlir.constant(0 : i32) : i32
  llvm.store %free, %lock atomic release {{alignment = 4 : i64}} : i32, !llvm.ptr
  llvm.return
}}
llvm.func internal @{ALLOCATE}(%bytes: i64, %record: !llvm.ptr) -> !llvm.ptr {_LEAF} {{
  %none = llvm.mlir.zero : !llvm.ptr
  %seven = llvm.mlir.constant(7 : i64) : i64
  %eights = llvm.mlir.constant(-8 : i64) : i64
  %room = llvm.mlir.constant(16 : i64) : i64
  %up = llvm.add %bytes, %seven : i64
  %rounded = llvm.and %up, %eights : i64
  %total = llvm.add %rounded, %room : i64
  %fits = llvm.icmp "ugt" %total, %bytes : i64
  %size = llvm.select %fits, %total, %bytes : i1, i64
  %start = llvm.call @malloc(%size) : (i64) -> !llvm.ptr
  %there = llvm.icmp "ne" %start, %none : !llvm.ptr
  llvm.cond_br %there, ^link, ^done
^link:
  %node = llvm.getelementptr %start[%rounded] : (!llvm.ptr, i64) -> !llvm.ptr, i8
  %own = llvm.getelementptr %node[0, 1] : (!llvm.ptr) -> !llvm.ptr, {_NODE}
  %newest = llvm.getelementptr %record[0, 1] : (!llvm.ptr) -> !llvm.ptr, {_RECORD}
  llvm.call @{_LOCK}(%record) : (!llvm.ptr) -> ()
  %older = llvm.load %newest : !llvm.ptr -> !llvm.ptr
  llvm.store %older, %node : !llvm.ptr, !llvm.ptr
  llvm.store %start, %own : !llvm.ptr, !llvm.ptr
  llvm.store %node, %newest : !llvm.ptr, !llvm.ptr
  llvm.call @{_UNLOCK}(%record) : (!llvm.ptr) -> ()
  llvm.br ^done
^done:
  llvm.return %start : !llvm.ptr
}}
llvm.func internal @{RELEASE}(%start: !llvm.ptr, %record: !llvm.ptr) {_LEAF} {{
  %none = llvm.mlir.zero : !llvm.ptr
  %newest = llvm.getelementptr %record[0, 1] : (!llvm.ptr) -> !llvm.ptr, {_RECORD}
  llvm.call @{_LOCK}(%record) : (!llvm.ptr) -> ()
  llvm.br ^look(%newest : !llvm.ptr)
^look(%link: !llvm.ptr):
  %node = llvm.load %link : !llvm.ptr -> !llvm.ptr
  %past = llvm.icmp "eq" %node, %none : !llvm.ptr
  llvm.cond_br %past, ^done, ^compare
^compare:
  %own = llvm.getelementptr %node[0, 1] : (!llvm.ptr) -> !llvm.ptr, {_NODE}
  %of = llvm.load %own : !llvm.ptr -> !llvm.ptr
  %same = llvm.icmp "eq" %of, %start : !llvm.ptr
  llvm.cond_br %same, ^unlink, ^look(%node : !llvm.ptr)
^unlink:
  %older = llvm.load %node : !llvm.ptr -> !llvm.ptr
  llvm.store %older, %link : !llvm.ptr, !llvm.ptr
  llvm.br ^done
^done:
  llvm.call @{_UNLOCK}(%record) : (!llvm.ptr) -> ()
  llvm.call @free(%start) : (!llvm.ptr) -> ()
  llvm.return
}}
llvm.func internal @{END}(%record: !llvm.ptr, %to: !llvm.ptr) attributes {{cold, noinline}} {{
  %none = llvm.mlir.zero : !llvm.ptr
  %newest = llvm.getelementptr %record[0, 1] : (!llvm.ptr) -> !llvm.ptr, {_RECORD}
  %message = llvm.load %record : !llvm.ptr -> !llvm.ptr
  llvm.store %message, %to : !llvm.ptr, !llvm.ptr
  llvm.br ^next
^next:
  %node = llvm.load %newest : !llvm.ptr -> !llvm.ptr
  %past = llvm.icmp "eq" %node, %none : !llvm.ptr
  llvm.cond_br %past, ^done, ^free
^free:
  %older = llvm.load %node : !llvm.ptr -> !llvm.ptr
  %own = llvm.getelementptr %node[0, 1] : (!llvm.ptr) -> !llvm.ptr, {_NODE}
  %start = llvm.load %own : !llvm.ptr -> !llvm.ptr
  llvm.store %older, %newest : !llvm.ptr, !llvm.ptr
  llvm.call @free(%start) : (!llvm.ptr) -> ()
  llvm.br ^next
^done:
  llvm.return
}}
"""


def support(*, threads: bool) -> str:
    """The functions of a record: they begin and end it, and allocate and release memory for it.

    `END` stores the message at an address, where the caller of the C interface reads it.
    """
    if threads:
        return _SUPPORT
    locking = (f"llvm.call @{_LOCK}(", f"llvm.call @{_UNLOCK}(")
    lines = _SUPPORT.splitlines(keepends=True)
    return "".join(each for each in lines if not each.strip().startswith(locking))


def hands_out(call: Any, callee: str | None, functions: dict[str, Any]) -> bool:
    """Whether a call passes an address to code outside the module, which may free it."""
    if callee is None or callee in _KEEP_NOTHING:
        return False
    declared = callee in functions and not functions[callee].regions[0].blocks
    return declared and any("ptr" in str(each.type) for each in call.operands)


def own_memory(function: Any) -> list[Any]:
    """The addresses that a function gets from malloc, and that only the function itself can free.

    Addresses in a parallel region are not included, because its threads share the stack of the
    function.
    """
    return [
        each.operation.results[0]
        for block in function.regions[0].blocks
        for each in block.operations
        if called(each.operation) == "malloc"
        and all(_stays(use.owner.operation, use.operand_number) for use in each.results[0].uses)
    ]


def _stays(user: Any, position: int) -> bool:
    """Whether an operation does not pass on the address that is its operand at this position."""
    if called(user) == "free":
        return bool(user.block.owner.name == "llvm.func")
    stored_to = user.name == "llvm.store" and position == 1
    return stored_to or user.name in _HARMLESS or user.name.startswith("llvm.intr.mem")


def called(operation: Any) -> str | None:
    """The callee of an `llvm.call`; "" for an indirect call, None for other operations."""
    if operation.name != "llvm.call":
        return None
    callee = attribute(operation, "callee")
    return "" if callee is None else str(callee.value)


def record(session: Session) -> Any:
    """Allocates a record on the stack of the function at the insertion point."""
    return _room(session, _RECORD)


class Places:
    """The slots of a function's own memory: each is null except between a malloc and its free."""

    __slots__ = ("_places", "_session")

    def __init__(self, session: Session, function: Any) -> None:
        self._session: Final = session
        block = function.regions[0].blocks[0]
        own = own_memory(function)
        with session.ir.InsertionPoint.at_block_begin(block):
            self._places: Final = {each: _room(session, "!llvm.ptr") for each in own}
            for place in self._places.values():
                self._store(None, place)

    def __contains__(self, address: Any) -> bool:
        return address in self._places

    def note(self, call: Any) -> None:
        """Records after a malloc that its memory is allocated, and before a free that it is not."""
        if called(call) == "free":
            with self._session.ir.InsertionPoint(call):
                self._store(None, self._places[call.operands[0]])
            return
        behind = [each.operation for each in call.block.operations]
        with self._session.ir.InsertionPoint(behind[behind.index(call) + 1]):
            self._store(call.results[0], self._places[call.results[0]])

    def free(self, call: Callable[[str, list[Any]], Any]) -> None:
        """Frees the memory that is allocated, at the insertion point."""
        ir = self._session.ir
        pointer = ir.Type.parse("!llvm.ptr")
        for place in self._places.values():
            there = ir.Operation.create("llvm.load", [pointer], [place])
            call("free", [there.result])

    def _store(self, address: Any, place: Any) -> None:
        ir = self._session.ir
        if address is None:
            address = ir.Operation.create("llvm.mlir.zero", [ir.Type.parse("!llvm.ptr")]).result
        ir.Operation.create("llvm.store", operands=[address, place])


def _room(session: Session, kind: str) -> Any:
    ir = session.ir
    number, pointer = ir.IntegerType.get_signless(64), ir.Type.parse("!llvm.ptr")
    one = ir.Operation.create(
        "llvm.mlir.constant", [number], attributes={"value": ir.IntegerAttr.get(number, 1)}
    )
    room = {"elem_type": ir.TypeAttr.get(ir.Type.parse(kind))}
    return ir.Operation.create("llvm.alloca", [pointer], [one.result], attributes=room).result
