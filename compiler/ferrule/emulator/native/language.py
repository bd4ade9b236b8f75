"""Plain functions with typed numbers, to LLVM text.

    def double(at: u64, n: i64) -> i32:
        for i in range(n):
            store_u32(at + u64(i) * 4, load_u32(at + u64(i) * 4) * 2)
        return 0

The text looks like Python and is read by Python's parser; it means less. Variables have the type
of what they are first given, both sides of an operation have the same type, and a number that is
written has the type of the other side. Addresses are u64. Integers wrap; division and right shifts
go by the type's sign. Types are i1, iN and uN of 8 to 64 bits, f32, f64, and vectors such as f32x8.

Built in: load_T(address), store_T(address, value), T(value) to convert, as_T(value) for the same
bits, splat_T(value), fma, min, max, popc, ctz, local(bytes), copy(to, from, bytes),
fill(to, byte, bytes), address_of(function), call(address, u64...), atomic_OP_T(address, value).
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from functools import cache

from ferrule.emulator.native.types import NativeError, kind_of, llvm
from ferrule.emulator.native.values import SHARED_PREFIX, Loop, Values
from ferrule.specs.deferred import dataclass


@cache
def functions(source: str) -> Mapping[str, ast.FunctionDef]:
    """The functions of a text by name."""
    found = {}
    for node in ast.parse(source).body:
        assert isinstance(node, ast.FunctionDef)
        found[node.name] = node
    return found


def shared_text(source: str, names: Sequence[str], constants: Mapping[str, int]) -> str:
    """Functions that others call as `shared.NAME`, compiled once."""
    done, declared = _reached(SHARED_PREFIX, source, names, constants, frozenset(names))
    return "\n".join([*declared, *done.values()]) + "\n"


def _reached(
    prefix: str,
    source: str,
    wanted: Sequence[str],
    constants: Mapping[str, int],
    public: frozenset[str] = frozenset(),
    shared: frozenset[str] = frozenset(),
) -> tuple[dict[str, str], dict[str, None]]:
    """The texts of functions and of all functions that they call, and their declarations."""
    known = functions(source)
    done: dict[str, str] = {}
    declared: dict[str, None] = {}
    left = list(wanted)
    while left:
        each = left.pop()
        if each in done:
            continue
        one = _Function(prefix, known, constants, declared, public, shared)
        done[each] = one.text(known[each])
        left += one.called
    return done, declared


def helper_text(
    name: str,
    source: str,
    entry: str,
    pointers: int,
    constants: Mapping[str, int],
    shared: frozenset[str] = frozenset(),
) -> str:
    """A helper `i32 (ptr warp, i32 mask, ptr...)` that calls `entry(w, mask, p0, ...)`.

    It calls functions of `shared` where these were compiled before.
    """
    done, declared = _reached(name, source, [entry], constants, frozenset(), shared)
    given = "".join(f", ptr %p{i}" for i in range(pointers))
    lines = [f'define i32 @"{name}"(ptr %w, i32 %mask{given}) {{']
    arguments = ["i64 %w.a", "i32 %mask"]
    lines.append("  %w.a = ptrtoint ptr %w to i64")
    for i in range(pointers):
        lines.append(f"  %a{i} = ptrtoint ptr %p{i} to i64")
        arguments.append(f"i64 %a{i}")
    lines.append(f'  %r = call i32 @"{name}.{entry}"({", ".join(arguments)})')
    lines.append("  ret i32 %r\n}\n")
    # The helper itself stands first: how many pointers it takes is read from the start of the text.
    return "\n".join([*lines, *declared, *done.values()]) + "\n"


@dataclass(slots=True)
class _Function(Values):
    def text(self, node: ast.FunctionDef) -> str:
        self.result = kind_of(node.returns)
        parameters = []
        for each in node.args.args:
            kind = kind_of(each.annotation)
            parameters.append(f"{llvm(kind)} %arg.{each.arg}")
            self._declare(each.arg, kind)
            self.do(f"store {llvm(kind)} %arg.{each.arg}, ptr %v.{each.arg}")
        self._body(node.body)
        self.do("unreachable")
        linkage = "" if node.name in self.public else "internal "
        head = f'define {linkage}{llvm(self.result)} @"{self.prefix}.{node.name}"'
        body = "\n".join([*self.places, *self.lines])
        return f"{head}({', '.join(parameters)}) {{\nentry:\n{body}\n}}"

    # ---- statements ----

    def _body(self, body: list[ast.stmt]) -> None:
        for each in body:
            try:
                self._statement(each)
            except NativeError as error:
                raise NativeError(f"{ast.unparse(each)}: {error}") from None

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Expr):
            if not isinstance(node.value, ast.Constant):
                self.value(node.value)
        elif isinstance(node, ast.Return):
            assert node.value is not None
            value = self.value(node.value, self.result)[0]
            self.do(f"ret {llvm(self.result)} {value}")
            self.begin(self.label("dead"))
        elif isinstance(node, ast.Assign):
            target = node.targets[0]
            assert isinstance(target, ast.Name)
            self._assign(target.id, node.value, self.variables.get(target.id, ""))
        elif isinstance(node, ast.AnnAssign):
            assert isinstance(node.target, ast.Name) and node.value is not None
            self._assign(node.target.id, node.value, kind_of(node.annotation))
        elif isinstance(node, ast.AugAssign):
            assert isinstance(node.target, ast.Name)
            whole = ast.BinOp(ast.Name(node.target.id), node.op, node.value)
            self._assign(node.target.id, whole, self.variables[node.target.id])
        elif isinstance(node, ast.If):
            self._if(node)
        elif isinstance(node, ast.While):
            self._while(node)
        elif isinstance(node, ast.For):
            self._for(node)
        elif isinstance(node, (ast.Break, ast.Continue)):
            loop = self.loops[-1]
            self.do(f"br label %{loop.over if isinstance(node, ast.Break) else loop.again}")
            self.begin(self.label("dead"))
        else:
            raise NativeError(f"no statement: {ast.unparse(node)}")

    def _assign(self, name: str, source: ast.expr, kind: str) -> None:
        value, found = self.value(source, kind)
        if found == "number":
            found = kind or "i64"
        self._declare(name, found)
        self.do(f"store {llvm(found)} {value}, ptr %v.{name}")

    def _if(self, node: ast.If) -> None:
        known = self._known(node.test)
        if known is not None:
            self._body(node.body if known else node.orelse)
            return
        yes, no, over = self.label("yes"), self.label("no"), self.label("over")
        self._branch(node.test, yes, no)
        self.begin(yes)
        self._body(node.body)
        self.do(f"br label %{over}")
        self.begin(no)
        self._body(node.orelse)
        self.do(f"br label %{over}")
        self.begin(over)

    def _branch(self, test: ast.expr, yes: str, no: str) -> None:
        """A jump by a condition, of which only as much is computed as is needed."""
        if isinstance(test, ast.BoolOp):
            for part in test.values[:-1]:
                more = self.label("more")
                both = isinstance(test.op, ast.And)
                self._branch(part, more if both else yes, no if both else more)
                self.begin(more)
            self._branch(test.values[-1], yes, no)
        elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            self._branch(test.operand, no, yes)
        else:
            value = self.value(test, "i1")[0]
            self.do(f"br i1 {value}, label %{yes}, label %{no}")

    def _while(self, node: ast.While) -> None:
        again, inside, over = self.label("again"), self.label("inside"), self.label("over")
        self.do(f"br label %{again}")
        self.begin(again)
        self._branch(node.test, inside, over)
        self.begin(inside)
        self.loops.append(Loop(again, over))
        self._body(node.body)
        self.loops.pop()
        self.do(f"br label %{again}")
        self.begin(over)

    def _for(self, node: ast.For) -> None:
        assert isinstance(node.target, ast.Name) and isinstance(node.iter, ast.Call)
        given = node.iter.args
        start, stop = (ast.Constant(0), given[0]) if len(given) == 1 else (given[0], given[1])
        limit, kind = self.value(stop, self.variables.get(node.target.id, ""))
        if kind == "number":
            kind = self.variables.get(node.target.id, "i64")
        name = node.target.id
        self._assign(name, start, kind)
        test, inside, again, over = (self.label(x) for x in ("test", "inside", "again", "over"))
        self.do(f"br label %{test}")
        self.begin(test)
        here = self.op(f"load {llvm(kind)}, ptr %v.{name}")
        sign = "s" if kind[0] == "i" else "u"
        more = self.op(f"icmp {sign}lt {llvm(kind)} {here}, {limit}")
        self.do(f"br i1 {more}, label %{inside}, label %{over}")
        self.begin(inside)
        self.loops.append(Loop(again, over))
        self._body(node.body)
        self.loops.pop()
        self.do(f"br label %{again}")
        self.begin(again)
        here = self.op(f"load {llvm(kind)}, ptr %v.{name}")
        after = self.op(f"add {llvm(kind)} {here}, 1")
        self.do(f"store {llvm(kind)} {after}, ptr %v.{name}")
        self.do(f"br label %{test}")
        self.begin(over)
