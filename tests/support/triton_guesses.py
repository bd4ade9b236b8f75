"""Guesses of arguments that a Triton kernel takes, from its text and the names of its parameters.

A guess need not make sense: it must be one that Triton compiles.  The first is the likeliest, the
following ones draw what it did not know from a generator that begins the same way each time.
"""

from __future__ import annotations

import ast
import inspect
import random
import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

_ADDRESSED = ("load", "store", "make_block_ptr", "make_tensor_descriptor", "atomic_add")
_ADDRESSED += ("atomic_cas", "atomic_xchg", "atomic_max", "atomic_min", "atomic_or", "atomic_and")
_INDEX = re.compile(
    r"idx|ind(ex|ic|ptr)|offs|seq|len|slot|table|_ids?\b|ids_|label|target|expert|token|loc\b|"
    r"count|start|^pos|positions|^b_|map|sorted|num_|cu_|lock|split|order|req_|page|acc(ept)?ed",
    re.IGNORECASE,
)
_FLOAT = re.compile(
    r"eps|scale(?!_ptr)|alpha|beta|gamma|softcap|logit_cap|momentum|^p$|prob|smooth|factor|limit|"
    r"temperature|threshold|min_val|max_val|qmin|qmax|^lr$|decay|theta|base$",
    re.IGNORECASE,
)
_FLAG = re.compile(
    r"^(is|has|use|do|enable|apply|return|store|with|need|even|save|load|causal|skip|output)_?|"
    r"pdl|causal|transpose|interleaved|_is_|flag|fp8|int8|int4|^STORE|REVERSE|HAS_|USE_",
    re.IGNORECASE,
)
_DTYPE = re.compile(r"dtype|_type\b|^type", re.IGNORECASE)
_POWERS = (64, 32, 16, 128, 8, 4, 1, 2)
_OPTIONS = {"num_warps": 8, "num_stages": 2, "num_ctas": 1}
POINTERS = ("fp32", "bf16", "fp16", "i32", "i64", "i8", "u8", "fp8e4nv", "u1")


class Pointer(str):
    """A tensor, by the name of its elements' type."""

    __slots__ = ()


def addressed(function: Any) -> frozenset[str]:
    """The parameters that a kernel uses as the beginning of an address."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function.fn)))
    names, made = set(function.arg_names), dict[str, list[ast.expr]]()
    for each in ast.walk(tree):
        if isinstance(each, ast.Assign | ast.AugAssign) and each.value is not None:
            targets = each.targets if isinstance(each, ast.Assign) else [each.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    made.setdefault(target.id, []).append(each.value)
    found: set[str] = set()
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.args:
            if call.func.attr in _ADDRESSED:
                found |= set(_beginnings(call.args[0], made, names, set()))
    likely = {each for each in names if re.search(r"ptr|pointer", each, re.IGNORECASE)}
    return frozenset((found | likely) & names)


def _beginnings(
    value: ast.expr, made: Mapping[str, list[ast.expr]], names: set[str], seen: set[str]
) -> Iterator[str]:
    """The leftmost names of a sum, through the local variables of a kernel."""
    while isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add | ast.Sub):
        value = value.left
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        value = value.func.value if value.func.attr == "to" else ast.Constant(0)
    if not isinstance(value, ast.Name) or value.id in seen:
        return
    seen.add(value.id)
    if value.id in names:
        yield value.id
    for each in made.get(value.id, ()):
        yield from _beginnings(each, made, names, seen)


def guesses(function: Any, known: frozenset[str], count: int) -> Iterator[dict[str, Any]]:
    """Up to `count` guesses; parameters that are `known` are left out."""
    draw, pointers = random.Random(function.__name__), addressed(function)
    for turn in range(count):
        guess: dict[str, Any] = {}
        for param in function.params:
            if param.name not in known:
                guess[param.name] = _value(param, pointers, draw if turn else None)
        yield guess


def _value(param: Any, pointers: frozenset[str], draw: random.Random | None) -> Any:
    name = param.name
    if param.is_constexpr:
        return _constant(param, draw)
    if name in pointers or "*" in str(param.annotation_type):
        likely = "i32" if _INDEX.search(name) else "fp32"
        if draw is None or draw.random() < 0.6:
            return Pointer(likely)
        return None if draw.random() < 0.15 else Pointer(draw.choice(POINTERS))
    if _FLOAT.search(name) or str(param.annotation_type).startswith("fp"):
        return 0.5
    if draw is not None and draw.random() < 0.15:
        return draw.choice((1, 0.5, 16, Pointer("fp32"), Pointer("i32")))
    return 64


def _constant(param: Any, draw: random.Random | None) -> Any:
    import triton.language as tl

    if param.has_default and (draw is None or draw.random() < 0.5):
        return param.default
    if param.name in _OPTIONS:
        return _OPTIONS[param.name]
    if _DTYPE.search(param.name):
        return tl.float32 if draw is None else draw.choice((tl.float32, tl.bfloat16, tl.int32))
    is_block = re.search(r"BLOCK|TILE|^B[A-Z]{1,2}$|CHUNK|SIZE|DIM", param.name, re.IGNORECASE)
    if _FLAG.search(param.name) and not is_block:
        return False if draw is None else draw.random() < 0.4
    if draw is None:
        return 8 if "GROUP" in param.name.upper() else 64
    if not is_block and draw.random() < 0.25:
        return draw.choice((False, True, None, 0, 1, 0.5))
    return draw.choice(_POWERS[:4] if draw.random() < 0.7 else _POWERS)
