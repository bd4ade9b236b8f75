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
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

Value = tuple[str, str]
"""LLVM's name of a value, and its type here; a written number has the type "number"."""

_NAME: Final = re.compile(r"(i1|[iu](?:8|16|32|64)|f(?:16|32|64))(?:x(\d+))?")
_BINARY: Final[dict[type, tuple[str, str, str]]] = {
    ast.Add: ("add", "add", "fadd"), ast.Sub: ("sub", "sub", "fsub"),
    ast.Mult: ("mul", "mul", "fmul"), ast.FloorDiv: ("sdiv", "udiv", ""),
    ast.Mod: ("srem", "urem", ""), ast.BitAnd: ("and", "and", ""), ast.BitOr: ("or", "or", ""),
    ast.BitXor: ("xor", "xor", ""), ast.LShift: ("shl", "shl", ""),
    ast.RShift: ("ashr", "lshr", ""), ast.Div: ("", "", "fdiv"),
}  # fmt: skip
_COMPARED: Final[dict[type, tuple[str, str, str]]] = {
    ast.Eq: ("eq", "eq", "oeq"), ast.NotEq: ("ne", "ne", "une"), ast.Lt: ("slt", "ult", "olt"),
    ast.LtE: ("sle", "ule", "ole"), ast.Gt: ("sgt", "ugt", "ogt"), ast.GtE: ("sge", "uge", "oge"),
}  # fmt: skip


class NativeError(Exception):
    """A function of this package that means nothing: a mistake of the emulator's own."""


def llvm(kind: str) -> str:
    """LLVM's type."""
    found = _NAME.fullmatch(kind)
    if found is None:
        raise NativeError(f"there is no type {kind}")
    base = {"f16": "half", "f32": "float", "f64": "double"}.get(found[1], "i" + found[1][1:])
    return f"<{found[2]} x {base}>" if found[2] else base


def width(kind: str) -> int:
    """Bits of a type's element."""
    found = _NAME.fullmatch(kind)
    assert found is not None
    return int(found[1][1:])


@cache
def functions(source: str) -> Mapping[str, ast.FunctionDef]:
    """The functions of a text by name."""
    found = {}
    for node in ast.parse(source).body:
        assert isinstance(node, ast.FunctionDef)
        found[node.name] = node
    return found


SHARED_PREFIX: Final = "shared"


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
    """The texts of functions and of those that they call, and what these declare."""
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
class _Loop:
    again: str
    over: str


@dataclass(slots=True)
class _Function:
    prefix: str
    known: Mapping[str, ast.FunctionDef]
    constants: Mapping[str, int]
    declared: dict[str, None]
    public: frozenset[str] = frozenset()
    shared: frozenset[str] = frozenset()
    called: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    loops: list[_Loop] = field(default_factory=list)
    result: str = "i32"
    count: int = 0

    # ---- text ----

    def text(self, node: ast.FunctionDef) -> str:
        self.result = _kind(node.returns)
        parameters = []
        for each in node.args.args:
            kind = _kind(each.annotation)
            parameters.append(f"{llvm(kind)} %arg.{each.arg}")
            self._declare(each.arg, kind)
            self.do(f"store {llvm(kind)} %arg.{each.arg}, ptr %v.{each.arg}")
        self._body(node.body)
        self.do("unreachable")
        linkage = "" if node.name in self.public else "internal "
        head = f'define {linkage}{llvm(self.result)} @"{self.prefix}.{node.name}"'
        body = "\n".join([*self.places, *self.lines])
        return f"{head}({', '.join(parameters)}) {{\nentry:\n{body}\n}}"

    def do(self, line: str) -> None:
        self.lines.append(f"  {line}")

    def op(self, text: str) -> str:
        self.count += 1
        self.do(f"%t{self.count} = {text}")
        return f"%t{self.count}"

    def label(self, what: str) -> str:
        self.count += 1
        return f"{what}{self.count}"

    def begin(self, label: str) -> None:
        self.lines.append(f"{label}:")

    def _declare(self, name: str, kind: str) -> None:
        if name not in self.variables:
            self.variables[name] = kind
            self.places.append(f"  %v.{name} = alloca {llvm(kind)}")
        elif self.variables[name] != kind:
            raise NativeError(f"{name} is {self.variables[name]} and {kind}")

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
            self._assign(node.target.id, node.value, _kind(node.annotation))
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

    def _known(self, test: ast.expr) -> bool | None:
        """The outcome of a comparison of numbers that are known."""
        if not isinstance(test, ast.Compare):
            return None
        (a, one), (b, other) = self._fixed(test.left), self._fixed(test.comparators[0])
        how = _COMPARED[type(test.ops[0])][0]
        text = {"eq": a == b, "ne": a != b, "slt": a < b, "sle": a <= b, "sgt": a > b}
        return text.get(how, a >= b) if one and other else None

    def _fixed(self, node: ast.expr) -> tuple[int, bool]:
        """A number that is known, and whether it is."""
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return node.value, True
        if isinstance(node, ast.Name) and node.id not in self.variables:
            return self.constants.get(node.id, 0), node.id in self.constants
        return 0, False

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
        self.loops.append(_Loop(again, over))
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
        self.loops.append(_Loop(again, over))
        self._body(node.body)
        self.loops.pop()
        self.do(f"br label %{again}")
        self.begin(again)
        here = self.op(f"load {llvm(kind)}, ptr %v.{name}")
        after = self.op(f"add {llvm(kind)} {here}, 1")
        self.do(f"store {llvm(kind)} {after}, ptr %v.{name}")
        self.do(f"br label %{test}")
        self.begin(over)

    # ---- expressions ----

    def value(self, node: ast.expr, kind: str = "") -> Value:
        """A value, of `kind` where that is said."""
        found = self._value(node, kind)
        if not kind or found[1] == kind:
            return found
        if found[1] == "number":
            return _written(found[0], kind), kind
        raise NativeError(f"{ast.unparse(node)} is {found[1]}, not {kind}")

    def _value(self, node: ast.expr, kind: str) -> Value:
        if isinstance(node, ast.Constant):
            return str(int(node.value) if isinstance(node.value, bool) else node.value), "number"
        if isinstance(node, ast.Name):
            if node.id in self.variables:
                have = self.variables[node.id]
                return self.op(f"load {llvm(have)}, ptr %v.{node.id}"), have
            if node.id in self.constants:
                return str(self.constants[node.id]), "number"
            raise NativeError(f"there is no {node.id}")
        if isinstance(node, ast.BinOp):
            return self._binary(node, kind)
        if isinstance(node, ast.UnaryOp):
            return self._unary(node, kind)
        if isinstance(node, ast.Compare):
            return self._compare(node)
        if isinstance(node, ast.IfExp):
            return self._choice(node, kind)
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.BoolOp):
            parts = [self.value(each, "i1")[0] for each in node.values]
            how = "and" if isinstance(node.op, ast.And) else "or"
            whole = parts[0]
            for part in parts[1:]:
                whole = self.op(f"{how} i1 {whole}, {part}")
            return whole, "i1"
        raise NativeError(f"no value: {ast.unparse(node)}")

    def _both(self, left: ast.expr, right: ast.expr, kind: str) -> tuple[str, str, str]:
        a, b = self._value(left, kind), self._value(right, kind)
        if a[1] == b[1] == "number":
            return a[0], b[0], "number"
        if a[1] == "number":
            return _written(a[0], b[1]), b[0], b[1]
        if b[1] == "number":
            return a[0], _written(b[0], a[1]), a[1]
        if a[1] != b[1]:
            raise NativeError(f"{ast.unparse(left)} is {a[1]}, {ast.unparse(right)} is {b[1]}")
        return a[0], b[0], a[1]

    def _binary(self, node: ast.BinOp, kind: str) -> Value:
        a, b, found = self._both(node.left, node.right, kind)
        if found == "number":
            whole = ast.Expression(ast.BinOp(ast.Constant(int(a)), node.op, ast.Constant(int(b))))
            return str(eval(compile(ast.fix_missing_locations(whole), "", "eval"))), "number"
        names = _BINARY[type(node.op)]
        name = names["iuf".index(found[0])]
        if not name:
            raise NativeError(f"no such operation of {found}")
        return self.op(f"{name} {llvm(found)} {a}, {b}"), found

    def _unary(self, node: ast.UnaryOp, kind: str) -> Value:
        value, found = self._value(node.operand, kind)
        if isinstance(node.op, ast.Not):
            return self.op(f"xor i1 {value}, true"), "i1"
        if found == "number":
            return str(-int(value) if isinstance(node.op, ast.USub) else ~int(value)), found
        if isinstance(node.op, ast.Invert):
            return self.op(f"xor {llvm(found)} {value}, -1"), found
        if found[0] == "f":
            return self.op(f"fneg {llvm(found)} {value}"), found
        return self.op(f"sub {llvm(found)} 0, {value}"), found

    def _compare(self, node: ast.Compare) -> Value:
        a, b, kind = self._both(node.left, node.comparators[0], "")
        if kind == "number":
            kind = "i64"
        names = _COMPARED[type(node.ops[0])]
        how = "fcmp" if kind[0] == "f" else "icmp"
        return self.op(f"{how} {names['iuf'.index(kind[0])]} {llvm(kind)} {a}, {b}"), "i1"

    def _choice(self, node: ast.IfExp, kind: str) -> Value:
        test = self.value(node.test, "i1")[0]
        a, b, found = self._both(node.body, node.orelse, kind)
        if found == "number":
            found = kind or "i64"
        return self.op(f"select i1 {test}, {llvm(found)} {a}, {llvm(found)} {b}"), found

    # ---- calls ----

    def _call(self, node: ast.Call) -> Value:
        assert isinstance(node.func, ast.Name)
        name = node.func.id
        if name in self.known:
            return self._own(name, node.args)
        what, _, rest = name.partition("_")
        if what == "atomic":
            return self._atomic(rest, node.args)
        if _NAME.fullmatch(rest or ""):
            return self._typed(what, rest, node.args)
        if _NAME.fullmatch(name):
            return self._converted(name, node.args[0])
        return self._built_in(name, node.args)

    def _own(self, name: str, given: list[ast.expr]) -> Value:
        wanted = self.known[name]
        kinds = [_kind(each.annotation) for each in wanted.args.args]
        if len(kinds) != len(given):
            raise NativeError(f"{name} takes {len(kinds)} arguments")
        values = [
            f"{llvm(kind)} {self.value(each, kind)[0]}"
            for each, kind in zip(given, kinds, strict=True)
        ]
        result = _kind(wanted.returns)
        prefix = self.prefix
        if name in self.shared:
            prefix = self._share(name)
        else:
            self.called.append(name)
        text = f'call {llvm(result)} @"{prefix}.{name}"({", ".join(values)})'
        return self.op(text), result

    def _share(self, name: str) -> str:
        """Declare a function that is compiled elsewhere."""
        node = self.known[name]
        types = ", ".join(llvm(_kind(each.annotation)) for each in node.args.args)
        self._declared(f'declare {llvm(_kind(node.returns))} @"{SHARED_PREFIX}.{name}"({types})')
        return SHARED_PREFIX

    def _typed(self, what: str, kind: str, given: list[ast.expr]) -> Value:
        if what == "load":
            pointer = self._pointer(given[0])
            return self.op(f"load {llvm(kind)}, ptr {pointer}, align 1"), kind
        if what == "store":
            value = self.value(given[1], kind)[0]
            pointer = self._pointer(given[0])
            self.do(f"store {llvm(kind)} {value}, ptr {pointer}, align 1")
            return "0", "number"
        if what == "as":
            value, have = self.value(given[0])
            if llvm(have) == llvm(kind):
                return value, kind
            return self.op(f"bitcast {llvm(have)} {value} to {llvm(kind)}"), kind
        if what == "splat":
            element, _, many = kind.partition("x")
            value = self.value(given[0], element)[0]
            first = self.op(f"insertelement {llvm(kind)} poison, {llvm(element)} {value}, i32 0")
            mask = f"<{many} x i32> zeroinitializer"
            return (
                self.op(f"shufflevector {llvm(kind)} {first}, {llvm(kind)} poison, {mask}"),
                kind,
            )
        raise NativeError(f"there is no {what}")

    def _pointer(self, node: ast.expr) -> str:
        address = self.value(node, "u64")[0]
        return self.op(f"inttoptr i64 {address} to ptr")

    def _converted(self, kind: str, node: ast.expr) -> Value:
        value, have = self.value(node)
        if have == "number":
            return _written(value, kind), kind
        if llvm(have) == llvm(kind):
            return value, kind
        how = _conversion(have, kind)
        return self.op(f"{how} {llvm(have)} {value} to {llvm(kind)}"), kind

    def _built_in(self, name: str, given: list[ast.expr]) -> Value:
        if name == "local":
            size = int(self._value(given[0], "")[0])
            self.count += 1
            self.places.append(f"  %l{self.count} = alloca [{size} x i8], align 64")
            return self.op(f"ptrtoint ptr %l{self.count} to i64"), "u64"
        if name == "copy":
            to, source = self._pointer(given[0]), self._pointer(given[1])
            size = self.value(given[2], "u64")[0]
            self._declared("declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)")
            self.do(
                f"call void @llvm.memmove.p0.p0.i64(ptr {to}, ptr {source}, i64 {size}, i1 false)"
            )
            return "0", "number"
        if name == "fill":
            to, byte = self._pointer(given[0]), self.value(given[1], "u8")[0]
            size = self.value(given[2], "u64")[0]
            self._declared("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
            self.do(f"call void @llvm.memset.p0.i64(ptr {to}, i8 {byte}, i64 {size}, i1 false)")
            return "0", "number"
        if name == "address_of":
            assert isinstance(given[0], ast.Name)
            prefix = self._share(given[0].id)
            return self.op(f'ptrtoint ptr @"{prefix}.{given[0].id}" to i64'), "u64"
        if name == "call":
            values = ", ".join(f"i64 {self.value(each, 'u64')[0]}" for each in given[1:])
            return self.op(f"call i32 {self._pointer(given[0])}({values})"), "i32"
        return self._maths(name, given)

    def _maths(self, name: str, given: list[ast.expr]) -> Value:
        values = [self.value(each) for each in given]
        kind = next(each[1] for each in values if each[1] != "number")
        sign = kind[0]
        known = {
            "fma": "fma", "popc": "ctpop", "ctz": "cttz",
            "min": {"i": "smin", "u": "umin"}.get(sign), "max": {"i": "smax", "u": "umax"}.get(sign),
        }  # fmt: skip
        intrinsic = known.get(name)
        if intrinsic is None:
            raise NativeError(f"there is no {name} of {kind}")
        shape = _NAME.fullmatch(kind)
        assert shape is not None
        vector = f"v{shape[2]}" if shape[2] else ""
        full = f"llvm.{intrinsic}.{vector}{'f' if sign == 'f' else 'i'}{width(kind)}"
        texts = [_written(v, kind) if k == "number" else v for v, k in values]
        types = [llvm(kind)] * len(texts)
        if name == "ctz":
            texts.append("false")
            types.append("i1")
        self._declared(f"declare {llvm(kind)} @{full}({', '.join(types)})")
        listed = ", ".join(f"{t} {v}" for t, v in zip(types, texts, strict=True))
        return self.op(f"call {llvm(kind)} @{full}({listed})"), kind

    def _atomic(self, rest: str, given: list[ast.expr]) -> Value:
        """`atomic_add_u32(address, value)`: what was there."""
        what, _, kind = rest.partition("_")
        pointer, value = self._pointer(given[0]), self.value(given[1], kind)[0]
        if what in ("min", "max"):
            what = kind[0].replace("i", "") + what
        align = width(kind) // 8
        line = f"atomicrmw {what} ptr {pointer}, {llvm(kind)} {value} seq_cst, align {align}"
        return self.op(line), kind

    def _declared(self, line: str) -> None:
        self.declared[line] = None


def _kind(node: Any) -> str:
    assert isinstance(node, ast.Name)
    return node.id


def _conversion(have: str, kind: str) -> str:
    from_float, to_float = have[0] == "f", kind[0] == "f"
    if from_float and to_float:
        return "fpext" if width(have) < width(kind) else "fptrunc"
    if from_float:
        return "fptosi" if kind[0] == "i" else "fptoui"
    if to_float:
        return "sitofp" if have[0] == "i" and have != "i1" else "uitofp"
    if width(have) > width(kind):
        return "trunc"
    return "sext" if have[0] == "i" and have != "i1" else "zext"


def _written(text: str, kind: str) -> str:
    """A number as LLVM writes it."""
    shape = _NAME.fullmatch(kind)
    assert shape is not None
    if shape[1][0] == "f":
        number = struct.unpack("<f", struct.pack("<f", float(text)))[0]
        one = f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"
    else:
        one = {"0": "false", "1": "true"}[text] if kind == "i1" else text
    return f"splat ({llvm(shape[1])} {one})" if shape[2] else one
