"""Source lines in LLVM's debug metadata (its manual, "Source Level Debugging").

In PTX they become `.loc` and `.file`, in an object the tables that debuggers and profilers read.
The code itself is unchanged.
"""

from __future__ import annotations

import re
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from llvmlite import ir

from ferrule.compiler.artefacts import Location
from ferrule.language.checks.places import Places
from ferrule.language.ir import ops
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I32

Emission: TypeAlias = Literal["DebugDirectivesOnly", "LineTablesOnly", "NoDebug"]
"""What becomes of the metadata: directives of PTX, tables of an object, or nothing, where only
LLVM's remarks have them."""

_WARNING: Final = 2
"""The behaviour of a module flag in which modules may differ."""
_VERSION: Final = 3
"""The version of LLVM's debug metadata."""


_UNQUOTED: Final = re.compile(r"[\x00-\x1f\"\\\x7f]")
"""Characters that LLVM writes into PTX as they are, where they end the name of a file."""


def written_path(name: str) -> Path:
    """The path of a file as debug metadata have it."""
    return Path(_UNQUOTED.sub("_", str(Path(name).absolute())))


class Scopes:
    """The debug metadata of one module: a scope for each function that has any.

    `paths`: whether file names include folders.
    """

    def __init__(self, emitter: Emitter, emission: Emission, *, paths: bool) -> None:
        self.emitter: Final = emitter
        self._module: Final = emitter.module
        self._emission: Final = emission
        self._paths: Final = paths
        self._unit: Any = None
        self._known: Final[dict[ir.Function, tuple[Any, str, Any]]] = {}

    def place(self, at: Location, line: int, column: int = 0) -> Any:
        """A location in the current function; one of another file than the function's is in a
        block of its own."""
        scope, file, _ = self._scope(at, line)
        if at.file != file:
            block = {"scope": scope, "file": self._file(at.file), "discriminator": 0}
            scope = self.node("DILexicalBlockFile", block)
        return self.node("DILocation", {"line": line, "column": column, "scope": scope})

    def finish(self) -> None:
        """Give each call in a function with locations one: LLVM refuses a call without."""
        for function, (_, _, first) in self._known.items():
            for block in function.blocks:
                for instruction in block.instructions:
                    if isinstance(instruction, ir.CallInstr):
                        instruction.metadata.setdefault("dbg", first)

    def _scope(self, at: Location, line: int) -> tuple[Any, str, Any]:
        """The node of the current function, its file, and its first location."""
        function = self.emitter.current
        known = self._known.get(function)
        if known is not None:
            return known
        file = self._file(at.file)
        self._unit = self._unit or self._new_unit(file)
        kind = self.node("DISubroutineType", {"types": self._module.add_metadata([None])})
        names = {"name": at.function, "linkageName": function.name, "scope": file, "file": file}
        where = {"line": line, "scopeLine": line, "type": kind, "unit": self._unit}
        flags = {"isLocal": False, "isDefinition": True, "isOptimized": True}
        scope = self.node("DISubprogram", {**names, **where, **flags}, distinct=True)
        function.set_metadata("dbg", scope)
        first = self.node("DILocation", {"line": line, "column": 0, "scope": scope})
        self._known[function] = scope, at.file, first
        return self._known[function]

    def _file(self, name: str) -> Any:
        """The node of a source file."""
        path = written_path(name)
        folder = str(path.parent) if self._paths else ""
        return self.node("DIFile", {"filename": path.name, "directory": folder})

    def _new_unit(self, file: Any) -> Any:
        """The compile unit, to which the module's metadata refer."""
        made = {"language": ir.DIToken("DW_LANG_Python"), "file": file, "producer": "ferrule"}
        kind = {"emissionKind": ir.DIToken(self._emission)}
        rest = {"isOptimized": True, "runtimeVersion": 0}
        unit = self.node("DICompileUnit", {**made, **kind, **rest}, distinct=True)
        self._module.add_named_metadata("llvm.dbg.cu", unit)
        numbers = [ir.Constant(I32, value) for value in (_WARNING, _VERSION)]
        flag = [numbers[0], "Debug Info Version", numbers[1]]
        self._module.add_named_metadata("llvm.module.flags", flag)
        return unit

    def node(self, kind: str, fields: dict[str, Any], *, distinct: bool = False) -> Any:
        """A node of metadata; equal ones are shared."""
        return self._module.add_debug_info(kind, fields, is_distinct=distinct)


class LineInfo:
    """The lines of the functions of one module; see `lowering.Lines`."""

    def __init__(
        self,
        emitter: Emitter,
        places: Places,
        *,
        paths: bool,
        emission: Emission = "DebugDirectivesOnly",
    ) -> None:
        self._places: Final = places
        self._scopes: Final = Scopes(emitter, emission, paths=paths)

    def enter(self, function: ops.Function) -> None:
        """The code that follows is the beginning of this function."""
        first = self._places.first(function.body)
        self._scopes.emitter.builder.debug_metadata = None
        if first is not None:
            self._set(first)

    def at(self, op: ops.Op) -> None:
        """The code that follows belongs to this op."""
        location = self._places.at(op)
        if location is not None:
            self._set(location)

    def _set(self, location: Location) -> None:
        place = self._scopes.place(location, location.line)
        self._scopes.emitter.builder.debug_metadata = place

    def inside(self, loop: object, kind: str, name: str = "") -> AbstractContextManager[None]:
        """Loops need nothing."""
        return nullcontext()

    def say(self, words: str) -> None:
        """Decisions are not kept."""

    def along(self, body: object, known: object) -> None:
        """Only remarks are about accesses."""

    def where(self, op: ops.Op) -> str:
        """Sentences are not kept."""
        return ""

    def finish(self) -> None:
        """The module is complete."""
        self._scopes.finish()
