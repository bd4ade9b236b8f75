"""`wgmma` on a GPU: each product is an instruction in inline assembly.

LLVM has no intrinsic for it.  A product reads and writes its registers in the background, and LLVM
does not know that.  So the registers of all fragments of products pass through an empty piece of
assembly before each fence and behind each wait: LLVM then moves no use of them across.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from llvmlite import ir

from ferrule.language.codegen.cuda.nvvm import CONTROLS, EIGHT_BITS
from ferrule.language.codegen.functions.lowering import EmitOp, FunctionLowering
from ferrule.language.faces.tensor_cores import SharedMatrix
from ferrule.language.ir import ops, tensor_cores
from ferrule.runtime.llvm.layouts import F32, I32, I64, VOID
from ferrule.specs import DType, Float32

_WORDS: Final = {
    "float16": "f16",
    "bfloat16": "bf16",
    "tfloat32": "tf32",
    **{dtype.name: word for dtype, word in EIGHT_BITS.items()},
    "int8": "s8",
    "uint8": "u8",
    "float32": "f32",
    "int32": "s32",
}
"""PTX's names of dtypes."""
_SWIZZLES: Final = {0: 0, 128: 1, 64: 2, 32: 3}
"""The modes in bits 62 and 63 of a descriptor (PTX ISA, "Matrix Descriptor Format")."""
_A_WORDS: Final = 4
"""The words of A in registers."""
# A descriptor has 14 bits of an address in units of 16 bytes.
ADDRESS_BITS: Final = 0x3FFFF
_UNIT_BITS: Final = 4
"""Addresses in descriptors are counted in units of 16 bytes."""
_LEADING, _STRIDE, _SWIZZLE = 16, 32, 62
"""The lowest bits of these fields of a descriptor."""
HOLDING: Final = ("wgmma_fence", "wgmma_wait_group")
"""The kinds of `Control` that no use of a fragment may be moved across."""


def control(lowering: FunctionLowering, fragments: Iterable[ops.Value], op: ops.Control) -> None:
    """Emits a fence or a wait, with no use of these fragments moved across it."""
    given = [each for each in fragments if each in lowering.values]
    _hold(lowering, given)
    _assembly(lowering, VOID, control_text(op), "~{memory}", [])
    _hold(lowering, given)


def control_text(op: ops.Control) -> str:
    """The text of a fence or a wait."""
    amount = f" {op.amount}" if op.kind in ops.WITH_AMOUNT else ""
    return f"{CONTROLS[op.kind]}{amount};"


def _hold(lowering: FunctionLowering, fragments: Iterable[ops.Value]) -> None:
    for fragment in fragments:
        places = list(_places(lowering, fragment))
        kind = _word(fragment.tensor.dtype)
        values = [lowering.b.load(place, typ=kind, align=4) for place in places]
        _store(lowering, places, kind, "", passed(fragment.tensor.dtype, len(values)), values)


def _product(lowering: FunctionLowering, op: ops.WarpgroupMma) -> None:
    """Emits a product."""
    b, kind = lowering.b, _word(op.d.tensor.dtype)
    places = list(_places(lowering, op.d))
    given = [b.load(place, typ=kind, align=4) for place in places]
    if op.of_a is None:
        given += [b.load(place, typ=I32, align=4) for place in _places(lowering, op.a)]
    else:
        given.append(_descriptor(lowering, op.a, op.of_a))
    given.append(_descriptor(lowering, op.b, op.of_b))
    given.append(b.zext(lowering.values[op.accumulate], I32))
    _store(lowering, places, kind, *instruction(op), given)


def instruction(op: ops.WarpgroupMma) -> tuple[str, str]:
    """The text and the constraints of a product.

    Its operands are the words of D, of A or A's descriptor, B's descriptor and a number that is not
    0 if it adds; its results are the words of D.
    """
    count = tensor_cores.fragment_size(op.d) // tensor_cores.words(op.d)
    in_registers, at = op.of_a is None, 2 * count
    left = [f"${at + i}" for i in range(_A_WORDS if in_registers else 1)]
    first = "{" + ", ".join(left) + "}" if in_registers else left[0]
    at += len(left)
    result = "{" + ", ".join(f"${i}" for i in range(count)) + "}"
    words = ".".join(_WORDS[value.tensor.dtype.name] for value in (op.d, op.a, op.b))
    text = (
        f"{{ .reg .pred adds; setp.ne.b32 adds, ${at + 1}, 0; wgmma.mma_async.sync.aligned."
        f"{_shape(op)}.{words} {result}, {first}, ${at}, adds{_settings(op)}; }}"
    )
    letters = ["r"] * _A_WORDS if in_registers else ["l"]
    return text, ",".join([passed(op.d.tensor.dtype, count), *letters, "l", "r", "~{memory}"])


def passed(dtype: DType, count: int) -> str:
    """The constraints of so many words that are results in the registers that they came in."""
    letter = "f" if dtype is Float32 else "r"
    return ",".join([f"={letter}"] * count + list(map(str, range(count))))


def _shape(op: ops.WarpgroupMma) -> str:
    return f"m{tensor_cores.WGMMA_ROWS}n{op.columns}k{op.depth}"


def _settings(op: ops.WarpgroupMma) -> str:
    """Both factors as they are, then which of those in shared memory, of 2 bytes, have "mn"."""
    if op.d.tensor.dtype.is_integer:
        return ""
    majors = [layout.major for layout in (op.of_a, op.of_b) if layout is not None]
    turns = [int(major == "mn") for major in majors] if op.b.tensor.dtype.bits == 16 else []
    return "".join(f", {number}" for number in (1, 1, *turns))


def _descriptor(lowering: FunctionLowering, pointer: ops.Value, layout: SharedMatrix) -> ir.Value:
    b = lowering.b
    return b.or_(b.zext(_start(lowering, pointer), I64), ir.Constant(I64, descriptor(layout)))


def _start(lowering: FunctionLowering, pointer: ops.Value) -> ir.Value:
    """The address in units of 16 bytes.

    Where the matrix begins at a place in memory of which that is known, the place is counted in
    these units, too: products side by side then have descriptors that differ by a constant, and
    that of the memory is computed once.
    """
    tensor, indices = lowering.multiples.begins.get(pointer, (pointer, ()))
    bits = _UNIT_BITS - (tensor.tensor.dtype.itemsize.bit_length() - 1)
    if len(indices) == 1 and tensor.tensor.strides == (1,) and _is_whole(lowering, tensor):
        if lowering.multiples.divides(bits, indices[0]):
            return _moved(lowering, _units(lowering, tensor), indices[0], bits)
    return _units(lowering, pointer)


def _is_whole(lowering: FunctionLowering, tensor: ops.Value) -> bool:
    """Whether a tensor begins at a multiple of the unit."""
    return lowering.multiples.align(tensor) >= 1 << _UNIT_BITS


def _units(lowering: FunctionLowering, pointer: ops.Value) -> ir.Value:
    b = lowering.b
    address = b.ptrtoint(lowering.values[pointer], I32)
    return b.lshr(b.and_(address, ir.Constant(I32, ADDRESS_BITS)), ir.Constant(I32, _UNIT_BITS))


def _moved(lowering: FunctionLowering, start: ir.Value, index: ops.Value, bits: int) -> ir.Value:
    """The start moved by an index that 2**bits divides, term by term: what does not change in a
    loop comes first, as in the sum."""
    b, known = lowering.b, lowering.multiples
    if index in known.constants:
        return b.add(start, ir.Constant(I32, known.constants[index] >> bits))
    match known.makers.get(index):
        case ops.Binary(_, "add", lhs, rhs) if known.divides(bits, lhs) and known.divides(
            bits, rhs
        ):
            return _moved(lowering, _moved(lowering, start, lhs, bits), rhs, bits)
        case ops.Binary(_, "mul", lhs, rhs) if rhs in known.constants and known.divides(bits, rhs):
            factor = ir.Constant(I32, known.constants[rhs] >> bits)
            return b.add(start, b.mul(_word_of(lowering, lhs), factor))
    return b.add(start, b.ashr(_word_of(lowering, index), ir.Constant(I32, bits)))


def _word_of(lowering: FunctionLowering, number: ops.Value) -> ir.Value:
    """An integer's low 32 bits."""
    value = lowering.values[number]
    change = lowering.b.trunc if value.type.width > I32.width else lowering.b.sext
    return value if value.type == I32 else change(value, I32)


def descriptor(layout: SharedMatrix) -> int:
    """All of a descriptor but the address, as a number of 64 bits."""
    fields = layout.leading >> 4 << _LEADING | layout.stride >> 4 << _STRIDE
    return fields | _SWIZZLES[layout.swizzle] << _SWIZZLE


def _word(dtype: DType) -> ir.Type:
    return F32 if dtype is Float32 else I32


def _places(lowering: FunctionLowering, fragment: ops.Value) -> Iterator[ir.Value]:
    """The addresses of the words of a fragment."""
    start, e = lowering.values[fragment], lowering.emitter
    type_ = fragment.tensor
    count = 1
    for size, stride in zip(type_.shape, type_.strides, strict=True):
        assert isinstance(size, int) and isinstance(stride, int)
        count += (size - 1) * stride
    for position in range(count // tensor_cores.words(fragment)):
        yield e.index(start, I32, position)


def _store(
    lowering: FunctionLowering,
    places: list[ir.Value],
    kind: ir.Type,
    text: str,
    constraints: str,
    given: list[ir.Value],
) -> None:
    """Stores the results of a piece of assembly, one or more words."""
    several = ir.LiteralStructType([kind] * len(places)) if len(places) > 1 else kind
    found = _assembly(lowering, several, text, constraints, given)
    for position, place in enumerate(places):
        word = lowering.b.extract_value(found, position) if len(places) > 1 else found
        lowering.b.store(word, place, align=4)


def _assembly(
    lowering: FunctionLowering, result: ir.Type, text: str, constraints: str, given: list[ir.Value]
) -> ir.Value:
    kind = ir.FunctionType(result, [value.type for value in given])
    code = ir.InlineAsm(kind, text, constraints, side_effect=True)
    call = lowering.b.call(code, given)
    call.attributes.add("convergent")
    return call


EMITTERS: Final[Mapping[type[ops.Op], EmitOp]] = MappingProxyType({ops.WarpgroupMma: _product})
