"""What assembles the kernels of all tests finds what is wrong with one, and says whose it is."""

from pathlib import Path

import pytest
from ptx_collector import Collector, Merged, to_ptx

GOOD = """\
.version 7.0
.target sm_80
.address_size 64
.visible .entry entry0(.param .u64 entry0_param_0)
{
\t.reg .b64 %rd<2>;
\tld.param.u64 %rd1, [entry0_param_0];
\tret;
}
"""
KERNEL = """\
target triple = "nvptx64-nvidia-cuda"
declare float @llvm.{name}.f32(float)
define ptx_kernel void @entry0(ptr %a) {{
  %x = load float, ptr %a
  %y = call float @llvm.{name}.f32(float %x)
  store float %y, ptr %a
  ret void
}}
"""


@pytest.mark.needs_ptxas
def test_modules_with_entries_of_one_name_are_assembled_as_one(tmp_path: Path) -> None:
    merged = Merged.of([GOOD, GOOD], ["first", "second"])
    assert merged.ptx.count(".version") == 1
    assert merged.refused("sm_80", tmp_path) == ""


def test_of_no_kernels_nothing_is_refused(tmp_path: Path) -> None:
    assert Collector().assembled(tmp_path) == ""


@pytest.mark.needs_ptxas
def test_what_ptxas_refuses_is_said_with_its_test(tmp_path: Path) -> None:
    bad = GOOD.replace("ld.param.u64", "ld.param.u65")
    refused = Merged.of([GOOD, bad, GOOD], ["first", "second", "third"]).refused("sm_80", tmp_path)
    assert refused.startswith("second: ")
    assert "first" not in refused and "third" not in refused


def test_a_module_that_llvm_dies_of_is_the_one_behind_those_that_were_made() -> None:
    made, reason = to_ptx([("sm_80", KERNEL.format(name=name)) for name in ("sqrt", "exp", "sqrt")])
    assert len(made) == 1
    assert "sqrt.rn.f32" in made[0]
    assert "Cannot select" in reason or "no libcall" in reason


@pytest.mark.parametrize("line", ["mul.f32 %f1", "fma.rn.f32 %f1", "ex2.approx.ftz.f32 %f1"])
def test_rounding_that_no_kernel_asked_for_is_said(line: str) -> None:
    collector = Collector({"": "the test"})
    assert collector.unwanted("", f"\tmul.rn.f32 %f0, 0, 0;\n\t{line}, 0, 0;").startswith(
        "the test"
    )
    assert collector.unwanted("", "\tmul.rn.f32 %f0, 0, 0;") == ""


def test_an_fma_that_a_kernel_asks_for_is_its_own_affair() -> None:
    text = "call float @llvm.fma.f32("
    assert Collector({text: "the test"}).unwanted(text, "\tfma.rn.f32 %f0, 0, 0, 0;") == ""
