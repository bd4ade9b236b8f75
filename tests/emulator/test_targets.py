"""An instruction that the `.target` of a text has not is refused; test_meanings asks ptxas."""

from __future__ import annotations

import pytest
from ptx_programs import kernel, machine

from ferrule.emulator.machine import PtxError


@pytest.mark.parametrize(
    ("instruction", "target", "wanted"),
    [
        ("redux.sync.add.s32 %r1, %r2, -1", "sm_75", "sm_80"),
        ("match.any.sync.b32 %r1, %r2, -1", "sm_60", "sm_70"),
        ("atom.global.add.f64 %fd1, [%rd1], %fd2", "sm_52", "sm_60"),
        ("ld.acquire.gpu.global.u32 %r1, [%rd1]", "sm_61", "sm_70"),
        ("elect.sync %r1|%p1, -1", "sm_80", "sm_90"),
        ("setmaxnreg.inc.sync.aligned.u32 128", "sm_90", "sm_90a"),
        ("mbarrier.init.shared.b64 [%r1], 1", "sm_75", "sm_80"),
        ("tensormap.replace.tile.rank.global.b1024.b32 [%rd1], 1", "sm_90", "sm_90a"),
        ("max.f32 %f1, %f2, %f3, %f4", "sm_90a", "sm_100"),
        ("fma.rn.f32x2 %rd1, %rd2, %rd3, %rd4", "sm_90a", "sm_100"),
    ],
)
def test_an_older_target_is_refused(instruction: str, target: str, wanted: str) -> None:
    text = kernel(f"{instruction};\nret;").replace(".target sm_90a", f".target {target}")
    name = instruction.split()[0]
    with pytest.raises(PtxError, match=f"{name} needs .target {wanted} or newer, not {target}"):
        machine().load(text)
    machine().load(text.replace(f".target {target}", f".target {wanted}"))
