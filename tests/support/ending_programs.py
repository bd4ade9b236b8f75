"""Kernels whose threads end loops at different times, drawn at random from a seed.

`program(seed)` is the source of a kernel and its host function, `host(x, y, k, o, p, n)`: float32
and float64 inputs, int32 ones, an output of float64 and one of int64, and a number of threads.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final

DTYPES: Final = (
    *("Float32", "Float32", "Float64", "Float16", "BFloat16"),
    *("Int32", "Int32", "Int64", "Uint8", "Uint32", "Int16"),
)


def program(seed: int) -> str:
    """The source of a program."""
    return _Program(random.Random(seed)).text()


class _Program:
    def __init__(self, random_: random.Random) -> None:
        self.random: Final = random_
        self.names: dict[str, str] = {}

    def text(self) -> str:
        block = self.random.choice((32, 64, 100))
        lines = ["@fe.kernel", "def device(x, y, k, o, p, n):"]
        body = list(self.kernel(block))
        lines += [f"    {line}" for line in body]
        grid = "1" if "range(t, n" in "".join(body) else f"(n + {block - 1}) // {block}"
        lines += ["@fe.jit", "def host(x, y, k, o, p, n):"]
        lines += [f"    device(x, y, k, o, p, n).launch(grid={grid}, block={block})"]
        return "\n".join(lines) + "\n"

    def kernel(self, block: int) -> Iterator[str]:
        yield "t = fe.arch.thread_idx()[0]"
        if self.random.random() < 0.3:
            yield f"for i in range(t, n, {block}):"
        else:
            yield f"i = fe.arch.block_idx()[0] * {block} + t"
            yield "if i < n:"
        yield from (f"    {line}" for line in self.thread())

    def thread(self) -> Iterator[str]:
        for place in range(self.random.randint(1, 4)):
            dtype = self.random.choice(DTYPES)
            self.names[f"v{place}"] = dtype
            source = "k[i]" if self.random.random() < 0.5 else self.random.choice(("x[i]", "y[i]"))
            yield f"v{place} = fe.{dtype}({source})"
        self.names["flag"] = "Boolean"
        yield "flag = k[i] > 3"
        yield "limit = k[i] % 23"
        for number in range(self.random.choice((1, 1, 1, 2))):
            yield from self.loop(f"c{number}")
            if self.random.random() < 0.4:
                yield self.assignment()
        names = [name for name, dtype in self.names.items() if dtype.startswith(("F", "B"))]
        yield f"o[i] = {' + '.join(f'fe.Float64({name})' for name in names)}"
        others = [name for name in self.names if name not in names]
        yield f"p[i] = {' * 3 + '.join(f'fe.Int64({name})' for name in (*others, 'c0'))}"

    def loop(self, counter: str) -> Iterator[str]:
        if self.random.random() < 0.5:
            yield f"{counter} = fe.Int32(0)"
            test = f"{counter} < limit"
            if self.random.random() < 0.6:
                word = self.random.choice(("and", "and not"))
                test += f" {word} ({self.condition()})"
            yield f"while {test}:"
            yield f"    {counter} += 1"
        else:
            yield f"{counter} = fe.Int32(0)"
            yield f"for {counter}_ in range({self.random.choice(('limit', '9', 'n % 13'))}):"
            yield f"    {counter} = {counter}_"
            yield f"    if {self.condition()}:"
            yield "        break"
        for _ in range(self.random.randint(1, 4)):
            yield from (f"    {line}" for line in self.statement(counter))

    def statement(self, counter: str) -> Iterator[str]:
        draw = self.random.random()
        if draw < 0.2:
            yield f"if {self.condition()}:"
            yield f"    {self.assignment()}"
            if self.random.random() < 0.5:
                yield "else:"
                yield f"    {self.assignment()}"
        elif draw < 0.3:
            yield f"if {self.condition()}:"
            yield f"    {self.random.choice(('break', 'continue'))}"
        elif draw < 0.36:
            yield f"for inner in range({self.random.choice(('2', '3', f'{counter} % 3'))}):"
            yield f"    {self.assignment()}"
        elif draw < 0.46:
            # Only where the test holds is the index one of the tensor.
            yield f"if i + {counter} < n:"
            name = self.number()
            yield f"    {name} += fe.{self.names[name]}({self.random.choice('xyk')}[i + {counter}])"
        else:
            yield self.assignment()

    def assignment(self) -> str:
        if self.random.random() < 0.15:
            return f"flag = {self.condition()}"
        name = self.number()
        return f"{name} = fe.{self.names[name]}({self.expression(self.names[name])})"

    def number(self) -> str:
        return self.random.choice([name for name in self.names if name != "flag"])

    def condition(self) -> str:
        if self.random.random() < 0.2:
            return self.random.choice(("flag", "not flag"))
        name = self.number()
        other = self.value(self.names[name])
        return f"{name} {self.random.choice(('<', '>', '==', '!=', '<=', '>='))} {other}"

    def value(self, dtype: str) -> str:
        names = [name for name, kind in self.names.items() if kind == dtype]
        if names and self.random.random() < 0.6:
            return self.random.choice(names)
        if self.random.random() < 0.3:
            return f"fe.{dtype}({self.number()})"
        return f"fe.{dtype}({self.random.choice((0, 1, 2, 3, 7, 100))})"

    def expression(self, dtype: str) -> str:
        a, b = self.value(dtype), self.value(dtype)
        if dtype.startswith(("F", "B")):
            forms = ("{} + {}", "{} - {}", "{} * {}", "{} / {}", "min({}, {})", "max({}, {})")
            forms += ("{0} if {0} > {1} else {1}", "fe.math.sqrt({})", "-{}")
        else:
            forms = ("{} + {}", "{} - {}", "{} * {}", "{} // {}", "{} % {}", "{} ^ {}", "{} & {}")
            forms += ("min({}, {})", "max({}, {})", "{} >> ({} & 7)", "{} // 2", "{} % 3")
        return self.random.choice(forms).format(a, b)
