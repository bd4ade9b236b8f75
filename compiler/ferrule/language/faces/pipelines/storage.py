"""Shared memory by names: `struct`, its fields, and the allocator of a kernel's shared memory.

A struct has its fields in order, each at a multiple of its alignment, as C lays them out.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator
from typing import Any, ClassVar, Final

from ferrule.language.faces.tensors import make_tensor, recast_ptr
from ferrule.language.faces.threads import reserve_dyn_smem
from ferrule.language.layouts import cosize, make_layout
from ferrule.specs import DType, Uint8
from ferrule.specs.deferred import dataclass
from ferrule.specs.dtypes import as_dtype

_MOST_ALIGN: Final = 1024


@dataclass(frozen=True)
class MemRangeData:
    """Memory of `size` elements: a field of a struct in a kernel; `field[i]` is one of them."""

    pointer: Any
    element_type: Any
    size: Any

    @property
    def ptr(self) -> Any:
        """A pointer to the first element."""
        return self.pointer

    def data_ptr(self) -> Any:
        """A pointer to the first element."""
        return self.pointer

    def get_tensor(self, layout: Any, swizzle: Any = None, dtype: Any = None) -> Any:
        """A tensor with this layout on the memory, with elements of another dtype if asked."""
        pointer = self.pointer if dtype is None else recast_ptr(self.pointer, dtype=dtype)
        if swizzle is not None:
            pointer = recast_ptr(pointer, swizzle)
        return make_tensor(pointer, layout)


@dataclass(frozen=True, slots=True)
class _MemRange:
    """The type of a field with `size` elements."""

    element_type: Any
    size: int

    @property
    def bytes(self) -> int:
        return self.size * int(self.element_type.itemsize)

    @property
    def align(self) -> int:
        return int(self.element_type.itemsize)


@dataclass(frozen=True, slots=True)
class _Align:
    """The type of a field with a larger alignment."""

    inner: Any
    align: int

    @property
    def bytes(self) -> int:
        return int(self.inner.bytes)


class _MemRangeOf:
    def __getitem__(self, given: Any) -> _MemRange:
        element_type, size = _two("MemRange", given)
        if isinstance(size, bool) or not isinstance(size, int) or size < 0:
            raise TypeError(f"MemRange[{element_type}, {size!r}]: the size is no int from 0 on")
        return _MemRange(as_dtype(element_type), size)


class _AlignOf:
    def __getitem__(self, given: Any) -> _Align:
        kind, align = _two("Align", given)
        if isinstance(align, bool) or not isinstance(align, int) or align not in _ALIGNS:
            raise ValueError(
                f"Align[..., {align!r}]: an alignment is a power of two from 1 to {_MOST_ALIGN}"
            )
        return _Align(_field(kind, "Align"), align)


_ALIGNS: Final = tuple(1 << bit for bit in range(_MOST_ALIGN.bit_length()))


def _two(name: str, given: Any) -> tuple[Any, Any]:
    if not isinstance(given, tuple) or len(given) != 2:
        raise TypeError(f"{name} takes two values in brackets, such as {name}[fe.Float32, 64]")
    return given


def _field(kind: Any, where: str) -> Any:
    """What a field's annotation stands for; a dtype is a range of one element."""
    if isinstance(kind, (_MemRange, _Align, StructType)):
        return kind
    if isinstance(kind, DType):
        return _MemRange(kind, 1)
    raise TypeError(
        f"{where} is {kind!r}: a field is a dtype, MemRange[dtype, count], Align[field, bytes] or "
        "another struct"
    )


class StructValue:
    """A struct in a kernel; a number that is assigned to a field is stored in its memory."""


@dataclass(frozen=True, slots=True)
class StructType:
    """A struct in shared memory: name, type and offset of each field, its size and alignment in
    bytes, and the class of its values in a kernel."""

    name: str
    fields: tuple[tuple[str, Any, int], ...]
    bytes: int
    align: int
    view: Any

    def __call__(self, pointer: Any) -> Any:
        """A value of the struct that begins at a pointer into shared memory."""
        return view_of(self, recast_ptr(pointer, dtype=Uint8))

    def size_in_bytes(self) -> int:
        """The size, a multiple of the alignment."""
        return self.bytes

    def __sizeof__(self) -> int:
        return self.bytes

    def __alignof__(self) -> int:
        return self.align

    def offset_of(self, name: str) -> int:
        """The offset of a field in bytes."""
        return next(offset for field, _, offset in self.fields if field == name)


@dataclass(frozen=True, slots=True)
class _Struct:
    """`struct` or `union`: the decorator, and the types of fields."""

    MemRange: ClassVar[_MemRangeOf] = _MemRangeOf()
    Align: ClassVar[_AlignOf] = _AlignOf()
    overlaps: bool = False

    def __call__(self, cls: type) -> StructType:
        """The struct with the annotated fields of a class."""
        fields: list[tuple[str, Any, int]] = []
        end, most = 0, 1
        for name, kind in _annotations(cls):
            field = _field(kind, f"the field {name!r} of {cls.__name__}")
            start = 0 if self.overlaps else -(-end // field.align) * field.align
            fields.append((name, field, start))
            end, most = max(end, start + field.bytes), max(most, field.align)
        names = [name for name, _, _ in fields]
        view = dataclasses.make_dataclass(cls.__name__, names, bases=(StructValue,), frozen=True)
        return StructType(cls.__name__, tuple(fields), -(-end // most) * most, most, view)


struct: Final = _Struct()
"""A class of annotated fields as a struct in shared memory: `@fe.struct`.

A field is a dtype, `fe.struct.MemRange[dtype, count]`, `fe.struct.Align[field, bytes]` or another
struct.  `SmemAllocator.allocate` gives a value of it in a kernel.
"""


union: Final = _Struct(overlaps=True)
"""A struct whose fields all begin where it begins, as in C: one of them is used at a time."""


def _annotations(cls: type) -> Iterator[tuple[str, Any]]:
    for name, kind in vars(cls).get("__annotations__", {}).items():
        yield name, _evaluated(cls, name, kind) if isinstance(kind, str) else kind


def _evaluated(cls: type, name: str, text: str) -> Any:
    """The field of an annotation that is a text, as in a module with `from __future__ import
    annotations`."""
    module = sys.modules.get(cls.__module__)
    try:
        return eval(text, {} if module is None else dict(vars(module)), dict(vars(cls)))
    except Exception as error:
        raise TypeError(
            f"the annotation of {cls.__name__}.{name} is the text {text!r}, which cannot be "
            f"evaluated with the names of the module {cls.__module__}: {type(error).__name__}: "
            f"{error}; leave `from __future__ import annotations` away, or name its types there"
        ) from None


def _range_of(field: Any, pointer: Any) -> Any:
    """The value of a field that begins at a pointer to bytes."""
    if isinstance(field, _Align):
        return _range_of(field.inner, pointer)
    if isinstance(field, StructType):
        return view_of(field, pointer)
    return MemRangeData(
        recast_ptr(pointer, dtype=field.element_type), field.element_type, field.size
    )


def view_of(kind: Any, pointer: Any) -> Any:
    """The value of a struct that begins at a pointer to bytes."""
    values = []
    for _, field, offset in kind.fields:
        values.append(_range_of(field, pointer + offset))
    return kind.view(*values)


@dataclass(frozen=True)
class SmemAllocator:
    """Divides the dynamic shared memory of a kernel, whose launch then provides enough of it.

    Each call gives memory behind that of the calls before, also of another allocator.  Alignments
    are in bytes.
    """

    def allocate(self, size_or_type: Any, byte_alignment: int = 1) -> Any:
        """Memory for a struct, as a value of it; or so many bytes, as a pointer to Uint8; or an
        element of a dtype, as a pointer to it."""
        if isinstance(size_or_type, StructType):
            align = max(byte_alignment, size_or_type.align)
            return view_of(size_or_type, reserve_dyn_smem(max(1, size_or_type.bytes), align))
        if isinstance(size_or_type, DType):
            return self.allocate_array(size_or_type, 1, byte_alignment)
        return reserve_dyn_smem(size_or_type, byte_alignment)

    def allocate_array(self, element_type: Any, num_elems: Any = 1, byte_alignment: int = 1) -> Any:
        """Memory for so many elements, as a pointer to the first one."""
        align = max(byte_alignment, element_type.itemsize)
        return recast_ptr(
            reserve_dyn_smem(num_elems * element_type.itemsize, align), dtype=element_type
        )

    def allocate_tensor(
        self, element_type: Any, layout: Any, byte_alignment: int = 1, swizzle: Any = None
    ) -> Any:
        """A tensor with this layout in new memory; a size or shape is a compact layout."""
        if isinstance(layout, (int, tuple)):
            layout = make_layout(layout)
        data = MemRangeData(
            self.allocate_array(element_type, cosize(layout), byte_alignment),
            element_type,
            cosize(layout),
        )
        return data.get_tensor(layout, swizzle)


def get_smem_capacity_in_bytes(compute_capability: str | None = None) -> int:
    """The shared memory that one block can have, in bytes (CUDA C++ Programming Guide, "Technical
    Specifications per Compute Capability").  Raises ValueError for an unknown architecture."""
    name = (compute_capability or "sm_90").rstrip("af")
    if name not in _CAPACITIES:
        known = ", ".join(_CAPACITIES)
        raise ValueError(f"the architecture is {compute_capability!r}, not one of {known}")
    return (_CAPACITIES[name] - 1) << 10


_CAPACITIES: Final = {
    "sm_80": 164,
    "sm_86": 100,
    "sm_87": 164,
    "sm_89": 100,
    "sm_90": 228,
    "sm_100": 228,
    "sm_103": 228,
    "sm_120": 100,
}
"""The shared memory of a multiprocessor in KiB, of which a block can have all but 1."""
