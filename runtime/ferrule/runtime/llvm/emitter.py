"""The emitter: an LLVM module under construction, with an insertion point.

The emitter owns the insertion point, so functions that emit code have no parameter for a block.
Fields are accessed by name, never by number. Names of values depend only on the order of emission,
so the same calls give the same text. There are no named LLVM types, which would be global state of
a context: every struct is a `Layout`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Final

from llvmlite import ir

from ferrule.runtime import cfunctions
from ferrule.runtime.llvm.arithmetic import Binary, Overflowing, Predicate
from ferrule.runtime.llvm.layouts import (
    BYTE_ARRAY,
    I1,
    I8,
    I32,
    I64,
    PTR,
    VOID,
    FieldType,
    Layout,
    align_of,
    size_of,
)

LIKELY = (99, 1)
UNLIKELY = (1, 99)

COLD = ("cold", "noinline", "minsize", "optsize")
"""Attributes of a function that runs only after an error."""

_COMPARISONS: Final[dict[Predicate, tuple[str, str]]] = {
    "eq": ("s", "=="),
    "ne": ("s", "!="),
    "slt": ("s", "<"),
    "sle": ("s", "<="),
    "sgt": ("s", ">"),
    "sge": ("s", ">="),
    "ult": ("u", "<"),
    "ule": ("u", "<="),
    "ugt": ("u", ">"),
    "uge": ("u", ">="),
}


class Emitter:
    """Builds one LLVM module."""

    def __init__(self, name: str, triple: str = "", data_layout: str = "") -> None:
        # A separate context: llvmlite's default context is shared by the whole process.
        self.module = ir.Module(name, context=ir.Context())
        self.module.triple = triple
        self.module.data_layout = data_layout
        self._builders: list[ir.IRBuilder] = []
        self._bytes: dict[tuple[bytes, int], ir.GlobalVariable] = {}
        self._byte_arrays: dict[bytes, ir.GlobalVariable] = {}

    @property
    def builder(self) -> ir.IRBuilder:
        """llvmlite's builder at the insertion point, for arithmetic and comparisons."""
        return self._builders[-1]

    @property
    def current(self) -> ir.Function:
        """The function under construction."""
        return self.builder.function

    def text(self) -> str:
        """The module as LLVM assembly."""
        return str(self.module)

    # ---- functions ----

    def declare(
        self,
        name: str,
        result: ir.Type,
        arguments: Sequence[ir.Type],
        *,
        names: Sequence[str] = (),
        linkage: str = "",
        attributes: Sequence[str] = (),
    ) -> ir.Function:
        """A function without a body, to be called or to be given one with `body`."""
        function = ir.Function(self.module, ir.FunctionType(result, arguments), name)
        function.linkage = linkage
        for attribute in attributes:
            function.attributes.add(attribute)
        for argument, argument_name in zip(function.args, names, strict=False):
            argument.name = argument_name
        return function

    @contextmanager
    def body(self, function: ir.Function) -> Iterator[ir.Function]:
        """Emit into `function`; the insertion point before it comes back at the end."""
        self._builders.append(ir.IRBuilder(function.append_basic_block("entry")))
        try:
            yield function
            if not self.builder.block.is_terminated:
                raise RuntimeError(f"the body of {function.name} has no end")
        finally:
            self._builders.pop()

    @contextmanager
    def define(
        self,
        name: str,
        result: ir.Type,
        arguments: Sequence[ir.Type],
        *,
        names: Sequence[str] = (),
        linkage: str = "",
        attributes: Sequence[str] = (),
    ) -> Iterator[ir.Function]:
        """`declare` and `body` in one."""
        function = self.declare(
            name, result, arguments, names=names, linkage=linkage, attributes=attributes
        )
        with self.body(function):
            yield function

    def extern(self, name: str) -> ir.Function:
        """The C function `name` of the fixed table, declared at first use."""
        return self.symbol(name, c_function_type(name))

    def symbol(self, name: str, kind: ir.FunctionType) -> ir.Function:
        """The function with this name and type; declares it if the module does not have it."""
        known = self.module.globals.get(name)
        if known is None:
            return ir.Function(self.module, kind, name)
        if known.ftype != kind:
            raise TypeError(f"{name} is {known.ftype}, asked for as {kind}")
        return known

    def call(
        self, callee: str | ir.Value, arguments: Sequence[ir.Value], name: str = ""
    ) -> ir.Value:
        """Call a function of this module, or one of the C table by its name."""
        function = self.extern(callee) if isinstance(callee, str) else callee
        return self.builder.call(function, [_operand(a) for a in arguments], name=name)

    def tail_call(self, callee: ir.Value, arguments: Sequence[ir.Value]) -> ir.Value:
        """A tail call: its value is returned at once, and it must not use this function's stack."""
        return self.builder.call(callee, [_operand(a) for a in arguments], tail="tail")

    def call_pointer(
        self,
        pointer: ir.Value,
        kind: ir.FunctionType,
        arguments: Sequence[ir.Value],
        name: str = "",
    ) -> ir.Value:
        """Call through an address that is known only at run time."""
        # llvmlite takes the type of a call from its callee, and PTR has none.
        callee = ir.FormattedConstant(PTR, pointer.get_reference())
        callee.function_type = kind
        return self.builder.call(callee, [_operand(a) for a in arguments], name=name)

    def external(self, name: str) -> ir.Value:
        """The address of a symbol of another object that is data, not a function to call."""
        known = self.module.globals.get(name)
        if known is None:
            known = ir.GlobalVariable(self.module, I8, name)
            known.type = PTR
        return known

    # ---- memory ----

    def field_ptr(self, base: ir.Value, layout: Layout, path: str) -> ir.Value:
        """The address of a field; `path` may go into nested structs: `dl.shape`."""
        offset = layout.offset(path)
        if offset == 0:
            return base
        indices = [self.const_i64(offset)]
        name = path.replace(".", "_") + ".at"
        return self.builder.gep(base, indices, inbounds=True, name=name, source_etype=I8)

    def load_field(self, base: ir.Value, layout: Layout, path: str, *, name: str = "") -> ir.Value:
        """The value of a scalar field."""
        address = self.field_ptr(base, layout, path)
        return self.load(address, _scalar(layout, path), name=name or path.replace(".", "_"))

    def store_field(self, base: ir.Value, layout: Layout, path: str, value: ir.Value) -> None:
        """Set a scalar field; the value must have the field's type."""
        kind = _scalar(layout, path)
        if _operand(value).type != kind:
            raise TypeError(f"{layout.name}.{path} is {kind}, the value {value.type}")
        self.store(value, self.field_ptr(base, layout, path))

    def index(
        self, base: ir.Value, element: FieldType, position: ir.Value | int, *, name: str = ""
    ) -> ir.Value:
        """The address of an element of an array of scalars or structs."""
        index = self.const_i64(position) if isinstance(position, int) else position
        if isinstance(position, int) and position == 0:
            return base
        kind = element if isinstance(element, ir.Type) else ir.ArrayType(I8, element.size)
        return self.builder.gep(base, [index], inbounds=True, name=name, source_etype=kind)

    def load(self, address: ir.Value, kind: ir.Type, *, name: str = "") -> ir.Value:
        """Load a naturally aligned scalar."""
        return self.builder.load(address, name=name, typ=kind)

    def store(self, value: ir.Value, address: ir.Value) -> None:
        """Store a naturally aligned scalar, or the address of a function or constant."""
        self.builder.store(_operand(value), address)

    def alloca(self, element: FieldType, count: int = 1, *, name: str = "") -> ir.Value:
        """Stack space, reserved once for each call, even if the insertion point is in a loop."""
        kind = ir.ArrayType(I8, size_of(element) * count)
        align = align_of(element)
        if isinstance(element, ir.Type):
            kind = element if count == 1 else ir.ArrayType(element, count)
        # In a loop, an alloca would take new stack in each round.
        with self.builder.goto_entry_block():
            slot = self.builder.alloca(kind, name=name)
        slot.align = align
        slot.type = PTR  # llvmlite would print typed pointers, which LLVM no longer accepts
        return slot

    # ---- constants ----

    def const_i32(self, value: int) -> ir.Constant:
        """A 32-bit integer; negative values and bit patterns up to 2**32 - 1."""
        return ir.Constant(I32, _wrapped(value, 32))

    def const_i64(self, value: int) -> ir.Constant:
        """A 64-bit integer; negative values and bit patterns up to 2**64 - 1."""
        return ir.Constant(I64, _wrapped(value, 64))

    def null(self) -> ir.Constant:
        """The null pointer."""
        return ir.Constant(PTR, None)

    def is_null(self, pointer: ir.Value) -> ir.Value:
        """Whether a pointer is null."""
        return self.builder.icmp_unsigned("==", pointer, self.null())

    def cstring(self, text: str) -> ir.Value:
        """The address of a NUL-terminated UTF-8 constant, one for equal texts."""
        return self.bytes_constant(text.encode() + b"\0")

    def bytes_constant(self, data: bytes, *, align: int = 1, space: int = 0) -> ir.Value:
        """The address of a private constant, one for equal bytes in an address space."""
        known = self._bytes.get((data, space))
        if known is None:
            value = ir.Constant(ir.ArrayType(I8, len(data)), bytearray(data))
            name = f".bytes.{len(self._bytes)}"
            known = self._bytes[data, space] = self.global_constant(name, value, space)
        known.align = max(align, known.align or 1)
        return known

    def byte_array(self, text: str) -> ir.Value:
        """The address of a constant `TVMFFIByteArray` that holds this text."""
        data = text.encode()
        known = self._byte_arrays.get(data)
        if known is None:
            value = ir.Constant.literal_struct([self.cstring(text), self.const_i64(len(data))])
            name = f".bytearray.{len(self._byte_arrays)}"
            known = self._byte_arrays[data] = self.global_constant(name, value)
            known.align = BYTE_ARRAY.align
        return known

    def global_constant(self, name: str, value: ir.Constant, space: int = 0) -> ir.GlobalVariable:
        """A constant that only this module sees and whose address means nothing."""
        if name in self.module.globals:
            raise ValueError(f"the module has a {name} already")
        variable = ir.GlobalVariable(self.module, value.type, name, space)
        variable.global_constant = True
        variable.linkage = "private"
        variable.unnamed_addr = True
        variable.initializer = value
        variable.type = PTR if space == 0 else ir.PointerType(addrspace=space)
        return variable

    # ---- arithmetic: see `Arithmetic` ----

    def const_i1(self, value: bool) -> ir.Constant:
        """A flag that is known."""
        return ir.Constant(I1, int(value))

    def binary(self, op: Binary, left: ir.Value, right: ir.Value) -> ir.Value:
        """`left op right`, wrapping."""
        name = f"{op}_" if op in ("and", "or") else op
        return getattr(self.builder, name)(left, right)

    def overflowing(
        self, op: Overflowing, left: ir.Value, right: ir.Value
    ) -> tuple[ir.Value, ir.Value]:
        """The wrapped result, and the flag that says whether it wrapped."""
        pair = getattr(self.builder, f"{op}_with_overflow")(left, right)
        return self.builder.extract_value(pair, 0), self.builder.extract_value(pair, 1)

    def icmp(self, predicate: Predicate, left: ir.Value, right: ir.Value) -> ir.Value:
        """Compare integers."""
        sign, compare = _COMPARISONS[predicate]
        build = self.builder.icmp_unsigned if sign == "u" else self.builder.icmp_signed
        return build(compare, left, right)

    def select(self, condition: ir.Value, then: ir.Value, otherwise: ir.Value) -> ir.Value:
        """`then` where the condition holds."""
        return self.builder.select(condition, then, otherwise)

    def not_(self, flag: ir.Value) -> ir.Value:
        """The opposite of an i1."""
        return self.builder.not_(flag)

    def widened(self, flag: ir.Value) -> ir.Value:
        """An i1 as 0 or 1, i64."""
        return self.builder.zext(flag, I64)

    # ---- control flow ----

    def block(self, name: str) -> ir.Block:
        """A new block at the end of the function, to branch to and to continue in with `at`."""
        return self.current.append_basic_block(name)

    def at(self, block: ir.Block) -> None:
        """Go on emitting at the end of `block`."""
        self.builder.position_at_end(block)

    @contextmanager
    def within(self, block: ir.Block) -> Iterator[None]:
        """Emit at the end of `block`, then come back to where the emitter stood."""
        with self.builder.goto_block(block):
            yield

    def branch(self, target: ir.Block) -> None:
        """Go to `target`."""
        self.builder.branch(target)

    def cond_branch(
        self,
        condition: ir.Value,
        then: ir.Block,
        otherwise: ir.Block,
        weights: tuple[int, int] | None = None,
    ) -> None:
        """Go to one of two blocks; `weights` are branch weights (`LIKELY`, `UNLIKELY`)."""
        instruction = self.builder.cbranch(condition, then, otherwise)
        if weights is not None:
            instruction.set_weights(weights)

    @contextmanager
    def if_then(self, condition: ir.Value, *, likely: bool | None = None) -> Iterator[None]:
        """Emit code that runs if `condition` holds; both paths join after it."""
        with self.builder.if_then(condition, likely=likely):
            yield

    @contextmanager
    def loop(self, count: ir.Value, *, name: str = "i") -> Iterator[ir.Value]:
        """Emit code that runs for each index below `count` (signed); yields the index."""
        before = self.builder.block
        head, body, after = self.block(f"{name}.head"), self.block(name), self.block(f"{name}.end")
        self.branch(head)
        self.at(head)
        index = self.builder.phi(count.type, name=name)
        index.add_incoming(ir.Constant(count.type, 0), before)
        self.cond_branch(self.builder.icmp_signed("<", index, count), body, after)
        self.at(body)
        yield index
        if not self.builder.block.is_terminated:
            step = self.builder.add(index, ir.Constant(count.type, 1), name=f"{name}.next")
            index.add_incoming(step, self.builder.block)
            self.branch(head)
        self.at(after)

    def clear(self, place: ir.Value, size: int) -> None:
        """Store `size` zero bytes (a multiple of 8) without a call of the C library."""
        with self.loop(self.const_i64(size // 8)) as i:
            self.store(self.const_i64(0), self.index(place, I64, i))

    def ret(self, value: ir.Value | None = None) -> None:
        """Return from the function."""
        if value is None:
            self.builder.ret_void()
        else:
            self.builder.ret(value)


def _operand(value: ir.Value) -> ir.Value:
    """The value as an operand: a function stands for its address, an untyped pointer."""
    if isinstance(value, ir.Function):
        return ir.FormattedConstant(PTR, value.get_reference())
    return value


def _scalar(layout: Layout, path: str) -> ir.Type:
    kind = layout.type_of(path)
    if isinstance(kind, Layout):
        raise TypeError(f"{layout.name}.{path} is a struct, not a scalar")
    return kind


def _wrapped(value: int, bits: int) -> int:
    if not -(1 << (bits - 1)) <= value < 1 << bits:
        raise OverflowError(f"{value} does not fit {bits} bits")
    # One spelling for each bit pattern, so that texts can be compared; `int` because an IntEnum
    # would print its name.
    return value - (1 << bits) if value >= 1 << (bits - 1) else int(value)


_TYPES: Final[Mapping[str, ir.Type]] = MappingProxyType(
    {str(each): each for each in (I32, I64, PTR, VOID)}
)


def c_function_type(name: str) -> ir.FunctionType:
    """The LLVM type of a function of the table."""
    function = cfunctions.c_function(name)
    arguments = [_TYPES[each] for each in function.arguments]
    return ir.FunctionType(_TYPES[function.result], arguments, var_arg=function.variadic)
