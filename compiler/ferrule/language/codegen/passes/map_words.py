"""Tensor maps in memory for targets without them: words of 64 bits with what copies need.

Word 0 is the address of the tensor; words 1 to 5 are its sizes, and words 6 to 10 its strides in
bytes, both from the innermost dim on.  Word 11 is a number that memory without a map has not.  The
boxes are those of the copy.
"""

from __future__ import annotations

from typing import Final

from ferrule.compiler.artefacts import Fault
from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.language.ir.types import TensorType
from ferrule.specs import Int32, Int64

# A CUtensorMap has five dims at most, and 128 bytes.
_ADDRESS, _DIMS, _STRIDES, _MARK, _WORDS = 0, 1, 6, 11, 16
_MARKED: Final = int.from_bytes(b"tensormp", "little")
_FIELDS: Final = {"address": _ADDRESS, "dim": _DIMS, "stride": _STRIDES}
_UNBOUNDED: Final = (1 << 63) - 1
_NO_MAP: Final = Fault(
    "RuntimeError",
    "a copy uses a tensor map in memory, but nothing has written one there: copy the map of a "
    "tensor to it first (fe.nvgpu.cpasync.copy_tensormap)",
)


def lower(b: Builder, op: ops.MapOp) -> None:
    """Writes the words of a map; the fences order nothing that is not in order."""
    if isinstance(op, ops.MapCopy):
        _write(b, op)
    elif op.kind == "publish":
        assert op.value is not None
        for number in range(_WORDS):
            _store(b, op.place, number, b.load(op.value, (b.constant(Int32, number),)))
    elif op.value is not None:
        _store(b, op.place, _FIELDS[op.kind] + op.dim, op.value)


def _store(b: Builder, place: ops.Value, number: int, value: ops.Value) -> None:
    b.store(place, (b.constant(Int32, number),), value)


def _write(b: Builder, op: ops.MapCopy) -> None:
    """The words of a tensor; each lane writes all of them."""
    type_ = op.tensor.tensor
    address = ops.Value(Int64, "address")
    b.append(ops.Address(address, op.tensor))
    _store(b, op.target, _ADDRESS, address)
    _store(b, op.target, _MARK, b.constant(Int64, _MARKED))
    size = b.constant(Int64, type_.dtype.itemsize)
    for place, dim in enumerate(op.boxes.order):
        _store(b, op.target, _DIMS + place, b.size(Int64, type_.shape[dim]))
        stride = b.binary("mul", b.size(Int64, type_.strides[dim]), size)
        _store(b, op.target, _STRIDES + place, stride)


class Described:
    """The tensor that a map in memory describes."""

    def __init__(self, b: Builder, op: ops.TensorCopy) -> None:
        assert op.descriptor is not None
        self.order = op.boxes.order
        self.dtype = op.tensor.tensor.dtype
        words = [b.load(op.descriptor, (b.constant(Int32, n),)) for n in range(_MARK + 1)]
        b.check(b.compare("eq", words[_MARK], b.constant(Int64, _MARKED)), _NO_MAP)
        type_ = TensorType(
            self.dtype, (_UNBOUNDED,), (1,), self.dtype.itemsize, op.tensor.tensor.space
        )
        self.memory = ops.Value(type_, "described")
        b.append(ops.Pointer(self.memory, words[_ADDRESS]))
        rank = len(self.order)
        self.sizes: dict[int, ops.Value] = {}
        self.strides: dict[int, ops.Value] = {}
        for place, dim in enumerate(self.order[:rank]):
            self.sizes[dim] = words[_DIMS + place]
            size = b.constant(Int64, self.dtype.itemsize)
            self.strides[dim] = b.binary("floordiv", words[_STRIDES + place], size)

    def offset(self, b: Builder, at: tuple[ops.Value, ...]) -> ops.Value:
        """Of an element, from the first one."""
        found = b.constant(Int64, 0)
        for dim, place in enumerate(at):
            found = b.binary("add", found, b.binary("mul", place, self.strides[dim]))
        return found
