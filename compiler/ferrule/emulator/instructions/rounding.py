"""Arithmetic on float32 and float64 that does not round to nearest: `.rz`, `.rm` and `.rp`.

Lane by lane, by the processor in its own mode of rounding, which is set back at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ferrule.emulator.instructions.floats import F64, each_float
from ferrule.emulator.instructions.forms import Named, form, kind
from ferrule.emulator.instructions.helpers import by_lane, helper, lane_value, put
from ferrule.emulator.ptx.module import Instruction
from ferrule.emulator.warps.emitter import Emitter, splat

_MODES: Final = {"rz": 0, "rp": 2, "rm": 3}
_NEAREST: Final = 1
_FTZ: Final = r"\.(?P<r>rz|rm|rp)(?P<ftz>\.ftz)?(?P<sat>\.sat)?\.(?P<t>f32)"
_PLAIN: Final = r"\.(?P<r>rz|rm|rp)(?P<ftz>\.ftz)?\.(?P<t>f32)"
_WIDE: Final = r"\.(?P<r>rz|rm|rp)\.(?P<t>f64)"


@form("add", _FTZ, 3)
@form("sub", _FTZ, 3)
@form("mul", _FTZ, 3)
@form("fma", _FTZ, 4)
@form("mad", _FTZ, 4)
@form("div", _PLAIN, 3)
@form("sqrt", _PLAIN, 2)
@form("rcp", _PLAIN, 2)
@form("add", _WIDE, 3)
@form("sub", _WIDE, 3)
@form("mul", _WIDE, 3)
@form("fma", _WIDE, 4)
@form("mad", _WIDE, 4)
@form("div", _WIDE, 3)
@form("sqrt", _WIDE, 2)
@form("rcp", _WIDE, 2)
def _rounded(e: Emitter, item: Instruction, named: Named) -> None:
    opcode = {"mad": "fma", "rcp": "div"}.get(item.opcode, item.opcode)

    def compute(e: Emitter, llvm: str, given: Sequence[str]) -> str:
        scalar = "double" if llvm == F64 else "float"
        values = [(llvm, each) for each in given]
        if item.opcode == "rcp":
            values.insert(0, (llvm, splat(scalar, "1.0")))
        name = f"rounded:{opcode}:{kind(named, 'r')}:{scalar}"
        (value,) = e.call(name, values, [llvm])
        return value

    each_float(e, item, named, compute)


@helper("rounded")
def _by_lane(name: str, op: str, mode: str, scalar: str) -> str:
    """`rounded:add:rz:float`: operands, then a place for the result."""
    count = {"sqrt": 1, "fma": 3}.get(op, 2)
    body = "".join(lane_value(f"%p{i}", scalar, f"a{i}") for i in range(count))
    function = op if op in ("sqrt", "fma") else f"f{op}"
    intrinsic = f"@llvm.experimental.constrained.{function}.{_SUFFIX[scalar]}"
    arguments = ", ".join(f"{scalar} %a{i}" for i in range(count))
    body += (
        f"  %r = call {scalar} {intrinsic}({arguments}, "
        'metadata !"round.dynamic", metadata !"fpexcept.strict") strictfp\n'
    )
    body += put(f"%p{count}", scalar, "%r")
    before = f"  call void @llvm.set.rounding(i32 {_MODES[mode]}) strictfp\n"
    after = f"  call void @llvm.set.rounding(i32 {_NEAREST}) strictfp\n"
    text = by_lane(name, count + 1, before, body + "  br label %next\n", after)
    types = ", ".join([scalar] * count)
    declared = f"declare {scalar} {intrinsic}({types}, metadata, metadata)\n"
    return declared + "declare void @llvm.set.rounding(i32)\n" + _strict(text)


_SUFFIX: Final = {"float": "f32", "double": "f64"}


def _strict(text: str) -> str:
    """The function with the attribute that says so."""
    head, brace, rest = text.partition(" {\n")
    return f"{head} strictfp{brace}{rest}"
