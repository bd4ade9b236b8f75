"""Bindings of MLIR: recognised by what they offer, and what they do with wrong modules."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from mlir_functions import both, needs_mlir

import ferrule as fe
from ferrule.compiler.errors import CompileError
from ferrule.compiler.mlir import bindings, jobs
from ferrule.compiler.mlir.child import in_child

LOWERED = "builtin.module(convert-arith-to-llvm,convert-func-to-llvm)"
ADD = """
func.func @add(%a: f32, %b: f32) -> f32 {
  %c = arith.addf %a, %b : f32
  return %c : f32
}
"""

# ---- which package ----


def package(folder: Path, name: str, **modules: str) -> str:
    """A package with these modules; what it is called."""
    root = folder / name
    for module, source in {"__init__": "", **modules}.items():
        path = root / (module.replace("dialects_", "dialects/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
    return name


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that packages are found in; what is imported of it is forgotten."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith("mlir_of_"):
            del sys.modules[name]


CONTEXT = """
class Context:
    def __enter__(self): return self
    def __exit__(self, *_): pass
class Module:
    parse = None
"""


def test_a_package_without_the_modules_is_none(packages: Path) -> None:
    name = package(packages, "mlir_of_nothing")
    said = bindings.recognise(name)
    assert isinstance(said, str) and said.startswith(f"{name} has no module ir")


def test_a_package_without_the_translation_is_none(packages: Path) -> None:
    name = package(
        packages,
        "mlir_of_parsing",
        ir=CONTEXT,
        passmanager="class PassManager:\n    parse = None\n",
        dialects_llvm="",
    )
    said = bindings.recognise(name)
    assert said == f"{name} has no dialects.llvm.translate_module_to_llvmir"


def test_a_package_without_the_passes_is_none(packages: Path) -> None:
    refusing = (
        "class PassManager:\n    @staticmethod\n    def parse(text):\n"
        "        raise ValueError('no such pass\\nat all')\n"
    )
    name = package(
        packages,
        "mlir_of_no_passes",
        ir=CONTEXT,
        passmanager=refusing,
        dialects_llvm="translate_module_to_llvmir = None",
    )
    assert bindings.recognise(name) == f"{name} does not register MLIR's passes (no such pass)"


def test_a_package_with_all_of_it_is_taken(packages: Path) -> None:
    name = package(
        packages,
        "mlir_of_everything",
        ir=CONTEXT,
        passmanager="class PassManager:\n    parse = staticmethod(str)\n",
        dialects_llvm="translate_module_to_llvmir = None",
    )
    assert bindings.open_mlir({bindings.VARIABLE: name}).package == name


def test_a_package_that_is_not_there_is_an_error_that_names_the_extra() -> None:
    with pytest.raises(ImportError) as caught:
        bindings.open_mlir({bindings.VARIABLE: "mlir_of_nobody"})
    text = str(caught.value)
    assert "there are no Python bindings of MLIR (FERRULE_MLIR is 'mlir_of_nobody')" in text
    assert 'pip install "ferrule[mlir]"' in text
    assert "note: mlir_of_nobody is not installed" in text


def test_the_placeholder_of_the_index_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bindings, "PACKAGES", ("mlir_of_nobody",))
    monkeypatch.setattr(metadata, "version", {"mlir-python-bindings": "0.0.1"}.__getitem__)
    with pytest.raises(ImportError, match=r"mlir-python-bindings 0\.0\.1 is installed, an empty"):
        bindings.open_mlir({})


def test_without_bindings_the_frontend_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(bindings.VARIABLE, "mlir_of_nobody")
    with pytest.raises(ImportError, match=r'pip install "ferrule\[mlir\]"'):
        fe.frontends.mlir.compile(ADD)


@pytest.mark.parametrize("target", ["cpu", "cuda --gpu-arch sm_90"])
def test_without_bindings_the_second_pipeline_names_the_extra(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(bindings.VARIABLE, "mlir_of_nobody")

    @fe.jit
    def doubled(x: fe.Tensor):
        x[:] = x[:] * 2

    vector = fe.make_fake_compact_tensor(fe.Float32, (fe.sym_int(),))
    with pytest.raises(ImportError, match=r'pip install "ferrule\[mlir\]"'):
        fe.compile(doubled, vector, options=f"--target {target} --pipeline mlir")


def test_a_file_of_the_name_is_no_package_and_does_not_run(packages: Path) -> None:
    (packages / "mlir_of_a_script.py").write_text("raise SystemExit", encoding="utf-8")
    said = f"mlir_of_a_script is the file {packages / 'mlir_of_a_script.py'}, no package"
    assert bindings.recognise("mlir_of_a_script") == said
    assert bindings.recognise("mlir_of_a_script.compiler") == said


def test_a_package_that_fails_when_it_is_imported_is_none(packages: Path) -> None:
    name = package(packages, "mlir_of_mistakes", ir="1 / 0")
    assert bindings.recognise(name) == f"{name} has no module ir (division by zero)"


# ---- what they do ----


@needs_mlir
def test_a_module_becomes_llvm_ir() -> None:
    text = jobs.translated(ADD, LOWERED)
    assert "define float @add(float %0, float %1)" in text


@needs_mlir
def test_a_module_is_verified_and_printed() -> None:
    assert "func.func @add(%arg0: f32, %arg1: f32) -> f32" in jobs.verified(ADD)


@needs_mlir
def test_passes_run() -> None:
    unused = "func.func @f() { %c = arith.constant 1 : i32\n return }"
    assert "arith" not in jobs.passed(unused, "builtin.module(canonicalize)")


@needs_mlir
def test_what_is_in_a_gpu_module_is_translated_apart() -> None:
    text = "gpu.module @kernels { gpu.func @k() kernel { gpu.return } }"
    _, kernels = in_child(both, text, "builtin.module(gpu.module(convert-gpu-to-nvvm))")
    assert list(kernels) == ["kernels"]
    assert "define ptx_kernel void @k()" in kernels["kernels"]


@needs_mlir
def test_floats_are_as_llvmlite_reads_them() -> None:
    text = "llvm.func @f() -> f32 { %c = llvm.mlir.constant(0x7F800000 : f32) : f32\n"
    found = jobs.translated(text + "llvm.return %c : f32 }", "builtin.module()")
    assert "ret float 0x7FF0000000000000" in found


def refused(text: str, pipeline: str = "builtin.module()") -> str:
    with pytest.raises(CompileError) as caught:
        jobs.translated(text, pipeline)
    return str(caught.value)


@needs_mlir
def test_a_syntax_error_shows_its_line() -> None:
    assert refused("module {\n  func.func @f(%a f32)\n}").splitlines()[:4] == [
        "MLIR cannot read the module: expected ':'",
        '  File "<mlir>", line 2, in module',
        "    2 | func.func @f(%a f32)",
        "      |                ^",
    ]


@needs_mlir
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('"foo.bar"() : () -> ()', "unregistered dialect"),
        (
            "func.func @f() { return }\nfunc.func @f() { return }",
            "redefinition of symbol named 'f'",
        ),
        ("module {}\0", "it has a NUL at 9"),
        ("func.func @f() -> f32 { return }", "has 0 operands, but enclosing function"),
    ],
)
def test_a_wrong_module_is_an_error(text: str, said: str) -> None:
    assert said in refused(text)


@needs_mlir
@pytest.mark.parametrize(
    ("pipeline", "said"),
    [
        (
            "builtin.module(convert-nothing)",
            "'convert-nothing' does not refer to a registered pass",
        ),
        ("builtin.module(", "to be wrapped with the anchor operation type"),
        ("builtin.module(convert-func-to-llvm{foo=1})", "no such option foo"),
        ("func.func(canonicalize)", "can't run 'func.func' pass manager on 'builtin.module'"),
    ],
)
def test_a_wrong_pipeline_is_an_error(pipeline: str, said: str) -> None:
    assert said in refused(ADD, pipeline)


@needs_mlir
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (ADD, "dialect for op: func.func"),
        ("llvm.func @f(%a: index) { llvm.return }", "func.func|index|LLVM"),
        ("spirv.module Logical GLSL450 {}", "dialect for op: spirv.module"),
    ],
)
def test_what_is_not_lowered_is_an_error_and_ends_no_process(text: str, said: str) -> None:
    """Upstream's bindings dereference the module that a failed translation does not give."""
    assert re.search(said, refused(text))


@needs_mlir
@pytest.mark.parametrize(
    "text",
    [
        "module attributes {a = " + "[" * 200_000 + "]" * 200_000 + "} {}",
        "module {" * 20_000 + "}" * 20_000,
    ],
    ids=["attributes", "modules"],
)
def test_what_is_nested_too_deeply_is_an_error_and_ends_no_process(text: str) -> None:
    assert refused(text) == "MLIR cannot read the module: its process ended with SIGSEGV"
