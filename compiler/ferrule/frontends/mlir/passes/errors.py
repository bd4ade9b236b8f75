"""In the process of MLIR: a failed `cf.assert` stores its message and ends the call.

Upstream lowers it to a block that prints the message and ends the process.  Here that block stores
the address of the message at the address in one more parameter of the function, and returns; a
caller checks that address after each call, and returns, too.  Through the same parameter
allocations are recorded, see `tracking`.  This runs on the lowered module, so that after any
pipeline it sees only the dialect `llvm` and the regions of OpenMP.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.mlir.session import Session
from ferrule.frontends.mlir.passes import frees as tracking
from ferrule.frontends.mlir.passes.frees import called
from ferrule.frontends.mlir.reading import attribute, symbol, walk

_FAIL: Final = "ferrule_mlir_fail"
_FAILED: Final = "ferrule_mlir_failed"
_SUPPORT: Final = f"""
llvm.func internal @{_FAIL}(%at: !llvm.ptr, %message: !llvm.ptr) attributes {{cold, noinline}} {{
  llvm.store %message, %at atomic monotonic {{alignment = 8 : i64}} : !llvm.ptr, !llvm.ptr
  llvm.return
}}
llvm.func internal @{_FAILED}(%at: !llvm.ptr) -> i1 attributes {{always_inline}} {{
  %none = llvm.mlir.zero : !llvm.ptr
  %message = llvm.load %at atomic monotonic {{alignment = 8 : i64}} : !llvm.ptr -> !llvm.ptr
  %is = llvm.icmp "ne" %message, %none : !llvm.ptr
  llvm.return %is : i1
}}
"""
_ENDS: Final = ("puts", "abort")
"""The functions that the block of a failed assertion calls, in this order, before it ends."""


def raise_asserts(session: Session, module: Any, name: str) -> bool:
    """Makes failed assertions of a lowered module end the call; returns whether the function of
    this name, and its C interface, have the parameter for it.

    Raises CompileError if a function cannot end this way.
    """
    functions = {symbol(each): each for each in _functions(module)}
    failing = _failing(module, functions)
    if not failing:
        return False
    allocating = _allocating(module, functions, failing) if name in failing else set()
    ends = _Ends(session, failing, allocating, name if allocating else "")
    for each in sorted(failing | allocating):
        ends.rewrite(functions[each])
    _add(
        session,
        module,
        _SUPPORT + (tracking.support(threads=_threads(module)) if allocating else ""),
    )
    _forget(module, functions)
    return name in failing


def _threads(module: Any) -> bool:
    return any(each.name.startswith("omp.") for each in walk(module.operation))


def _add(session: Session, module: Any, text: str) -> None:
    """Adds the functions of a text to a module, except those that it contains already."""
    there = {symbol(each) for each in _functions(module)}
    support = session.ir.Module.parse(text)  # it must live while its operations are used
    with session.ir.InsertionPoint(module.body):
        for each in list(support.body.operations):
            if symbol(each.operation) not in there:
                each.operation.clone()


def _functions(module: Any) -> Iterator[Any]:
    for each in module.body.operations:
        if each.operation.name == "llvm.func":
            yield each.operation


def _failing(module: Any, functions: dict[str, Any]) -> set[str]:
    """The functions that assert, or call one that does.

    An indirect call may call any function whose address is taken.
    """
    found = {name for name, each in functions.items() if any(map(_aborts, walk(each)))}
    if not found:
        return found
    taken = {name for name in _addressed(module) if name in functions}
    if taken:
        _require_bodies(taken, functions)
        found |= taken
    return _with_callers(found, functions)


def _with_callers(found: set[str], functions: dict[str, Any]) -> set[str]:
    """These functions, and those that call one of them, or make an indirect call."""
    found = set(found)
    while more := {
        name
        for name, each in functions.items()
        if name not in found and any(_may_fail(inner, found) for inner in walk(each))
    }:
        found |= more
    return found


def _allocating(module: Any, functions: dict[str, Any], failing: set[str]) -> set[str]:
    """The functions that allocate or free, or call one that does: their memory is tracked.

    None of them if the module passes addresses to outside code, or defines its own `malloc`.
    """
    own = [name for name in tracking.REPLACED if name in functions and _has_body(functions[name])]
    calls = [(each, called(each)) for each in walk(module.operation)]
    if own or any(tracking.hands_out(each, callee, functions) for each, callee in calls):
        return set()
    found = {
        name
        for name, each in functions.items()
        if any(called(inner) in tracking.REPLACED for inner in walk(each))
    }
    return _with_callers(found, functions) if found else set()


def _has_body(function: Any) -> bool:
    return bool(function.regions[0].blocks)


def _addressed(module: Any) -> Iterator[str]:
    for each in walk(module.operation):
        if each.name == "llvm.mlir.addressof":
            yield str(each.attributes["global_name"].value)


def _require_bodies(taken: set[str], functions: dict[str, Any]) -> None:
    for name in sorted(taken):
        if not _has_body(functions[name]):
            raise CompileError(
                Diagnostic(
                    f"the module asserts, and calls @{name}, which it only declares, by its "
                    f"address: such a call cannot tell of a failed assertion",
                    hint="call it by its name, or leave assertions out, asserts=False",
                )
            )


def _aborts(operation: Any) -> bool:
    """Whether an operation ends the block of a failed assertion: `llvm.unreachable` after the calls
    of `_ENDS`."""
    if operation.name != "llvm.unreachable":
        return False
    before = list(operation.block.operations)[-3:-1]
    return tuple(called(each.operation) for each in before) == _ENDS


def _may_fail(operation: Any, failing: set[str]) -> bool:
    """Whether an operation calls one of these functions; an indirect call may."""
    callee = called(operation)
    return callee is not None and (callee in failing or callee == "")


def _forget(module: Any, functions: dict[str, Any]) -> None:
    """Removes the declarations of the functions that failed assertions called, if nothing else uses
    them."""
    used = {called(each) for each in walk(module.operation)} | set(_addressed(module))
    for name in _ENDS:
        if name in functions and name not in used:
            functions[name].erase()


class _Ends:
    """Rewrites functions that may fail, and those that allocate tracked memory: the function `root`
    holds the record of it; "" if nothing is tracked."""

    __slots__ = ("_allocating", "_failing", "_own", "_root", "_session")
    _own: tracking.Places

    def __init__(
        self, session: Session, failing: set[str], allocating: set[str], root: str
    ) -> None:
        self._session: Final = session
        self._failing: Final = failing
        self._allocating: Final = allocating
        self._root: Final = root

    def rewrite(self, function: Any) -> None:
        """Adds the parameter to a function, and makes the function return where something
        failed."""
        with function.location:
            place = self._with_parameter(function)
            region, first = function.regions[0], None
            if self._root:
                place, first = self._tracked(function, place)
            self._region(region, place, _Exit(self._session, region, first))

    def _tracked(self, function: Any, given: Any) -> tuple[Any, Callable[[], None]]:
        """The record's address for the calls of a function, and the action before the function ends
        early."""
        own = self._own = tracking.Places(self._session, function)
        if symbol(function) != self._root:
            return given, lambda: own.free(self._call)
        with self._session.ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0]):
            place = tracking.record(self._session)
            self._call(tracking.BEGIN, [place])

        def end() -> None:
            own.free(self._call)
            self._call(tracking.END, [place, given])

        return place, end

    def _with_parameter(self, function: Any) -> Any:
        ir = self._session.ir
        kind = str(function.attributes["function_type"].value)
        if "..." in kind:
            raise CompileError(f"@{symbol(function)} asserts, and takes any number of arguments")
        start = kind.removesuffix(")>")
        more = "ptr)>" if start.endswith("(") else ", ptr)>"
        function.attributes["function_type"] = ir.TypeAttr.get(ir.Type.parse(start + more))
        if (given := attribute(function, "arg_attrs")) is not None:
            none = ir.DictAttr.get({})
            function.attributes["arg_attrs"] = ir.ArrayAttr.get([*given, none])
        return (
            function.regions[0]
            .blocks[0]
            .add_argument(ir.Type.parse("!llvm.ptr"), function.location)
        )

    def _region(self, region: Any, place: Any, way_out: _Exit) -> bool:
        """Makes failures in a region leave it; returns whether one may occur."""
        blocks = list(region.blocks)
        found = False
        for block in blocks:
            for each in [each.operation for each in block.operations]:
                found |= self._operation(each, place, way_out)
        if found and region.owner.name == "omp.loop_nest":
            first = next(iter(blocks[0].operations)).operation
            self._check_before(first, place, way_out)
        return found

    def _operation(self, operation: Any, place: Any, way_out: _Exit) -> bool:
        if _aborts(operation):
            self._leave(operation, place, way_out)
            return True
        callee = called(operation)
        if _may_fail(operation, self._failing):
            operation = self._handed(operation, place, callee)
        elif self._root and callee in tracking.REPLACED:
            self._memory(operation, place, callee)
            return False
        elif callee in self._allocating:
            self._handed(operation, place, callee)
            return False
        elif True not in [self._inner(each, place) for each in operation.regions]:
            return False
        self._check_behind(operation, place, way_out)
        return True

    def _memory(self, call: Any, place: Any, callee: str) -> None:
        """Records the memory that a call allocates or frees."""
        address = call.results[0] if callee == "malloc" else call.operands[0]
        if address in self._own:
            self._own.note(call)
        else:
            self._handed(call, place, tracking.REPLACED[callee])

    def _inner(self, region: Any, place: Any) -> bool:
        return self._region(region, place, _Exit(self._session, region))

    def _leave(self, unreachable: Any, place: Any, way_out: _Exit) -> None:
        """Makes the block of a failed assertion store the message, and then leave the region."""
        puts, abort = [each.operation for each in unreachable.block.operations][-3:-1]
        block, message = unreachable.block, puts.operands[0]
        for each in (unreachable, abort, puts):
            each.erase()
        with self._session.ir.InsertionPoint(block):
            self._call(_FAIL, [place, message])
            way_out.branch()

    def _handed(self, call: Any, place: Any, callee: str | None) -> Any:
        """The same call with the parameter passed on, to the function of this name; "" for an
        indirect call."""
        ir, given = self._session.ir, call.attributes
        operands = [*call.operands, place]
        # In some versions of the bindings the iteration gives names, in others pairs.
        names = [each if isinstance(each, str) else each.name for each in given]
        attributes = {name: given[name] for name in names}
        attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([len(operands), 0])
        if callee:
            attributes["callee"] = ir.FlatSymbolRefAttr.get(callee)
        with ir.InsertionPoint(call), call.location:
            made = ir.Operation.create(
                "llvm.call",
                results=[each.type for each in call.results],
                operands=operands,
                attributes=attributes,
            )
        for old, new in zip(call.results, made.results, strict=True):
            old.replace_all_uses_with(new)
        call.erase()
        return made

    def _check_behind(self, operation: Any, place: Any, way_out: _Exit) -> None:
        """Leaves the region after an operation if it failed."""
        following = _following(operation)
        if not following:  # a wrapper of OpenMP, which has no terminator
            return
        within = operation.block.owner.name
        if within.startswith("omp.") and within != "omp.loop_nest":
            self._require_last(following)
            return
        self._check_before(following[0], place, way_out)

    def _require_last(self, following: list[Any]) -> None:
        """Raises CompileError if a region of OpenMP has more operations: each thread of a parallel
        region must reach the barriers at which the others wait."""
        if len(following) > 1:
            raise CompileError(
                Diagnostic(
                    "the module asserts in a region of OpenMP that has more than one loop",
                    self._session.place(following[0]),
                    hint="make a parallel region of each loop, or leave assertions out, "
                    "asserts=False",
                )
            )

    def _check_before(self, operation: Any, place: Any, way_out: _Exit) -> None:
        """Leaves the region before an operation if something has failed already."""
        ir, block = self._session.ir, operation.block
        moved = [operation, *_following(operation)]
        rest = block.create_after()
        for each in moved:
            each.detach_from_parent()
            rest.append(each)
        with ir.InsertionPoint(block):
            failed = self._call(_FAILED, [place], [ir.IntegerType.get_signless(1)])
            way_out.branch_if(failed.results[0], rest)

    def _call(self, name: str, operands: list[Any], results: Sequence[Any] = ()) -> Any:
        ir = self._session.ir
        attributes = {
            "callee": ir.FlatSymbolRefAttr.get(name),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0]),
            "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        }
        return ir.Operation.create(
            "llvm.call", results=list(results), operands=operands, attributes=attributes
        )


class _Exit:
    """The block through which a region is left after a failure; it is made on first use."""

    __slots__ = ("_block", "_first", "_region", "_session")

    def __init__(
        self, session: Session, region: Any, first: Callable[[], object] | None = None
    ) -> None:
        """`first` emits the action before the exit."""
        self._session: Final = session
        self._region: Final = region
        self._first: Final = first
        self._block: Any = None

    def branch(self) -> None:
        """Branches there from the insertion point."""
        self._session.ir.Operation.create("llvm.br", successors=[self._made()])

    def branch_if(self, flag: Any, otherwise: Any) -> None:
        """Branches there if a flag is set."""
        ir = self._session.ir
        sizes = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0])}
        ir.Operation.create(
            *("llvm.cond_br", [], [flag]),
            successors=[self._made(), otherwise],
            attributes=sizes,
        )

    def _made(self) -> Any:
        if self._block is None:
            blocks = list(self._region.blocks)
            self._block = blocks[-1].create_after()
            with self._session.ir.InsertionPoint(self._block):
                if self._first is not None:
                    self._first()
                self._leave(blocks)
        return self._block

    def _leave(self, blocks: list[Any]) -> None:
        """Returns an arbitrary value from a function; ends another region in the way in which it
        ends itself."""
        ir, owner = self._session.ir, self._region.owner
        if owner.name == "llvm.func":
            result = ir.Type.parse(_result(str(owner.attributes["function_type"].value)))
            none = str(result) == "!llvm.void"
            values = [] if none else [ir.Operation.create("llvm.mlir.zero", [result]).result]
            ir.Operation.create("llvm.return", operands=values)
            return
        last = next(each for each in map(_last, blocks) if not each.successors)
        if list(last.operands):
            raise CompileError(
                Diagnostic(
                    f"the module asserts in a region of {owner.name} that gives values",
                    self._session.place(owner),
                    hint="leave assertions out, asserts=False",
                )
            )
        ir.Operation.create(last.name)


def _last(block: Any) -> Any:
    return list(block.operations)[-1].operation


def _following(operation: Any) -> list[Any]:
    """The operations after this one in its block."""
    there = [each.operation for each in operation.block.operations]
    return there[there.index(operation) + 1 :]


def _result(kind: str) -> str:
    """The result type in a function's type, `!llvm.func<i1 (ptr, i64)>`."""
    depth, end = 0, kind.rindex(")")
    for at in range(end, -1, -1):
        depth += {")": 1, "(": -1}.get(kind[at], 0)
        if depth == 0:
            break
    text = kind[len("!llvm.func<") : at].strip()
    return text if re.match(r"[if]\d|bf16|f128|vector<|!", text) else f"!llvm.{text}"
