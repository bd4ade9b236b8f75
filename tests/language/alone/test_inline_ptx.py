"""`arch.inline_ptx`: results on an emulated GPU, and what of it is refused while compiling."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule import arch

WORDS = fe.make_fake_compact_tensor(fe.Int32, (12, 32), stride_order=(1, 0))
CUDA = "--target cuda --gpu-arch sm_90a"
FLOATS = fe.make_fake_compact_tensor(fe.Float32, (32,))
BALLOT = """{
    .reg .pred q;
    setp.ne.b32 q, $1, 0;
    vote.sync.ballot.b32 ${0}, q, $2;
}"""
GREATER = "{ .reg .pred q; setp.gt.s32 q, $1, 3; selp.b32 $0, 1, 0, q; }"
STORE = "st.global.f32 [$1], $2; mov.u32 $0, 0; // $$"


@fe.kernel
def pieces_kernel(words: fe.Tensor, floats: fe.Tensor):
    t = arch.thread_idx()[0]
    ballot = arch.inline_ptx(BALLOT, fe.Uint32, t < 10, arch.FULL_MASK, constraints="=r,r,i")
    words[0, t] = fe.Int32(ballot)
    words[1, t] = fe.Int32(arch.inline_ptx(GREATER, fe.Boolean, t))
    floats[t] = 1.0
    arch.inline_ptx(STORE, fe.Int32, (floats.iterator + t).toint(), fe.Float32(t) * 1.5)
    floats[t] = floats[t] + 1.0
    half = arch.inline_ptx("neg.f16 $0, $1;", fe.Float16, fe.Float16(t))
    words[2, t] = fe.Int32(half)
    words[3, t] = fe.Int32(arch.inline_ptx("add.s64 $0, $1, $1;", fe.Int64, fe.Int64(t)))
    words[4, t] = fe.Int32(arch.activemask())
    words[5, t] = arch.dynamic_smem_size()
    words[6, t] = arch.total_smem_size() + arch.aggr_smem_size()
    words[7, t] = arch.smid() + arch.nwarpid() + arch.physical_warp_id() + arch.gridid()
    begin, low, cycles = arch.globaltimer(), arch.globaltimer_lo(), arch.clock64()
    words[8, t] = fe.Int32(arch.globaltimer() >= begin and arch.clock64() >= cycles)
    words[9, t] = fe.Int32(fe.Int32(begin) <= low or low < 0)
    words[10, t] = arch.nsmid()
    words[11, t] = fe.Int32(arch.clock() != 0)


@fe.jit
def pieces(words: fe.Tensor, floats: fe.Tensor):
    pieces_kernel(words, floats).launch(grid=1, block=32, smem=256)


def test_pieces_of_ptx() -> None:
    with fe.emulated_gpu("sm_90a"):
        compiled = fe.compile(pieces, WORDS, FLOATS, options=CUDA)
        words = fe.cuda.zeros((12, 32), dtype=np.int32)
        floats = fe.cuda.zeros((32,), dtype=np.float32)
        compiled(words, floats)
        found, numbers = fe.cuda.to_numpy(words), fe.cuda.to_numpy(floats)
    t = np.arange(32)
    assert (numbers == t * 1.5 + 1).all()
    assert (found[0] == 1023).all()
    assert (found[1] == (t > 3)).all()
    assert (found[2] == -t).all()
    assert (found[3] == 2 * t).all()
    assert (found[4] == -1).all()
    assert (found[5] == 256).all()
    assert (found[6] >= 512).all()
    assert (found[7:8] >= 0).all()
    assert (found[8] == 1).all()
    assert (found[10] >= 1).all()
    assert "llvm.inline_asm" in compiled.inspect_mlir()


@fe.kernel
def twice_kernel(a: fe.Tensor, out: fe.Tensor):
    t = arch.thread_idx()[0]
    before = a[t]
    arch.inline_ptx(STORE, fe.Int32, (a.iterator + t).toint(), before + 1.0)
    out[t] = before + a[t]


@fe.jit
def twice(a: fe.Tensor, out: fe.Tensor):
    twice_kernel(a, out).launch(grid=1, block=32)


def test_what_a_piece_writes_is_read_again() -> None:
    with fe.emulated_gpu("sm_90a"):
        compiled = fe.compile(twice, FLOATS, FLOATS, options=f"{CUDA} --noalias")
        a, out = (fe.cuda.zeros((32,), dtype=np.float32) for _ in range(2))
        compiled(a, out)
        assert (fe.cuda.to_numpy(out) == 1).all()
    assert "ld.global.nc" not in compiled.inspect_ptx()
    assert "read_only" not in compiled.signature.text()


def kernel_of(*args: Any, **options: Any) -> Any:
    @fe.kernel
    def kernel(words: fe.Tensor):
        words[0, 0] = fe.Int32(arch.inline_ptx(*args, **options))

    @fe.jit
    def host(words: fe.Tensor):
        kernel(words).launch(grid=1, block=1)

    return host


@pytest.mark.parametrize(
    ("args", "options", "message"),
    [
        (("mov.u32 $0, $1;", fe.Int32), {}, r"the text of inline_ptx has '\$1'"),
        (("mov.u32 $0, %clock; $x", fe.Int32), {}, r"the text of inline_ptx has '\$x'"),
        (("mov.u32 $0, $1;", fe.Int32, 3), {"constraints": "=r,f"}, "are '=r,f'"),
        (("mov.u32 $0, $1;", fe.Int32, 3), {"constraints": "=r"}, "are '=r'"),
        (("mov.u32 $0, 1;", 3), {}, "the result of inline_ptx is 3"),
        ((5, fe.Int32), {}, "the text of inline_ptx is 5"),
        (("mov.u32 $0, ü;", fe.Int32), {}, "an ASCII str"),
        (("mov.u32 $0, 1;",), {}, "inline_ptx takes a text, a dtype and numbers"),
        (("mov.u32 $0, 1;", fe.Float8E4M3FN), {}, "PTX has no register for Float8E4M3FN"),
    ],
)
def test_wrong_pieces(args: Any, options: Any, message: str) -> None:
    with pytest.raises(fe.CompileError, match=message):
        fe.compile(kernel_of(*args, **options), WORDS, options=CUDA)


def test_other_targets() -> None:
    wanted = "arch.inline_ptx is known to GPUs alone: compile it for --target cuda"
    with pytest.raises(fe.CompileError, match=wanted):
        fe.compile(kernel_of("mov.u32 $0, 1;", fe.Int32), WORDS, options="--target cpu")
    with pytest.raises(RuntimeError, match=r"arch\.inline_ptx"):
        arch.inline_ptx("mov.u32 $0, 1;", fe.Int32)
