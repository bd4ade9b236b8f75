"""What cubins and PTX say of themselves, and what is made of them."""

from __future__ import annotations

import struct
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from cuda_body import IMAGE
from cuda_device import FakeCuda, forged
from forged_cubins import NEW, OLD, ForgedKernel, forge_cubin
from hypothesis import given
from hypothesis import strategies as st
from ptxas import find_ptxas

import ferrule as fe
from ferrule import compiler, specs
from ferrule.compiler.conventions import CudaLaunch
from ferrule.compiler.cuda.binaries.cubins import read_cubin
from ferrule.compiler.cuda.binaries.fit import LaunchSizes
from ferrule.compiler.cuda.binaries.parameters import KernelParameter
from ferrule.compiler.cuda.binaries.ptx_text import read_ptx
from ferrule.compiler.cuda.code import DeviceCode
from ferrule.compiler.cuda.launcher.images import images_of
from ferrule.compiler.errors import CompileError
from ferrule.runtime.binaries.elf import ObjectFileError
from ferrule.specs import Signature, Tensor

ADD = ForgedKernel("add", (8, 8, 4, 4, 2), most=(128, 1, 1), shared=64)
OTHER = ForgedKernel("other", (), block=(64, 2, 1), cluster=(2, 1, 1))

PTX = """\
// .version 1.0 is a comment, as is .entry no(.param .u8 no_0)
.version 8.3
.target sm_90a, debug
.address_size 64
.file 1 "folder//other/{.cu"
.extern .shared .align 16 .b8 dynamic[];
.shared .align 16 .b8 common[100];
.extern .func (.param .b32 r) helper(.param .b64 h_0);
.visible .entry all_kinds(
    .param .u64 .ptr .global .align 16 all_kinds_0,   /* a pointer { */
    .param .align 8 .b8 all_kinds_1[24],
    .param .u8 all_kinds_2,
    .param .align 64 .b8 all_kinds_3[128],
    .param .f16 all_kinds_4,
    .param .v2 .f32 all_kinds_5,
    .param .b32 all_kinds_6[2][3]
)
.maxntid 256
.minnctapersm 2
{
    .shared .b32 own[3], more;
    { st.shared.u32 [common], 0; }
    ret;
}
.visible .entry fixed()
.reqntid 64, 2, 1
.reqnctapercluster 2
{ ret; }
.weak .entry $bare { .pragma "nounroll }"; ret; }
"""


# ---- reading ----


@pytest.mark.parametrize("abi", [OLD, NEW], ids=["CUDA 12", "CUDA 13"])
@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "sm_90a"])
def test_a_cubin_says_its_architecture_and_kernels(arch: str, abi: int) -> None:
    for note in (True, False):
        cubin = read_cubin(forge_cubin(arch, [ADD, OTHER], abi, note=note))
        assert cubin.arch == arch
        assert [kernel.kernel for kernel in cubin.kernels] == ["add", "other"]


def test_a_cubin_says_what_a_kernel_takes() -> None:
    add, other = read_cubin(forge_cubin("sm_100f", [ADD, OTHER])).kernels
    offsets = [parameter.offset for parameter in add.parameters]
    assert (add.arch, add.sizes, offsets) == ("sm_100f", (8, 8, 4, 4, 2), [0, 8, 16, 20, 24])
    assert (add.size, add.max_block, add.required_block) == (26, (128, 1, 1), None)
    assert (add.static_shared, add.registers, add.cluster) == (64, 24, None)
    assert (other.sizes, other.required_block, other.cluster) == ((), (64, 2, 1), (2, 1, 1))


@pytest.mark.parametrize("long", [False, True])
def test_the_size_of_a_parameter_is_told_from_what_it_points_to(long: bool) -> None:
    kernel = ForgedKernel("k", (8, 4, 8000), points_to=(12, 5), long=long)
    (found,) = read_cubin(forge_cubin("sm_90", [kernel])).kernels
    assert found.sizes == (8, 4, 8000)


def test_ptx_says_what_a_kernel_takes() -> None:
    ptx = read_ptx(PTX)
    first, fixed, bare = ptx.kernels
    assert (ptx.version, ptx.arch) == ((8, 3), "sm_90a")
    assert first.parameters == (
        KernelParameter(0, 8, 8),
        KernelParameter(8, 24, 8),
        KernelParameter(32, 1, 1),
        KernelParameter(64, 128, 64),
        KernelParameter(192, 2, 2),
        KernelParameter(200, 8, 8),
        KernelParameter(208, 24, 4),
    )
    assert (first.kernel, first.max_block, first.static_shared) == ("all_kinds", (256, 1, 1), 116)
    assert (fixed.required_block, fixed.cluster, fixed.sizes) == ((64, 2, 1), (2, 1, 1), ())
    assert (bare.kernel, bare.sizes, bare.static_shared) == ("$bare", (), 0)


def test_numbers_of_ptx_are_read_in_every_base() -> None:
    head = ".version 8.3\n.target sm_90\n"
    (found,) = read_ptx(
        head + ".entry k(.param .align 0x8 .b8 x[010], .param .b8 y[0b11], .param .u8 z[16U])\n"
        ".maxntid 0x80, 2U { .shared .b8 own[0x20]; }"
    ).kernels
    assert found.sizes == (8, 3, 16)
    assert (found.parameters[0].align, found.max_block) == (8, (128, 2, 1))
    assert found.static_shared == 32
    for wrong in (".b8 x[09]", ".b8 x[0x]", f".b8 x[{'9' * 5000}]", ".align 0 .b8 x[4]"):
        with pytest.raises(ObjectFileError, match="the PTX has a"):
            read_ptx(f"{head}.entry k(.param {wrong}) {{}}")


def test_a_pointer_to_shared_memory_is_no_variable_there() -> None:
    (found,) = read_ptx(
        ".version 8.3\n.target sm_90\n.shared .b32 one;\n"
        ".entry k(.param .u64 .ptr .shared .align 4 x, .param .u32 y)\n"
        "{ .shared .b8 own[8]; st.shared.u32 [one], 0; }"
    ).kernels
    assert (found.sizes, found.static_shared) == ((8, 4), 12)


def test_many_kernels_with_shared_memory_are_read_at_once() -> None:
    """Each looks for all variables: in a second for these, not in a minute."""
    each = ".shared .b8 s{0}[{0}];\n.entry k{0}() {{ st.shared.u8 [s{0}], 0; }}\n"
    start = time.perf_counter()
    kernels = read_ptx(
        ".version 8.3\n.target sm_90\n" + "".join(each.format(n) for n in range(1, 801))
    ).kernels
    assert [kernel.static_shared for kernel in kernels] == [*range(1, 801)]
    assert time.perf_counter() - start < 5


@pytest.mark.needs_ptxas
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90", "sm_90a", "sm_100a", "sm_120f"])
def test_ptx_and_its_cubin_say_the_same(arch: str, tmp_path: Path) -> None:
    source, target = tmp_path / "k.ptx", tmp_path / "k.cubin"
    source.write_text(f"""\
.version 8.8
.target {arch}
.address_size 64
.shared .align 16 .b8 common[96];
.visible .entry one(.param .u64 one_0, .param .align 64 .b8 one_1[128], .param .u8 one_2)
.maxntid 96, 2, 1
{{
    .shared .align 4 .b8 own[64];
    .reg .b32 %r;
    ld.shared.u32 %r, [own];
    st.shared.u32 [common], %r;
    ret;
}}
.visible .entry large(
    .param .u64 .ptr .global .align 16 large_0,
    .param .align 8 .b8 large_1[{20000 if arch != "sm_75" else 4000}]
)
.reqntid 32, 4, 1
{{ ret; }}
""")
    program = find_ptxas()
    assert program is not None
    subprocess.run([program, f"-arch={arch}", str(source), "-o", str(target)], check=True)
    text, cubin = read_ptx(source.read_text()), read_cubin(target.read_bytes())
    assert cubin.arch == text.arch == arch
    there = {kernel.kernel: kernel for kernel in cubin.kernels}
    assert sorted(there) == ["large", "one"]
    for kernel in text.kernels:
        other = there[kernel.kernel]
        assert kernel.sizes == other.sizes
        assert (kernel.required_block, kernel.max_block) == (other.required_block, other.max_block)
        assert kernel.static_shared == other.static_shared
        assert other.registers is not None


# ---- bytes that are no image ----


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "wanted a cubin, got no bytes"),
        (b"BC\xc0\xde", "wanted a cubin, got LLVM bitcode"),
        (PTX.encode(), "wanted a cubin, got PTX: that is for DeviceCode.from_ptx"),
        (b"\x50\xed\x55\xba\x01\0\x10\0", "take them out of it with cuobjdump -xelf all"),
        (forge_cubin("sm_90", [ADD], kind=1), "got relocatable device code"),
        (forge_cubin("sm_90", [ADD])[:700], "the object is cut off"),
        (forge_cubin("sm_90", [ADD], abi=7), "wanted a cubin of ABI 51 (CUDA 12) or 65 (CUDA 13)"),
        (b"\x7fELF" + bytes((2, 1, 1)) + bytes(11) + b"\x3e" + bytes(60), "got code for x86_64"),
        (
            b"\x7fELF" + bytes((2, 1, 1)) + bytes(11) + b"\x3e" + bytes(60) + b".nv_fatbin",
            "x86_64; there are kernels in it: cuobjdump -xelf all takes the cubins out",
        ),
        (b"__global__ void f() {}", "; CUDA C++ is for fe.frontends.cuda.compile"),
    ],
)
def test_what_is_no_cubin_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(ValueError, match="the data cannot be read") as caught:
        DeviceCode.from_cubin(data)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "wanted PTX text, with .version and .target, got no text"),
        ("int main() {\n}\n", "got text that begins with 'int main() {'"),
        (PTX[:-4], "the PTX is cut off: 4 braces open, 3 close"),
        (PTX + ".visible .entry more(.param .u64 x)\n.maxntid 64", "it begins "),
        (forge_cubin("sm_90", [ADD]), "got an ELF file: is it a cubin?"),
        (b"BC\xc0\xde\0\x01", "wanted PTX text, got LLVM bitcode"),
        (b"\x50\xed\x55\xba\x01\0\x10\0", "got a fatbin: cuobjdump -xptx all takes the PTX out"),
        ("__global__ void f() {}\n", "; CUDA C++ is for fe.frontends.cuda.compile"),
        (PTX.replace(".u8 all_kinds_2", ".what all_kinds_2"), "cannot be read: '.param .what"),
        (".version 8.0\n.target sm_90\n", "has no kernel"),
        (IMAGE.replace(b"size 64", b"size 32"), "addresses of 64 bits, got .address_size 32"),
        ("// \u00e9\n" + PTX, "PTX text, which is ASCII, got the byte 0xc3 in line 1"),
        (IMAGE[:40] + b"\0" + IMAGE[40:], "which is ASCII, got the byte 0x00 in line 3"),
    ],
)
def test_what_is_no_ptx_is_refused(text: str | bytes, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        DeviceCode.from_ptx(text)
    assert message in str(caught.value)


@pytest.mark.parametrize("where", [0, 0xFFFF])
def test_a_kernel_in_no_section_is_refused(where: int) -> None:
    symbol = struct.Struct("<BBH")
    whole = forge_cubin("sm_90", [ADD])
    there = symbol.pack(0x12, 0x10, 2)
    assert whole.count(there) == 1
    with pytest.raises(ObjectFileError, match=f"add: section {where} of "):
        read_cubin(whole.replace(there, symbol.pack(0x12, 0x10, where)))


@given(st.data())
def test_a_damaged_cubin_is_read_or_refused(data: st.DataObject) -> None:
    whole = bytearray(forge_cubin("sm_90a", [ADD, OTHER]))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(4, len(whole) - 1))] = data.draw(st.integers(0, 255))
    end = data.draw(st.sampled_from([len(whole), len(whole) // 2, 80]))
    try:
        read_cubin(bytes(whole[:end]))
    except ValueError:
        pass


@given(st.integers(0, len(PTX)), st.integers(0, len(PTX)))
def test_damaged_ptx_is_read_or_refused(start: int, stop: int) -> None:
    try:
        read_ptx(PTX[:start] + PTX[stop:])
    except ValueError:
        pass


def test_what_is_no_binary_is_refused() -> None:
    with pytest.raises(TypeError, match="wanted the bytes or the path of a binary"):
        DeviceCode.from_cubin(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="wanted one binary at least"):
        DeviceCode.from_ptx([])
    with pytest.raises(FileNotFoundError, match="^.Errno 2. No such file or directory"):
        DeviceCode.from_cubin("no_such_file.cubin")
    with pytest.raises(FileNotFoundError, match="text of one line is no PTX: it has several"):
        DeviceCode.from_ptx("hello")
    for kernels in (3, [3]):
        with pytest.raises(TypeError, match="kernels must be a list of names|each of kernels must"):
            DeviceCode.from_ptx(IMAGE, kernels)  # type: ignore[arg-type]


# ---- device code ----


def test_files_are_read_by_their_paths(tmp_path: Path) -> None:
    cubin, ptx = tmp_path / "k.cubin", tmp_path / "k.ptx"
    cubin.write_bytes(forge_cubin("sm_90a", [ADD]))
    ptx.write_bytes(IMAGE + b"\0")
    assert DeviceCode.from_cubin(cubin).kernels == ("add",)
    assert DeviceCode.from_ptx(str(ptx)).kernels == ("first", "second")
    with pytest.raises(ValueError, match=r"k\.ptx cannot be read: wanted a cubin, got PTX"):
        DeviceCode.from_cubin(ptx)


def test_cubins_for_several_architectures_are_one_code_without_ptx() -> None:
    code = DeviceCode.from_cubin([forge_cubin(arch, [ADD]) for arch in ("sm_80", "sm_90a")])
    assert (code.archs, code.ptx) == (("sm_80", "sm_90a"), {})
    images = images_of(code)
    assert [(image.is_cubin, image.arch) for image in images] == [(True, "sm_80"), (True, "sm_90a")]
    assert [image.serves.name for image in images] == ["FAMILY", "SAME"]


def test_a_cubin_and_ptx_go_together() -> None:
    kernels = [ForgedKernel("first", (8, 4)), ForgedKernel("second", (16,))]
    code = DeviceCode.from_images([forge_cubin("sm_90", kernels), IMAGE])
    assert [str(image) for image in images_of(code)] == ["sm_90 (cubin)", "sm_80 (PTX)"]


def test_ptx_can_be_kept_for_newer_gpus() -> None:
    assert DeviceCode.from_ptx(IMAGE, arch="sm_90").archs == ("sm_90",)
    with pytest.raises(ValueError, match="the data is PTX for sm_80 and newer, but arch='sm_75'"):
        DeviceCode.from_ptx(IMAGE, arch="sm_75")
    with pytest.raises(ValueError, match="wanted an architecture such as 'sm_90a'"):
        DeviceCode.from_ptx(IMAGE, arch="hopper")
    with pytest.raises(TypeError, match="but got arch=90; did you mean 'sm_90'?"):
        DeviceCode.from_ptx(IMAGE, arch=90)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ([ADD], "sm_80 has other, which the data for sm_90 has not: .* are DeviceCode.joined"),
        ([ADD, ForgedKernel("other", (8,))], r"other has parameters with the bytes \(\) in"),
        ([ADD, ForgedKernel("other", (), (32, 1, 1))], r"other has the block \(64, 2, 1\) in"),
        ([ADD, ForgedKernel("other", (), (64, 2, 1))], r"other has the cluster \(2, 1, 1\) in"),
    ],
)
def test_images_must_have_the_same_kernels(second: list[ForgedKernel], message: str) -> None:
    images = [forge_cubin("sm_80", [ADD, OTHER]), forge_cubin("sm_90", second)]
    with pytest.raises(ValueError, match=message):
        DeviceCode.from_cubin(images)
    assert DeviceCode.from_cubin(images, kernels=["add"]).kernels == ("add",)


def test_an_architecture_has_one_image_of_a_kind() -> None:
    with pytest.raises(ValueError, match="there are two images of one kind for sm_90"):
        DeviceCode.from_cubin([forge_cubin("sm_90", [ADD])] * 2)


# ---- what a launch gives ----

CODE = DeviceCode.from_cubin(forge_cubin("sm_90a", [ADD, OTHER]))
GIVEN = [(8, "x.data"), (8, "y.data"), (4, "n"), (4, "alpha"), (2, "cast(alpha, float16)")]


def refused(
    kernel: str,
    packed: list[tuple[int, str]],
    block: tuple[int, int, int] | None = None,
    cluster: tuple[int, int, int] | None = None,
) -> str:
    with pytest.raises(CompileError) as caught:
        CODE.check_launch(kernel, packed, LaunchSizes(block, cluster))
    return str(caught.value)


def test_a_launch_that_fits_is_accepted() -> None:
    CODE.check_launch("add", GIVEN, LaunchSizes((128, 1, 1), (2, 2, 1)))
    CODE.check_launch("other", [], LaunchSizes((64, 2, 1), (2, 1, 1)))
    assert CODE.parameters("add").static_shared == 64


def test_an_unknown_kernel_is_refused_with_those_that_are_there() -> None:
    assert refused("ad", GIVEN) == (
        "there is no kernel 'ad' in the device code\n"
        "  expected: add, other\n"
        "  hint: did you mean add?"
    )
    with pytest.raises(CompileError, match="there is no kernel 'sub' in the device code"):
        DeviceCode.from_cubin(forge_cubin("sm_90a", [ADD]), kernels=["sub"])


def test_a_missing_parameter_is_named_with_its_size() -> None:
    kernel = ForgedKernel("hidden", (8, 4, 8, 8))
    code = DeviceCode.from_cubin(forge_cubin("sm_90a", [kernel]))
    with pytest.raises(CompileError) as caught:
        code.check_launch("hidden", [(8, "x.data"), (4, "n")])
    assert str(caught.value) == (
        "kernel hidden of sm_90a takes 4 parameters of 8, 4, 8, 8 bytes, "
        "but the list has 2 parameters of 8, 4 bytes\n"
        "  hint: compilers add hidden pointers at the end: where these are such, and are not "
        "used, end the list with conventions.NULL, conventions.NULL\n"
        "  note: #2, 8 bytes, is missing\n"
        "  note: #3, 8 bytes, is missing\n"
        "  note: the list: #0 x.data (8), #1 n (4)"
    )


def test_a_parameter_too_much_is_named_with_its_size() -> None:
    said = refused("add", [*GIVEN[:2], (8, "z.data"), *GIVEN[2:]])
    assert said.splitlines()[1] == "  note: z.data, 8 bytes, is too much"
    assert "other of sm_90a takes no parameters, but the list has 1 parameter of 8 bytes" in (
        refused("other", [(8, "x.data")])
    )


def test_a_parameter_of_another_size_is_named_with_what_to_write() -> None:
    said = refused("add", [*GIVEN[:2], (8, "n"), *GIVEN[3:]])
    assert said.splitlines()[1:-1] == [
        "  hint: convert a number to the kernel's type, such as "
        'conventions.cast(value, "int32") for 4 bytes',
        "  note: #2 is n of 8 bytes, wanted 4",
    ]


def test_blocks_and_clusters_must_be_those_that_it_was_compiled_for() -> None:
    assert (
        "for blocks of (64, 2, 1) threads (reqntid), but the launch has blocks of (128, 1, 1)"
        in (refused("other", [], (128, 1, 1)))
    )
    assert (
        "for blocks of 128 threads at most (maxntid), but the launch has blocks of (64, 4, 1)"
        in (refused("add", GIVEN, (64, 4, 1)))
    )
    assert "for clusters of (2, 1, 1) blocks, but the launch asks for (4, 1, 1)" in (
        refused("other", [], (64, 2, 1), (4, 1, 1))
    )


# ---- which GPUs an image is for ----


def launching() -> fe.Function:
    images = [forge_cubin(arch, [ForgedKernel("add", (8,))]) for arch in ("sm_80", "sm_90a")]
    code = DeviceCode.from_cubin(images)
    signature = Signature("add", [Tensor("x", (specs.sym_int(),), "float32")])
    launch = CudaLaunch(code, "add", [signature["x"].data], grid=1, block=32)
    return compiler.build(signature, launch)


@pytest.mark.parametrize(
    ("capability", "target"), [(80, "sm_80"), (86, "sm_80"), (89, "sm_80"), (90, "sm_90")]
)
def test_a_gpu_gets_the_cubin_of_its_major_version(
    fake_cuda: FakeCuda, capability: int, target: str
) -> None:
    for device in (0, 1):
        fake_cuda.set_capability(device, capability)
    function = launching()
    function(forged(np.zeros(8, np.float32)))
    assert (len(fake_cuda.launches()), fake_cuda.target) == (1, target)


@pytest.mark.parametrize("capability", [75, 100])
def test_a_gpu_that_runs_no_image_is_named(fake_cuda: FakeCuda, capability: int) -> None:
    for device in (0, 1):
        fake_cuda.set_capability(device, capability)
    with pytest.raises(fe.CudaError) as caught:
        launching()(forged(np.zeros(8, np.float32)))
    assert (
        f"the GPU cuda:0 has compute capability {capability // 10}.{capability % 10}, but the "
        "kernels were compiled for sm_90a (cubin), sm_80 (cubin), which it does not run"
    ) in str(caught.value)
