"""The tables of operators beside the rows: constants, Python's operators, PTX, MLIR's own mind."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import numpy as np
from device_kernels import kernel, program, text_of
from ptx_programs import launch

from ferrule.compiler.cuda.options import DeviceOptions
from ferrule.compiler.mlir.child import in_child
from ferrule.compiler.mlir.session import Session
from ferrule.language.codegen.cuda.kernels import lower_device
from ferrule.language.codegen.cuda.maths import DeviceMaths
from ferrule.language.folding import scalars as folding
from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.language.lowering.numbers import tables
from ferrule.language.lowering.python import constants
from ferrule.language.mathlib import expand_maths
from ferrule.language.mlir import approximate
from ferrule.language.mlir.text import Text
from ferrule.specs import Float32
from ferrule.specs.dtypes import Kind
from scalar_facts import mlir
from scalar_facts.deeds import Deeds, Entry, called, operands
from scalar_facts.meanings import DTYPES, KINDS, NAMES, Array, count_of, kinds_of, samples

# ---- constants ----


def folded(swapped: bool = False) -> Deeds:
    """What the compiler computes of constants of the kernel IR."""
    found: dict[Entry, Array] = {}
    for kind in KINDS:
        known = {name: _folding(name, kind) for name in NAMES if _folds(name, kind)}
        found |= dict(called(known, kind, DTYPES[kind].name, swapped))
    return found


def _folding(name: str, kind: Kind) -> Callable[..., Any]:
    function: Any = folding.unary if count_of(name) == 1 else folding.binary
    return lambda *given: function(name, DTYPES[kind], *given)


def _folds(name: str, kind: Kind) -> bool:
    if kind not in kinds_of(name):
        return False
    try:
        _folding(name, kind)(*(each.tolist()[1] for each in samples(kind, count_of(name))))
    except (KeyError, NotImplementedError):
        return False
    return True


def functions(swapped: bool = False) -> Deeds:
    """What `fe.math` computes of Python's numbers."""
    known = {name: each for name, each in constants.FUNCTIONS.items() if name in NAMES}
    return dict(called(known, "float", "f8", swapped))


# ---- Python's operators ----

NUMBERS: Final = tuple((x, y) for x in (-7, -3, 0, 1, 2, 5, 40) for y in (-4, -1, 1, 2, 3, 33))
"""Pairs that tell all of Python's operators apart; no divisor and no count is 0."""


def written(op: type[ast.operator] | type[ast.unaryop], *given: int) -> Any:
    """What Python makes of an operator of its syntax tree, of constants."""
    sides = [ast.Constant(each) for each in given]
    tree: ast.expr = (
        ast.UnaryOp(op(), *sides) if len(sides) == 1 else ast.BinOp(sides[0], op(), sides[1])  # type: ignore[call-arg, arg-type]
    )
    whole = ast.fix_missing_locations(ast.Expression(tree))
    return _tried(lambda: eval(compile(whole, "operator", "eval")))


def _tried(function: Callable[[], Any]) -> Any:
    try:
        return function()
    except (ArithmeticError, TypeError, ValueError) as error:
        return type(error)


def results(function: Callable[..., Any]) -> list[Any]:
    """What a function of two integers makes of the pairs; the class of an error."""
    return [_tried(lambda pair=pair: function(*pair)) for pair in NUMBERS]  # type: ignore[misc]


def python_operators() -> Iterator[tuple[str, list[Any], list[Any], list[Any]]]:
    """Each row of Python's operators: its name, what Python makes of the operator, what the row's
    function does, and what its sign means."""
    for op, (sign, function) in tables.PYTHON_BINARY.items():
        text = compile(f"x {sign} y", "sign", "eval")
        by_sign = results(lambda x, y, text=text: eval(text, {"x": x, "y": y}))
        yield (
            op.__name__,
            results(lambda x, y, op=op: written(op, x, y)),
            results(function),
            by_sign,
        )


# ---- PTX ----

PTX_NAMES: Final[Mapping[str, str]] = {
    "floor": "cvt.rmi",
    "ceil": "cvt.rpi",
    "round": "cvt.rni",
    "trunc": "cvt.rzi",
    "sqrt": "sqrt.rn",
}
"""The instructions of PTX for functions of floats."""
POSITIVE: Final = np.array((0.25, 0.5, 0.7, 1.5, 2.5, 3.0), "f4")


def emulated(
    entries: list[Entry], *, libdevice: bool = False, swapped: bool = False
) -> tuple[Deeds, str]:
    """What the PTX of operators computes on an emulated GPU, and the PTX."""
    ptx = _ptx(entries, libdevice=libdevice, swapped=swapped)
    found = {}
    for name, kind in entries:
        given = operands(name, kind)
        arrays = [given[0], given[-1], np.zeros_like(given[0])]
        found[name, kind] = _launched(ptx, f"{name}_{kind}", arrays)
    return found, ptx


def _launched(ptx: str, name: str, arrays: list[Array]) -> Array:
    """The last array after a kernel for each of its elements."""
    return launch(ptx, arrays, block=(len(arrays[0]), 1, 1), name=name)[-1]


def _ptx(
    entries: list[Entry], *, libdevice: bool = False, fast: bool = False, swapped: bool = False
) -> str:
    makes = [
        kernel(f"{n}_{k}", DTYPES[k], DTYPES[k], _made(n, fast=fast, swapped=swapped))
        for n, k in entries
    ]
    keeps = DeviceMaths(libdevice).keeps
    made = expand_maths(program(*makes), keeps, on_gpu=True)
    return text_of(lower_device(made, DeviceOptions(("sm_80",), libdevice=libdevice)))


def _made(name: str, *, fast: bool, swapped: bool) -> Callable[..., ops.Value]:
    def make(b: Builder, x: ops.Value, y: ops.Value) -> ops.Value:
        if count_of(name) == 1:
            return b.unary(name, x, fast=fast)  # type: ignore[arg-type]
        return b.binary(name, *((y, x) if swapped else (x, y)), fast=fast)  # type: ignore[arg-type]

    return make


def approximations(names: list[str]) -> dict[str, Array]:
    """What PTX's approximations of functions are for positive numbers, each with the next."""
    ptx = _ptx([(name, "float") for name in names], fast=True)
    arrays = [POSITIVE, np.roll(POSITIVE, 1), np.zeros_like(POSITIVE)]
    return {name: _launched(ptx, f"{name}_float", arrays) for name in names}


def written_approximations(names: list[str]) -> dict[str, Array]:
    """What the approximations mean that are written in MLIR."""
    found = {}
    for name in names:
        text = Text()
        given = {f"%in{i}": np.roll(POSITIVE, i) for i in range(count_of(name))}
        for each in given:
            text.known(each, "f32")
        result = approximate.emit(text, name, Float32, list(given))
        found[name] = mlir.value(text.lines, given, result)
    return found


# ---- libdevice ----

DECLARED: Final = re.compile(r"^define [^\n]*?(\w+) @__nv_(\w+)\(([^)]*)\)", re.M)


def signatures(text: str) -> dict[str, str]:
    """The types of the functions of libdevice, as `float(float,float)`, from its LLVM IR."""
    return {
        name: f"{result}({','.join(each.split()[0] for each in given.split(',') if each.strip())})"
        for result, name, given in DECLARED.findall(text)
    }


# ---- MLIR itself ----

_TYPED: Final = {"b": "i1", "i": "i32", "f": "f32"}
_FUNCTION: Final = """
func.func @f{number}() -> {type} {{
{constants}
  %r = {name} {operands} : {type}
  return %r : {type}
}}"""
_RESULT: Final = re.compile(r"arith\.constant ([^\s:]+)(?: : \w+)?\n\s*return")


def canonical(session: Session, text: str) -> str:
    """A module of MLIR after upstream's folding; for a process of MLIR."""
    module = session.parse(text)
    session.run(module, "builtin.module(canonicalize)")
    return str(module)


def folded_by_mlir(cases: list[tuple[str, list[Any]]]) -> list[Any]:
    """What MLIR makes of operations on constants, which are NumPy scalars; None if it does not
    fold them.  CompileError if it has no such operation."""
    functions = [_folding_function(n, name, given) for n, (name, given) in enumerate(cases)]
    parts = in_child(canonical, "\n".join(functions)).split("func.func @f")[1:]
    found = {int(re.match(r"\d+", part)[0]): _RESULT.search(part) for part in parts}  # type: ignore[index]
    return [_number(found[n], given[0]) for n, (_, given) in enumerate(cases)]


def _folding_function(number: int, name: str, given: list[Any]) -> str:
    type_ = _TYPED[given[0].dtype.kind]
    lines = [f"  %c{i} = arith.constant {_constant(each)}" for i, each in enumerate(given)]
    names = ", ".join(f"%c{i}" for i in range(len(given)))
    return _FUNCTION.format(
        number=number, type=type_, constants="\n".join(lines), name=name, operands=names
    )


def _constant(value: Any) -> str:
    match value.dtype.kind:
        case "b":
            return "true" if value else "false"
        case "i":
            return f"{int(value)} : i32"
    return f"0x{int(value.view('u4')):08X} : f32"


def _number(found: re.Match[str] | None, like: Any) -> Any:
    if found is None:
        return None
    word = found[1]
    if word in ("true", "false"):
        return np.bool_(word == "true")
    if like.dtype.kind == "i":
        return np.int32(int(word))
    return np.uint32(int(word, 16)).view("f4") if word.startswith("0x") else np.float32(word)
