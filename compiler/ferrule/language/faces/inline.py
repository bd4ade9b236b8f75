"""`fe.arch.inline_ptx`, and registers that GPUs have for programs that look at themselves."""

from __future__ import annotations

from typing import Any

from ferrule import specs
from ferrule.language.faces.base import outside

Uint32: Any = specs.Uint32
Int32: Any = specs.Int32
Int64: Any = specs.Int64


def inline_ptx(text: Any, result: Any, *operands: Any, constraints: str | None = None) -> Any:
    """The result of PTX instructions, a number of the dtype `result`; on GPUs alone.

    In the text `$0` is the register of the result, `$1` and so on are those of the operands, which
    are numbers; `$$` is a dollar.  A Boolean is 0 or 1 in a register of 32 bits, and true in the
    result if any bit is set; a number of 8 bits is in a register of 16.  `constraints`, such as
    "=r,l", are those of LLVM: they are checked against the dtypes, and say nothing else.
    """
    outside("arch.inline_ptx")


def clock() -> Any:
    """The lower 32 bits of the multiprocessor's count of cycles, an Int32."""
    return inline_ptx("mov.u32 $0, %clock;", Int32)


def clock64() -> Any:
    """The multiprocessor's count of cycles, an Int64."""
    return inline_ptx("mov.u64 $0, %clock64;", Int64)


def globaltimer() -> Any:
    """The nanoseconds of a clock that all multiprocessors share, an Int64."""
    return inline_ptx("mov.u64 $0, %globaltimer;", Int64)


def globaltimer_lo() -> Any:
    """The lower 32 bits of `globaltimer()`, an Int32."""
    return inline_ptx("mov.u32 $0, %globaltimer_lo;", Int32)


def smid() -> Any:
    """The number of the multiprocessor that runs the block now, an Int32."""
    return inline_ptx("mov.u32 $0, %smid;", Int32)


def nsmid() -> Any:
    """One more than the largest number of a multiprocessor, an Int32."""
    return inline_ptx("mov.u32 $0, %nsmid;", Int32)


def physical_warp_id() -> Any:
    """The number of the place on the multiprocessor where the warp runs now, an Int32."""
    return inline_ptx("mov.u32 $0, %warpid;", Int32)


def nwarpid() -> Any:
    """One more than the largest `physical_warp_id()`, an Int32."""
    return inline_ptx("mov.u32 $0, %nwarpid;", Int32)


def gridid() -> Any:
    """The lower 32 bits of the number of the launch, an Int32."""
    return Int32(inline_ptx("mov.u64 $0, %gridid;", Int64))


def activemask() -> Any:
    """The lanes that run this instruction together at this moment, a Uint32."""
    return inline_ptx("activemask.b32 $0;", Uint32)


def total_smem_size() -> Any:
    """The bytes of shared memory of the block, static and dynamic, an Int32."""
    return inline_ptx("mov.u32 $0, %total_smem_size;", Int32)


def aggr_smem_size() -> Any:
    """`total_smem_size()` and what the system reserves of shared memory, an Int32."""
    return inline_ptx("mov.u32 $0, %aggr_smem_size;", Int32)


def dynamic_smem_size() -> Any:
    """The bytes of dynamic shared memory of the block, an Int32."""
    return inline_ptx("mov.u32 $0, %dynamic_smem_size;", Int32)


get_dyn_smem_size = dynamic_smem_size
