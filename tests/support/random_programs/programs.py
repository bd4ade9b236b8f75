"""Random modules: helpers, kernels and a host function, and arguments to call it with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from draws import Drawn

from ferrule.specs import BFloat16, DType, Float32, Int8, Int32, Int64, Uint32
from random_programs.choices import Choices
from random_programs.expressions import Expressions, Helper, Scope, Tensor, name_of
from random_programs.promotion import DTYPES
from random_programs.statements import INDENT, Block, Names, Statements, helper

COMMON: Final = (Int32, Float32, Int64, Int8, Uint32)
"""One of these is in every program.  NumPy has no array of bfloat16."""
HEADER: Final = """\
from dataclasses import dataclass
from typing import NamedTuple

INF = float("inf")
NAN = float("nan")


class Pair(NamedTuple):
    a: object
    b: object


@dataclass(frozen=True)
class Data:
    a: object
    b: object
"""
HOST: Final = "program"
ROW: Final = 64
TABLE: Final = 64
"""Sizes that programs know, so that their indices have masks and blocks."""


@dataclass(frozen=True)
class Generated:
    """A module's source, but for its import of `fe`, whose host function is `HOST`; the dtype of
    each of its parameters, and arguments: arrays and Python numbers."""

    source: str
    dtypes: list[DType]
    arguments: tuple[Any, ...]


LONG: Final = MappingProxyType({3: 3, 1: 2, 37: 2, 70: 2, 0: 1})
SHORT: Final = MappingProxyType({3: 4, 1: 2, 5: 2, 0: 1})
"""Sizes of arrays, and how often each is taken.  Short ones take the model a tenth of the time."""


def programs(size: int = 4, lengths: Mapping[int, int] = LONG) -> Drawn[Generated]:
    """A module with a host function, and arguments for a call of it.

    `size`: how many statements a body has at most, without those inside them.
    """
    return Drawn(lambda source: _Module(Choices(source), size, lengths).generate())


class _Module:
    """Writes one module."""

    def __init__(self, choices: Choices, size: int, lengths: Mapping[int, int]) -> None:
        self.choices, self.size, self.lengths = choices, size, lengths
        few = [choices.one(COMMON), choices.one(DTYPES), choices.one(DTYPES)]
        self.statements = Statements(Expressions(choices, few), Names())
        dtypes = [choices.one([d for d in few if d is not BFloat16]) for _ in range(8)]
        self.outputs = (Tensor("out0", dtypes[0]), Tensor("out1", dtypes[1]))
        self.rows = Tensor("rows", dtypes[6], 2, ROW)
        table = Tensor("table", dtypes[7], 1, TABLE)
        self.inputs = (Tensor("a0", dtypes[2]), Tensor("a1", dtypes[3], 2), table)
        self.tensors = (*self.outputs, self.rows, *self.inputs)
        self.scalars = {"s0": dtypes[4], "s1": dtypes[5]}

    def generate(self) -> Generated:
        """The module and its arguments."""
        helpers: list[Helper] = []
        parts = [HEADER.splitlines()]
        for _ in range(self.choices.weighted({0: 3, 1: 2, 2: 1})):
            lines, made = helper(self.statements, tuple(helpers))
            helpers.append(made)
            parts.append(lines)
        write = self.choices.weighted({self.launching: 3, self.looping: 2})
        parts += write(tuple(helpers))
        source = "\n".join(line for part in parts for line in (*part, "", ""))
        dtypes = [*(tensor.dtype for tensor in self.tensors), *self.scalars.values()]
        return Generated(source, dtypes, self.arguments())

    def parameters(self) -> str:
        """The parameters of the host function and of a kernel."""
        names = [tensor.name for tensor in self.tensors]
        names += [f"{name}: {name_of(dtype)}" for name, dtype in self.scalars.items()]
        return ", ".join(names)

    def launching(self, helpers: tuple[Helper, ...]) -> list[list[str]]:
        """A kernel in which each thread has one element of every output, and its launch."""
        scope = Scope(dict(self.scalars), [], self.inputs, helpers)
        scope.numbers |= {f"{tensor.name}[i]": tensor.dtype for tensor in self.outputs}
        scope.numbers |= dict.fromkeys(("b", "t", "i"), Int32)
        body = self.body(Block(scope, self.outputs, "i", self.rows))
        block = self.choices.one((32, 4, 1))
        guarded = ["if i < out0.shape[0]:", *(INDENT + line for line in body)]
        if self.choices.chance(30):
            guarded = ["if i >= out0.shape[0]:", f"{INDENT}return", *body]
        first = [
            "b = fe.arch.block_idx()[0]",
            "t = fe.arch.thread_idx()[0]",
            f"i = b * {block} + t",
        ]
        kernel = ["@fe.kernel", f"def kernel({self.parameters()}):"]
        kernel += [INDENT + line for line in (*first, *guarded)]
        given = [tensor.name for tensor in self.tensors]
        given += self.scalars
        blocks = f"(n + {block - 1}) // {block}" if self.choices.chance(70) else "4"
        launch = f"kernel({', '.join(given)}).launch(grid={blocks}, block={block})"
        host = ["n = out0.shape[0]", launch]
        if self.choices.chance(25):
            host[1:] = ["for _ in range(2):", INDENT + host[1]]
        return [kernel, self.host(host)]

    def looping(self, helpers: tuple[Helper, ...]) -> list[list[str]]:
        """A host function that does the work itself."""
        tensors = (*self.inputs, *self.outputs, self.rows)
        divides = self.choices.chance(50)
        lines = self.wholes() if self.choices.chance(40) else []
        scope = Scope(dict(self.scalars), [], tensors, helpers, divides)
        block = Block(scope, self.outputs, rows=self.rows)
        lines += self.statements.block(block, self.choices.below(self.size), 1)
        inner = block.inner("break", "continue")
        inner.scope.numbers["i"] = Int32
        body = self.body(inner)
        lines += ["for i in range(out0.shape[0]):", *(INDENT + line for line in body)]
        return [self.host(lines)]

    def wholes(self) -> list[str]:
        """Assignments to whole tensors."""
        tensors = (*self.outputs, self.inputs[0])
        numbers = {f"{tensor.name}[:]": tensor.dtype for tensor in tensors}
        scope = Scope({**self.scalars, **numbers}, divides=False, whole=True)
        targets = [self.choices.one(self.outputs) for _ in range(1 + self.choices.below(2))]
        return [f"{t.name}[:] = {self.statements.stored(t.dtype, scope)}" for t in targets]

    def body(self, block: Block) -> list[str]:
        """Statements that end with a store to every output, so that nothing is for nothing."""
        lines = self.statements.block(block, 1 + self.choices.below(self.size), 2 + self.size // 6)
        for tensor in self.outputs:
            value = self.statements.stored(tensor.dtype, block.scope)
            lines.append(f"{tensor.name}[i] = {value}")
        return lines

    def host(self, body: list[str]) -> list[str]:
        """The host function with this body."""
        return ["@fe.jit", f"def {HOST}({self.parameters()}):", *(INDENT + line for line in body)]

    def arguments(self) -> tuple[Any, ...]:
        """Arrays and numbers, from the values at which things go wrong."""
        size = self.choices.weighted(self.lengths)
        rng = np.random.default_rng(self.choices.below(1000))
        shapes = ((size,), (size,), (size, ROW), (size,), (3, 5), (TABLE,))
        drawn = zip(self.tensors, shapes, strict=True)
        arrays = [numbers(rng, tensor.dtype, shape) for tensor, shape in drawn]
        scalars = [numbers(rng, dtype, (1,))[0].item() for dtype in self.scalars.values()]
        return (*arrays, *scalars)


def numbers(rng: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> Any:
    """Random numbers of a dtype: small ones, large ones, and its special ones."""
    small = rng.integers(-4, 6, shape)
    with np.errstate(all="ignore"):
        match dtype.kind:
            case "bool":
                return small > 0
            case "int" | "uint":
                low, high = dtype.range
                special = rng.choice(np.array([low, low + 1, high, high - 1, high // 2]), shape)
                return np.where(rng.random(shape) < 0.6, small, special).astype(dtype.name)
        odd = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-7, -6e4, 1e38, -1e-40, 2**31, 1e300]
        special = np.where(rng.random(shape) < 0.5, rng.normal(0, 3, shape), rng.choice(odd, shape))
        return np.where(rng.random(shape) < 0.5, small, special).astype(dtype.name)
