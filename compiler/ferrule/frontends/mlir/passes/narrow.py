"""In the process of MLIR: conversions to bfloat16 that round once, and `math.fma` of narrow floats.

The pass that computes in f32 splits a conversion into two, each of which rounds; and it does not
lower `math.fma`.  Each such operation becomes a call of a function that is added to the module.
"""

from __future__ import annotations

import re
from typing import Any, Final

from ferrule.compiler.mlir.session import Session
from ferrule.frontends.mlir.reading import walk

_NAME: Final = "ferrule_mlir_narrow"
_SHAPE: Final = re.compile(r"vector<(.*x)(\w+)>|(\w+)")

_FROM_F64: Final = """
  %near = arith.truncf %x : {f64} to {f32}
  %back = arith.extf %near : {f32} to {f64}
  %inexact = arith.cmpf one, %back, %x : {f64}
  %size = math.absf %x : {f64}
  %back.size = math.absf %back : {f64}
  %above = arith.cmpf ogt, %back.size, %size : {f64}
  %bits = arith.bitcast %near : {f32} to {i32}
  %one = arith.constant {one_i32} : {i32}
  %less = arith.constant {less_i32} : {i32}
  %last = arith.andi %bits, %one : {i32}
  %zero = arith.subi %one, %one : {i32}
  %even = arith.cmpi eq, %last, %zero : {i32}
  %moved = arith.andi %inexact, %even : {i1}
  %step = arith.select %above, %less, %one : {i1}, {i32}
  %other = arith.addi %bits, %step : {i32}
  %odd = arith.select %moved, %other, %bits : {i1}, {i32}
  %f = arith.bitcast %odd : {i32} to {f32}
  %r = arith.truncf %f : {f32} to {bf16}
"""
"""Rounds to f32, to odd where the value is not exact, so that inexactness is kept; then to bf16."""

_FROM_INT: Final = """
  %x = arith.{op} %n : {source} to {f64}
"""
_FROM_I64: Final = """
  %low = arith.constant {low} : {i64}
  %high = arith.constant {high} : {i64}
  %middle = arith.constant {middle} : {i64}
  %none = arith.constant {none} : {i64}
  %rest = arith.andi %n, %low : {i64}
  %whole = arith.andi %n, %high : {i64}
  %more = arith.ori %whole, %middle : {i64}
  %is = arith.cmpi ne, %rest, %none : {i64}
  %sticky = arith.select %is, %more, %n : {i1}, {i64}
  %bound = arith.constant {bound} : {i64}
  %below = arith.constant {below} : {i64}
  %small.up = arith.cmpi {lt}, %n, %bound : {i64}
  %small.down = arith.cmpi {gt}, %n, %below : {i64}
  %small = arith.andi %small.up, %small.down : {i1}
  %m = arith.select %small, %n, %sticky : {i1}, {i64}
  %x = arith.{op} %m : {i64} to {f64}
"""
"""For an integer that f64 cannot hold exactly, the last bits are combined into a sticky bit that
f64 can hold."""

_FMA: Final = """
  %a.f = arith.extf %a : {source} to {f32}
  %b.f = arith.extf %b : {source} to {f32}
  %c.f = arith.extf %c : {source} to {f32}
  %f = math.fma %a.f, %b.f, %c.f : {f32}
  %r = arith.truncf %f : {f32} to {source}
"""
_WIDEN: Final = """
  %f = arith.extf %x : {bf16} to {f32}
  %r = arith.extf %f : {f32} to {f64}
"""
_KINDS: Final = ("i1", "i32", "i64", "f32", "f64", "bf16")
_INTEGERS: Final = {"i32": _FROM_INT, "i64": _FROM_I64}


def narrow_once(session: Session, module: Any) -> None:
    """Replaces the operations of a module that would round twice or would not be lowered."""
    made: set[str] = set()
    for each in list(walk(module.operation)):
        found = _function(each)
        if found is None:
            continue
        name, text = found
        if name not in made:
            made.add(name)
            home = session.ir.Module.parse(text)
            with session.ir.InsertionPoint(module.body):
                for function in list(home.body.operations):
                    function.operation.clone()
        _call(session, each, name)


def _call(session: Session, operation: Any, name: str) -> None:
    ir = session.ir
    with ir.InsertionPoint(operation), operation.location:
        made = ir.Operation.create(
            "func.call",
            results=[operation.results[0].type],
            operands=list(operation.operands),
            attributes={"callee": ir.FlatSymbolRefAttr.get(name)},
        )
    operation.results[0].replace_all_uses_with(made.results[0])
    operation.erase()


def _function(operation: Any) -> tuple[str, str] | None:
    """The function whose call replaces an operation: its name and its text."""
    name = operation.name
    if name not in ("arith.truncf", "arith.extf", "arith.sitofp", "arith.uitofp", "math.fma"):
        return None
    source, target = str(operation.operands[0].type), str(operation.results[0].type)
    body = _body(name.partition(".")[2], _element(source), _element(target), _prefix(source))
    if body is None:
        return None
    arguments = {"fma": ("a", "b", "c"), "sitofp": ("n",), "uitofp": ("n",)}
    given = arguments.get(name.partition(".")[2], ("x",))
    listed = ", ".join(f"%{each}: {source}" for each in given)
    label = re.sub(r"\W+", "_", f"{_NAME}_{name}_{source}_{target}").rstrip("_")
    head = f"func.func private @{label}({listed}) -> {target}"
    return label, f"{head} {{{body}  return %r : {target}\n}}"


def _element(kind: str) -> str:
    found = _SHAPE.fullmatch(kind)
    return "" if found is None else found[2] or found[3]


def _prefix(kind: str) -> str:
    """The text before the element in a vector type: `4x`; "" for a number."""
    found = _SHAPE.fullmatch(kind)
    return found[1] or "" if found else ""


def _body(name: str, source: str, target: str, shape: str) -> str | None:
    kinds = {each: f"vector<{shape}{each}>" if shape else each for each in _KINDS}

    def number(value: int) -> str:
        return f"dense<{value}>" if shape else str(value)

    ones = {"one_i32": number(1), "less_i32": number(-1)}
    match name, source, target:
        case "truncf", "f64", "bf16":
            return _FROM_F64.format(**kinds, **ones)
        case "extf", "bf16", "f64":
            return _WIDEN.format(**kinds)
        case "fma", ("bf16" | "f16"), _:
            wide = f"vector<{shape}{source}>" if shape else source
            return _FMA.format(**kinds, source=wide)
        case (("sitofp" | "uitofp"), ("i32" | "i64"), "bf16"):
            limits = {
                "low": number(0xFFF),
                "high": number(-0x1000),
                "middle": number(0x800),
                "none": number(0),
                "bound": number(1 << 53),
                "below": number(-(1 << 53) if name == "sitofp" else 0),
                "lt": "slt" if name == "sitofp" else "ult",
                "gt": "sgt" if name == "sitofp" else "uge",
            }
            text = _INTEGERS[source].format(**kinds, **limits, op=name, source=kinds[source])
            return text + _FROM_F64.format(**kinds, **ones)
    return None
