"""Results: from the leaves that a body stores to the owned value that a call returns.

A body stores the leaves of its result in slots of 8 bytes, in order, as `artefacts.Body` documents
them, with two differences.  A shape is its sizes, i64 each.  A tensor or object is a handle; the
body passes on its ownership, and a null handle is returned as None.

libtvm_ffi makes every value that needs memory.  First all numbers and handles are stored at their
places, which cannot fail; then the values whose construction can fail are made, inner values first,
the result itself last.  So whenever a construction fails, the caller's result is unchanged, and all
values that were made or passed on are released.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Final

from typing_extensions import assert_never

from ferrule.compiler.support.entries import CONSTRUCT, OWN, RELEASE, UNSIGNED
from ferrule.compiler.wrapper.leaves import SLOT_BYTES, leaves_of
from ferrule.runtime.abi import TypeIndex
from ferrule.runtime.llvm.layouts import ANY, BYTE_ARRAY, OBJECT
from ferrule.runtime.llvm.writer import NULL, Block, Value, Writer, i32, i64
from ferrule.specs import BFloat16, DType, Float16, Param, Signature
from ferrule.specs import params as kinds
from ferrule.specs.deferred import dataclass


def result_leaves(result: Param) -> tuple[str, ...]:
    """The LLVM types of the leaves of a result, each in a slot of its own."""
    match result:
        case kinds.Shape(dims=dims):
            return ("i64",) * len(dims)
        case kinds.Tuple(items=items):
            return tuple(leaf for item in items for leaf in result_leaves(item))
        case _:
            return leaves_of(result)


def result_parts(result: Param) -> Iterator[Param]:
    """The values of a result, without the tuples that contain them, in the order of their
    leaves."""
    if not isinstance(result, kinds.Tuple):
        yield result
        return
    for item in result.items:
        yield from result_parts(item)


@dataclass(frozen=True, slots=True)
class _Node:
    """A value of the result: its first leaf, its destination, and the destination of its items."""

    param: Param
    slot: int
    place: Value
    items: tuple[_Node, ...] = ()
    array: Value = NULL


@dataclass(slots=True)
class Results:
    """The result of one call."""

    writer: Writer
    signature: Signature
    slots: Value = field(init=False)
    _table: Value = field(init=False)
    _size: int = 0
    _releases: bool = False
    _failed: Block | None = None
    _kept: tuple[Value, int] | None = None

    def __post_init__(self) -> None:
        assert self.signature.result is not None
        count = len(result_leaves(self.signature.result))
        self.slots = self.writer.alloca("i64", max(1, count), name="results")

    def keep(self, count: int) -> Value:
        """An array of values for the body, None at first, which is released together with the
        result's."""
        place = self.writer.alloca("i64", 2 * count, name="kept")
        for position in range(2 * count):
            self.writer.store(i64(0), self.writer.offset(place, 8 * position))
        self._kept = place, count
        return place

    def emit(self, out: Value) -> None:
        """Store the result in `out`, a TVMFFIAny that holds None, and return from the wrapper."""
        writer, result = self.writer, self.signature.result
        assert result is not None
        count = _count(result)
        self._table = writer.alloca("i64", 2 * count, name="values") if count else NULL
        root = self._node(result, 0, out)
        for node in _walk(root):
            self._settle(node)
        for node in _walk(root):
            self._make(node)
        self._release()
        writer.ret(i32(0))
        if self._failed is not None:
            writer.arrange([self._failed])
            writer.at(self._failed)
            self._release()
            writer.ret(i32(-1))

    def _node(self, param: Param, slot: int, place: Value) -> _Node:
        """Assign places to a value and all its items; the items of one value are adjacent in the
        table."""
        match param:
            case kinds.Shape(dims=dims):
                return _Node(param, slot, place, array=self._room(len(dims)))
            case kinds.Tuple(items=items):
                array, nodes = self._room(len(items)), []
                first = slot
                for position, item in enumerate(items):
                    at = self.writer.index(array, ANY, position)
                    nodes.append(self._node(item, first, at))
                    first += len(result_leaves(item))
                return _Node(param, slot, place, tuple(nodes), array)
        return _Node(param, slot, place)

    def _room(self, count: int) -> Value:
        first, self._size = self._size, self._size + count
        return self.writer.index(self._table, ANY, first)

    def _leaf(self, node: _Node, kind: str, position: int = 0) -> Value:
        at = self.writer.offset(self.slots, SLOT_BYTES * (node.slot + position))
        return self.writer.load(at, kind, "result")

    def _put(self, place: Value, index: Value | int, payload: Value) -> None:
        """Set an Any; its padding is 0."""
        writer = self.writer
        head = i64(index) if isinstance(index, int) else index
        writer.store(head, writer.offset(place, ANY.offset("head")))
        writer.store(payload, writer.offset(place, ANY.offset("v_int64")))

    # ---- steps that cannot fail ----

    def _settle(self, node: _Node) -> None:
        """Store a complete value, or None for one that must be constructed."""
        writer, place = self.writer, node.place
        match node.param:
            case kinds.Scalar():
                self._scalar(node)
            case kinds.Shape(dims=dims):
                for axis in range(len(dims)):
                    size = self._leaf(node, "i64", axis)
                    self._put(writer.index(node.array, ANY, axis), TypeIndex.INT, size)
                self._put(place, TypeIndex.NONE, i64(0))
            case kinds.Tuple():
                self._put(place, TypeIndex.NONE, i64(0))
            case kinds.Tensor():
                self._object(node, TypeIndex.TENSOR)
            case kinds.WithTraits(traits=traits):
                self._settle_plain(node, traits)
            case kinds.Optional() | kinds.Union() | kinds.Constant():
                raise TypeError(f"a function cannot return a {type(node.param).__name__}")
            case _:
                assert_never(node.param)

    def _settle_plain(self, node: _Node, traits: kinds.Traits) -> None:
        """Store a value of a kind that its traits describe completely."""
        match traits.payload:
            case kinds.Payload.BITS:
                (index,), (kind,) = traits.stored, traits.leaves
                bits = self.writer.cast("zext", self._leaf(node, kind), "i64")
                self._put(node.place, index, bits)
            case kinds.Payload.ADDRESS:
                (index,) = traits.stored
                self._put(node.place, index, self._leaf(node, "ptr"))
            case kinds.Payload.NOTHING | kinds.Payload.BYTES:
                self._put(node.place, TypeIndex.NONE, i64(0))
            case kinds.Payload.ANY:  # it may not be owned yet
                self._put(node.place, TypeIndex.NONE, i64(0))
            case kinds.Payload.OBJECT:
                self._object(node, *traits.stored)
            case _:
                assert_never(traits.payload)

    def _scalar(self, node: _Node) -> None:
        param = node.param
        assert isinstance(param, kinds.Scalar)
        (kind,) = leaves_of(param)
        leaf = self._leaf(node, kind)
        match param.dtype.kind:
            case "bool":
                self._put(node.place, TypeIndex.BOOL, self.writer.cast("zext", leaf, "i64"))
            case "int":
                self._put(node.place, TypeIndex.INT, self.writer.cast("sext", leaf, "i64"))
            case "uint":
                self._put(node.place, TypeIndex.INT, self.writer.cast("zext", leaf, "i64"))
            case _:
                number = as_double(self.writer, param.dtype, leaf)
                self._put(node.place, TypeIndex.FLOAT, number)

    def _object(self, node: _Node, known: int | None = None) -> None:
        """Store an object with its own type index; a null handle becomes None."""
        writer, handle = self.writer, self._leaf(node, "ptr")
        missing = writer.icmp("eq", handle, NULL)
        if known is None:
            readable = writer.select(missing, node.place, handle)
            found = writer.load_field(readable, OBJECT, "type_index")
            index = writer.cast("zext", found, "i64")
        else:
            index = i64(known)
        self._releases = True
        self._put(node.place, writer.select(missing, i64(TypeIndex.NONE), index), handle)

    # ---- steps that can fail ----

    def _make(self, node: _Node) -> None:
        """Construct a value that needs memory, after its items."""
        match node.param:
            case kinds.Scalar(dtype=dtype) if (dtype.kind, dtype.bits) == ("uint", 64):
                self._unsigned(node)
            case kinds.String():
                self._text(node, "TVMFFIStringFromByteArray")
            case kinds.Bytes():
                self._text(node, "TVMFFIBytesFromByteArray")
            case kinds.AnyValue():
                self._any(node)
            case kinds.Shape(dims=dims):
                self._construct(node, "ffi.Shape", len(dims))
            case kinds.Tuple(items=items):
                self._construct(node, "ffi.Array", len(items))

    def _unsigned(self, node: _Node) -> None:
        """A number of 2**63 or more becomes an object."""
        writer, leaf = self.writer, self._leaf(node, "i64")
        large, behind = writer.block("large"), writer.block("behind")
        writer.cond_branch(writer.icmp("slt", leaf, i64(0)), large, behind)
        writer.at(large)
        what = writer.bytes_constant(f"result of `{self.signature}`".encode() + b"\0")
        self._check(writer.call(UNSIGNED, "i32", [leaf, node.place, what], "cold"))
        writer.branch(behind)
        writer.at(behind)
        self._releases = True

    def _text(self, node: _Node, constructor: str) -> None:
        writer = self.writer
        bytes_ = writer.alloca("i64", 2, name="text")
        for position, (name, kind) in enumerate((("data", "ptr"), ("size", "i64"))):
            at = writer.offset(bytes_, BYTE_ARRAY.offset(name))
            writer.store(self._leaf(node, kind, position), at)
        self._check(writer.call_c(constructor, [bytes_, node.place]))
        self._releases = True

    def _any(self, node: _Node) -> None:
        """A borrowed value of any kind; store an owned copy of it."""
        given = self._leaf(node, "ptr")
        self._check(self.writer.call(OWN, "i32", [given, node.place]))
        self._releases = True

    def _construct(self, node: _Node, constructor: str, count: int) -> None:
        """Call a registered constructor; the object caches the function."""
        writer = self.writer
        known = writer.zeroed(f"ferrule.{constructor}", "ptr")
        name = writer.bytes_constant(constructor.encode() + b"\0")
        arguments = [known, name, node.array, i32(count), node.place]
        self._check(writer.call(CONSTRUCT, "i32", arguments))
        self._releases = True

    def _check(self, status: Value) -> None:
        if self._failed is None:
            with self.writer.apart():
                self._failed = self.writer.block("failed")
        went_well = self.writer.block("made")
        ok = self.writer.icmp("eq", status, i32(0))
        self.writer.cond_branch(ok, went_well, self._failed)
        self.writer.at(went_well)

    def _release(self) -> None:
        """Release the values of the table: the result has its own references."""
        if self._size and self._releases:
            self.writer.call_void(RELEASE, [self._table, i64(self._size)])
        if self._kept is not None:
            place, count = self._kept
            self.writer.call_void(RELEASE, [place, i64(count)])


def _count(result: Param) -> int:
    """The number of values inside the result, at any depth."""
    match result:
        case kinds.Shape(dims=dims):
            return len(dims)
        case kinds.Tuple(items=items):
            return len(items) + sum(map(_count, items))
    return 0


def _walk(node: _Node) -> Iterator[_Node]:
    """A value and all values in it, the inner ones first."""
    for item in node.items:
        yield from _walk(item)
    yield node


# Of float16: infinity, the smallest normal number; then its exponent and mantissa as a float64 has
# them.
_INFINITY: Final = 0x7C00
_SMALLEST_NORMAL: Final = 0x0400
_SHIFT: Final = 52 - 10
_BIAS: Final = (1023 - 15) << 52
_SPECIAL: Final = (2047 - 31) << 52
_STEP: Final = Value("double", "0x3E70000000000000")
"""2**-24, the smallest subnormal of a float16."""


def as_double(writer: Writer, dtype: DType, value: Value) -> Value:
    """A leaf of this dtype, a float or the bits of a 2-byte float, as a double."""
    if dtype is BFloat16:
        bits = writer.cast("zext", value, "i32")
        wide = writer.binary("shl", bits, Value("i32", "16"))
        value = writer.cast("bitcast", wide, "float")
    if dtype is Float16:
        return _of_float16(writer, writer.cast("zext", value, "i64"))
    return writer.cast("fpext", value, "double")


def _of_float16(writer: Writer, bits: Value) -> Value:
    magnitude = writer.binary("and", bits, i64(0x7FFF))
    moved = writer.binary("shl", magnitude, i64(_SHIFT))
    normal = writer.binary("add", moved, i64(_BIAS))
    special = writer.binary("add", moved, i64(_SPECIAL))
    steps = writer.cast("uitofp", magnitude, "double")
    small = writer.cast("bitcast", writer.binary("fmul", steps, _STEP), "i64")
    is_small = writer.icmp("ult", magnitude, i64(_SMALLEST_NORMAL))
    is_special = writer.icmp("uge", magnitude, i64(_INFINITY))
    wide = writer.select(is_small, small, writer.select(is_special, special, normal))
    sign = writer.binary("shl", writer.binary("and", bits, i64(0x8000)), i64(48))
    return writer.cast("bitcast", writer.binary("or", wide, sign), "double")
