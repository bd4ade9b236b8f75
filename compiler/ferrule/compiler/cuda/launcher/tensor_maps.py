"""Tensor maps: descriptions of tensors for bulk tensor copies, which the driver encodes in a call.

    tiling = Tiling(data_type(Float16), box=(64, 128), swizzle=Swizzle.B128)
    place = launcher.tensor_map()
    encoded = launcher.encode_tensor_map(tiling, place, address, sizes, strides, values)

The driver's function is looked up when the first map is encoded, so that objects without maps run
with drivers that lack it.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from llvmlite import ir

from ferrule.compiler.artefacts import Fault, Location, literal
from ferrule.compiler.cuda.launcher.driver import LIBRARY
from ferrule.compiler.cuda.tilings import MAX_RANK, Columns, Tiling
from ferrule.runtime.llvm.layouts import I32, I64, PTR, Field, Layout

FUNCTION: Final = "cuTensorMapEncodeTiled"
IM2COL: Final = "cuTensorMapEncodeIm2col"
FUNCTION_TYPE: Final = ir.FunctionType(
    I32, [PTR, I32, I32, PTR, PTR, PTR, PTR, PTR, I32, I32, I32, I32]
)
IM2COL_TYPE: Final = ir.FunctionType(
    I32, [PTR, I32, I32, PTR, PTR, PTR, PTR, PTR, I32, I32, PTR, I32, I32, I32, I32]
)
SINCE: Final = "12.0"
"""The first version of CUDA whose driver has the functions."""
BYTES: Final = 128
"""The size of a `CUtensorMap`."""
ALIGN: Final = 64  # alignas of CUtensorMap in cuda.h

TILING: Final = Layout(
    "CudaTiling",
    [
        *(Field(name, I32) for name in ("dtype", "rank", "interleave", "swizzle")),
        *(Field(name, I32) for name in ("l2_promotion", "oob_fill")),
        Field("alignment", I64),
        Field("row", I64),
        Field("box", ir.ArrayType(I32, MAX_RANK)),
        Field("steps", ir.ArrayType(I32, MAX_RANK)),
        Field("im2col", I32),
        Field("lower", ir.ArrayType(I32, MAX_RANK - 2)),
        Field("upper", ir.ArrayType(I32, MAX_RANK - 2)),
    ],
)
"""The constant part of a tensor map; `row` divides the size of the innermost dim."""


def function_of(tiling: Tiling | Columns) -> str:
    """The driver's function that encodes such a map."""
    return FUNCTION if tiling.corners is None else IM2COL


def tiling_constant(tiling: Tiling | Columns) -> ir.Constant:
    """The value of a `TILING`."""
    modes = (tiling.interleave, tiling.swizzle, tiling.l2_promotion, tiling.oob_fill)
    fields = [ir.Constant(I32, int(n)) for n in (tiling.dtype, tiling.rank, *modes)]
    fields += [ir.Constant(I64, number) for number in (tiling.alignment, tiling.dtype.row)]
    fields += [_array(numbers, MAX_RANK) for numbers in (tiling.box, tiling.steps)]
    fields.append(ir.Constant(I32, int(tiling.corners is not None)))
    fields += [_array(corner, MAX_RANK - 2) for corner in tiling.corners or ((), ())]
    return ir.Constant.literal_struct(fields)


def _array(numbers: tuple[int, ...], count: int) -> ir.Constant:
    return ir.Constant(ir.ArrayType(I32, count), [*numbers, *[0] * (count - len(numbers))])


class Encoded(IntEnum):
    """The result of an encoding: from 1 on the number of its fault."""

    DONE = 0
    CALL_FAILED = 1
    NO_FUNCTION = 2
    MISPLACED = 3
    ODD_STRIDE = 4
    ODD_SIZE = 5
    ODD_ROW = 6


def encoding_faults(
    tiling: Tiling | Columns, of: str, doing: str, location: Location | None
) -> tuple[Fault, ...]:
    """The faults behind the statuses 1, 2, …; `of` is the tensor's name, `doing` the launch.

    Faults of different tilings have different messages, so that the numbers of each are
    consecutive.
    """
    name, where, shown = literal(of), literal(doing), literal(str(tiling))
    sizes = ", ".join(["{}"] * tiling.rank)
    strides = ", ".join(["{}"] * (tiling.rank - 1))
    given = f"address {{unsigned}}, sizes ({sizes}), strides ({strides}) bytes, {shown}"
    multiple = tiling.alignment
    messages = {
        Encoded.CALL_FAILED: "{text} failed with {text} ({}: {text}) for the tensor map of "
        f"{name} {where}: {given}, dims from the innermost on{{text}}",
        Encoded.NO_FUNCTION: f"the CUDA driver has no {{text}}, which the tensor map of {name}, "
        f"{shown}, needs {where}: wanted the driver of CUDA {SINCE} or later, but this is that "
        f"of CUDA {{}}.{{}}; update the NVIDIA driver ({LIBRARY})",
        Encoded.MISPLACED: f"{name} is at the address {{unsigned}} {where}, but its tensor map, "
        f"{shown}, needs a multiple of {multiple}",
        Encoded.ODD_STRIDE: f"{name} has a stride of {{}} bytes {where}, in dim {{}} from the "
        f"innermost on, but its tensor map, {shown}, needs multiples of {multiple} less than 2**40",
        Encoded.ODD_SIZE: f"{name} has a size of {{}} {where}, in dim {{}} from the innermost on, "
        f"but its tensor map, {shown}, has at most 2**32 elements along a dim",
        Encoded.ODD_ROW: f"{name} has rows of {{}} elements {where}, but its tensor map, {shown}, "
        f"needs a multiple of {tiling.dtype.row}",
    }
    kinds = {Encoded.CALL_FAILED: "CudaError", Encoded.NO_FUNCTION: "CudaError"}
    return tuple(
        Fault(kinds.get(each, "ValueError"), messages[each], location)
        for each in Encoded
        if each is not Encoded.DONE
    )
