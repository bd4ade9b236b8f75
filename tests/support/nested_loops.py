"""Random kernels of nested loops and branches: uniform ones, ones over `range(thread, n, block)`,
with sums, own memory, and writes to places of the thread's own.

No thread reads what another one writes, so every order of the threads has the same results.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Final

BLOCK: Final = 32
BLOCKS: Final = 3
ARGUMENTS: Final = ((70, 5, 3, 32), (5, 20, 7, 5), (0, 3, 1, 1), (100, 33, 4, -3))
"""Values of n, m, w and w2."""

_NAMES: Final = ("v0", "v1", "v2")
_PLACES: Final = (f"g * {BLOCK} + t", f"200 + g * {BLOCK} + t")
_BEGIN: Final = """
@fe.kernel
def kernel(x, o, n: fe.Int32, m: fe.Int32, w: fe.Int32, w2: fe.Int32):
    t, g = fe.arch.thread_idx()[0], fe.arch.block_idx()[0]
    bd = fe.arch.block_dim()[0]
    v0, v1, v2 = x[t], fe.Float32(1), x[g]
    f = fe.make_fragment(2, fe.Float32)
    f[0], f[1] = fe.Float32(0), x[t + 1]
"""
_END: Final = f"""
    o[400 + g * {BLOCK} + t] = v0 + v1 * 2 + v2 * 3 + f[0] + f[1]


@fe.jit
def host(x: fe.Tensor, o: fe.Tensor, n: fe.Int32, m: fe.Int32, w: fe.Int32, w2: fe.Int32):
    kernel(x, o, n, m, w, w2).launch(grid={BLOCKS}, block={BLOCK})
"""


def program(seed: int) -> str:
    """The text of a kernel, and of its host function `host`."""
    return _BEGIN + "\n".join(_Writer(random.Random(seed)).block(0)) + _END


@dataclass
class _Writer:
    random: random.Random
    indices: list[str] = field(default_factory=list)
    """The indices of the loops around the text."""

    def block(self, depth: int) -> list[str]:
        """Some statements, with more loops the less deep they are."""
        count = self.random.randrange(1, 4) if depth else 3
        return [line for _ in range(count) for line in self.statement(depth)]

    def statement(self, depth: int) -> list[str]:
        pad, name = "    " * (depth + 1), self.random.choice(_NAMES)
        kinds = ["set", "set", "write", "read", "own", "more"]
        if depth < 3:
            kinds += ["strided"] * 4 + ["uniform"] * 3 + ["branch"] * 2
        match self.random.choice(kinds):
            case "set":
                return [f"{pad}{name} = fe.Float32({self.number()})"]
            case "write":
                return [f"{pad}o[{self.random.choice(_PLACES)}] = {self.number()}"]
            case "read":
                return [f"{pad}{name} += o[{self.random.choice(_PLACES)}]"]
            case "own":
                place = self.random.randrange(2)
                return [f"{pad}f[{place}] = {self.number()}", f"{pad}{name} += f[{place}]"]
            case "strided":
                start = self.random.choice(("t", "t", "t + g", "t + 3"))
                step = self.random.choice((str(BLOCK), str(BLOCK), "w2", "bd"))
                return self.loop(pad, depth, f"{start}, n, {step}")
            case "uniform":
                count = self.random.choice(("w", "3", "g + 1", "m", "t % 3"))
                return self.loop(pad, depth, count)
            case "branch":
                return self.branch(pad, depth)
        return [f"{pad}{name} = {name} + 1.0"]

    def loop(self, pad: str, depth: int, bounds: str) -> list[str]:
        index = f"i{depth}"
        self.indices.append(index)
        body = self.block(depth + 1)
        self.indices.pop()
        return [f"{pad}for {index} in range({bounds}):", *body]

    def branch(self, pad: str, depth: int) -> list[str]:
        conditions = ("w > 2", "t < m", "g == 0", "v0 > 0.0", "t % 2 == 0")
        lines = [f"{pad}if {self.random.choice(conditions)}:", *self.block(depth + 1)]
        if self.random.random() < 0.4:
            lines += [f"{pad}else:", *self.block(depth + 1)]
        return lines

    def number(self, depth: int = 0) -> str:
        """An expression of a float."""
        if depth > 2 or self.random.random() < 0.35:
            return self.random.choice(_NAMES)
        form = self.random.choice(
            ("{} + {}", "{} - {}", "fe.math.max({}, {})", "{} * 0.5", "x", "f")
        )
        if form == "x":
            return f"x[{self.index()}]"
        if form == "f":
            return f"fe.math.tanh({self.number(depth + 1)})"
        return f"({form.format(self.number(depth + 1), self.number(depth + 1))})"

    def index(self) -> str:
        base = self.random.choice([*self.indices, "t", "t", "g"])
        more = (f"{base} + {self.random.randrange(8)}", f"({base} // w) + {base} % w",
                f"{base} % 8 + t", f"({base} // 4) * 4 + {base} % 4")  # fmt: skip
        return self.random.choice((base, base, *more))
