"""Random host functions around launches of Triton's kernels, as text, with the arguments of calls.

A function reads sizes and strides, makes tensors and views, decides by what it has read, and
launches; arguments are tensors of all sorts of strides, integers and floats.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

SIZES = (1, 1, 2, 3, 4, 5, 8, 16, 33)
KINDS = ("any", "any", "of 4", "of 4", "1 more", "equal", "ones first")
"""What the sizes of recordings have in common, and those of calls need not: numbers that are 0, 1,
or equal in all recordings are no constants."""


@dataclass
class Host:
    """A host function under construction: the names that a next line may use."""

    rng: random.Random
    lines: list[str] = field(default_factory=list)
    tensors: dict[str, int] = field(default_factory=dict)
    integers: list[str] = field(default_factory=list)
    made: list[str] = field(default_factory=list)
    computed: set[str] = field(default_factory=set)
    """Tensors that PyTorch may have copied, of which no launch is compiled."""
    indent: str = "    "
    _count: int = 0

    def new(self, letter: str) -> str:
        """A name that nobody has."""
        self._count += 1
        return f"{letter}{self._count}"

    def add(self, line: str) -> None:
        """A line more."""
        self.lines.append(self.indent + line)

    # ---- values ----

    def tensor(self, least: int = 0) -> str:
        """One of the tensors, with so many dims."""
        names = [name for name, rank in self.tensors.items() if rank >= least]
        return self.rng.choice(names or ["x"])

    def launched(self) -> str:
        """A tensor for a launch, mostly one that nobody copied."""
        names = [name for name in self.tensors if name not in self.computed]
        return self.rng.choice(names) if self.rng.random() < 0.9 else self.tensor()

    def size(self) -> str:
        """What is read of a tensor."""
        name = self.tensor(1)
        axis = self.rng.randrange(-1, self.tensors[name])
        kinds = [f"{name}.shape[{axis}]", f"{name}.stride({axis})", f"{name}.size({axis})"]
        return self.rng.choice([*kinds, *kinds, f"{name}.numel()", f"len({name})"])

    def integer(self) -> str:
        """An integer, made of those before."""
        rng = self.rng
        if not self.integers or rng.random() < 0.4:
            return self.size()
        one, other = rng.choice(self.integers), rng.choice(self.integers)
        number = rng.choice((1, 2, 3, 4, 8, 16))
        return rng.choice(
            [
                one, one, f"{one} * {other}", f"{one} + {number}", f"{number} * {one}",
                f"{one} // {number}", f"-(-{one} // {number})", f"triton.cdiv({one}, {number})",
                f"max({one}, {number})", f"min({one}, {number})", f"{one} - 1",
                f"triton.next_power_of_2({one})", f"{one} % {number}",
                f"({number} if {one} > {number} else {one})",
                f"int({one})", f"{one} // {other}", self.coincidence(), self.coincidence(),
            ]
        )  # fmt: skip

    def coincidence(self) -> str:
        """A number that is often 0, 1, or another number, in all recordings, and need not be it."""
        one, other = self.rng.choice(self.integers), self.size()
        return self.rng.choice(
            [
                f"{one} % 4", f"{one} // 4 * 4", f"{one} - {one} // 4 * 4", f"{one} % 4 + 1",
                f"max({one} - {other}, 0)", f"{one} // max({other}, 1)", f"-{one} % 4",
            ]
        )  # fmt: skip

    def condition(self) -> str:
        """What a branch is decided by."""
        rng, number = self.rng, self.rng.choice((1, 2, 3, 4, 8, 16, 40))
        sized = self.integer()
        name = self.tensor()
        return rng.choice(
            [
                f"{sized} > {number}", f"{sized} % {number} == 0", f"{sized} == {number}",
                f"{name}.is_contiguous()", f"{self.size()} <= {self.size()}", f"{sized} != 1",
                "p > 0", f"p * {sized} > 3.0", f"k == {number}",
            ]
        )  # fmt: skip

    # ---- lines ----

    def line(self) -> None:
        """One statement."""
        kind = self.rng.choice(
            ["integer", "view", "view", "part", "make", "branch", "launch", "decided", "fill"]
        )
        getattr(self, f"_{kind}")()

    def _integer(self) -> None:
        value, name = self.integer(), self.new("n")
        self.add(f"{name} = {value}")
        self.integers.append(name)

    def _view(self) -> None:
        rng, name = self.rng, self.tensor(1)
        rank, new = self.tensors[name], self.new("v")
        last = f"{name}.shape[-1]"
        ways = [
            (f"{name}.contiguous()", rank), (f"{name}.view(-1, {last})", 2),
            (f"{name}.reshape(-1, {last})", 2), (f"{name}.float()", rank),
            (f"{name}.reshape({name}.shape)", rank), (f"{name}.flatten()", 1),
            (f"{name}.unsqueeze({rng.randrange(-1, rank)})", rank + 1), (f"{name}.detach()", rank),
            (f"{name}[..., :{rng.choice((1, 2, 4))}]", rank), (f"{name}[:{self.size()}]", rank),
            (f"{name}[None]", rank + 1), (f"{name}.expand({name}.shape)", rank),
            (f"{name}.ravel()", 1), (f"{name}.view({name}.shape)", rank),
            (f"{name}.unflatten(-1, (1, -1))", rank + 1), (f"{name}.chunk(2, -1)[0]", rank),
            (f"{name}.unflatten(-1, (-1, {rng.choice((1, 2, 4))}))", rank + 1),
            (f"{name}[:1].expand({self.coincidence()}, *{name}.shape[1:])", rank),
            (f"{name}[:{self.coincidence()}]", rank), (f"{name}[{self.coincidence()}:]", rank),
            (f"{name}.view(torch.int32).view(torch.float32)", rank), (f"{name}.T", rank),
        ]  # fmt: skip
        if rank > 1:
            ways += [
                (f"{name}.transpose(0, 1)", rank), (f"{name}.flatten(0, 1)", rank - 1),
                (f"{name}[0]", rank - 1), (f"{name}[:, 0]", rank - 1), (f"{name}.mT", rank),
                (f"{name}[:, :1]", rank), (f"{name}.select(0, 0)", rank - 1),
                (f"{name}.narrow(1, 0, {name}.shape[1])", rank),
                (f"{name}.view({name}.shape[0], -1)", 2), (f"{name}.flatten(-2)", rank - 1),
                (f"{name}.mT.reshape(-1, {name}.shape[0])", 2),
                (f"{name}.reshape({name}.shape[0], -1)", 2),
            ]  # fmt: skip
        way, self.tensors[new] = rng.choice(ways)
        self.add(f"{new} = {way}")
        if name in self.computed or any(word in way for word in _COPIES):
            self.computed.add(new)

    def _part(self) -> None:
        """A view that begins behind the beginning, as of packed queries, keys and values."""
        rng, name, new = self.rng, self.tensor(1), self.new("v")
        rank, axis = self.tensors[name], self.rng.randrange(self.tensors[name])
        size, at = f"{name}.shape[{axis}]", ":, " * axis
        ways = [
            f"{name}[{at}{size} // 2:]", f"{name}[{at}1:]", f"{name}.chunk(2, {axis})[1]",
            f"{name}.chunk(2, {axis})[0]", f"{name}.narrow({axis}, {size} // 2, {size} // 2)",
            f"{name}.split({rng.choice((1, 2, 4))}, {axis})[-1]", f"{name}[{at}-1:]",
            f"{name}.tensor_split(2, {axis})[1]", f"{name}[{at}{size} // 3:2 * ({size} // 3)]",
            f"{name}.narrow({axis}, 1, {size} - 1)", f"{name}[{at}::2]",
            f"{name}.split([1, {size} - 1], {axis})[1]", f"{name}[{at}{size} % 4:]",
            f"{name}[{at}:{size} // 4 * 4]", f"{name}.narrow({axis}, {size} % 4, {size} // 4)",
            f"{name}.split([{size} // 4 * 4, {size} % 4], {axis})[0]",
        ]  # fmt: skip
        less = [f"{name}[{at}-1]", f"{name}.unbind({axis})[-1]", f"{name}.select({axis}, -1)"]
        if rank > 1 and rng.random() < 0.3:
            ways, rank = less, rank - 1
        self.add(f"{new} = {rng.choice(ways)}")
        self.tensors[new] = rank
        if name in self.computed:
            self.computed.add(new)

    def _decided(self) -> None:
        """A launch for each side of a comparison, or for one of them."""
        self.add(f"if {self.condition()}:")
        before, self.indent = self.indent, self.indent + "    "
        self._launch()
        if self.rng.random() < 0.7:
            self.indent = before
            self.add("else:")
            self.indent = before + "    "
            self._launch()
        self.indent = before

    def _make(self) -> None:
        rng, new, of = self.rng, self.new("y"), self.tensor(1)
        rank = self.tensors[of]
        sizes = f"({self.size_of(of)}, {self.size_of(of)})"
        ways = [
            (f"torch.empty_like({of})", rank), (f"torch.empty({sizes})", 2),
            (f"torch.zeros({of}.shape[0], {self.size_of(of)})", 2),
            (f"torch.empty({of}.shape)", rank), (f"{of}.new_empty({of}.shape[:1])", 1),
            (f"torch.zeros_like({of})", rank), (f"torch.full(({self.size_of(of)},), 2 * p)", 1),
            (f"torch.empty({of}.numel(), dtype=torch.float32)", 1),
            (f"torch.empty({self.coincidence()}, {of}.shape[0])", 2),
        ]  # fmt: skip
        way, self.tensors[new] = rng.choice(ways)
        self.add(f"{new} = {way}")
        self.made.append(new)

    def _fill(self) -> None:
        """Memory, or a part of it, that is filled."""
        name = self.rng.choice(self.made) if self.made and self.rng.random() < 0.7 else "x"
        part = self.rng.choice(["", "", f"[:{self.coincidence()}]", f"[{self.coincidence()}:]"])
        self.add(f"{name}{part}.{self.rng.choice(('zero_()', 'fill_(2.5)', 'fill_(p)'))}")

    def size_of(self, name: str) -> str:
        """A size of a tensor, or what is made of it."""
        size = f"{name}.shape[{self.rng.randrange(-1, self.tensors[name])}]"
        return self.rng.choice(
            [size, size, f"{size} + 1", f"2 * {size}", f"triton.cdiv({size}, 4)"]
        )

    def _branch(self) -> None:
        name, condition = self.new("n"), self.condition()
        one, other = (self.rng.choice([self.integer(), str(self.rng.randrange(9))]) for _ in "ab")
        self.add(f"{name} = {one} if {condition} else {other}")
        self.integers.append(name)

    def _launch(self) -> None:
        rng = self.rng
        kernel = rng.choice(("moved", "summed", "chosen", "applied"))
        numbers = ", ".join(self.integer() for _ in range(3))
        factor = rng.choice(
            ["0.5", "p", "2 * p", "p / 3", "1 / math.sqrt(4.0)", f"p if {self.condition()} else -p"]
        )
        block = rng.choice(["16", "32", f"min(64, triton.next_power_of_2({self.size()}))"])
        more = "" if kernel == "chosen" else f", BLOCK={block}"
        if kernel == "applied":
            both = rng.choice(["twice", "same"]), rng.choice(["twice", "same"])
            more += f", FUNCTION=kernels.{both[0]} if {self.condition()} else kernels.{both[1]}"
        if kernel != "chosen" and rng.random() < 0.2:
            more += f", num_warps=2 if {self.condition()} else {rng.choice((1, 2, 4))}"
        one, other = self.launched(), self.launched()
        launch = f"kernels.{kernel}[{self._grid()}]"
        self.add(f"{launch}({one}, {other}, {numbers}, {factor}{more})")

    def _grid(self) -> str:
        """The grid of a launch: a number, or a function of its arguments."""
        rng, size = self.rng, self.rng.choice([self.integer(), self.size()])
        functions = [
            f"triton.cdiv({size}, meta['BLOCK'])", "meta['x'].shape[0]", "meta['x'].stride(0)",
            "triton.cdiv(meta['n'], meta['BLOCK'])", f"min({size}, meta['row'])",
            f"meta['BLOCK'] if {self.condition()} else {size}", "meta['y'].numel()",
        ]  # fmt: skip
        return f"({size},)" if rng.random() < 0.6 else f"lambda meta: ({rng.choice(functions)},)"

    def text(self) -> str:
        """The function."""
        for _ in range(self.rng.randrange(2, 8)):
            self.line()
        self._launch()
        returned = [name for name in self.made if self.rng.random() < 0.5]
        if returned and self.rng.random() < 0.2:
            part = self.rng.choice((f"[:{self.coincidence()}]", f"[{self.coincidence()}:]", ".T"))
            returned[-1] += part
        if returned:
            self.add(f"return {', '.join(returned)}{',' if len(returned) == 1 else ''}")
        return "\n".join([HEAD, *self.lines, ""])


_COPIES = ("contiguous", "reshape", "float()", "ravel", "flatten", "unflatten")
"""Functions that may copy their tensor."""

HEAD = "def host(x, w, k, p):"


def host_of(rng: random.Random, rank: int) -> str:
    """The text of a host function of a tensor with so many dims, a vector, an integer and a
    float."""
    host = Host(rng)
    host.tensors = {"x": rank, "w": 1}
    host.integers = ["k"]
    host.add("n0 = x.shape[0]")
    host.integers.append("n0")
    return host.text()


def tensor_of(rng: random.Random, sizes: list[int], form: str) -> str:
    """An expression for a tensor with these sizes, whose strides are of this form."""
    more = rng.randrange(1, 4)
    first, *inner = sizes
    rest = ", ".join(map(str, inner))
    whole = ", ".join(map(str, sizes))
    match form:
        case "padded":
            padded = ", ".join(map(str, [*sizes[:-1], sizes[-1] + more]))
            return f"torch.zeros({padded})[..., :{sizes[-1]}]"
        case "rows":
            return (
                f"torch.zeros({first * 2}, {rest})[::2]"
                if inner
                else f"torch.zeros({2 * first})[::2]"
            )
        case "middle" if len(sizes) > 1:
            middle = ", ".join(map(str, [first, sizes[1] + more, *sizes[2:]]))
            return f"torch.zeros({middle})[:, :{sizes[1]}]"
        case "turned" if len(sizes) > 1:
            turned = ", ".join(map(str, [sizes[1], first, *sizes[2:]]))
            return f"torch.zeros({turned}).transpose(0, 1)"
        case "repeated":
            return f"torch.zeros({', '.join(map(str, [1, *inner]))}).expand({whole})"
    return f"torch.zeros({whole})"


FORMS = ("compact", "compact", "compact", "padded", "rows", "middle", "turned", "repeated")


def sizes_of(rng: random.Random, rank: int, kind: str) -> list[int]:
    """Sizes of a tensor."""
    sizes = [rng.choice(SIZES) for _ in range(rank)]
    match kind:
        case "of 4":
            return [rng.choice((4, 8, 12, 16, 20)) for _ in sizes]
        case "1 more":
            return [rng.choice((1, 5, 9, 13, 17)) for _ in sizes]
        case "equal":
            return [sizes[0]] * rank
        case "ones first":
            return [*[1] * (rank - 1), rng.choice((3, 4, 8, 16))]
        case "near":
            return [rng.choice((4, 8, 12, 16)) + rng.choice((0, 0, 1, 2, 3)) for _ in sizes]
    return sizes


def arguments_of(
    rng: random.Random, rank: int, form: str | None, kind: str = "any", vector_is: str = "last"
) -> list[str]:
    """Expressions for the arguments of a call; `form` is that of the tensor, None for any, `kind`
    that of its sizes, and `vector_is` which of them the vector has."""
    sizes = sizes_of(rng, rank, kind)
    chosen = form or rng.choice(FORMS)
    length = {"last": sizes[-1], "first": sizes[0], "4": 4}.get(vector_is) or rng.choice(SIZES)
    vector = tensor_of(rng, [length], "compact" if rng.random() < 0.8 else "rows")
    tensor = tensor_of(rng, sizes, chosen)
    return [tensor, vector, str(rng.randrange(1, 9)), rng.choice(("0.5", "2.0", "-1.5", "0.0"))]
