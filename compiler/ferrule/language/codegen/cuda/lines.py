"""Source lines in PTX, as `.loc` and `.file`, for profilers.

They come from LLVM's debug metadata (its manual, "Source Level Debugging"), of which PTX contains
only the directives: the code is unchanged.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from llvmlite import ir

from ferrule.compiler.artefacts import Location
from ferrule.language.checks.places import Places
from ferrule.language.ir import ops
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I32

_WARNING: Final = 2
"""The behaviour of a module flag in which modules may differ."""
_VERSION: Final = 3
"""The version of LLVM's debug metadata."""


class LineInfo:
    """The lines of the kernels of one module; `paths`: whether file names include folders."""

    def __init__(self, emitter: Emitter, places: Places, *, paths: bool) -> None:
        self._emitter: Final = emitter
        self._module: Final = emitter.module
        self._places: Final = places
        self._paths: Final = paths
        self._unit: Any = None
        self._kernel: Any = None
        self._file: str | None = None

    def enter(self, kernel: ops.Function, function: ir.Function) -> None:
        """The code that follows belongs to this kernel."""
        found = filter(None, map(self._places.at, kernel.facts.ops))
        first = next(found, None)
        self._kernel, self._file = None, None
        self._emitter.builder.debug_metadata = None
        if first is None:
            return
        self._file = first.file
        file = self.file(first.file)
        self._unit = self._unit or self.unit(file)
        kind = self.info("DISubroutineType", {"types": self._module.add_metadata([None])})
        names = {"name": kernel.name, "linkageName": function.name, "scope": file, "file": file}
        where = {"line": first.line, "scopeLine": first.line, "type": kind, "unit": self._unit}
        flags = {"isLocal": False, "isDefinition": True, "isOptimized": True}
        self._kernel = self.info("DISubprogram", {**names, **where, **flags}, distinct=True)
        function.set_metadata("dbg", self._kernel)
        self.set(first)

    def at(self, op: ops.Op) -> None:
        """The code that follows belongs to this op."""
        location = self._places.at(op)
        if location is not None and self._kernel is not None:
            self.set(location)

    def set(self, location: Location) -> None:
        """The code that follows is from this location; another file is a block of the kernel."""
        scope = self._kernel
        if location.file != self._file:
            block = {"scope": scope, "file": self.file(location.file), "discriminator": 0}
            scope = self.info("DILexicalBlockFile", block)
        place = {"line": location.line, "column": 0, "scope": scope}
        self._emitter.builder.debug_metadata = self.info("DILocation", place)

    def file(self, name: str) -> Any:
        """The node of a source file."""
        path = Path(name).absolute()
        folder = str(path.parent) if self._paths else ""
        return self.info("DIFile", {"filename": path.name, "directory": folder})

    def unit(self, file: Any) -> Any:
        """The compile unit, to which the module's metadata refer."""
        made = {"language": ir.DIToken("DW_LANG_Python"), "file": file, "producer": "ferrule"}
        kind = {"emissionKind": ir.DIToken("DebugDirectivesOnly")}
        rest = {"isOptimized": True, "runtimeVersion": 0}
        unit = self.info("DICompileUnit", {**made, **kind, **rest}, distinct=True)
        self._module.add_named_metadata("llvm.dbg.cu", unit)
        numbers = [ir.Constant(I32, value) for value in (_WARNING, _VERSION)]
        flag = [numbers[0], "Debug Info Version", numbers[1]]
        self._module.add_named_metadata("llvm.module.flags", flag)
        return unit

    def info(self, kind: str, fields: dict[str, Any], *, distinct: bool = False) -> Any:
        """A node of metadata; equal ones are shared."""
        return self._module.add_debug_info(kind, fields, is_distinct=distinct)
