"""Tensors on the hot path: the DLTensor, its header, sizes, strides and data.

Strides of dims of size 0 or 1 are arbitrary, and so are all strides of a tensor without elements;
if only such a stride differs, the checker decides.  A symbol is bound to a stride only if that
stride is meaningful.  A spec's `exact_strides` are meaningful in every call.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import field
from functools import partial

from ferrule.compiler.wrapper.hot import DEVICE_INDEX, Hot
from ferrule.compiler.wrapper.items import Item, Level
from ferrule.runtime.abi import TypeIndex
from ferrule.runtime.llvm.layouts import ANY, DLTENSOR, I64, TENSOR_OBJECT
from ferrule.runtime.llvm.writer import NULL, Value, Writer, i32, i64
from ferrule.specs import ALSO_TAKEN, DEVICE_CODES, HOST_DEVICES, Dim, Int8, Sym, Tensor, Uint8
from ferrule.specs.deferred import dataclass

# One load reads both.
assert DLTENSOR.offset("dtype") == DLTENSOR.offset("ndim") + 4

PACKED_LANES = 2


def accept_tensor(hot: Hot, level: Level, item: Item, spec: Tensor) -> None:
    """Decode a tensor and check all of it."""
    hot.about("kind")
    dl = _decode(hot, item, spec)
    hot.about("rank and dtype")
    _require_header(hot, spec, dl)
    hot.about("device")
    _require_device(hot, spec, dl)
    hot.about("sizes and strides")
    shape, strides = _arrays(hot, spec, dl)
    _Extents(hot, level, spec, shape, strides).require()
    hot.about("address")
    _accept_data(hot, item, spec, dl)


def dltensor(writer: Writer, at: Value) -> Value:
    """The DLTensor of an accepted tensor."""
    index = writer.load_field(at, ANY, "type_index")
    is_object = writer.icmp("eq", index, i32(TypeIndex.TENSOR))
    offset = writer.select(is_object, i64(TENSOR_OBJECT.offset("dl")), i64(0))
    payload = writer.load_field(at, ANY, "v_int64")
    return writer.cast("inttoptr", writer.binary("add", payload, offset), "ptr")


def _decode(hot: Hot, item: Item, spec: Tensor) -> Value:
    """The DLTensor: inside a Tensor object, or behind a DLTensor pointer."""
    writer, name = hot.writer, spec.name
    if spec.owning:
        return writer.offset(item.object(hot, TypeIndex.TENSOR), TENSOR_OBJECT.offset("dl"), name)
    index, payload = item.index(hot), item.payload(hot, "ptr")
    inside = writer.offset(payload, TENSOR_OBJECT.offset("dl"))
    is_object = writer.icmp("eq", index, i32(TypeIndex.TENSOR))
    start, view = writer.here, writer.block("view")
    with writer.apart() as last:
        behind = writer.block("tensor")
    writer.cond_branch(is_object, behind, view)
    writer.at(view)
    hot.require_that(index, "eq", int(TypeIndex.DLTENSOR_PTR), certain=True)
    end = writer.here
    writer.cond_branch(writer.icmp("ne", payload, NULL), behind, hot.slow)
    writer.arrange(last)
    writer.at(behind)
    return writer.phi("ptr", [(inside, start), (payload, end)], name)


def _require_header(hot: Hot, spec: Tensor, dl: Value) -> None:
    """The right ndim and dtype, in one comparison."""
    writer = hot.writer
    # In DLTensor the dtype follows ndim: one load of 8 bytes has both.
    found = writer.load(writer.offset(dl, DLTENSOR.offset("ndim")), "i64", "kind")
    wanted = len(spec.shape) | dlpack_dtype(spec) << 32
    if spec.dtype in (Int8, Uint8) and not spec.exact:  # either is accepted for the other
        # DLPack's codes for int and uint, 0 and 1, differ in the lowest bit.
        found, wanted = writer.binary("or", found, i64(1 << 32)), wanted | 1 << 32
    hot.require_word(found, wanted)


def dlpack_dtype(spec: Tensor) -> int:
    """The 4 bytes of the DLDataType that an argument must have."""
    return spec.dtype.dlpack + (PACKED_LANES - 1 << 16 if spec.packed else 0)


def _require_device(hot: Hot, spec: Tensor, dl: Value) -> None:
    if spec.device is None:
        raise ValueError(f"the device type of the parameter {spec.name} is not decided")
    code = DEVICE_CODES[spec.device]
    others = [DEVICE_CODES[other] for other in ALSO_TAKEN.get(spec.device, ())]
    if spec.device_id is not None:
        device = hot.writer.load_field(dl, DLTENSOR, "device")
        hot.require_one(
            device, code | spec.device_id << 32, [o | spec.device_id << 32 for o in others]
        )
    else:
        hot.require_one(hot.writer.load_field(dl, DLTENSOR, "device_type"), code, others)
    if spec.device not in HOST_DEVICES:
        hot.agree(DEVICE_INDEX, hot.writer.load_field(dl, DLTENSOR, "device_id"))


def _checked_strides(spec: Tensor) -> Sequence[int]:
    """The axes whose strides are meaningful in some calls."""
    has_elements = 0 not in spec.shape
    sizes = enumerate(spec.shape)
    return [a for a, size in sizes if a in spec.exact_strides or (has_elements and size != 1)]


def _arrays(hot: Hot, spec: Tensor, dl: Value) -> tuple[Value, Value]:
    """The addresses of the sizes and strides that are needed; they are not null."""
    writer = hot.writer
    if not spec.shape:
        return NULL, NULL
    shape = writer.load_field(dl, DLTENSOR, "shape")
    if not _checked_strides(spec):
        hot.require(writer.icmp("ne", shape, NULL))
        return shape, NULL
    strides = writer.load_field(dl, DLTENSOR, "strides")
    # Two addresses in one process have a set bit in common; otherwise the checker decides.
    first, second = (writer.cast("ptrtoint", each, "i64") for each in (shape, strides))
    hot.require_that(writer.binary("and", first, second), "ne", 0)
    return shape, strides


@dataclass(slots=True)
class _Extents:
    """Sizes and strides of one tensor."""

    hot: Hot
    level: Level
    spec: Tensor
    shape: Value
    strides: Value
    unit: int = field(init=False)
    _many: set[int] = field(init=False, default_factory=set)
    _some: set[int] = field(init=False, default_factory=set)
    _read: dict[int, Value] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.unit = self.spec.strides.index(1) if self.spec.packed else -1

    def require(self) -> None:
        """Require all meaningful sizes and strides to be right, or equal to those of an earlier
        tensor."""
        spec = self.spec
        for axis in range(len(spec.shape)):
            self.level.sizes.setdefault((id(spec), axis), partial(self.size, axis))
        checked = _checked_strides(spec)
        dims = (spec.shape, spec.strides, spec.packed)
        comparable = len(checked) == len(spec.shape) >= PAIR
        if comparable and ("arrays", dims) in self.hot.reusable:
            self._require_same(dims)
            return
        self._require_sizes()
        for axis in checked:
            self._require_stride(axis)
        if comparable:
            self.hot.reusable["arrays", dims] = (self.shape, self.strides)

    def _require_same(self, dims: Hashable) -> None:
        reusable = self.hot.reusable
        if ("pairs", dims) not in reusable:
            reusable["pairs", dims] = list(self._pairs(reusable["arrays", dims]))
        require_equal(self.hot, self._pairs((self.shape, self.strides)), reusable["pairs", dims])

    def _pairs(self, arrays: Sequence[Value]) -> Iterator[Value]:
        for array in arrays:
            yield from pairs(self.hot.writer, array, len(self.spec.shape))

    # ---- sizes ----

    def size(self, axis: int) -> Value:
        """A size in elements, i64."""
        if axis in self._read:
            return self._read[axis]
        at = self.hot.writer.index(self.shape, I64, axis)
        value = self.hot.writer.load(at, "i64", f"{self.spec.name}.n{axis}")
        return self._doubled(value) if axis == self.unit else value

    def _doubled(self, value: Value) -> Value:
        """The number of elements, of which two are packed into each stored one."""
        writer = self.hot.writer
        doubled = writer.binary("shl", value, i64(1))
        self.hot.require_that(writer.binary("ashr", doubled, i64(1)), "eq", value)
        return doubled

    def _require_sizes(self) -> None:
        """Bind the symbols that occur first here, compare everything else."""
        found: dict[Sym, Value] = {}
        bound: set[int] = set()
        for axis, dim in enumerate(self.spec.shape):
            if isinstance(dim, Sym) and dim not in found and not self.hot.knows(dim):
                found[dim] = self._read[axis] = self.size(axis)
                bound.add(axis)
        self.hot.bind(found.items(), signed=False, certain=True)
        for axis, dim in enumerate(self.spec.shape):
            if axis not in bound:
                self.level.require_dim(self.hot, dim, partial(self.size, axis), signed=False)

    # ---- strides ----

    def stride(self, axis: int) -> Value:
        """A stride in elements, i64."""
        at = self.hot.writer.index(self.strides, I64, axis)
        value = self.hot.writer.load(at, "i64", f"{self.spec.name}.s{axis}")
        doubled = self.spec.packed and self.spec.strides[axis] != 1
        return self._doubled(value) if doubled else value

    def _require_stride(self, axis: int) -> None:
        """Bind a symbol that occurs only as a stride, compare everything else."""
        dim = self.spec.strides[axis]
        if isinstance(dim, Sym) and not self.hot.knows(dim):
            if self.hot.binds_at_strides(dim):
                self._bind_stride(axis, dim)
            else:
                self.level.later.append((dim, partial(self._require_late, axis, dim)))
            return
        self.level.require_dim(self.hot, dim, partial(self.stride, axis), signed=True)

    def _require_late(self, axis: int, dim: Sym) -> None:
        if self.hot.knows(dim):
            self.level.require_dim(self.hot, dim, partial(self.stride, axis), signed=True)
        else:
            self._bind_stride(axis, dim)

    def _bind_stride(self, axis: int, symbol: Sym) -> None:
        """The stride must be meaningful: its dim has more than one element, and no other dim is
        empty, unless it is meaningful in every call."""
        if axis not in self.spec.exact_strides:
            self._require_above(axis, 1, self._many)
            for other in range(len(self.spec.shape)):
                if other not in self._many:
                    self._require_above(other, 0, self._some)
        self.hot.bind([(symbol, self.stride(axis))], signed=True)

    def _require_above(self, axis: int, low: int, proved: set[int]) -> None:
        dim: Dim = self.spec.shape[axis]
        if axis not in proved and not (isinstance(dim, int) and dim > low):
            self.hot.require_that(self.size(axis), "sgt", low)
        proved.add(axis)


def _accept_data(hot: Hot, item: Item, spec: Tensor, dl: Value) -> None:
    """Require an address if there are elements, aligned after adding the offset of the first."""
    writer = hot.writer
    base = writer.load(dl, "i64", "data")
    if 0 not in spec.shape:
        hot.require_that(base, "ne", 0)
    offset = writer.load_field(dl, DLTENSOR, "byte_offset")
    address = writer.binary("add", base, offset, f"{spec.name}.data")
    if spec.align > 1:
        hot.require_multiple(address, spec.align, certain=True)
    item.keep(hot, address)


PAIR = 2
_ALL_LANES = (1 << 4) - 1


def pairs(writer: Writer, array: Value, count: int) -> Iterator[Value]:
    """All numbers of an array of at least two; if `count` is odd, the last two overlap the
    others."""
    for start in range(0, count, PAIR):
        at = writer.index(array, I64, min(start, count - PAIR))
        yield writer.load_pair(at)


def require_equal(hot: Hot, found: Iterable[Value], wanted: Iterable[Value]) -> None:
    """Go on only if all pairs are equal."""
    writer, same = hot.writer, None
    for left, right in zip(found, wanted, strict=True):
        equal = writer.equal_lanes(left, right)
        same = equal if same is None else writer.binary("and", same, equal, "same")
    assert same is not None
    # As an i32, because fast instruction selection needs one more jump for other widths.
    lanes = writer.cast("zext", writer.cast("bitcast", same, "i4"), "i32", "lanes")
    hot.require(writer.icmp("eq", lanes, i32(_ALL_LANES)))
