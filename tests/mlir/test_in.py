"""Functions of MLIR modules on the CPU, against NumPy; what is refused, and what is exported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mlir_functions import needs_mlir

import ferrule as fe
from ferrule import specs
from ferrule.compiler import targets
from ferrule.compiler.errors import CompileError
from ferrule.frontends import mlir
from ferrule.runtime import ObjectFileError, cpus

pytestmark = needs_mlir

MATMUL = """
func.func @matmul(%a: memref<?x?xf32>, %b: memref<?x?xf32>, %c: memref<?x?xf32>) {
  linalg.matmul ins(%a, %b : memref<?x?xf32>, memref<?x?xf32>) outs(%c : memref<?x?xf32>)
  return
}
"""
BY_AFFINE_VECTORS = (
    "builtin.module(func.func(convert-linalg-to-affine-loops,"
    "affine-super-vectorize{virtual-vector-size=8}),lower-affine,convert-vector-to-scf,"
    "convert-scf-to-cf,convert-vector-to-llvm,convert-ub-to-llvm,expand-strided-metadata,finalize-memref-to-llvm,"
    "convert-arith-to-llvm,convert-func-to-llvm,convert-cf-to-llvm,reconcile-unrealized-casts)"
)


def numbers(*shape: int) -> Any:
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


def matmul_specs() -> dict[str, Any]:
    m, n, k = (specs.sym_int64(symbol=name) for name in "mnk")
    shapes = {"a": (m, k), "b": (k, n), "c": (m, n)}
    return {
        name: fe.make_fake_compact_tensor(fe.Float32, shape, stride_order=(1, 0))
        for name, shape in shapes.items()
    }


def check_matmul(fn: fe.Function, m: int = 5, n: int = 24, k: int = 7) -> None:
    a, b, c = numbers(m, k), numbers(k, n), numbers(m, n)
    wanted = a @ b + c
    fn(a, b, c)
    np.testing.assert_allclose(c, wanted, rtol=1e-5, atol=1e-5)


# ---- what is computed ----


def test_a_matmul_by_loops_is_that_of_numpy() -> None:
    check_matmul(mlir.compile(MATMUL))


def test_a_matmul_by_vectors_is_that_of_numpy(tmp_path: Path) -> None:
    fn = mlir.compile(MATMUL, pipeline=BY_AFFINE_VECTORS)
    path = tmp_path / "matmul.ll"
    fn.export_to_c(path)
    assert "<8 x float>" in path.read_text()
    check_matmul(fn)
    check_matmul(fn, n=21)


def test_strided_layouts_are_strides() -> None:
    layout = "memref<?x?xf32, strided<[?, ?], offset: ?>>"
    fn = mlir.compile(MATMUL.replace("memref<?x?xf32>", layout))
    a, b, c = numbers(14, 10)[::2, ::-1], numbers(24, 10).T, numbers(7, 48)[:, ::2]
    wanted = a @ b + c
    fn(a, b, c)
    np.testing.assert_allclose(c, wanted, rtol=1e-5, atol=1e-5)


def test_tensors_are_values_and_results() -> None:
    tensor = "tensor<?x?xf32>"
    fn = mlir.compile(f"""
        func.func @matmul(%a: {tensor}, %b: {tensor}, %c: {tensor}) -> {tensor} {{
          %d = linalg.matmul ins(%a, %b : {tensor}, {tensor}) outs(%c : {tensor}) -> {tensor}
          return %d : {tensor}
        }}
    """)
    a, b, c = numbers(5, 7), numbers(7, 6), numbers(5, 6)
    kept = c.copy()
    found = np.from_dlpack(fn(a, b, c))
    np.testing.assert_allclose(found, a @ b + c, rtol=1e-5, atol=1e-5)
    assert (c == kept).all()


def test_a_tensor_that_is_an_argument_comes_back_as_a_copy() -> None:
    fn = mlir.compile("func.func @same(%x: tensor<?xf32>) -> tensor<?xf32> "
                      "{ return %x : tensor<?xf32> }")  # fmt: skip
    x = numbers(4)
    kept, found = x.copy(), np.from_dlpack(fn(x))
    x[:] = 0
    assert (found == kept).all()


def test_a_memref_that_is_an_argument_comes_back_as_a_copy() -> None:
    fn = mlir.compile("func.func private @same(%x: memref<?xf32>) -> memref<?xf32> "
                      "{ return %x : memref<?xf32> }", "same")  # fmt: skip
    x = numbers(4)
    kept, found = x.copy(), np.from_dlpack(fn(x))
    x[:] = 0
    assert (found == kept).all()


def test_a_tensor_that_may_be_written_to_is_written_to() -> None:
    tensor = "tensor<?xf32>"
    fn = mlir.compile(f"""
        func.func @fill(%x: {tensor} {{bufferization.writable = true}}, %v: f32) -> {tensor} {{
          %y = linalg.fill ins(%v : f32) outs(%x : {tensor}) -> {tensor}
          return %y : {tensor}
        }}
    """)
    x = numbers(4)
    fn(x, 3.0)
    assert (x == 3).all()


def test_numbers_come_back() -> None:
    fn = mlir.compile("""
        func.func @both(%a: i32, %b: f64, %n: index, %flag: i1) -> (i32, f64, index, i1) {
          %two = arith.constant 2 : i32
          %c = arith.muli %a, %two : i32
          %d = math.sqrt %b : f64
          return %c, %d, %n, %flag : i32, f64, index, i1
        }
    """)
    assert tuple(fn(-4, 9.0, 1 << 40, True)) == (-8, 3.0, 1 << 40, True)


def test_functions_of_libm_are_found() -> None:
    fn = mlir.compile("""
        func.func @maths(%x: memref<?xf64>, %y: memref<?xf64>) {
          linalg.map ins(%x : memref<?xf64>) outs(%y : memref<?xf64>) (%v: f64, %o: f64) {
            %a = math.erf %v : f64
            %b = math.exp %a : f64
            %c = math.atan2 %b, %v : f64
            linalg.yield %c : f64
          }
          return
        }
    """)
    from math import atan2, erf, exp

    x, y = np.linspace(-2, 2, 9), np.zeros(9)
    fn(x, y)
    np.testing.assert_allclose(y, [atan2(exp(erf(v)), v) for v in x], rtol=1e-14)


def test_bfloat16_needs_no_function_of_a_library() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    fn = mlir.compile("""
        func.func @square(%x: memref<?xbf16>) {
          linalg.map ins(%x : memref<?xbf16>) outs(%x : memref<?xbf16>) (%v: bf16, %o: bf16) {
            %s = arith.mulf %v, %v : bf16
            linalg.yield %s : bf16
          }
          return
        }
    """)
    x = np.array([1.0, 2.5, 0.3, -1.7, np.inf, np.nan], ml_dtypes.bfloat16)
    wanted = x * x
    fn(x)
    np.testing.assert_array_equal(x.astype(np.float32), wanted.astype(np.float32))


@pytest.mark.skipif("+avx," not in targets.host().features, reason="needs a processor with AVX")
def test_instructions_of_a_processor_are_lowered_and_recorded(
    tmp_path: Path, monkeypatch: Any
) -> None:
    text = """
    func.func @f(%a: memref<8xf32>) -> f32 attributes {
        llvm.target_features = #llvm.target_features<["+avx"]>} {
      %c0 = arith.constant 0 : index
      %v = vector.load %a[%c0] : memref<8xf32>, vector<8xf32>
      %r = x86.avx.intr.dot %v, %v : vector<8xf32>
      %s = vector.extract %r[0] : f32 from vector<8xf32>
      return %s : f32
    }"""
    fn = mlir.compile(text)
    assert fn(np.arange(8, dtype=np.float32)) == 0 + 1 + 4 + 9
    fn.export_to_c(str(tmp_path / "f.o"))
    monkeypatch.setattr(cpus, "host_features", lambda architecture: frozenset({"sse3"}))
    with pytest.raises(ObjectFileError, match="needs avx"):
        fe.runtime.load_module(str(tmp_path / "f.o"))


def test_a_copy_between_layouts_is_made_here() -> None:
    strided = "memref<?x?xf32, strided<[?, ?], offset: ?>>"
    fn = mlir.compile(f"""
        func.func @copy(%from: {strided}, %to: {strided}) {{
          memref.copy %from, %to : {strided} to {strided}
          return
        }}
    """)
    x, y = numbers(6, 8), np.zeros((4, 3), np.float32)
    fn(x[::2, ::2].T, y)
    assert (y == x[::2, ::2].T).all()


# ---- what a module is, and which function ----


@pytest.mark.parametrize("given", [Path, str, lambda path: Path(path).read_bytes()])
def test_a_module_can_be_a_file_and_keeps_its_names(given: Any, tmp_path: Path) -> None:
    path = tmp_path / "matmul.mlir"
    path.write_bytes(MATMUL.replace("\n", "\r\n").encode())
    fn = mlir.compile(given(str(path)))
    assert [param.name for param in fn.signature.params] == ["a", "b", "c"]
    check_matmul(fn)


def test_a_module_can_be_bytecode(tmp_path: Path) -> None:
    from ferrule.compiler.mlir.bindings import open_mlir

    ir = open_mlir().ir
    path = tmp_path / "matmul.mlirbc"
    with ir.Context(), path.open("wb") as file:
        ir.Module.parse(MATMUL).operation.write_bytecode(file)
    check_matmul(mlir.compile(path))


def test_an_error_in_a_file_names_it(tmp_path: Path) -> None:
    path = tmp_path / "wrong.mlir"
    path.write_text("module {\n  func.func @f(%a f32)\n}", encoding="utf-8")
    assert f'  File "{path}", line 2, in module' in refused(path)


def test_a_file_that_is_neither_text_nor_bytecode_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "wrong.mlir"
    path.write_bytes(b"\x7fELF\xff")
    assert f"{path} is no MLIR module: expected text in UTF-8, or bytecode" in refused(path)


def test_names_are_found_behind_letters_that_are_not_ascii() -> None:
    fn = mlir.compile('func.func @f(%a: i32 {test.says = "größer"}, %bc: i32) { return }')
    assert [param.name for param in fn.signature.params] == ["a", "bc"]


def test_a_module_can_be_an_object_of_the_bindings() -> None:
    from ferrule.compiler.mlir.bindings import open_mlir

    ir = open_mlir().ir
    with ir.Context():
        module = ir.Module.parse(MATMUL)
        fn = mlir.compile(module)
    assert str(fn.signature).startswith("matmul(arg0: Tensor([n0, n1], float32)")
    check_matmul(fn)


def of_library(name: str, **attributes: Any) -> Any:
    return type("Given", (), {"__module__": name, **attributes})()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (42, "42$"),
        (of_library("onnx.onnx_ml_pb2"), r"; torch-mlir makes .*torch_mlir.tools.import_onnx`"),
        (of_library("torch.nn.modules"), r"; torch-mlir makes a module .*fx.export_and_import\("),
        (
            of_library("jaxlib", __call__=lambda: 0, lower=lambda: 0),
            r"; of a function of JAX give what its lower\(…\) returns",
        ),
    ],
)
def test_what_is_no_module_is_a_type_error(given: Any, said: str) -> None:
    wanted = "expected the text of an MLIR module, its bytecode, a path or a module, got "
    with pytest.raises(TypeError, match=f"{wanted}.*{said}"):
        mlir.compile(given)


def test_a_model_of_onnx_is_an_error_that_says_what_makes_a_module_of_it(tmp_path: Path) -> None:
    path = tmp_path / "add.onnx"
    path.write_bytes(b"\x08\x0e:F\n")
    wanted = "is no MLIR module but a model of ONNX\n  hint: torch-mlir makes a module of it"
    assert f"{path} {wanted}" in refused(path)
    assert f"<mlir> {wanted}" in refused(path.read_bytes())


@pytest.mark.parametrize("what", ["function", "pipeline"])
def test_what_is_no_text_is_a_type_error(what: str) -> None:
    given: Any = {what: 3}
    with pytest.raises(TypeError, match=f"{what} must be a text, but got 3"):
        mlir.compile("func.func @f() { return }", **given)


def test_libraries_are_a_list() -> None:
    with pytest.raises(TypeError, match=r"libraries must be a list of texts, such as \['m.so'\]"):
        mlir.compile("func.func @f() { return }", libraries="m.so")


def refused(text: str | Path, function: str | None = None, **more: Any) -> str:
    with pytest.raises(CompileError) as caught:
        mlir.compile(text, function, **more)
    return str(caught.value)


def test_of_several_functions_one_is_named() -> None:
    text = (
        "func.func @f() { return }\nfunc.func @g() -> i32 { %c = arith.constant 7 : i32\n"
        "return %c : i32 }\nfunc.func private @h()"
    )
    assert mlir.compile(text, "g", name="seven")() == 7
    assert "has 2 public functions with a body" in refused(text)
    assert "there are @f, @g, @h" in refused(text)
    assert refused(text, "k").startswith("the module has no function @k\n  expected: @f, @g, @h")
    assert refused(text, "h") == "the function @h has no body: it is only declared"


# ---- specs ----


def test_names_and_specs_follow_from_the_text() -> None:
    fn = mlir.compile("""
        func.func @f(%x: memref<?x4xf32>, %y: memref<2x?xi8, strided<[?, 1], offset: ?>>,
                     %n: index, %k: i16, %0: f32, %class: f64) { return }
    """)
    assert str(fn.signature) == (
        "f(x: Tensor([n0, 4], float32), y: Tensor([2, n1], int8), n: int64, k: int16, "
        "arg4: float32, arg5: float64)"
    )
    assert "strides=[s0, 1]" in fn.signature.text()


def test_specs_say_that_sizes_are_the_same() -> None:
    fn = mlir.compile(MATMUL, specs=matmul_specs())
    check_matmul(fn)
    with pytest.raises(
        ValueError, match=r"Mismatched b.shape\[0\].*expected to match a.shape\[1\]"
    ):
        fn(numbers(2, 3), numbers(4, 5), numbers(2, 5))


def test_a_signature_says_all() -> None:
    n = specs.sym_int64()
    square = [specs.Tensor(name, (n, n), "float32") for name in ("left", "right", "out")]
    fn = mlir.compile(MATMUL, signature=specs.Signature("square", tuple(square)))
    check_matmul(fn, 6, 6, 6)
    assert fn.signature.name == "square"


def test_unsigned_integers_are_a_matter_of_specs() -> None:
    fn = mlir.compile(
        "func.func @f(%x: memref<?xi8>, %k: i32) -> i32 { return %k : i32 }",
        specs={"x": specs.Tensor("x", (specs.sym_int64(),), "uint8", exact=True), "k": fe.Uint32},
    )
    assert fn(np.zeros(3, np.uint8), 3_000_000_000) in (3_000_000_000, 3_000_000_000 - (1 << 32))


N = specs.sym_int64()
VECTOR = "func.func @f(%x: memref<4x?xf32>, %n: index) { return }"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"z": fe.Float32}, "a spec of 'z', which is no argument of @f"),
        ({"x": fe.Float32}, "expected a tensor, but got a Scalar"),
        ({"n": fe.Float32}, "expected int64, but got float32"),
        ({"n": specs.Tensor("n", (N,), "int64")}, "expected a number, but got a Tensor"),
        ({"x": specs.Tensor("x", (4, N), "int32")}, "expected float32, but got int32"),
        ({"x": specs.Tensor("x", (4,), "float32")}, "expected 2 dims, but got 1"),
        ({"x": specs.Tensor("x", (5, N), "float32")}, r"expected shape[0] to be 4, but got 5"),
        (
            {"x": specs.Tensor("x", (4, N), "float32", strides=(1, 4))},
            "expected a compact row-major tensor",
        ),
    ],
)
def test_a_spec_that_the_function_cannot_take_is_an_error(given: Any, said: str) -> None:
    assert said in refused(VECTOR, specs=given)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("vector<4xf32>", "expected a memref, a tensor, index, an integer or a float"),
        ("memref<*xf32>", "its rank is unknown"),
        ("memref<4xf32, 3>", "no such memory space"),
        ("memref<4x4xf32, affine_map<(a, b) -> (b, a)>>", "its layout has no strides"),
        ("memref<4xf32, strided<[1], offset: 5>>", "its offset is neither 0 nor dynamic"),
        ("memref<4xi4>", "elements of an array are never i4"),
        ("i3", "expected a memref, a tensor, index"),
    ],
)
def test_a_type_that_no_argument_has_is_an_error(kind: str, said: str) -> None:
    assert said in refused(f"func.func @f(%x: {kind}) {{ return }}")


# ---- what is refused ----


def test_a_wrong_pipeline_is_an_error() -> None:
    said = refused(MATMUL, pipeline="builtin.module(convert-func-to-llvm)")
    assert said.startswith("MLIR cannot translate the module to LLVM IR: ")
    assert "hint: the pipeline must leave nothing but operations of the llvm dialect" in said


def test_a_pipeline_of_another_interface_is_an_error() -> None:
    bare = (
        "builtin.module(convert-linalg-to-loops,convert-scf-to-cf,finalize-memref-to-llvm,"
        "convert-func-to-llvm{use-bare-ptr-memref-call-conv=1},convert-to-llvm,"
        "reconcile-unrealized-casts)"
    )
    said = refused(MATMUL.replace("?x?", "4x4"), pipeline=bare)
    assert "matmul" in said


def test_a_function_that_is_nowhere_is_an_error() -> None:
    said = refused(
        "func.func private @elsewhere()\nfunc.func @f() { call @elsewhere() : () -> ()\n return }"
    )
    assert "LLVM IR needs elsewhere, which is neither in the libraries" in said


@pytest.mark.parametrize(
    ("target", "options", "said"),
    [
        ("sm_90", None, "@matmul launches no kernels, but its target is 'sm_90'"),
        (None, "--target cuda", "@matmul launches no kernels, but its target is 'cuda'"),
        ("cuda", None, "target 'cuda' is no architecture\n  expected: 'cpu', or such as 'sm_90a'"),
        ("cpu", "--target cuda", "target is 'cpu', but the options say --target cuda"),
        ("sm_90", "--target cpu", "target is 'sm_90', but the options say --target cpu"),
        ("cpu", "--gpu-arch sm_80", "target is 'cpu', but the options say --gpu-arch sm_80"),
        (
            ["sm_80"],
            "--gpu-arch sm_90",
            "but the options say --gpu-arch sm_90\n  hint: say it once",
        ),
    ],
)
def test_a_target_that_does_not_fit_is_an_error(target: Any, options: Any, said: str) -> None:
    assert said in refused(MATMUL, target=target, options=options)


def test_the_target_can_be_the_cpu() -> None:
    check_matmul(mlir.compile(MATMUL, target="cpu", options="--target cpu"))


# ---- export ----

WITHOUT = """
import sys
for name in ("ferrule", "torch_mlir", "mlir", "iree", "llvmlite"):
    sys.modules[name] = None
import numpy as np, tvm_ffi
fn = tvm_ffi.load_module(sys.argv[1])["matmul"]
a, b = np.eye(3, dtype=np.float32) * 2, np.ones((3, 2), np.float32)
c = np.zeros((3, 2), np.float32)
fn(a, b, c)
print(c.tolist())
try:
    fn(a.astype(np.float64), b, c)
except ValueError as error:
    print("expected dtype=float32" in str(error))
"""


def test_what_is_exported_loads_without_ferrule_and_mlir(tmp_path: Path) -> None:
    from exported import run_python

    library = tmp_path / "matmul.so"
    mlir.compile(MATMUL, specs=matmul_specs()).export_library(library)
    assert run_python(WITHOUT, library) == "[[2.0, 2.0], [2.0, 2.0], [2.0, 2.0]]\nTrue\n"
