"""The profile counts instructions, bytes, sectors, bank conflicts and threads, exactly."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
from ptx_programs import kernel, launch, machine, pointers

from ferrule.emulator.checks.profile import KernelProfile, Profile, class_of
from ferrule.emulator.ptx.module import Instruction

BEGIN = "ld.param.u64 %rd1, [a0]; mov.u32 %r0, %tid.x;\n"


def profiled(body: str, **more: Any) -> KernelProfile:
    """The profile of one launch; its array has 4096 words."""
    gpu = machine()
    gpu.parts.profile = profile = Profile(arch="sm_90a")
    text = kernel(BEGIN + body + "\nret;", pointers(1), before=".shared .align 128 .b8 s[8192];")
    launch(text, [np.zeros(4096, np.uint32)], on=gpu, **more)
    assert "k: 1 launches" in str(profile)
    return profile.kernels["k"]


def test_instructions_of_warps_and_threads() -> None:
    one = profiled("add.u32 %r1, %r0, 1;", grid=(3, 1, 1), block=(48, 1, 1))
    # ld.param, mov, add and ret.
    assert (one.warp_instructions, one.thread_instructions) == (3 * 2 * 4, 3 * 48 * 4)
    assert one.threads == 144 and one.active_lanes == 24
    assert one.classes() == {"memory": 144, "moves": 144, "integers": 144, "branches": 144}


def test_divergence() -> None:
    one = profiled("setp.lt.u32 %p1, %r0, 8; @%p1 bra A; add.u32 %r1, %r0, 1; A:")
    (added,) = (each for each in one.lines if each.item.opcode == "add")
    assert (added.warps, added.threads, added.present) == (1, 24, 24)
    guarded = profiled("setp.lt.u32 %p1, %r0, 8; @%p1 add.u32 %r1, %r0, 1;")
    (added,) = (each for each in guarded.lines if each.item.opcode == "add")
    assert (added.warps, added.threads, added.present) == (1, 8, 32)
    assert guarded.active_lanes == 32


def test_sectors() -> None:
    body = (
        "mul.wide.u32 %rd2, %r0, {stride}; add.u64 %rd1, %rd1, %rd2; ld.global.{kind} {to}, [%rd1];"
    )
    for stride, kind, to, sectors in (
        (4, "u32", "%r1", 4), (8, "u32", "%r1", 8), (32, "u32", "%r1", 32), (0, "u32", "%r1", 1),
        (16, "v4.u32", "{%r1,%r2,%r3,%r4}", 16), (1, "u8", "%r1", 1),
    ):  # fmt: skip
        one = profiled(body.format(stride=stride, kind=kind, to=to))
        assert (one.total("requests"), one.total("sectors")) == (1, sectors)
    assert one.total("bytes") == 32 and one.total("shared_bytes") == 0


def test_bank_conflicts() -> None:
    body = "mov.u32 %r5, s; mad.lo.u32 %r6, %r0, {stride}, %r5; st.shared.{kind} [%r6], {value};"
    for stride, kind, value, waves, least in (
        (4, "u32", "%r0", 1, 1), (8, "u32", "%r0", 2, 1), (128, "u32", "%r0", 32, 1),
        (132, "u32", "%r0", 1, 1), (0, "u32", "%r0", 1, 1), (8, "b64", "%rd1", 2, 2),
        (16, "v4.u32", "{%r0,%r0,%r0,%r0}", 4, 4), (32, "v4.u32", "{%r0,%r0,%r0,%r0}", 8, 4),
    ):  # fmt: skip
        one = profiled(body.format(stride=stride, kind=kind, value=value))
        assert (one.total("wavefronts"), one.total("least_wavefronts")) == (waves, least)
    assert one.moved() == {"st.shared 16": 512}


def test_kernels_are_translated_for_a_profile_only() -> None:
    gpu = machine()
    module = gpu.load(kernel(BEGIN + "st.global.u32 [%rd1], 1; ret;", pointers(1)))
    place = gpu.memory.allocate(4).to_bytes(8, "little")
    gpu.parts.profile = profile = Profile()
    for _ in range(2):
        module.kernels["k"].launch((1, 1, 1), (32, 1, 1), smem=0, parameters=place)
    gpu.parts.profile = None
    module.kernels["k"].launch((1, 1, 1), (32, 1, 1), smem=0, parameters=place)
    assert not any("profile" in each for each in module.kernels["k"]._translation.helpers)
    assert profile.kernels["k"].launches == 2 and profile.kernels["k"].threads == 64
    assert profile.kernels["k"].total("bytes") == 2 * 32 * 4


def test_classes() -> None:
    def of(name: str) -> str:
        opcode, *modifiers = name.split(".")
        return class_of(Instruction(opcode, tuple(modifiers), (), None, 1, None))

    assert [of("fma.rn.f32"), of("add.f64"), of("fma.rn.bf16x2"), of("mad.lo.s32")] == [
        "float32", "float64", "half", "integers",
    ]  # fmt: skip
    assert [of("mma.sync"), of("cp.async.ca"), of("bra.uni"), of("setp.lt.f32")] == [
        "tensor", "copies", "branches", "comparisons",
    ]  # fmt: skip


class _Reader(HTMLParser):
    """The text of a page; tags must be closed in their order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += attrs
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data.strip())


def test_a_page(tmp_path: Path) -> None:
    gpu = machine()
    gpu.parts.profile = profile = Profile(arch="sm_90a")
    body = BEGIN + (
        "mul.wide.u32 %rd2, %r0, 32; add.u64 %rd1, %rd1, %rd2; ld.global.u32 %r1, [%rd1];\n"
        "mov.u32 %r5, s; mad.lo.u32 %r6, %r0, 8, %r5; st.shared.u32 [%r6], %r1; ret;"
    )
    text = kernel(body, pointers(1), before=".shared .align 128 .b8 s[8192];")
    launch(text, [np.zeros(4096, np.uint32)], on=gpu)
    profile.kernels["<b>&"] = replace(profile.kernels["k"], name="<b>&")
    profile.save(tmp_path / "page.html")
    whole = (tmp_path / "page.html").read_text()
    assert whole.startswith("<!doctype html>") and profile._repr_html_() in whole
    reader = _Reader()
    reader.feed(whole)
    assert not reader.open and "<b>&" in reader.text
    for each in ("32.0 sectors", "2.0 wavefronts", "32, of which 4 would do", "ld.global 4"):
        assert each in reader.text, each
    assert not {name for name, _ in reader.attributes} & {"src", "href", "onclick"}
    assert "url(" not in whole and "<script" not in whole and "prefers-color-scheme" in whole


def test_a_page_without_kernels() -> None:
    assert "no kernel was launched" in Profile().to_html()
