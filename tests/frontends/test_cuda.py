"""CUDA C++: what becomes of it, and how it is refused."""

from __future__ import annotations

import os
import stat
import struct
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from cuda_device import FakeCuda
from forged_cubins import ForgedKernel, forge_cubin
from gpu_functions import floats
from host_memory import allocating

import ferrule as fe
from ferrule import specs
from ferrule.compiler.errors import CompileError
from ferrule.frontends import cuda, fixed
from ferrule.runtime import devices
from ferrule.specs import Scalar, Signature, Tensor

N = specs.sym_int32(symbol="n")
SIGNATURE = Signature("scale", [Tensor("x", (N,), "float32"), Scalar("a", "float32")])
PARAMS = [SIGNATURE["x"].data, SIGNATURE["a"], N]
SOURCE = """
template <class T> __global__ void scale(T* x, T a, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= a;
}
namespace ns { __global__ void set(float* x, float a) { x[0] = a; } }
extern "C" __global__ void plain(float* x, float a) { x[threadIdx.x] = a VALUE; }
"""


def scale(**more: Any) -> fe.Function:
    given = {"kernel": "scale<float>", "params": PARAMS, "target": "sm_90a"} | more
    given["defines"] = {"VALUE": "", **given.get("defines", {})}
    return cuda.compile(SOURCE, SIGNATURE, grid=specs.ceil_div(N, 256), block=256, **given)


# ---- with NVRTC ----


def test_an_instance_of_a_template_is_launched(nvrtc: Any, fake_cuda: FakeCuda) -> None:
    fn = scale(compiler="nvrtc")
    fn(floats(1000), 2.5)
    (launch,) = fake_cuda.launches()
    assert (launch.kernel, launch.grid, launch.block) == (
        "_Z5scaleIfEvPT_S0_i", (4, 1, 1), (256, 1, 1)
    )  # fmt: skip
    assert launch.parameters[1:] == (struct.pack("<f", 2.5), struct.pack("<i", 1000))


def test_a_grid_of_numbers_alone_is_refused_where_calls_differ(
    nvrtc: Any, fake_cuda: FakeCuda
) -> None:
    given: dict[str, Any] = {"kernel": "scale<float>", "params": PARAMS, "target": "sm_90a"}
    given |= {"block": 256, "defines": {"VALUE": ""}}
    for grid, shown in ((4, "4"), ((4, 1), r"\(4, 1\)"), (lambda sig: 4, "4")):
        said = rf"scale: the grid is {shown} in every call, but x.shape\[0\] differs between calls"
        with pytest.raises(CompileError, match=said):
            cuda.compile(SOURCE, SIGNATURE, grid=grid, **given)
    following = lambda sig: specs.ceil_div(sig["x"].shape[0], 256)  # noqa: E731
    for right, wanted in ((fixed((4, 2)), (4, 2, 1)), (following, (3, 1, 1))):
        cuda.compile(SOURCE, SIGNATURE, grid=right, **given)(floats(600), 2.0)
        assert fake_cuda.launches()[-1].grid == wanted
    whole = Signature("plain", [Tensor("x", (600,), "float32"), Scalar("a", "float32")])
    given |= {"kernel": "plain", "params": None}
    assert cuda.compile(SOURCE, whole, grid=4, **given)


def test_parameters_are_those_of_the_signature_unless_they_are_listed(nvrtc: Any) -> None:
    assert scale(kernel="plain", params=None)
    with pytest.raises(CompileError, match="#2, 4 bytes, is missing"):
        scale(params=None)


def test_each_architecture_gets_an_image(nvrtc: Any) -> None:
    compiled = cuda.module(SOURCE, ["plain"], target=["sm_80", "sm_90a"], defines={"VALUE": "+ 1"})
    assert compiled.code.archs == ("sm_80", "sm_90a")
    assert compiled.code.ptx == {}
    assert compiled.code.parameters("plain").sizes == (8, 4)


def test_kernels_that_are_no_templates_need_no_names(nvrtc: Any) -> None:
    compiled = cuda.module(SOURCE, target="sm_90", defines={"VALUE": ""})
    assert set(compiled.code.kernels) == {"_ZN2ns3setEPff", "plain"}
    with pytest.raises(CompileError, match="the source has 2 kernels"):
        compiled.kernel()
    named = cuda.module(SOURCE, ["ns::set"], target="sm_90", defines={"VALUE": ""})
    assert (named.kernel(), named.kernel("ns::set")) == ("_ZN2ns3setEPff",) * 2


def test_an_error_has_the_lines_of_nvrtc(nvrtc: Any) -> None:
    with pytest.raises(CompileError) as caught:
        scale(defines={"VALUE": "+ missing"})
    head, *lines = str(caught.value).splitlines()
    assert head.startswith("scale.cu cannot be compiled for sm_90a by NVRTC ")
    assert lines[0] == 'scale.cu(7): error: identifier "missing" is undefined'
    assert lines[1].endswith("x[threadIdx.x] = a VALUE; }")
    assert lines[2].strip() == "^"


def test_a_kernel_that_is_not_there_is_refused_with_those_that_are(nvrtc: Any) -> None:
    with pytest.raises(CompileError) as caught:
        scale(kernel="scal")
    said = str(caught.value)
    assert 'identifier "scal" is undefined' in said
    assert "expected: of the kernels that are no templates: " in said
    assert "ns::set" in said and "plain" in said
    assert "kernel='scale<float>'" in said


def test_a_kernel_may_be_named_as_the_binary_names_it(nvrtc: Any) -> None:
    given = [SIGNATURE["x"].data, SIGNATURE["a"]]
    for name in ("ns::set", "_ZN2ns3setEPff"):
        assert scale(kernel=name, params=given)


def test_a_kernel_that_is_static_is_refused(nvrtc: Any) -> None:
    with pytest.raises(CompileError, match="hint: a kernel that is static"):
        cuda.module("static __global__ void f() {}", ["f"], target="sm_90")


def test_headers_of_the_host_are_nvccs(nvrtc: Any) -> None:
    with pytest.raises(CompileError, match='hint: NVRTC has none of the headers .*"nvcc"'):
        cuda.module("#include <regex>\n", target="sm_90")


def test_nvrtc_says_which_architectures_it_has(nvrtc: Any) -> None:
    with pytest.raises(CompileError, match=r"hint: NVRTC \S+ compiles for sm_75, .*sm_90"):
        scale(target="sm_13")


def test_a_file_finds_its_own_headers_and_those_that_are_named(nvrtc: Any, tmp_path: Path) -> None:
    (tmp_path / "own.cuh").write_text("#define OWN 1\n")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "other.cuh").write_text("#define OTHER 2\n")
    file = tmp_path / "kernel.cu"
    file.write_text(
        '#include "own.cuh"\n#include <other.cuh>\n'
        'extern "C" __global__ void set(float* x) { x[0] = OWN + OTHER + MACRO; }\n'
    )
    signature = Signature("set", [Tensor("x", (N,), "float32")])
    more: dict[str, Any] = {"target": "sm_90", "grid": fixed(1), "block": 1}
    paths = [tmp_path / "more"]
    assert cuda.compile(file, signature, include_paths=paths, defines={"MACRO": True}, **more)
    with pytest.raises(CompileError) as caught:
        cuda.compile(str(file), signature, **more)
    refused = 'kernel.cu(2): catastrophic error: cannot open source file "other.cuh"'
    assert refused in str(caught.value)
    assert "hint: include_paths=[…] says where headers are" in str(caught.value)


def test_warnings_are_kept(nvrtc: Any) -> None:
    compiled = cuda.module(
        'extern "C" __global__ void f(float* x) { int unused; x[0] = 1; }',
        target=["sm_80", "sm_90"],
    )
    assert compiled.log.count("kernels.cu(1): warning #177-D") == 1


def test_ptx_shows_what_the_options_do(nvrtc: Any) -> None:
    source = 'extern "C" __global__ void f(float* x) {\n  x[0] = x[2] / x[1];\n}'
    plain = cuda.module(source, target="sm_90", form="ptx").code.ptx["sm_90"]
    fast = cuda.module(
        source, target="sm_90", form="ptx", fast_math=True, line_info=True, name="f.cu"
    ).code.ptx["sm_90"]
    assert "div.rn.f32" in plain and ".loc" not in plain
    assert "div.approx.ftz.f32" in fast and ".loc" in fast


def test_nvrtc_initialises_a_driver_that_is_there_and_calls_nothing_else(
    nvrtc: Any, fake_cuda: FakeCuda
) -> None:
    scale()
    assert set(fake_cuda.names()) <= {"cuInit"}


def test_flags_are_handed_on(nvrtc: Any) -> None:
    with pytest.raises(CompileError, match="unrecognized option --no-such-flag"):
        scale(flags=["--no-such-flag"])


# ---- with nvcc ----


def test_nvcc_compiles_where_it_is_asked_for(nvcc: str, fake_cuda: FakeCuda) -> None:
    fn = scale(compiler="nvcc")
    fn(floats(300), 2.5)
    (launch,) = fake_cuda.launches()
    assert (launch.kernel, launch.grid) == ("_Z5scaleIfEvPT_S0_i", (2, 1, 1))


@pytest.mark.nightly
def test_nvcc_takes_a_template_that_the_source_itself_instantiates(nvcc: str) -> None:
    source = "template <class T> __global__ void f(T* x) {}\ntemplate __global__ void f(float*);"
    names = cuda.module(source, ["f<float>", "f<int>"], target="sm_90", compiler="nvcc").names
    assert names == {"f<float>": "_Z1fIfEvPT_", "f<int>": "_Z1fIiEvPT_"}


def test_an_error_has_the_lines_of_nvcc(nvcc: str) -> None:
    with pytest.raises(CompileError) as caught:
        scale(compiler="nvcc", kernel=None, defines={"VALUE": "+ missing"})
    head, *lines = str(caught.value).splitlines()
    assert head == "scale.cu cannot be compiled for sm_90a by nvcc:"
    assert lines[0] == 'scale.cu(7): error: identifier "missing" is undefined'
    assert lines[-1] == '1 error detected in the compilation of "scale.cu".'


FAKE_NVCC = """\
#!{python}
import sys
words = sys.argv[1:]
if "--refused" in words:
    sys.exit(words[-3] + ": error: not this one")
if "--without" in words:
    sys.exit(words[-3] + ":1:10: fatal error: own.h: No such file or directory")
print("warning: a stand-in", file=sys.stderr)
open(words[-1], "wb").write({cubin!r})
"""


def stand_in(monkeypatch: pytest.MonkeyPatch, folder: Path, *kernels: str) -> None:
    """An nvcc that makes the same cubin of everything, with these kernels."""
    program = folder / "nvcc"
    forged = [ForgedKernel(name, (8, 4), most=(256, 1, 1)) for name in kernels or ("plain",)]
    cubin = forge_cubin("sm_90a", forged)
    program.write_text(FAKE_NVCC.format(python=sys.executable, cubin=cubin))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def test_what_nvcc_makes_is_launched(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fake_cuda: FakeCuda
) -> None:
    stand_in(monkeypatch, tmp_path)
    fn = scale(kernel=None, params=None, compiler="nvcc")
    fn(floats(300), 2.5)
    (launch,) = fake_cuda.launches()
    assert (launch.kernel, launch.grid) == ("plain", (2, 1, 1))
    compiled = cuda.module(SOURCE, target="sm_90a", compiler="nvcc")
    assert compiled.log == "warning: a stand-in"


def test_of_several_kernels_that_with_the_name_of_the_signature_is_launched(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fake_cuda: FakeCuda
) -> None:
    stand_in(monkeypatch, tmp_path, "other", "scale")
    scale(kernel=None, params=None, compiler="nvcc")(floats(300), 2.5)
    (launch,) = fake_cuda.launches()
    assert launch.kernel == "scale"


def test_what_nvcc_says_against_a_source_is_the_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stand_in(monkeypatch, tmp_path)
    with pytest.raises(CompileError) as caught:
        scale(kernel=None, compiler="nvcc", flags=["--refused"])
    assert str(caught.value) == (
        "scale.cu cannot be compiled for sm_90a by nvcc:\nscale.cu: error: not this one"
    )
    with pytest.raises(CompileError, match=r"hint: include_paths=\[…\] .* such as own\.h are"):
        scale(kernel=None, compiler="nvcc", flags=["--without"])


# ---- examples ----


@pytest.fixture
def examples(any_compiler: None, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "examples"))
    import cuda_cpp

    return cuda_cpp


def test_the_reduction_launches_twice(examples: ModuleType, fake_cuda: FakeCuda) -> None:
    fn = examples.reduction("sm_90")
    x = floats(10_000)
    with allocating() as memory:
        total = fn(x)
        first, second = fake_cuda.launches()
        assert tuple(total.shape) == (1,)
        del total
    assert (first.grid, second.grid) == ((3, 1, 1), (1, 1, 1))
    assert first.parameters[2:] == (struct.pack("<q", 10_000), struct.pack("<q", 4096))
    assert second.parameters[2:] == (struct.pack("<q", 3), struct.pack("<q", 3))
    assert first.parameters[1] == second.parameters[0], "the sums of the blocks"
    assert (min(memory.sizes), len(memory.sizes), memory.live) == (4, 2, {})


def test_the_matmul_gets_sizes_of_its_own_width(examples: ModuleType, fake_cuda: FakeCuda) -> None:
    fn = examples.matmul("sm_90")
    a, b = (floats(*shape) for shape in ((30, 50), (50, 70)))
    with allocating():
        c = fn(a, b)
        (launch,) = fake_cuda.launches()
        assert tuple(c.shape) == (30, 70)
        del c
    assert (launch.grid, launch.block) == ((5, 2, 1), (16, 16, 1))
    assert launch.parameters[3:] == tuple(struct.pack("<i", each) for each in (30, 70, 50))
    with pytest.raises(ValueError, match=r"Mismatched b.shape\[0\] on argument #1"):
        fn(a, a)


# ---- what is wrong before anything is compiled ----


def test_without_a_compiler_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cuda, "find_nvrtc", lambda: None)
    monkeypatch.setattr(cuda, "find_nvcc", lambda: None)
    for compiler, wanted in ((None, "NVRTC or nvcc"), ("nvrtc", "NVRTC"), ("nvcc", "nvcc")):
        with pytest.raises(ImportError, match=f"needs {wanted}, which is not here: pip install"):
            scale(compiler=compiler)


@pytest.mark.parametrize(
    ("more", "kind", "message"),
    [
        ({"compiler": "hipcc"}, ValueError, "compiler must be 'nvrtc' or 'nvcc', but got 'hipcc'"),
        ({"form": "fatbin"}, ValueError, "form must be one of 'cubin', 'ptx', but got 'fatbin'"),
        ({"flags": "-O3"}, TypeError, r"flags must be a list of texts, such as \['-O3'\], but got"),
        ({"include_paths": "/usr"}, TypeError, "include_paths must be a list of texts, such as"),
        ({"std": 17}, TypeError, "std must be a text, such as 'c\\+\\+17', but got 17"),
        ({"kernel": ""}, ValueError, "kernel must be the name of one kernel, but got ''"),
        ({"kernel": ["f"]}, TypeError, r"kernel must be the name of one kernel, but got \['f'\]"),
    ],
)
def test_words_that_mean_nothing_are_refused(
    more: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        scale(**more)


def test_architectures_are_named_or_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stand_in(monkeypatch, tmp_path)
    more = {"kernel": None, "params": None, "compiler": "nvcc"}
    monkeypatch.delenv("FERRULE_GPU_ARCH", raising=False)
    monkeypatch.setattr(devices, "cuda_devices", tuple)
    with pytest.raises(CompileError, match="this machine has no GPU to take it from"):
        scale(target=None, **more)
    with pytest.raises(CompileError, match="target 'h100' is no architecture\n  expected: such as"):
        scale(target="h100", **more)
    for meant in ("sm80", 80, "compute_80", [80]):
        with pytest.raises(CompileError, match="hint: did you mean 'sm_80'?"):
            scale(target=meant, **more)
    with pytest.raises(CompileError, match="target names no architecture"):
        scale(target=[], **more)
    monkeypatch.setattr(devices, "cuda_devices", lambda: ((9, 0),))
    assert scale(target=None, **more)
    monkeypatch.setenv("FERRULE_GPU_ARCH", "sm_90a")
    monkeypatch.setattr(devices, "cuda_devices", tuple)
    assert scale(target=None, **more)


def test_what_is_no_source_is_refused() -> None:
    with pytest.raises(TypeError, match="expected the text or the path of a source, but got 3"):
        cuda.module(3)  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError, match=r"there is no such file \(a source as text has"):
        cuda.module("no_such_file.cu")
    with pytest.raises(ValueError, match="a source, but got an empty text"):
        cuda.module("")
    with pytest.raises(ValueError, match="a source, but 'a.x00b' has a NUL"):
        cuda.module("a\0b")
