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
from ferrule.compiler.cuda.tilings import MAX_RANK, Tiling
from ferrule.runtime.llvm.layouts import I32, I64, PTR, Field, Layout

FUNCTION: Final = "cuTensorMapEncodeTiled"
FUNCTION_TYPE: Final = ir.FunctionType(
    I32, [PTR, I32, I32, PTR, PTR, PTR, PTR, PTR, I32, I32, I32, I32]
)
SINCE: Final = "12.0"
"""The first version of CUDA whose driver has the function."""
BYTES: Final = 128
"""The size of a `CUtensorMap`."""
ALIGN: Final = 64

TILING: Final = Layout(
    "CudaTiling",
    [
        *(Field(name, I32) for name in ("dtype", "rank", "interleave", "swizzle")),
        *(Field(name, I32) for name in ("l2_promotion", "oob_fill")),
        Field("alignment", I64),
        Field("box", ir.ArrayType(I32, MAX_RANK)),
        Field("steps", ir.ArrayType(I32, MAX_RANK)),
    ],
)
"""The constant part of a tensor map."""


def tiling_constant(tiling: Tiling) -> ir.Constant:
    """The value of a `TILING`."""
    modes = (tiling.interleave, tiling.swizzle, tiling.l2_promotion, tiling.oob_fill)
    fields = [ir.Constant(I32, int(n)) for n in (tiling.dtype, tiling.rank, *modes)]
    fields.append(ir.Constant(I64, tiling.alignment))
    kind = ir.ArrayType(I32, MAX_RANK)
    for numbers in (tiling.box, tiling.steps):
        fields.append(ir.Constant(kind, [*numbers, *[0] * (MAX_RANK - tiling.rank)]))
    return ir.Constant.literal_struct(fields)


class Encoded(IntEnum):
    """The result of an encoding: from 1 on the number of its fault."""

    DONE = 0
    CALL_FAILED = 1
    NO_FUNCTION = 2
    MISPLACED = 3
    ODD_STRIDE = 4
    ODD_SIZE = 5


def encoding_faults(
    tiling: Tiling, of: str, doing: str, location: Location | None
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
    }
    kinds = {Encoded.CALL_FAILED: "CudaError", Encoded.NO_FUNCTION: "CudaError"}
    return tuple(
        Fault(kinds.get(each, "ValueError"), messages[each], location)
        for each in Encoded
        if each is not Encoded.DONE
    )
