"""Conversions of float16 in LLVM IR, as code of this project.

On a CPU without instructions for them LLVM calls library functions that not every system has.
"""

from __future__ import annotations

import re
from typing import Final

from llvmlite import ir

from ferrule.compiler import halves
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import F32, F64, I16
from ferrule.specs import Float16

_HALF: Final = ir.HalfType()
_WIDE: Final = {"float": F32, "double": F64}
_CAST: Final = re.compile(
    r"= (?P<op>fpext|fptrunc) (?P<source>half|float|double|<\d+ x (?:half|float|double)>) "
    r"(?P<operand>.+?) to (?P<target>half|float|double|<\d+ x (?:half|float|double)>)"
    r"(?=,|$)",
    re.M,
)
_PREFIX: Final = "ferrule_mlir"
_DEFINITION: Final = re.compile(r"^define [\s\S]*?^}$", re.M)


def with_conversions(text: str) -> str:
    """The module with functions for the conversions from and to `half`, and calls of them."""
    kinds: dict[str, tuple[str, str]] = {}

    def called(found: re.Match[str]) -> str:
        source, target = found["source"], found["target"]
        if "half" not in source + target:
            return found[0]
        name = f"{_PREFIX}_{_word(source)}_to_{_word(target)}"
        kinds[name] = source, target
        return f"= call {target} @{name}({source} {found['operand']})"

    text = _CAST.sub(called, text)
    return text + _functions(kinds) if kinds else text


def _word(kind: str) -> str:
    """A type as an identifier."""
    return re.sub(r"\W+", "", kind)


def _functions(kinds: dict[str, tuple[str, str]]) -> str:
    emitter = Emitter("float16")
    for name, (source, target) in kinds.items():
        given, result = _type(source), _type(target)
        with emitter.define(
            name, result, [given], linkage="internal", attributes=("alwaysinline", "nounwind")
        ) as function:
            emitter.ret(_converted(emitter, function.args[0], result))
    return "\n" + "\n".join(_DEFINITION.findall(emitter.text())) + "\n"


def _type(text: str) -> ir.Type:
    count, _, element = text.strip("<>").rpartition(" x ")
    kind = _WIDE.get(element, _HALF)
    return ir.VectorType(kind, int(count)) if count else kind


def _converted(emitter: Emitter, value: ir.Value, kind: ir.Type) -> ir.Value:
    """A float, or each element of a vector, converted to another type."""
    if not isinstance(kind, ir.VectorType):
        return _scalar(emitter, value, kind)
    result: ir.Value = ir.Constant(kind, ir.Undefined)
    for lane in range(kind.count):
        place = emitter.const_i32(lane)
        element = _scalar(emitter, emitter.builder.extract_element(value, place), kind.element)
        result = emitter.builder.insert_element(result, element, place)
    return result


def _scalar(emitter: Emitter, value: ir.Value, kind: ir.Type) -> ir.Value:
    b = emitter.builder
    if kind == _HALF:
        return b.bitcast(halves.narrow(emitter, Float16, value), _HALF)
    wide = halves.widen(emitter, Float16, b.bitcast(value, I16))
    return wide if kind == F32 else b.fpext(wide, F64)
