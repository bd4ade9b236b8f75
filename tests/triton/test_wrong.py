"""What cannot be compiled is refused with an error that names what, and says what to write."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule.compiler.errors import CompileError
from ferrule.frontends import triton as frontend

VECTORS = {"x": "*fp32[n]", "y": "*fp32[n]"}
SCALE = {**VECTORS, "n": "n", "factor": "fp32"}
BLOCK = {"BLOCK": 128}


@pytest.fixture
def kernels() -> ModuleType:
    """The kernels that are compiled here."""
    return pytest.importorskip("triton_kernels")


def compiled(kernel: Any, signature: Any = None, **how: Any) -> Any:
    known = {"constexprs": BLOCK, "grid": frontend.fixed(1), "target": "sm_90a", **how}
    return frontend.compile(kernel, signature=signature, **known)


WRONG: dict[str, tuple[Any, dict[str, Any], str]] = {
    "too many warps": (
        SCALE,
        {"num_warps": 64},
        "cannot be launched: CudaLaunch: block x must be in",
    ),
    "no mapping": (["*fp32[n]"], {}, "the signature is a list"),
    "missing": ({"x": "*fp32[n]"}, {}, "nothing for the parameter 'y'"),
    "missing constexpr": (SCALE, {"constexprs": {}}, "nothing for the parameter 'BLOCK'"),
    "unknown": ({**SCALE, "z": 1}, {}, "no parameter 'z', which is given in `signature`"),
    "twice": (SCALE, {"factor": "fp64"}, "'factor' is given twice, once as a keyword"),
    "option": (SCALE, {"num_warp": 4}, "'num_warp' is neither a parameter of scale nor an option"),
    "text": ({**SCALE, "factor": "f32"}, {}, "the example of 'factor' is 'f32'"),
    "object": ({**SCALE, "factor": object()}, {}, "the example of 'factor' is <object"),
    "reference": ({**SCALE, "n": "x.shape[1]"}, {}, "the example of 'n' is 'x.shape\\[1\\]'"),
    "other tensor": ({**SCALE, "n": "z.numel"}, {}, "'z.numel', which there is not"),
    "expression": ({**SCALE, "n": fe.sym_int() * 2}, {}, "a symbol of it is in no tensor"),
    "no size": ({**SCALE, "n": lambda sig: "n"}, {}, "gives 'n', which is no size"),
    "like": ({**SCALE, "y": frontend.like("z")}, {}, "like 'z', which is no tensor"),
    "empty": ({**SCALE, "y": frontend.empty(("k",), "float32")}, {}, "the size 'k', which no"),
    "size that is a number": (
        {**SCALE, "n": "i32", "x": frontend.empty(("n",), "float32"), "y": "*fp32[k]"},
        {},
        "has the size 'n', which no tensor has\n  expected: k\n.*callers give the tensor",
    ),
    "dtype": (
        {**SCALE, "x": fe.make_fake_compact_tensor(fe.Complex64, (4,))},
        {},
        "complex64, to which Triton has no pointers",
    ),
    "target": (SCALE, {"target": "h100"}, "the target is 'h100'"),
    "no target": (SCALE, {"target": ()}, r"the target is \(\)"),
    "specialize": (SCALE, {"specialize": "fast"}, "specialize is 'fast'"),
    "specialize what": (SCALE, {"specialize": [{"x": 1}]}, "specialize says 1 of 'x'"),
    "specialize whom": (SCALE, {"specialize": [{"factor": 16}]}, "specialize says 16 of 'factor'"),
    "warps": (SCALE, {"num_warps": 3}, "num_warps is 3\n  expected: a power of two"),
    "warps as text": (SCALE, {"num_warps": "4"}, "num_warps is '4'"),
    "stages": (SCALE, {"num_stages": "x"}, "num_stages is 'x'\n  expected: an integer"),
    "pdl": (SCALE, {"launch_pdl": "yes"}, "launch_pdl is 'yes'\n  expected: True or False"),
    "width of a warp": (SCALE, {"warp_size": 64}, "'warp_size' is neither .*\n.*\n.*32 threads"),
    "similar option": (SCALE, {"num_wraps": 4}, "did you mean num_warps"),
    "constexprs": (SCALE, {"constexprs": ["BLOCK"]}, "the constexprs are a list"),
    "four sizes": (SCALE, {"grid": (1, 2, 3, 4)}, r"the grid is \(1, 2, 3, 4\)"),
    "number of a target": (SCALE, {"target": 90}, 'the target is 90\n.*\n.*did you mean "sm_90"'),
    "unknown target": (SCALE, {"target": "sm_999"}, "the target is 'sm_999'"),
    "wide number": ({**SCALE, "n": 1 << 70}, {}, "the example of 'n' is .* fits no 64 bits"),
    "wide size": ({**SCALE, "x": f"*fp32[{1 << 70}]"}, {}, "'x' is no tensor that can be"),
    "failing function": ({**SCALE, "n": lambda sig: sig["z"]}, {}, "is a function that fails: Key"),
    "specialize a bool": (SCALE, {"specialize": [{"n": True}]}, "specialize says True of 'n'"),
    "clusters": (SCALE, {"num_ctas": 2, "target": "sm_80"}, "num_ctas > 1 requires NVIDIA SM90"),
    "config": (SCALE, {"config": 0}, "has 0 configs"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments(kernels: ModuleType, name: str) -> None:
    signature, how, message = WRONG[name]
    with pytest.raises(CompileError, match=message):
        compiled(kernels.scale, signature, **how)


@pytest.mark.parametrize(
    ("how", "kind", "message"),
    [
        ({"name": "a-b"}, ValueError, "name must be an identifier, but got 'a-b'"),
        ({"doc": 5}, TypeError, "scale: doc must be a str, but got 5"),
    ],
)
def test_names_and_documentation_are_refused_as_those_of_any_function(
    kernels: ModuleType, how: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        compiled(kernels.scale, SCALE, **how)


def test_what_is_no_kernel(kernels: ModuleType) -> None:
    with pytest.raises(CompileError, match="is no Triton kernel"):
        compiled(print)


def test_a_launch_is_no_kernel(kernels: ModuleType) -> None:
    with pytest.raises(CompileError, match=r"is no Triton kernel(.*\n)*.*without \[grid\]"):
        compiled(kernels.scale[(1,)])


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: frontend.like(5), TypeError, "like: expected the name"),
        (lambda: frontend.empty("n", "float32"), TypeError, "empty: expected a tuple of sizes"),
        (lambda: frontend.zeros((1.5,), "float32"), TypeError, "zeros: expected a tuple of sizes"),
        (lambda: frontend.empty(("n",), "f32"), ValueError, "'f32' is no dtype"),
        (lambda: frontend.descriptor("*fp16", 64), TypeError, "descriptor: expected a block_shape"),
        (lambda: frontend.descriptor("*fp16", (64,), "one"), ValueError, "padding is 'zero' or"),
    ],
)
def test_wrong_examples(make: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        make()


def test_too_many_examples(kernels: ModuleType) -> None:
    with pytest.raises(CompileError, match="has 0 parameters, but got 1 examples"):
        frontend.compile(kernels.nothing, 1, grid=frontend.fixed(1), target="sm_90a")


def test_an_error_of_triton_is_shown(kernels: ModuleType) -> None:
    """A block that is no power of two, which Triton finds in the body."""
    with pytest.raises(CompileError, match="Triton cannot compile scale for sm_90") as error:
        compiled(kernels.scale, SCALE, constexprs={"BLOCK": 100})
    assert "power of 2" in str(error.value)


def test_an_error_in_a_function_that_a_kernel_calls_is_shown(kernels: ModuleType) -> None:
    """Triton's own message has the lines of the call alone."""
    with pytest.raises(CompileError, match="incompatible dimensions at index 0: 64 and 32"):
        frontend.compile(kernels.misfitting, "*fp32", grid=frontend.fixed(1), target="sm_90a")


def test_an_annotation_is_kept_to(kernels: ModuleType) -> None:
    names = ("8", "16", "32", "64")
    scalars = {f"{sign}{bits}": "i32" for sign in "ab" for bits in names}
    rest = {"flag": True, "half": 1.0, "brain": "*fp32", "single": 1.0, "double": 1.0}
    with pytest.raises(CompileError, match="brain is annotated as bf16, but"):
        compiled(kernels.every_type, {"x": "*fp32", **scalars, **rest})
    numbers = {"a": 0.1, "b": 0.1, "c": 2, "d": 5, "e": 300}
    with pytest.raises(CompileError, match="annotated: e is 300, which fits no uint8"):
        compiled(kernels.annotated, {"x": "*fp32", **numbers}, constexprs={})


def test_a_descriptor_has_its_tensors_dims(kernels: ModuleType) -> None:
    signature = {"source": frontend.descriptor("*fp16[n, n]", (64,)), "target": "*fp16[n, n]"}
    with pytest.raises(CompileError, match="has 1 dims, but the tensor has 2"):
        compiled(kernels.copy_block, signature, constexprs={"SIZE": 64})
    strided = {**signature, "source": frontend.descriptor("*fp16[n, n: 1, s]", (64, 64))}
    with pytest.raises(CompileError, match="whose last stride is 1"):
        compiled(kernels.copy_block, strided, constexprs={"SIZE": 64})
    flat = {**signature, "source": frontend.descriptor("*fp16[b, n, n: s, n, 1]", (64, 64))}
    with pytest.raises(CompileError, match="has 2 dims, but the tensor has 3"):
        compiled(kernels.copy_block, flat, constexprs={"SIZE": 64})
    flat["source"] = frontend.descriptor("*fp16[b, n, n: s, n, 1]", (64, 64), flatten=True)
    with pytest.raises(CompileError, match="cannot be flattened .* 3 dims that is not compact"):
        compiled(kernels.copy_block, flat, constexprs={"SIZE": 64})


def test_without_a_gpu_a_target_must_be_named(
    kernels: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ferrule.frontends.triton import compiling

    monkeypatch.delenv("FERRULE_GPU_ARCH", raising=False)
    monkeypatch.setattr(compiling, "cuda_devices", lambda: ())
    with pytest.raises(CompileError, match="this machine has no GPU to take it from"):
        compiled(kernels.scale, SCALE, target=None)
    monkeypatch.setenv("FERRULE_GPU_ARCH", "sm_80")
    assert compiled(kernels.scale, SCALE, target=None).name == "scale"


def test_a_real_tensor_on_the_cpu_is_an_example(kernels: ModuleType) -> None:
    """The function still takes tensors on a GPU."""
    x = np.zeros(100, np.float32)
    function = frontend.compile(
        kernels.scale, x, x, 100, 1.0, **BLOCK, grid=frontend.fixed(1), target="sm_90a"
    )
    with pytest.raises(ValueError, match="expected device_type=cuda"):
        function(x, x, 100, 1.0)


GLOBAL = """
import triton
import triton.language as tl

FACTOR = tl.constexpr(3)


@triton.jit
def by_a_global(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, at < n) * FACTOR, at < n)
"""


TEXTS = {
    "*i8[m n]": "in which 'm n' is no size",
    "*fp32[3 4]": "in which '3 4' is no size",
    "*fp32[m,, n]": "in which 'nothing between two commas' is no size",
    "*fp32[n, n-1]": "in which 'n-1' is no size",
    "*fp32[n:]": "in which 'nothing between two commas' is no size",
    "*fp32[m, n: s]": "which has 2 sizes and 1 strides",
    "*fp32[n": "says no type(.|\n)*a bracket is missing",
    "fp32[n]": r"says no type(.|\n)*did you mean '\*fp32\[n\]'",
    "*float32[n]": r"says no type(.|\n)*did you mean '\*fp32\[n\]'",
    "*FP32[n]": r"says no type(.|\n)*did you mean '\*fp32\[n\]'",
    "*fp32[m, n: s, 1]:15": r"expected: \*fp32\[m, n: s, 1\]:16",
}


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_that_is_no_tensor_names_its_part(kernels: ModuleType, text: str) -> None:
    with pytest.raises(CompileError, match=TEXTS[text]):
        compiled(kernels.scale, {**SCALE, "x": text, "n": "i32"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("m", r"is 'm', which is no type and no size\n  expected: a size \(n\)"),
        ("None", "hint: None and numbers are no texts"),
        ("fp32:16", r"nothing can be assumed with ':16' of it\n  expected: fp32$"),
    ],
)
def test_a_text_that_is_no_number_names_the_sizes(
    kernels: ModuleType, text: str, message: str
) -> None:
    with pytest.raises(CompileError, match=message):
        compiled(kernels.scale, {**SCALE, "n": text})


def test_a_target_by_the_name_of_a_gpu_is_explained(kernels: ModuleType) -> None:
    with pytest.raises(CompileError, match='did you mean "sm_90"'):
        compiled(kernels.scale, SCALE, target="H100")
    with pytest.raises(TypeError, match="prune must be True or False, but got 1"):
        compiled(kernels.scale, SCALE, prune=1)


def test_a_global_that_has_changed_is_refused(tmp_path: Any, monkeypatch: Any) -> None:
    """Triton keeps the code of the first value under a digest that the second one has too."""
    triton = pytest.importorskip("triton")
    tmp_path.joinpath("with_a_global.py").write_text(GLOBAL)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    import with_a_global as module

    signature = {**VECTORS, "n": "n"}
    compiled(module.by_a_global, signature, num_warps=1)
    module.FACTOR = triton.language.constexpr(5)
    with pytest.raises(CompileError, match=r"the global FACTOR was .*3.* and is .*5.* now"):
        compiled(module.by_a_global, signature, num_warps=2)
    del module.FACTOR
    with pytest.raises(CompileError, match="is gone now"):
        compiled(module.by_a_global, signature, num_warps=4)
    module.FACTOR = triton.language.constexpr(3)
    compiled(module.by_a_global, signature, num_warps=2)


HELPERS = """
import triton
import triton.language as tl


@triton.jit
def inner(x):
    return x * 3


@triton.jit
def outer(x):
    return inner(x) + 1


@triton.jit
def by_helpers(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, outer(tl.load(x + at, at < n)), at < n)
"""


@pytest.mark.parametrize("again", [False, True], ids=["other options", "the same call"])
def test_a_helper_that_is_redefined_is_compiled_anew(
    tmp_path: Any, monkeypatch: Any, again: bool
) -> None:
    """As in a notebook, also a helper of a helper; and with no trace of the old one in what is
    kept: the first one, defined once more, finds its own code."""
    pytest.importorskip("triton")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    name = f"with_helpers_{int(again)}"
    tmp_path.joinpath(f"{name}.py").write_text(HELPERS)
    tmp_path.joinpath(f"{name}_5.py").write_text(HELPERS.replace("* 3", "* 5"))
    module, other = importlib.import_module(name), importlib.import_module(f"{name}_5")
    monkeypatch.setattr(module, "inner", module.inner)

    def ptx(warps: int) -> str:
        signature = {**VECTORS, "n": "n"}
        function = compiled(module.by_helpers, signature, num_warps=1 if again else warps)
        return str(function.inspect_asm())

    first = ptx(1)
    assert "0f40400000" in first and "0f40A00000" not in first
    module.inner = other.inner
    second = ptx(2)
    assert "0f40A00000" in second and "0f40400000" not in second
