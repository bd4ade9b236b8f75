"""Helpers of the language's tests: from a function and examples to the kernel IR."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ferrule as fe
from ferrule.language.examples import bind_examples
from ferrule.language.ir import ops
from ferrule.language.ir.printer import print_program
from ferrule.language.lowering.program import lower_program
from ferrule.specs import Signature


def vector(dtype: Any = fe.Float32, symbol: str | None = "n") -> fe.specs.FakeTensor:
    """A fake tensor of one symbolic dim."""
    return fe.make_fake_compact_tensor(dtype, (fe.sym_int(symbol=symbol),))


def matrix(dtype: Any = fe.Float32, rows: str = "m", columns: str = "n") -> fe.specs.FakeTensor:
    """A row-major fake tensor of two symbolic dims."""
    shape = (fe.sym_int(symbol=rows), fe.sym_int(symbol=columns))
    return fe.make_fake_compact_tensor(dtype, shape, stride_order=(1, 0))


def lower(function: Callable[..., Any], *examples: Any) -> ops.Program:
    """The kernel IR of a host function."""
    params = bind_examples(function, examples, {}).parameters
    return lower_program(function, Signature(function.__name__, params), {})


def text(function: Callable[..., Any], *examples: Any) -> str:
    """The kernel IR of a host function as text."""
    return print_program(lower(function, *examples))
