"""What the checks of a call cost: the machine instructions of each in the wrapper's hot path.

The wrapper is written once more, each instruction with what it is for as the line of a debug
location. Lines change no instruction: LLVM makes the same machine code of it as of the wrapper.
An instruction that serves two checks counts for the later one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ferrule.compiler.wrapper.builder import WrapperParts
from ferrule.compiler.wrapper.hot import Unfit
from ferrule.runtime.abi import SYMBOL_PREFIX
from ferrule.runtime.llvm.writer import Block, Writer, symbol_name
from ferrule.specs.deferred import dataclass

FILE: Final = "the wrapper"
"""The file of the locations, whose lines are topics."""
_UNIT, _FILE, _TYPE, _LIST, _SCOPE, _FIRST = range(900, 906)


@dataclass(frozen=True, slots=True)
class Traced:
    """A wrapper as LLVM text, with the topic of each line of `FILE`, from line 1 on."""

    text: str
    topics: Mapping[int, str]


class _Writer(Writer):
    """A writer whose instructions have their topics as locations."""

    def __init__(self) -> None:
        self.lines: dict[str, int] = {}
        super().__init__()

    def at(self, block: Block) -> None:
        super().at(block)
        self._emit = lambda text: block.lines.append(text + self._location())

    def _location(self) -> str:
        """The location of an instruction; one without a topic has line 0, which is none."""
        line = self.lines.setdefault(self.topic, len(self.lines) + 1) if self.topic else 0
        return f", !dbg !{_FIRST + line}"


def traced(parts: WrapperParts) -> Traced | None:
    """The wrapper with topics; None if it has no hot path."""
    writer = _Writer()
    try:
        text = parts.build(hot=True, writer=writer)
    except Unfit:
        return None
    name = symbol_name(SYMBOL_PREFIX + parts.signature.name)
    head, _, rest = text.partition(f"define i32 {name}(")
    line, _, body = rest.partition(" {\n")
    described = f"{head}define i32 {name}({line} !dbg !{_SCOPE} {{\n{body}"
    topics = {number: topic for topic, number in writer.lines.items()}
    return Traced(described + _metadata(len(topics)), topics)


def _metadata(count: int) -> str:
    lines = [
        f"!llvm.dbg.cu = !{{!{_UNIT}}}",
        f"!llvm.module.flags = !{{!{_LIST}}}",
        f'!{_LIST} = !{{i32 2, !"Debug Info Version", i32 3}}',
        f'!{_FILE} = !DIFile(filename: "{FILE}", directory: "")',
        f"!{_UNIT} = distinct !DICompileUnit(language: DW_LANG_C99, file: !{_FILE}, "
        "emissionKind: LineTablesOnly)",
        f"!{_TYPE} = !DISubroutineType(types: !{{}})",
        f'!{_SCOPE} = distinct !DISubprogram(name: "wrapper", scope: !{_FILE}, file: !{_FILE}, '
        f"line: 0, type: !{_TYPE}, spFlags: DISPFlagDefinition, unit: !{_UNIT})",
    ]
    lines += [
        f"!{_FIRST + line} = !DILocation(line: {line}, column: 0, scope: !{_SCOPE})"
        for line in range(count + 1)
    ]
    return "\n".join(lines) + "\n"
