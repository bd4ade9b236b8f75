"""Expressions of native functions: what reads variables, computes, loads, stores and calls."""

from __future__ import annotations

import ast
import operator
from collections.abc import Mapping
from dataclasses import field
from typing import Final

from ferrule.emulator.native.types import (
    NAME,
    NativeError,
    Value,
    conversion,
    kind_of,
    llvm,
    width,
    written,
)
from ferrule.specs.deferred import dataclass

SHARED_PREFIX: Final = "shared"

_BINARY: Final[dict[type, tuple[str, str, str]]] = {
    ast.Add: ("add", "add", "fadd"), ast.Sub: ("sub", "sub", "fsub"),
    ast.Mult: ("mul", "mul", "fmul"), ast.FloorDiv: ("sdiv", "udiv", ""),
    ast.Mod: ("srem", "urem", ""), ast.BitAnd: ("and", "and", ""), ast.BitOr: ("or", "or", ""),
    ast.BitXor: ("xor", "xor", ""), ast.LShift: ("shl", "shl", ""),
    ast.RShift: ("ashr", "lshr", ""), ast.Div: ("", "", "fdiv"),
}  # fmt: skip
_FOLDED: Final = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.LShift: operator.lshift,
    ast.RShift: operator.rshift, ast.BitAnd: operator.and_, ast.BitOr: operator.or_,
}  # fmt: skip
_COMPARED: Final[dict[type, tuple[str, str, str]]] = {
    ast.Eq: ("eq", "eq", "oeq"), ast.NotEq: ("ne", "ne", "une"), ast.Lt: ("slt", "ult", "olt"),
    ast.LtE: ("sle", "ule", "ole"), ast.Gt: ("sgt", "ugt", "ogt"), ast.GtE: ("sge", "uge", "oge"),
}  # fmt: skip


_INTRINSICS: Final = {"fma": "fma", "popc": "ctpop", "ctz": "cttz"}
_BY_SIGN: Final = {
    ("min", "i"): "smin", ("min", "u"): "umin", ("max", "i"): "smax", ("max", "u"): "umax",
}  # fmt: skip


@dataclass(slots=True)
class Loop:
    """Where `continue` and `break` go."""

    again: str
    over: str


@dataclass(slots=True)
class Values:
    """What a function has so far: its text, variables and loops."""

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
    loops: list[Loop] = field(default_factory=list)
    result: str = "i32"
    count: int = 0

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

    # ---- expressions ----

    def value(self, node: ast.expr, kind: str = "") -> Value:
        """A value, of `kind` where that is said."""
        found = self._value(node, kind)
        if not kind or found[1] == kind:
            return found
        if found[1] == "number":
            return written(found[0], kind), kind
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
            return written(a[0], b[1]), b[0], b[1]
        if b[1] == "number":
            return a[0], written(b[0], a[1]), a[1]
        if a[1] != b[1]:
            raise NativeError(f"{ast.unparse(left)} is {a[1]}, {ast.unparse(right)} is {b[1]}")
        return a[0], b[0], a[1]

    def _binary(self, node: ast.BinOp, kind: str) -> Value:
        a, b, found = self._both(node.left, node.right, kind)
        if found == "number":
            return str(_FOLDED[type(node.op)](int(a), int(b))), found
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
        if NAME.fullmatch(rest or ""):
            return self._typed(what, rest, node.args)
        if NAME.fullmatch(name):
            return self._converted(name, node.args[0])
        return self._built_in(name, node.args)

    def _own(self, name: str, given: list[ast.expr]) -> Value:
        wanted = self.known[name]
        kinds = [kind_of(each.annotation) for each in wanted.args.args]
        if len(kinds) != len(given):
            raise NativeError(f"{name} takes {len(kinds)} arguments")
        values = [
            f"{llvm(kind)} {self.value(each, kind)[0]}"
            for each, kind in zip(given, kinds, strict=True)
        ]
        result = kind_of(wanted.returns)
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
        types = ", ".join(llvm(kind_of(each.annotation)) for each in node.args.args)
        self._declared(f'declare {llvm(kind_of(node.returns))} @"{SHARED_PREFIX}.{name}"({types})')
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
            return written(value, kind), kind
        if llvm(have) == llvm(kind):
            return value, kind
        how = conversion(have, kind)
        return self.op(f"{how} {llvm(have)} {value} to {llvm(kind)}"), kind

    def _built_in(self, name: str, given: list[ast.expr]) -> Value:
        if name == "local":
            size = int(self._value(given[0], "")[0])
            self.count += 1
            self.places.append(f"  %l{self.count} = alloca [{size} x i8], align 64")
            return self.op(f"ptrtoint ptr %l{self.count} to i64"), "u64"
        if name in ("copy", "fill"):
            return self._move(name, given)
        if name == "address_of":
            assert isinstance(given[0], ast.Name)
            prefix = self._share(given[0].id)
            return self.op(f'ptrtoint ptr @"{prefix}.{given[0].id}" to i64'), "u64"
        if name == "call":
            values = ", ".join(f"i64 {self.value(each, 'u64')[0]}" for each in given[1:])
            return self.op(f"call i32 {self._pointer(given[0])}({values})"), "i32"
        return self._maths(name, given)

    def _move(self, name: str, given: list[ast.expr]) -> Value:
        """Copy bytes, which may overlap, or fill them."""
        to = self._pointer(given[0])
        if name == "copy":
            source, how, kind = self._pointer(given[1]), "memmove.p0.p0.i64", "ptr"
        else:
            source, how, kind = self.value(given[1], "u8")[0], "memset.p0.i64", "i8"
        size = self.value(given[2], "u64")[0]
        self._declared(f"declare void @llvm.{how}(ptr, {kind}, i64, i1)")
        self.do(f"call void @llvm.{how}(ptr {to}, {kind} {source}, i64 {size}, i1 false)")
        return "0", "number"

    def _maths(self, name: str, given: list[ast.expr]) -> Value:
        values = [self.value(each) for each in given]
        kind = next(each[1] for each in values if each[1] != "number")
        intrinsic = _INTRINSICS.get(name) or _BY_SIGN.get((name, kind[0]))
        if intrinsic is None:
            raise NativeError(f"there is no {name} of {kind}")
        shape = NAME.fullmatch(kind)
        assert shape is not None
        vector = f"v{shape[2]}" if shape[2] else ""
        full = f"llvm.{intrinsic}.{vector}{'f' if kind[0] == 'f' else 'i'}{width(kind)}"
        texts = [written(v, kind) if k == "number" else v for v, k in values]
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
