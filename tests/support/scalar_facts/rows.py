"""What is wrong with the row of an operator, by what the operator means and by what was executed.

Each check compares a column with something that does not read it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any, Final
from unittest.mock import patch

from ferrule import specs
from ferrule.language.codegen import CodegenError
from ferrule.language.faces import maths
from ferrule.language.ir import ops, scalars
from ferrule.language.ir.builder import Builder
from ferrule.language.ir.scalars import ScalarOp
from ferrule.language.mathlib import expand
from ferrule.language.mlir import arithmetic
from ferrule.language.mlir.text import Text
from ferrule.specs.dtypes import Kind
from scalar_facts import deeds, mlir
from scalar_facts.meanings import (
    DTYPES,
    KINDS,
    WIDTH,
    Array,
    agree,
    count_of,
    is_exact,
    kinds_of,
    meaning,
    samples,
)

LIBDEVICE: Final = frozenset(
    ("exp", "exp2", "exp10", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "cbrt")
    + ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh")
    + ("atanh", "erf", "erfc", "pow", "atan2", "fmod", "copysign", "fabs", "floor", "ceil")
    + ("round", "trunc", "rint", "hypot", "fdim", "remainder")
)
"""Functions of one or two floats in the libdevice user's guide, without prefix and suffix."""
INSTRUCTIONS: Final = frozenset(
    ("neg", "not", "sqrt", "popc", "clz", "fabs", "floor", "ceil", "round", "trunc", "copysign")
    + ("add", "sub", "mul", "div", "max", "min", "and", "or", "xor", "shl", "shr")
)
"""What the PTX ISA has one instruction for: abs, cvt.rmi, cvt.rpi, cvt.rni, cvt.rzi, ..."""
OPERATORS: Final = frozenset(("neg", "add", "sub", "mul", "div"))
"""Names of CuTe DSL for operators of Python, which `fe.math` has too: they take integers."""
_WIDTHS: Final = (8, 16, 32, 64)


def complaints(name: str, row: ScalarOp) -> Iterator[str]:
    """What is wrong with the row of an operator."""
    for check in _CHECKS:
        yield from check(name, row)


def _kinds(name: str, row: ScalarOp) -> Iterator[str]:
    if frozenset(row.kinds) != executed()[name]:
        yield f"targets compute it for {sorted(executed()[name])}"


@cache
def executed() -> dict[str, frozenset[Kind]]:
    """The kinds for which an operator could be executed and had the right results."""
    found = {**deeds.formulas(), **deeds.emitted()}
    bad = set(deeds.wrong(found))
    return {
        name: frozenset(k for n, k in found if n == name and f"{n} of {k}" not in bad)
        for name in scalars.EVERY
    }


def _library(name: str, row: ScalarOp) -> Iterator[str]:
    if row.library != _is_expanded(name):
        yield f"the library has {'a' if _is_expanded(name) else 'no'} formula for it"


@cache
def _is_expanded(name: str) -> bool:
    """Whether the pass replaces an op of float32 by others, asked without the row."""
    x = ops.Value(specs.Float32)
    made: ops.Op = (
        ops.Unary(ops.Value(specs.Float32), name, x)  # type: ignore[arg-type]
        if count_of(name) == 1
        else ops.Binary(ops.Value(specs.Float32), name, x, x)  # type: ignore[arg-type]
    )
    return "float" in kinds_of(name) and expand.expansion(Builder(), made) is not None


def _function(name: str, row: ScalarOp) -> Iterator[str]:
    face = getattr(maths, name, None)
    of_floats = face is not None and kinds_of(name) == {"float"} and name not in OPERATORS
    if of_floats != (row.function is not None):
        yield f"fe.math has {'a' if of_floats else 'no'} function of floats of this name"
    if not of_floats or row.function is None:
        return
    takes = "fast" in inspect.signature(face).parameters
    if takes != (row.function == "rounded"):
        yield f"the function of fe.math takes {'' if takes else 'no '}`fast`"
    if is_exact(name) != (row.function == "exact"):
        yield f"its results are {'' if is_exact(name) else 'not '}all floats"


def _bits(name: str, row: ScalarOp) -> Iterator[str]:
    of_bits = hasattr(maths, name) and kinds_of(name) == {"int", "uint"}
    if of_bits != (row.bits is not None):
        yield f"fe.math has {'a' if of_bits else 'no'} function of bits of this name"
    elif row.bits is not None:
        for width, raw in _words():
            if row.bits(raw, width) != _of_word(name, f"{raw:0{width}b}"):
                yield f"its value of {raw:#x} in {width} bits is another one"
                return


def _words() -> Iterator[tuple[int, int]]:
    for width in _WIDTHS:
        for raw in (0, 1, 6, 0x41, 1 << (width - 1), (1 << width) - 1, (1 << width - 2) + 8):
            yield width, raw


def _of_word(name: str, digits: str) -> int:
    """The meaning of a function of bits, by the digits of its operand."""
    return digits.count("1") if name == "popc" else len(digits.partition("1")[0])


def _counts(name: str, row: ScalarOp) -> Iterator[str]:
    if row.counts != _is_count(name):
        yield f"it is {'a' if _is_count(name) else 'no'} number of bits"


@cache
def _is_count(name: str) -> bool:
    """Whether its results are from 0 to the width, and both are some."""
    if kinds_of(name) != {"int", "uint"} or count_of(name) == 2:
        return False
    results = wanted(name, "uint")
    return bool(results.max() == WIDTH and results.min() == 0)


def _libdevice(name: str, row: ScalarOp) -> Iterator[str]:
    wanted = name in LIBDEVICE and name not in INSTRUCTIONS
    if row.libdevice != wanted:
        yield f"NVIDIA's library {'has' if wanted else 'is not needed for'} it"


def _mlir(name: str, row: ScalarOp) -> Iterator[str]:
    for kind in KINDS:
        if kind in kinds_of(name):
            yield from _written(name, kind, row)
        elif kind in row.mlir:
            yield f"it takes no {kind}"


def _written(name: str, kind: Kind, row: ScalarOp) -> Iterator[str]:
    given = samples(kind, count_of(name))
    if kind == "uint":
        given = tuple(each.view("i4") for each in given)
    for native in (True, False):
        try:
            lines, operands, result = _text(name, kind, row, native)
            found = mlir.value(lines, dict(zip(operands, given, strict=True)), result)
        except (CodegenError, mlir.Unreadable) as error:
            yield f"of {kind}: {error}"
            return
        if not agree(found.view(DTYPES[kind].name), wanted(name, kind)):
            yield f"what is written for {kind} means something else"
    if kind in row.mlir and not _reads_the_name(name, kind):
        yield f"its name for {kind} is written nowhere"


@cache
def _reads_the_name(name: str, kind: Kind) -> bool:
    """Whether the name in a row is written at all, found by one that nothing else has."""
    row = replace(scalars.EVERY[name], mlir={kind: "some.thing"})
    for native in (True, False):
        with suppress(CodegenError):
            if any(" some.thing " in line for line in _text(name, kind, row, native)[0]):
                return True
    return False


def _text(name: str, kind: Kind, row: ScalarOp, native: bool) -> tuple[list[str], list[str], str]:
    """MLIR's operations for an operator with this row: the lines, the operands, the result."""
    text, rows = Text(), {name: row}
    operands = [text.known(f"%in{i}", mlir.TYPES[kind]) for i in range(count_of(name))]
    emit: Any = arithmetic.unary if len(operands) == 1 else arithmetic.binary
    with patch.multiple(arithmetic, UNARY=rows, BINARY=rows):
        result = emit(text, name, DTYPES[kind], *operands, native=native)
    return text.lines, operands, result


@cache
def wanted(name: str, kind: Kind) -> Array:
    """What an operator means for the samples."""
    return meaning(name, kind, samples(kind, count_of(name)))


_CHECKS: Final[tuple[Callable[[str, ScalarOp], Iterator[str]], ...]] = (
    _kinds,
    _library,
    _function,
    _bits,
    _counts,
    _libdevice,
    _mlir,
)


# ---- wrong rows ----


def mutations(name: str, row: ScalarOp) -> Iterator[tuple[str, ScalarOp]]:
    """All wrong rows of an operator that there are: one column each, and those of all others."""
    for kinds in _subsets():
        if set(kinds) != set(row.kinds):
            yield f"kinds {kinds}", replace(row, kinds=kinds)
    for flag in ("library", "counts", "libdevice"):
        yield f"{flag}: {not getattr(row, flag)}", replace(row, **{flag: not getattr(row, flag)})  # type: ignore[arg-type]
    for function in {None, "rounded", "exact"} - {row.function}:
        yield f"function {function}", replace(row, function=function)  # type: ignore[arg-type]
    for how, bits in _other_bits(row):
        yield f"bits {how}", replace(row, bits=bits)
    for kind in KINDS:
        yield from _other_words(kind, row)
    for other, theirs in scalars.EVERY.items():
        if _columns(theirs) != _columns(row):
            yield f"the row of {other}", theirs


def _columns(row: ScalarOp) -> list[Any]:
    return [getattr(row, each) for each in ScalarOp.__dataclass_fields__]


def _subsets() -> Iterator[tuple[Kind, ...]]:
    for number in range(1, 1 << len(KINDS)):
        yield tuple(kind for place, kind in enumerate(KINDS) if number >> place & 1)


def _other_bits(row: ScalarOp) -> Iterator[tuple[str, Callable[[int, int], int] | None]]:
    own = row.bits
    if own is not None:
        yield "None", None
        yield "one more", lambda bits, width: own(bits, width) + 1
        yield "one less", lambda bits, width: own(bits, width) - 1
        if own(1, 8) != own(1, 64):
            yield "of another width", lambda bits, width: own(bits, 64)
        yield "of the other bits", lambda bits, width: own(~bits % (1 << width), width)
    for name, theirs in scalars.EVERY.items():
        if theirs.bits not in (None, own):
            yield f"of {name}", theirs.bits
    yield "0", lambda bits, width: 0


def _other_words(kind: Kind, row: ScalarOp) -> Iterator[tuple[str, ScalarOp]]:
    own = row.mlir.get(kind)
    if own is not None:
        rest = {other: word for other, word in row.mlir.items() if other != kind}
        yield f"no name in MLIR for {kind}", replace(row, mlir=rest)
    for word in (*mlir.words(kind), "math.sigmoid"):
        if own is None or word != (own if "." in own else f"arith.{own}"):
            yield f"{word} for {kind}", replace(row, mlir={**row.mlir, kind: word})
