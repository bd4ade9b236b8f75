"""Random statements: blocks that declare, change and carry numbers, tuples and records.

A name keeps its dtype where a branch or loop changes it; what a block declares is not read after
it.  A Python number that a loop or branch carries is given its dtype where it is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ferrule.specs import Boolean, DType, Int32, Int64
from random_programs import pieces
from random_programs.expressions import (
    ARITHMETIC,
    BITWISE,
    Expressions,
    Helper,
    Scope,
    Tensor,
    Typed,
    name_of,
)
from random_programs.promotion import is_wide, promoted, weak

INDENT = "    "


@dataclass(frozen=True)
class Group:
    """A tuple or record in a name: how its items are read, what makes one, and their dtypes."""

    name: str
    items: tuple[str, ...]
    make: str
    dtypes: tuple[DType, ...]


@dataclass
class Names:
    """Names for a whole program; `dropped` are those of blocks that ended, each with its dtype.

    A name that comes back keeps its dtype, for both sides of a branch may give it a value.
    """

    count: int = 0
    dropped: dict[str, DType] = field(default_factory=dict)

    def fresh(self, letter: str = "x") -> str:
        """A name that nothing has yet."""
        self.count += 1
        return f"{letter}{self.count}"


@dataclass
class Block:
    """The state of a block while it is written.

    `stores`: the tensors that are written to, at `place` only if there is one; `rows`: one with
    two dims, written in its row `place`.  `exits`: how control may leave.  `fragments` are written
    to anywhere; `vectors`: the size and dtype of each.  `returns`: the dtypes that a `return`
    gives.  `own`: names that only this very block has, which may take another dtype, once.
    """

    scope: Scope
    stores: tuple[Tensor, ...] = ()
    place: str = ""
    rows: Tensor | None = None
    exits: tuple[str, ...] = ("return",)
    returns: tuple[DType, ...] = ()
    groups: list[Group] = field(default_factory=list)
    fragments: tuple[Tensor, ...] = ()
    vectors: dict[str, tuple[int, DType]] = field(default_factory=dict)
    own: list[str] = field(default_factory=list)

    def inner(self, *exits: str) -> Block:
        """A block nested in this one, with more ways out."""
        ways = tuple(dict.fromkeys((*self.exits, *exits)))
        return replace(
            self,
            scope=self.scope.inner(),
            exits=ways,
            groups=list(self.groups),
            vectors=dict(self.vectors),
            own=[],
        )


@dataclass(frozen=True)
class Statements:
    """Draws statements.  `records`: the classes of the module, which have an `a` and a `b`."""

    expressions: Expressions
    names: Names
    records: tuple[str, ...] = ("Pair", "Data")

    def block(self, block: Block, count: int, depth: int) -> list[str]:
        """Lines of so many statements; nested ones are at most `depth` deep."""
        lines: list[str] = []
        for _ in range(count):
            lines += self.statement(block, depth)
        return lines or ["pass"]

    def nested(self, block: Block, depth: int) -> list[str]:
        """The indented lines of a block inside this one."""
        inner = block.inner()
        lines = self.block(inner, 1 + self.expressions.choices.below(1 + depth), depth - 1)
        self.names.dropped |= {name: inner.scope.numbers[name] for name in inner.own}
        return [INDENT + line for line in lines]

    def statement(self, block: Block, depth: int) -> list[str]:
        """One statement, which may be more than one line."""
        weights = {
            self.declare: 4,
            self.update: 4,
            self.store: 4,
            self.group: 2,
            self.swap: 1,
            **pieces.makers(self, depth),
        }
        if depth > 0:
            weights |= {self.if_: 5, self.for_: 4, self.while_: 2, self.unrolled: 2, self.exit: 2}
            weights[self.search] = 2
        make = self.expressions.choices.weighted(weights)
        return make(block, depth)

    # ---- names ----

    def declare(self, block: Block, depth: int) -> list[str]:
        """A new name, one of this block with another dtype, or one of a block that ended."""
        choices = self.expressions.choices
        value = self.expressions.number(block.scope, 2)
        again = [name for name, dtype in self.names.dropped.items() if dtype is value.dtype]
        if again and choices.chance(40):
            name = choices.one(again)
            del self.names.dropped[name]
        elif block.own and choices.chance(15):
            name = block.own.pop()
        else:
            name = self.names.fresh()
            block.own.append(name)
        block.scope.numbers[name] = value.dtype
        return [f"{name} = {value.text}"]

    def variables(self, block: Block) -> list[str]:
        """Names whose value may change."""
        names = block.scope.numbers
        return [name for name in names if name.isidentifier() and name[0] == "x"]

    def update(self, block: Block, depth: int) -> list[str]:
        """A new value of the same dtype for a name or a group."""
        choices, names = self.expressions.choices, self.variables(block)
        if block.groups and (not names or choices.chance(30)):
            group = choices.one(block.groups)
            values = [self.expressions.of(dtype, block.scope, 1) for dtype in group.dtypes]
            return [f"{group.name} = {group.make.format(*values)}"]
        if not names:
            return self.declare(block, depth)
        name = choices.one(names[::-1])
        dtype = block.scope.numbers[name]
        if choices.chance(50):
            return [f"{name} = {self.expressions.of(dtype, block.scope, 2)}"]
        return self.augmented(name, dtype, block)

    def augmented(self, target: str, dtype: DType, block: Block) -> list[str]:
        """`target op= value` with a result of the target's dtype."""
        ops = (*ARITHMETIC, *BITWISE) if dtype.is_integer else ARITHMETIC
        if dtype is Boolean:
            ops = BITWISE
        value = self.expressions.number(block.scope, 1)
        if promoted(dtype, value.dtype) is not dtype:
            value = Typed(f"{name_of(dtype)}({value.text})", dtype)
        return [f"{target} {self.expressions.choices.one(ops)}= {value.text}"]

    def group(self, block: Block, depth: int) -> list[str]:
        """A new tuple or record."""
        choices = self.expressions.choices
        values = [self.expressions.number(block.scope, 1) for _ in range(2)]
        name = self.names.fresh("t")
        if choices.chance(60):
            items, make = (f"{name}.a", f"{name}.b"), choices.one(self.records) + "({}, {})"
        else:
            items, make = (f"{name}[0]", f"{name}[1]"), "({}, {})"
        made = Group(name, items, make, tuple(value.dtype for value in values))
        block.groups.append(made)
        block.scope.numbers.update(zip(items, made.dtypes, strict=True))
        return [f"{name} = {make.format(*(value.text for value in values))}"]

    def swap(self, block: Block, depth: int) -> list[str]:
        """Two names assigned at once."""
        names = self.variables(block)
        if len(names) < 2:
            return self.update(block, depth)
        choices = self.expressions.choices
        left, right = choices.one(names), choices.one(names)
        dtypes = block.scope.numbers
        first, second = (
            source if dtypes[source] is dtypes[target] else f"{name_of(dtypes[target])}({source})"
            for target, source in ((left, right), (right, left))
        )
        return [f"{left}, {right} = {first}, {second}"]

    def store(self, block: Block, depth: int) -> list[str]:
        """An element of a tensor is written."""
        choices = self.expressions.choices
        if block.fragments and choices.chance(30 if block.stores else 100):
            tensor, place = choices.one(block.fragments), ""
        elif block.stores:
            tensor, place = choices.one(block.stores), block.place
        else:
            return self.update(block, depth)
        at = place or self.expressions.index(tensor, 0, block.scope)
        target = f"{tensor.name}[{at}]"
        if choices.chance(30):
            return self.augmented(target, tensor.dtype, block)
        return [f"{target} = {self.stored(tensor.dtype, block.scope)}"]

    def stored(self, dtype: DType, scope: Scope) -> str:
        """A number as it can be stored: upwards by itself, else converted."""
        value = self.expressions.number(scope, 3)
        ranks = {"bool": 0, "int": 1, "uint": 1, "float": 2}
        fits = dtype is not Boolean and ranks[value.dtype.kind] <= ranks[dtype.kind]
        if value.dtype is dtype or fits:
            return value.text
        return f"{name_of(dtype)}({value.text})"

    # ---- control flow ----

    def if_(self, block: Block, depth: int) -> list[str]:
        """`if`, `elif`, `else`; now and then a name gets a Python number on one side."""
        choices = self.expressions.choices
        lines = [f"if {self.expressions.condition(block.scope, 2)}:", *self.nested(block, depth)]
        if choices.chance(25):
            lines.append(f"elif {self.expressions.condition(block.scope, 1)}:")
            lines += self.nested(block, depth)
        if choices.chance(50):
            lines += ["else:", *self.nested(block, depth)]
        names = self.variables(block)
        if names and choices.chance(20):
            name = choices.one(names)
            dtype = block.scope.numbers[name]
            lines += [f"{INDENT}{name} = {self.python_number(dtype)}"]
            lines += [f"{name} = {name_of(dtype)}({name})"]
        return lines

    def exit(self, block: Block, depth: int) -> list[str]:
        """Control leaves where a condition holds."""
        choices = self.expressions.choices
        lines = [f"if {self.expressions.condition(block.scope, 1)}:"]
        if choices.chance(40):
            lines += self.nested(block, depth - 1)
        way = choices.one(block.exits[::-1])
        if way == "return":
            way = self.return_(block.returns, block.scope)
        return [*lines, INDENT + way]

    def return_(self, dtypes: tuple[DType, ...], scope: Scope) -> str:
        """A return of values of these dtypes."""
        values = [self.expressions.of(dtype, scope, 2) for dtype in dtypes]
        return f"return {', '.join(values)}".rstrip()

    def python_number(self, dtype: DType) -> str:
        """A number known at compile time that becomes one of this dtype."""
        choices = self.expressions.choices
        if dtype is Boolean:
            return choices.one(("False", "True"))
        if dtype.kind == "float" and choices.chance(50):
            return choices.one(("0.0", "-0.0", "1.5"))
        return choices.one(("0", "1", "5"))

    def carried(self, block: Block) -> tuple[list[str], list[str]]:
        """Before a loop: a name that begins as a Python number; in and after it: its dtype."""
        choices = self.expressions.choices
        if not choices.chance(40):
            return [], []
        name, dtype = self.names.fresh(), choices.one(self.expressions.dtypes)
        number = self.python_number(dtype)
        assert weak(eval(number), dtype) is dtype
        block.scope.numbers[name] = dtype
        return [f"{name} = {number}"], [f"{name} = {name_of(dtype)}({name})"]

    def for_(self, block: Block, depth: int) -> list[str]:
        """A loop over a range of at most about ten, upwards or downwards."""
        choices = self.expressions.choices
        bounds = [self.bound(block.scope) for _ in range(1 + choices.below(3))]
        if len(bounds) == 3:
            step = choices.one(("1", "2", "-1", "-3", ""))
            bounds[2] = (step, Int32) if step else self.step(block.scope)
        index = self.names.fresh("i")
        dtype = Int64 if any(is_wide(dtype) for _, dtype in bounds) else Int32
        header = f"for {index} in range({', '.join(text for text, _ in bounds)}):"
        before, typed = self.carried(block)
        return [*before, *self.loop(header, block, depth, {index: dtype}, typed), *typed]

    def bound(self, scope: Scope) -> tuple[str, DType]:
        """A bound of a range: a small number, at run time or not."""
        choices = self.expressions.choices
        if choices.chance(40):
            return str(choices.below(9) - 2), Int32
        text, dtype = self.integer(scope)
        return f"{text} % {2 + choices.below(7)}", dtype

    def step(self, scope: Scope) -> tuple[str, DType]:
        """A step that is known only at run time, and is not 0."""
        text, dtype = self.integer(scope)
        return f"{text} % 3 + 1", dtype

    def integer(self, scope: Scope) -> tuple[str, DType]:
        """A run-time integer."""
        value = self.expressions.number(scope, 1)
        if value.dtype.is_integer:
            return value.text, value.dtype
        return f"fe.Int32({value.text})", Int32

    def while_(self, block: Block, depth: int) -> list[str]:
        """A loop that ends after a few iterations at the latest."""
        choices = self.expressions.choices
        counter = self.names.fresh("w")
        tests = [f"{counter} < {1 + choices.below(5)}"]
        tests.insert(choices.below(2), self.expressions.condition(block.scope, 1))
        before, typed = self.carried(block)
        header = f"while {' and '.join(tests)}:"
        lines = self.loop(header, block, depth, {}, typed, [f"{counter} += 1"])
        return [f"{counter} = 0", *before, *lines, *typed]

    def search(self, block: Block, depth: int) -> list[str]:
        """A loop to a bound, to another one that is read again each time, or to what it finds.

        LLVM 22.1 takes the first of these exits out of a loop that also writes, where the second
        one ends the function.
        """
        if not block.scope.tensors:
            return self.for_(block, depth)
        choices, index = self.expressions.choices, self.names.fresh("i")
        body = block.inner("break", "continue")
        body.scope.numbers[index] = Int64
        test = choices.one((">=", ">", "=="))
        leave = choices.one(("break", self.return_(block.returns, block.scope)))
        if not block.place and not block.returns and choices.chance(60):  # the host can raise
            leave = 'raise IndexError("too far")'
        lines = [
            f"if {index} {test} fe.Int64({self.expressions.element(body.scope).text}):",
            INDENT + leave,
            *self.store(body, depth),
            *self.block(body, choices.below(1 + depth), depth - 1),
            f"if {self.expressions.condition(body.scope, 1)}:",
            INDENT + "break",
        ]
        self.names.dropped |= {name: body.scope.numbers[name] for name in body.own}
        text, _ = self.integer(block.scope)
        header = f"for {index} in range(fe.Int64({text}) % {2 + choices.below(9)}):"
        return [header, *(INDENT + line for line in lines)]

    def loop(
        self,
        header: str,
        block: Block,
        depth: int,
        indices: dict[str, DType],
        typed: list[str],
        first: Sequence[str] = (),
    ) -> list[str]:
        """A loop with these indices; `typed` begins its body and its `else`, `first` the body."""
        body = block.inner("break", "continue")
        body.scope.numbers |= indices
        typed = [INDENT + line for line in typed]
        lines = [header, *typed, *(INDENT + line for line in first), *self.nested(body, depth)]
        if self.expressions.choices.chance(15):
            lines += ["else:", *typed, *self.nested(block, depth)]
        return lines

    def unrolled(self, block: Block, depth: int) -> list[str]:
        """A loop that is unrolled, with an integer known at compile time."""
        index = self.names.fresh("k")
        body = block.inner("break", "continue")
        body.scope.constants.append(index)
        count = 1 + self.expressions.choices.below(3)
        return [f"for {index} in fe.range_constexpr({count}):", *self.nested(body, depth)]


def helper(statements: Statements, others: tuple[Helper, ...]) -> tuple[list[str], Helper]:
    """A function of one to three numbers, which returns one or a tuple of two.

    `others`: those that it may call.
    """
    choices = statements.expressions.choices
    name = statements.names.fresh("h")
    parameters = {
        statements.names.fresh(): choices.one(statements.expressions.dtypes)
        for _ in range(1 + choices.below(3))
    }
    results = tuple(choices.one(statements.expressions.dtypes) for _ in range(1 + choices.below(2)))
    inner = Block(Scope(dict(parameters), helpers=others), returns=results)
    body = statements.block(inner, choices.below(3), 1)
    body.append(statements.return_(results, inner.scope))
    lines = [f"def {name}({', '.join(parameters)}):", *(INDENT + line for line in body)]
    return lines, Helper(name, parameters, results)
