"""What the benchmark of machine code counts in a disassembler's text."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from benchmark_runs import quick_run

from ferrule.compiler.cuda.assembly import find_program
from ferrule.compiler.cuda.disassembly import find_disassembler

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from sass_kernels.reading import alike, read

TEXT = """
.section .text.first,"ax",@progbits
.text.first:
        /*0000*/                   LDC R1, c[0x0][0x37c] ;
.L_x_2:
        /*0010*/                   LDG.E.128 R4, desc[UR4][R2.64] ;
.L_x_1:
        /*0020*/                   FFMA R4, R4, R5, R6 ;
        /*0030*/              @!P0 FADD R4, R4, R5 ;
        /*0040*/               @P1 BRA `(.L_x_1) ;
        /*0050*/                   STG.E desc[UR4][R2.64], R4 ;
        /*0060*/               @P0 BRA `(.L_x_2) ;
        /*0070*/                   EXIT ;
.L_x_3:
        /*0080*/                   BRA `(.L_x_3);
        /*0090*/                   NOP;
.section .text.second,"ax",@progbits
.text.second:
        /*0000*/                   EXIT ;
"""


def test_instructions_loops_and_accesses_are_counted() -> None:
    kernels = read(TEXT)
    first = kernels["first"]
    assert len(first.instructions) == 8 and len(kernels["second"].instructions) == 1
    assert (first.count("LDG"), first.wide("LDG"), first.wide("STG")) == (1, 1, 0)
    loop = first.hot_loop("FFMA|FADD", "MUFU")
    assert loop is not None
    assert (loop.length, loop.units, loop.each) == (3, 2, 1.5)
    assert first.hot_loop("FFMA", "FADD") is None
    assert kernels["second"].hot_loop("FFMA", "MUFU") is None


TILES = """
.section .text.rolled,"ax",@progbits
.text.rolled:
.L_x_2:
        /*0000*/                   BAR.SYNC 0x0 ;
.L_x_1:
        /*0010*/                   LDS R4, [R2] ;
        /*0020*/                   FFMA R4, R4, R5, R6 ;
        /*0030*/               @P1 BRA `(.L_x_1) ;
        /*0040*/               @P0 BRA `(.L_x_2) ;
        /*0050*/                   EXIT ;
.section .text.unrolled,"ax",@progbits
.text.unrolled:
.L_x_3:
        /*0000*/                   BAR.SYNC 0x0 ;
        /*0010*/                   LDS.128 R4, [R2] ;
        /*0020*/                   FFMA R4, R4, R5, R6 ;
        /*0030*/                   FFMA R4, R4, R5, R6 ;
        /*0040*/                   FFMA R4, R4, R5, R6 ;
        /*0050*/                   FFMA R4, R4, R5, R6 ;
        /*0060*/               @P0 BRA `(.L_x_3) ;
        /*0070*/                   EXIT ;
"""


def test_a_loop_that_one_side_has_unrolled_whole_is_compared_with_the_one_around() -> None:
    kernels = read(TILES)
    rolled, unrolled = kernels["rolled"], kernels["unrolled"]
    for pair in ((rolled, unrolled), (unrolled, rolled)):
        loops = dict(zip(map(id, pair), alike(*pair, "FFMA", "MUFU"), strict=True))
        first, second = loops[id(rolled)], loops[id(unrolled)]
        assert first is not None and second is not None
        assert (first.length, second.length) == (2 + 4 * 3, 7)
        assert (first.each, second.each) == (14 / 4, 7 / 4)
    alone, same = alike(rolled, rolled, "FFMA", "MUFU")
    assert alone == same and alone is not None and alone.each == 3


@pytest.mark.nightly
def test_kernels_are_counted_beside_nvccs(tmp_path: Path) -> None:
    if not (find_program("nvcc") and find_program("ptxas") and find_disassembler()):
        pytest.skip("nvcc, ptxas or nvdisasm is not installed")
    content = quick_run("sass", tmp_path / "sass.json", torch=False)
    ours, theirs = content["counted"]["study, sm_90a"]["add_1d"]
    assert 0.5 < ours["total"] / theirs["total"] < 2
