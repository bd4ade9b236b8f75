"""Expressions of SymPy as functions of vectors, for the CPU and for GPUs.

pip install sympy
python examples/sympy_expressions.py
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add, mul
from typing import Any

import numpy as np

import ferrule as fe
from ferrule import specs

try:
    import sympy
except ImportError:
    raise SystemExit("this example needs SymPy: pip install sympy") from None

NAMES = {sympy.exp: "exp", sympy.log: "log", sympy.sin: "sin", sympy.cos: "cos", sympy.tanh: "tanh"}


def written(expression: Any, numbers: dict[Any, Any], one: fe.ir.Number) -> fe.ir.Number:
    """The number of an expression, in the program of its symbols; `one` has their dtype."""
    if expression in numbers:
        return numbers[expression]
    if expression.is_number:
        return one.with_(float(expression))
    given = [written(each, numbers, one) for each in expression.args]
    if isinstance(expression, sympy.Add | sympy.Mul):
        return reduce(add if expression.is_Add else mul, given)
    if expression.is_Pow and expression.exp.is_Integer and 0 < expression.exp <= 8:
        return reduce(mul, [given[0]] * int(expression.exp))
    if expression.is_Pow:
        return fe.ir.call("pow", *given)
    if type(expression) not in NAMES:
        raise TypeError(f"there is no function {type(expression).__name__} here")
    return fe.ir.call(NAMES[type(expression)], *given)


def lambdify(symbols: Sequence[Any], expression: Any, options: str = "--target cpu") -> fe.Function:
    """The function of float32 vectors that writes the expression of their elements to `out`."""
    n = specs.sym_int64(symbol="n")
    names = [*map(str, symbols), "out"]
    writer = fe.ir.Writer("formula", [specs.Tensor(name, (n,), "float32") for name in names])
    with writer.parallel(n) as (i,):
        numbers = {symbol: writer[str(symbol)][i] for symbol in symbols}
        writer["out"][i] = written(expression, numbers, writer.constant(fe.Float32, 1.0))
    return writer.build(options)


if __name__ == "__main__":
    x, y = sympy.symbols("x y")
    slope = sympy.diff(sympy.sin(x * y) ** 2 / sympy.sqrt(1 + x**2), x)
    print(slope, lambdify((x, y), slope).signature, sep="\n")
    a, b = (np.linspace(at, 2, 5, dtype=np.float32) for at in (0, 1))
    out = np.empty_like(a)
    lambdify((x, y), slope)(a, b, out)
    print("on the CPU", out)
    with fe.emulated_gpu("sm_80"):
        result = fe.cuda.empty_like(fe.cuda.array(a))
        lambdify((x, y), slope, "--target cuda")(fe.cuda.array(a), fe.cuda.array(b), result)
        print("on an emulated GPU", fe.cuda.to_numpy(result))
    print("by SymPy", np.array([slope.subs({x: p, y: q}) for p, q in zip(a, b, strict=True)], "f4"))
