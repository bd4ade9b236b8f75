"""Modules of kind `ferrule.ptx` on a GPU."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from cuda_device import data_ptr

import ferrule as fe

pytestmark = [pytest.mark.needs_cuda, pytest.mark.needs_cc]

PTX = """\
.version 7.0
.target sm_70
.address_size 64
.visible .entry scale(.param .u64 x, .param .f32 factor, .param .u32 n)
{
    .reg .pred %outside;
    .reg .b32 %i<5>;
    .reg .f32 %f<3>;
    .reg .b64 %a<4>;
    mov.u32 %i1, %ctaid.x;
    mov.u32 %i2, %ntid.x;
    mov.u32 %i3, %tid.x;
    mad.lo.u32 %i1, %i1, %i2, %i3;
    ld.param.u32 %i4, [n];
    setp.ge.u32 %outside, %i1, %i4;
    @%outside ret;
    ld.param.u64 %a1, [x];
    cvta.to.global.u64 %a1, %a1;
    mul.wide.u32 %a2, %i1, 4;
    add.u64 %a3, %a1, %a2;
    ld.global.f32 %f1, [%a3];
    ld.param.f32 %f2, [factor];
    mul.f32 %f1, %f1, %f2;
    st.global.f32 [%a3], %f1;
    ret;
}
"""

scale = fe.import_func("scale")


@fe.jit
def scaled(address: fe.Int64, factor: fe.Float32, n: fe.Int32):
    scale(address, factor, n, fe.ceil_div(n, 128), 1, 1, 128, 1, 1, 0)


def test_a_library_launches_what_it_imports(tmp_path: Path) -> None:
    kernels = fe.Module.from_ptx(PTX, "scale(x: Pointer(float32), factor: float32, n: uint32)")
    function = fe.compile(scaled, fe.Int64, fe.Float32, fe.Int32, options="--target cpu")
    fe.Module([function], imports=[kernels]).write_to_file(tmp_path / "k.so")
    module = fe.runtime.load_module(tmp_path / "k.so")
    values = np.arange(1000, dtype=np.float32)
    x = fe.cuda.array(values)
    for _ in range(2):
        module.imports[0].scale(x, 2.0, 1000, 8, 1, 1, 128, 1, 1, 0)
    module.scaled(data_ptr(x), 2.0, 1000)
    np.testing.assert_array_equal(fe.cuda.to_numpy(x), 8 * values)
