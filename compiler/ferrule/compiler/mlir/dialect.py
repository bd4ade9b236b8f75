"""Converts LLVM IR to a module of MLIR's dialect `llvm`, like upstream's importer, which no package
of bindings includes.

It is written for the code that ferrule generates: other instructions are a CompileError.
Information that only helps the optimiser is omitted: overflow and fast-math flags, attributes of
parameters, metadata.  Each phi becomes an argument of its block.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from ferrule.compiler.errors import CompileError
from ferrule.compiler.mlir.instructions import FunctionText
from ferrule.compiler.mlir.llvmtext import Bytes, Reader, Typed

_LINKAGES: Final = ("private", "internal", "external", "linkonce_odr", "weak", "appending")
_AT_ENDS: Final = re.compile(r"@llvm\.global_([cd]tors) = ")
_AT_END: Final = re.compile(r"\{ i32 (\d+), ptr (@\S+), ptr null \}")
_BEFORE_TYPE: Final = (
    *("unnamed_addr", "local_unnamed_addr", "dso_local", "hidden", "default", "protected"),
    *("noundef", "signext", "zeroext", "noalias", "nonnull"),
)
_KEPT: Final = (
    *("nounwind", "noinline", "optnone", "cold", "minsize", "optsize", "alwaysinline"),
    *('"no-builtins"', '"no-jump-tables"="true"'),
)
"""Attributes of functions that are kept: without some of them a back end calls undefined
functions."""


def to_dialect(text: str) -> str:
    """The module for LLVM IR.  Raises CompileError for unsupported instructions."""
    from llvmlite import binding as llvm

    with llvm.parse_assembly(text, llvm.create_context()) as module:
        groups = dict(re.findall(r"^attributes (#\d+) = \{ (.*) \}$", str(module), re.M))
        parts = [_global(str(each)) for each in module.global_variables]
        parts += [_function(each, groups) for each in module.functions]
        attributes = [
            f"llvm.data_layout = {_quoted(module.data_layout)}",
            f"llvm.target_triple = {_quoted(module.triple)}",
            *_assembly(str(module)),
        ]
    body = "\n".join(part for part in parts if part)
    return f"module attributes {{{', '.join(attributes)}}} {{\n{body}\n}}\n"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _assembly(text: str) -> Iterator[str]:
    lines = re.findall(r'^module asm "(.*)"$', text, re.M)
    if lines:
        quoted = ", ".join(f'"{line}"' for line in lines)
        yield f"llvm.module_asm = [{quoted}]"


def symbol(text: str) -> str:
    """The name of a symbol; the dialect accepts any name in quotes."""
    return '@"' + text.removeprefix("@").strip('"') + '"'


def _global(text: str) -> str:
    at_ends = _AT_ENDS.match(text)
    if at_ends:
        return _constructors(at_ends[1], _AT_END.findall(text))
    reader = Reader(text)
    name = reader.next()
    reader.expect("=")
    linkage = reader.take(*_LINKAGES) or "external"
    unnamed = reader.take("unnamed_addr", "local_unnamed_addr")
    kind_of = reader.take("constant", "global")
    if kind_of is None:
        raise reader.refuse("such a variable")
    kind = reader.type()
    at_end = linkage == "external" and reader.peek() in (",", "")
    value = None if at_end else reader.value()
    rest = text[reader.at :]
    words = [linkage, *([unnamed] if unnamed else []), *(["constant"] * (kind_of == "constant"))]
    head = f"  llvm.mlir.global {' '.join(words)} {symbol(name)}"
    given = _global_attributes(rest)
    if isinstance(value, Bytes):
        return f'{head}("{value.text}"){given} : {kind}'
    if value is None:
        return f"{head}(){given} : {kind}"
    return f"{head}(){given} : {kind} {{\n{_initializer((kind, value))}\n  }}"


def _constructors(which: str, found: list[tuple[str, str]]) -> str:
    """Functions that run before a program starts, or after it ends."""
    functions = ", ".join(symbol(name) for _, name in found)
    order = ", ".join(f"{priority} : i32" for priority, _ in found)
    data = ", ".join("#llvm.zero" for _ in found)
    lists = f"{which} = [{functions}], priorities = [{order}], data = [{data}]"
    return f"  llvm.mlir.global_{which} {lists}"


def _global_attributes(rest: str) -> str:
    found = [f"alignment = {size} : i64" for size in re.findall(r"\balign (\d+)", rest)]
    found += [f'section = "{name}"' for name in re.findall(r'\bsection "([^"]*)"', rest)]
    return f" {{{', '.join(found)}}}" if found else ""


def _initializer(value: Typed) -> str:
    writer = FunctionText()
    name = writer.operand(value)
    writer.line(f"llvm.return {name} : {value[0]}")
    return "\n".join(writer.lines)


def _function(function: Any, groups: dict[str, str]) -> str:
    if function.name.startswith("llvm."):
        return ""
    head = next(
        line for line in str(function).splitlines() if line.startswith(("define", "declare"))
    )
    reader = Reader(head)
    reader.next()
    linkage = reader.take(*_LINKAGES)
    reader.skip(*_BEFORE_TYPE)
    reader.attributes_before_type()
    result = reader.type()
    name = symbol(reader.next())
    reader.expect("(")
    kinds: list[str] = []
    passed: list[str] = []
    names: list[str] = []
    while reader.take(")") is None:
        if reader.take("..."):
            kinds.append("...")
            passed.append("")
        else:
            kinds.append(reader.type())
            passed.append(reader.attributes())
            names.append(reader.next() if reader.peek().startswith("%") else "")
        reader.take(",")
    given = _attributes(head[reader.at :], groups)
    returns = "" if result == "!llvm.void" else f" -> {result}"
    start = f"  llvm.func {linkage + ' ' if linkage else ''}{name}"
    if function.is_declaration:
        listed = map("".join, zip(kinds, passed, strict=True))
        return f"{start}({', '.join(listed)}){returns}{given}"
    if "..." in kinds:
        raise CompileError(f"the LLVM dialect is not written for {name}, which takes any arguments")
    writer = FunctionText(list(zip(names, kinds, strict=True)))
    parameters = ", ".join(
        f"{writer.names[each]}: {kind}{how}"
        for each, kind, how in zip(names, kinds, passed, strict=True)
    )
    writer.function(function)
    lines = "\n".join(writer.lines)
    return f"{start}({parameters}){returns}{given} {{\n{lines}\n  }}"


def _attributes(rest: str, groups: dict[str, str]) -> str:
    words = " ".join(groups.get(group, "") for group in re.findall(r"#\d+", rest))
    kept = [word for word in _KEPT if re.search(rf"(?<!\S){re.escape(word)}(?!\S)", words)]
    if not kept:
        return ""
    listed = ", ".join(map(_passed_through, kept))
    return f" attributes {{passthrough = [{listed}]}}"


def _passed_through(word: str) -> str:
    name, equals, value = word.partition("=")
    if equals:
        return f"[{name}, {value}]"
    return name if name.startswith('"') else f'"{name}"'
