"""In the process of MLIR: which arguments of a function are written to, according to its
operations.

An argument is followed through views, casts, branches, loops, calls and launches.  A use that is
not known to only read counts as a write: an operation that is not listed here, and a call of a
function that the module only declares.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ferrule.frontends.mlir.kinds import Buffer, FunctionType
from ferrule.frontends.mlir.reading import attribute, symbol, walk, where
from ferrule.specs.deferred import dataclass

_READS: Final = frozenset(
    {
        *("memref.load", "memref.dim", "memref.rank", "memref.prefetch", "affine.load"),
        *("affine.vector_load", "affine.prefetch", "vector.load", "vector.maskedload"),
        *("vector.gather", "vector.expandload", "vector.transfer_read", "linalg.index"),
    }
)
"""Operations that only read their operands, and whose results are copies."""
_VIEWS: Final = frozenset(
    {
        *("memref.cast", "memref.subview", "memref.reinterpret_cast", "memref.view"),
        *("memref.collapse_shape", "memref.expand_shape", "memref.transpose", "memref.reshape"),
        *("memref.memory_space_cast", "memref.assume_alignment", "memref.distinct_objects"),
        *("memref.extract_strided_metadata", "bufferization.clone", "arith.select"),
    }
)
"""Operations that write nothing, and whose results may alias their operands."""
_REGIONS: Final = frozenset(
    {
        *("scf.for", "scf.while", "scf.if", "scf.execute_region", "scf.index_switch"),
        *("affine.for", "affine.if", "memref.alloca_scope"),
    }
)
_ENDS: Final = frozenset(
    {"scf.yield", "scf.condition", "affine.yield", "memref.alloca_scope.return"}
)
_BRANCHES: Final = frozenset({"cf.br", "cf.cond_br", "cf.switch"})
_LAST_IS_WRITTEN: Final = frozenset(
    {"memref.copy", "linalg.transpose", "linalg.broadcast", "linalg.map", "linalg.softmax"}
)

_BEFORE_KERNELS: Final = 10
"""The groups of operands of a launch before those of its kernel, see `launches`."""


def written(module: Any, function: Any, kind: FunctionType) -> dict[int, str]:
    """For each argument that is written to, the operation that writes and its line; nothing for a
    tensor, because it is a value."""
    flow = _Flow.of(module)
    values = list(function.regions[0].blocks[0].arguments)[: len(kind.arguments)]
    rows = zip(kind.arguments, values, strict=True)  # a kernel's own memory follows
    found = {}
    for position, (each, value) in enumerate(rows):
        if not isinstance(each, Buffer) or each.is_value:
            continue
        by = "bufferization.writable" if "tensor<" in each.text else flow.writer(value)
        if by is not None:
            found[position] = by
    return found


@dataclass(frozen=True, slots=True)
class _Flow:
    """The flow of the memory of arguments through a module; functions and calls are found by
    symbols and paths of symbols."""

    functions: dict[str, Any]
    calls: dict[str, list[Any]]

    @classmethod
    def of(cls, module: Any) -> _Flow:
        functions: dict[str, Any] = {}
        calls: dict[str, list[Any]] = {}
        for each in walk(module.operation):
            if each.name == "func.func":
                functions[f"@{symbol(each)}"] = each
            elif each.name == "gpu.func":
                functions[f"@{symbol(each.parent)}::@{symbol(each)}"] = each
            elif each.name == "func.call":
                calls.setdefault(str(each.attributes["callee"]), []).append(each)
        return cls(functions, calls)

    def writer(self, argument: Any) -> str | None:
        """The operation that writes to the memory of an argument, None if there is none."""
        waiting, seen = [argument], {argument}
        while waiting:
            for use in waiting.pop().uses:
                operation = use.owner.operation
                reached = self._reached(operation, use.operand_number)
                if reached is None:
                    return f"{operation.name}{where(str(operation.location))}"
                for value in reached:
                    if value not in seen and "memref<" in str(value.type):
                        seen.add(value)
                        waiting.append(value)
        return None

    def _reached(self, operation: Any, position: int) -> Iterator[Any] | None:
        """The values that may alias an operand after an operation; None if the operation writes to
        it, or may."""
        name = operation.name
        if name in _READS:
            return iter(())
        if name in _VIEWS:
            return (each for each in operation.results)
        if name == "bufferization.to_tensor":
            return None if attribute(operation, "writable") is not None else iter(())
        if name in _REGIONS:
            return _within(operation)
        if name in _ENDS:
            return _within(operation.parent.operation)
        if name in _BRANCHES:
            return _arguments(operation.successors)
        if name in ("func.call", "func.return", "gpu.launch_func"):
            return self._between(operation, position)
        if name in _LAST_IS_WRITTEN or name.startswith("linalg."):
            return iter(()) if position < _inputs(operation) else None
        return None

    def _between(self, operation: Any, position: int) -> Iterator[Any] | None:
        """The values that an operand becomes in a called function, or in the caller."""
        if operation.name == "func.return":
            # A caller outside the module gets a copy.
            known = self.calls.get(f"@{symbol(operation.parent.operation)}", ())
            return (each for call in known for each in call.results)
        key = "callee" if operation.name == "func.call" else "kernel"
        callee = self.functions.get(str(operation.attributes[key]))
        if callee is None or not len(callee.regions[0].blocks):
            return None
        arguments = list(callee.regions[0].blocks[0].arguments)
        if key == "kernel":
            position -= sum(list(operation.attributes["operandSegmentSizes"])[:_BEFORE_KERNELS])
        return iter(arguments[position : position + 1])


def _within(operation: Any) -> Iterator[Any]:
    """All values that may alias an operand of an operation with regions, or the values that these
    yield."""
    yield from operation.results
    for region in operation.regions:
        yield from _arguments(region.blocks)


def _arguments(blocks: Any) -> Iterator[Any]:
    for block in blocks:
        yield from block.arguments


def _inputs(operation: Any) -> int:
    """The number of leading operands that an operation only reads; 0 if it is not known."""
    if operation.name in _LAST_IS_WRITTEN:
        return len(operation.operands) - 1
    if operation.name == "linalg.reduce":
        return len(operation.operands) // 2
    segments = attribute(operation, "operandSegmentSizes")
    sizes = [] if segments is None else list(segments)
    return int(sizes[0]) if len(sizes) == 2 else 0
