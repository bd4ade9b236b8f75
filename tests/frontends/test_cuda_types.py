"""CUDA C++: the types of a kernel are those that a launch gives it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cuda_device import FakeCuda, forged
from gpu_functions import floats
from hypothesis import settings

import ferrule as fe
from ferrule import compiler, specs
from ferrule.compiler.conventions import CudaLaunch, Struct, cast
from ferrule.compiler.conventions.arguments import PointerCast
from ferrule.compiler.errors import CompileError
from ferrule.compiler.mangledtypes import parameter_types
from ferrule.frontends import cuda, fixed
from ferrule.frontends.cuda.knowing import scoped
from ferrule.frontends.cuda.nvrtc import find_nvrtc
from ferrule.specs import Data, Pointer, Scalar, Signature, Tensor

N = specs.sym_int32(symbol="n")
X = Tensor("x", (N,), "float32")


@pytest.mark.parametrize(
    ("symbol", "types"),
    [
        ("_Z7reduce3IdEvPT_S1_j", ("double *", "double *", "unsigned int")),
        ("_Z3addPKfj", ("const float *", "unsigned int")),
        ("_Z5scaleIfLi4EEvPT_", ("float *",)),
        ("_ZN2ns3setEPff", ("float *", "float")),
        ("_ZN12_GLOBAL__N_13fooEPf", ("float *",)),
        ("_Z1fv", ()),
        ("_Z1fPA4_fPFviES2_", ("float (*)[4]", "void (*)(int)", "void (*)(int)")),
        ("_Z1fP6float4PKS_", ("float4 *", "const float4 *")),
        ("_Z3twoP3BigPKS_S_S0_", ("Big *", "const Big *", "Big", "Big *")),
        ("_Z1aPKPKf", ("const float * const *",)),
        (
            "_ZN2ns1O1mIdEEvPT_PNS_1QIS2_EEPKPKNS_1PE",
            ("double *", "ns::Q<double> *", "const ns::P * const *"),
        ),
        (
            "_ZN2ns1eIsLNS_1EE0ELb1EEEvPKPT_S1_PVS2_S2_",
            ("short * const *", "ns::E", "volatile short *", "short"),
        ),
        ("_Z1kP6__halfPK13__nv_bfloat16", ("__half *", "const __nv_bfloat16 *")),
        ("_Z3vecPDv4_fPKS_", ("__vector(4) float *", "const __vector(4) float *")),
        ("plain", None),
        ("_Z1qIJifEEvDpT_", None),
        ("_ZN2ns1kIfLi3EEEvPT_PKS1_NS_1QIS1_EENS_1PEPNS5_IS7_EERAT0__m", None),
        ("_Z3addPKf!", None),
        ("_Z1fPS9_", None),
        ("_ZN6cudapy8__main__3addB2v1B2cwE5ArrayIfLi1E1C7mutable7alignedE", None),
        ("_Z", None),
        ("_Z9", None),
    ],
)
def test_a_symbol_says_what_its_function_takes(symbol: str, types: Any) -> None:
    assert parameter_types(symbol) == types


def launching(symbol: str, given: Any) -> fe.Function:
    """A launch of PTX whose kernel has this name."""
    argument = given.data if isinstance(given, Tensor) else given
    size = {Tensor: 8}.get(type(given), 0) or sum(
        size for size, _ in compiler.conventions.arguments.parameters(argument)
    )
    ptx = (
        ".version 8.0\n.target sm_80\n.address_size 64\n"
        f".visible .entry {symbol}(.param .align 4 .b8 p[{size}]) {{ ret; }}\n"
    )
    plain = given.value if isinstance(given, PointerCast) else given
    own = [X, plain.tensor if isinstance(plain, Data) else plain]
    params = [each for each in own if isinstance(each, Tensor | Scalar | Pointer)]
    named = {each.name: each for each in params}
    launch = CudaLaunch(fe.DeviceCode.from_ptx(ptx), symbol, [argument], 1, 32)
    return compiler.build(Signature("f", list(named.values())), launch)


def tensor(dtype: str, **more: Any) -> Tensor:
    return Tensor("x", (N,), dtype, **more)


@pytest.mark.parametrize(
    ("symbol", "given"),
    [
        ("_Z1fPf", X),
        ("_Z1fPKf", tensor("float32", read_only=True)),
        ("_Z1fPv", X),
        ("_Z1fPf", Pointer("p")),
        ("_Z1fPj", tensor("uint32")),
        ("_Z1fP6__half", tensor("float16")),
        ("_Z1fP13__nv_bfloat16", tensor("bfloat16")),
        ("_Z1fP13__nv_fp8_e4m3", tensor("float8_e4m3fn")),
        ("_Z1fPN7cutlass6half_tE", tensor("float16")),
        ("_Z1fPKN7cutlass10bfloat16_tE", tensor("bfloat16")),
        ("_Z1fPN7cutlass12float_e5m2_tE", tensor("float8_e5m2")),
        ("_Z1fPN4cuda3std3__47complexIfEE", tensor("complex64")),
        ("_Z1fP6float2", tensor("complex64")),
        ("_Z1fP6float4", cast(tensor("float32", align=16).data, "float4*")),
        ("_Z1fPh", cast(X.data, "uint8_t*")),
        ("_Z1fP7__half2", cast(tensor("float16", align=4).data, "half2*")),
        ("_Z1fN2ns1PE", Struct([N, N])),
        ("_Z1fN2ns1EE", N),
        ("_Z1f9__nv_bool", Scalar("a", "bool")),
        ("_Z1fj", N),
        ("_Z1ff", Scalar("a", "float32")),
        ("_Z1fIJifEEvDpT_", Scalar("a", "float32")),
    ],
)
def test_what_fits_is_launched(symbol: str, given: Any) -> None:
    assert launching(symbol, given)


@pytest.mark.parametrize(
    ("symbol", "given", "said"),
    [
        ("_Z7reduce3IdEvPT_", X, r"is x.data, the address of float32, but it takes double \*"),
        ("_Z1fPj", tensor("int32"), "the address of int32"),
        ("_Z1fPf", tensor("float32", read_only=True), "it may write there"),
        ("_Z1fP6float4", X, r"cast\(x.data, 'float4 \*'\)"),
        ("_Z1fP6float4", cast(X.data, "float4*"), "a multiple of 4 bytes: say align=16"),
        ("_Z1fPf", cast(tensor("float32", align=16).data, "float4*"), "the pointer that it takes"),
        ("_Z1fP6__half", tensor("bfloat16"), "the address of bfloat16"),
        ("_Z1fPPf", X, r"cast\(x.data, 'float \* \*'\)"),
        ("_Z1fi", Scalar("a", "float32"), "a, a float32, but it takes int"),
        ("_Z1ff", Scalar("a", "int32"), "a, an int32, but it takes float"),
        ("_Z1fj", Scalar("a", "int32"), "a, an int32, but it takes unsigned int"),
        ("_Z1fb", Scalar("a", "uint8"), "a, a uint8, but it takes bool"),
        ("_Z1fPf", Scalar("a", "uint64"), "an address is the .data of a tensor"),
        ("_Z1fd", X, "what it takes is no address"),
        ("_Z1fN2ns1PE", Scalar("a", "float32"), r"a struct by value is conventions.Struct"),
    ],
)
def test_what_does_not_fit_is_refused(symbol: str, given: Any, said: str) -> None:
    with pytest.raises(CompileError, match=f"(?s){said}"):
        launching(symbol, given)


# ---- with a compiler ----

SOURCE = """
#define RESTRICT __restrict__
__constant__ float weights[4];
extern __shared__ float scratch[];
extern "C" __global__ void plain(const float* RESTRICT x, float* y, unsigned n) {
  if (threadIdx.x < n) y[threadIdx.x] = x[threadIdx.x];
}
extern "C" __global__ void vectors(float4* x) { x[0].x = 1; }
extern "C" __global__ void filter(float* x) { x[0] = weights[threadIdx.x]; }
extern "C" __global__ void sharing(float* x) { scratch[threadIdx.x] = x[0]; x[1] = scratch[2]; }
template <class T> __global__ void mapped(const T* __restrict__ x, T* __restrict__ y) {
  y[threadIdx.x] = x[threadIdx.x];
}
"""
Y = Tensor("y", (N,), "float32")


WITH_NVCC = ("test_a_constant_is_given_a_value",)


@pytest.fixture(params=["nvrtc", "nvcc"])
def compiled_by(request: pytest.FixtureRequest) -> str:
    """Each compiler that is there; nvcc takes seconds, so that NVRTC stands for it where it can."""
    request.getfixturevalue(request.param)
    if request.param == "nvcc" and find_nvrtc() and request.node.originalname not in WITH_NVCC:
        if settings.default.max_examples <= 100:
            pytest.skip("nvcc answers as NVRTC, which is tried; --hypothesis-profile=nightly does")
    return str(request.param)


def kernel(by: str, name: str, params: Any, *specs: Tensor, **more: Any) -> fe.Function:
    signature = Signature(name.partition("<")[0], list(specs or (X,)))
    given = {"grid": fixed(1), "block": 32, "target": "sm_90", "compiler": by} | more
    return cuda.compile(SOURCE, signature, kernel=name, params=params, **given)


def test_the_compiler_tells_the_types_of_what_is_extern_c(compiled_by: str) -> None:
    assert kernel(compiled_by, "plain", [X.data, Y.data, N], X, Y)
    with pytest.raises(CompileError, match="argument #1 of plain is y.data, the address of int32"):
        wrong = Tensor("y", (N,), "int32")
        kernel(compiled_by, "plain", [X.data, wrong.data, N], X, wrong)
    with pytest.raises(CompileError, match="(?s)#0 of vectors is .*'float4 .'"):
        kernel(compiled_by, "vectors", [X.data])
    wide = tensor("float32", align=16)
    assert kernel(compiled_by, "vectors", [cast(wide.data, "float4*")], wide)


def test_the_wrong_instance_of_a_template_is_refused(compiled_by: str) -> None:
    with pytest.raises(CompileError, match="the address of float32, but it takes const double"):
        kernel(compiled_by, "mapped<double>", [X.data, Y.data], X, Y)


@pytest.mark.parametrize(("name", "count"), [("plain", 3), ("mapped<float>", 2)])
def test_what_is_restrict_shares_no_memory(
    name: str, count: int, compiled_by: str, fake_cuda: FakeCuda
) -> None:
    params = [X.data, Y.data, N][:count]
    room, other = np.zeros(9, np.float32), floats(8)
    fn = kernel(compiled_by, name, params, X, Y)
    with pytest.raises(ValueError, match="x and y overlap in memory"):
        fn(forged(room[1:]), forged(room[:-1]))
    assert not fake_cuda.launches()
    fn(other, forged(room[1:]))
    kernel(compiled_by, name, params, X, Y, apart=[])(forged(room[1:]), forged(room[:-1]))
    assert len(fake_cuda.launches()) == 2


def test_a_constant_is_given_a_value(compiled_by: str, fake_cuda: FakeCuda) -> None:
    with pytest.raises(CompileError, match="uses the variable weights, 16 bytes without a value"):
        kernel(compiled_by, "filter", [X.data])
    weights = np.arange(4, dtype=np.float32)
    kernel(compiled_by, "filter", [X.data], constants={"weights": weights})(floats(4))
    assert fake_cuda.variable("weights") == weights.tobytes()


def test_what_another_kernel_uses_is_not_asked_for(compiled_by: str) -> None:
    assert kernel(compiled_by, "vectors", [cast(tensor("float32", align=16).data, "float4*")],
                  tensor("float32", align=16))  # fmt: skip


def test_dynamic_shared_memory_is_said(compiled_by: str) -> None:
    with pytest.raises(CompileError, match="kernel sharing of sm_90 uses shared memory whose"):
        kernel(compiled_by, "sharing", [X.data])
    assert kernel(compiled_by, "sharing", [X.data], smem=128)
    assert kernel(compiled_by, "sharing", [X.data], smem=0)


def test_a_cubin_alone_does_not_tell_who_uses_a_variable(compiled_by: str) -> None:
    compiled = cuda.module(SOURCE, ["vectors"], target="sm_90", compiler=compiled_by).code
    (image,) = compiled.images
    code = fe.DeviceCode.from_cubin(image.cubins[0], ["vectors"])
    wide = tensor("float32", align=16)
    signature = Signature("vectors", [wide])
    with pytest.raises(CompileError, match="uses the variable weights"):
        compiler.build(signature, CudaLaunch(code, "vectors", [wide.data], 1, 32))
    launch = CudaLaunch(code, "vectors", [wide.data], 1, 32, constants={"weights": None})
    assert compiler.build(signature, launch)


# ---- structs by value ----

Y = Tensor("y", (N,), "float32")
A, K, H = Scalar("a", "float32"), Scalar("k", "int32"), Scalar("h", "float16")
READ = Tensor("x", (N,), "float32", read_only=True)


def with_struct(members: str, params: Any, fields: Any, before: str = "") -> fe.Function:
    source = f"{before}\nstruct P {{ {members} }};\n__global__ void g(P p) {{}}"
    return cuda.compile(
        source,
        Signature("g", params),
        params=[Struct(fields)],
        grid=fixed(1),
        block=1,
        target="sm_80",
    )


@pytest.mark.parametrize(
    ("members", "params", "fields", "said"),
    [
        ("float a; int k;", [A, K], [K, A], "k, an int32 at byte 0, where its member is float"),
        ("float *x; double *y;", [X, Y], [X.data, Y.data], r"at byte 8, .* double \*"),
        ("float *x, *y;", [READ, Y], [READ.data, Y.data], r"read-only float32 at byte 0"),
        ("int n; float *x;", [X], [X.data, N], "x.data.* at byte 0, where its member is int"),
        ("int a, b; long c;", [K], [K, cast(1, "int64")], "nothing at byte 4"),
    ],
)
def test_the_members_of_a_struct_are_what_it_is_given(
    members: str, params: Any, fields: Any, said: str
) -> None:
    with pytest.raises(CompileError, match=rf"argument #0 of .* is a Struct with .*{said}"):
        with_struct(members, params, fields)


@pytest.mark.parametrize(
    ("members", "params", "fields"),
    [
        ("float a; int k;", [A, K], [A, K]),
        ("int n; const float *__restrict__ x; float *y;", [READ, Y], [N, READ.data, Y.data]),
        ("char c; unsigned k, n;", [X, K], [cast(1, "int8"), cast(K, "uint32"), N]),
        ("float *x[1]; __half h; int k = 0;", [X, H, K], [X.data, H, K]),
        ("int n;const float*x;float*y;", [READ, Y], [N, READ.data, Y.data]),
        ("const float*x,*y;int n;", [READ, Y], [READ.data, Y.data, N]),
        ("Other o; float a;", [A, K], [K, A]),
        ("float a; int k; __device__ int f() const { return k; }", [A, K], [A, K]),
        ("float *x[2]; char c[3]; int k;", [X, Y, K], [X.data, Y.data, *[cast(1, "int8")] * 3, K]),
    ],
)
def test_a_struct_is_given_what_its_members_are(members: str, params: Any, fields: Any) -> None:
    with_struct(members, params, fields, "#include <cuda_fp16.h>\nstruct Other { int k; };")


@pytest.mark.parametrize(
    ("before", "kind"),
    [
        ("namespace N { namespace M { struct P { float a; int k; }; } }", "N::M::P"),
        ("namespace { struct P { float a; int k; }; }", "P"),
        ("namespace N { template <class T, class U> struct Q { T a; U k; }; }", "N::Q<float, int>"),
        ("struct P { float a; int k = 2; __device__ int twice() { return 2 * k; } };", "P"),
        ("typedef float real; struct B { real a; int k; }; struct P : B {};", "P"),
    ],
)
@pytest.mark.parametrize("linkage", ["", 'extern "C" '])
def test_the_members_of_any_struct_are_compared(before: str, kind: str, linkage: str) -> None:
    source = f"{before}\n{linkage}__global__ void g({kind} p) {{}}"
    given = {"grid": fixed(1), "block": 1, "target": "sm_80"}
    assert cuda.compile(source, Signature("g", [A, K]), params=[Struct([A, K])], **given)
    with pytest.raises(CompileError, match="k, an int32 at byte 0, where its member is float"):
        cuda.compile(source, Signature("g", [A, K]), params=[Struct([K, A])], **given)


@pytest.mark.parametrize(
    ("before", "fields"),
    [
        ("struct P { int a : 3; int b : 5; };", [K]),
        ("class P { int k; public: __device__ int f() { return k; } };", [K]),
        ("struct alignas(8) P { char c; alignas(4) char d; };", [cast(1, "int64")]),
    ],
)
def test_members_that_cannot_be_compared_are_said(before: str, fields: Any) -> None:
    source = f"{before}\n__global__ void g(P p) {{}}"
    with pytest.warns(compiler.BuildWarning, match="#0 of _Z1g1P is a Struct whose members cannot"):
        cuda.compile(
            source, Signature("g", [K]), params=[Struct(fields)], grid=fixed(1), block=1,
            target="sm_80",
        )  # fmt: skip


# ---- what is aligned ----

ALIGNED = """
struct alignas(16) Big { float a, b, c, d; };
namespace N { struct __align__(32) Wide { float a[8]; }; }
namespace { struct Own { alignas(16) float a; }; }
struct Q { float a, b, c, d; };
typedef Q __align__(16) Lined;
typedef float FourFold __attribute__((aligned(16)));
struct Members { float4 *v; };
struct Deeper { const Lined *v; };
"""


def aligned(parameter: str, given: Any, x: Tensor, linkage: str) -> fe.Function:
    source = f"{ALIGNED}\n{linkage}__global__ void g({parameter}) {{}}"
    return cuda.compile(
        source, Signature("g", [x]), params=[given(x)], grid=fixed(1), block=1, target="sm_80"
    )


@pytest.mark.parametrize("linkage", ["", 'extern "C" '])
@pytest.mark.parametrize(
    ("parameter", "given", "align"),
    [
        ("Big *x", lambda x: cast(x.data, "Big*"), 16),
        ("const N::Wide *__restrict__ x", lambda x: cast(x.data, "N::Wide*"), 32),
        ("FourFold *x", lambda x: x.data, 16),
        ("const FourFold *x", lambda x: x.data, 16),
        ("Lined *x", lambda x: cast(x.data, "Q*"), 16),
        ("double *x", lambda x: cast(x.data, "double*"), 8),
        ("float **x", lambda x: cast(x.data, "float**"), 8),
        ("const ulonglong2 *x", lambda x: cast(x.data, "ulonglong2*"), 16),
        ("Members m", lambda x: Struct([cast(x.data, "float4*")]), 16),
        ("Deeper m", lambda x: Struct([cast(x.data, "Q*")]), 16),
    ],
)
def test_addresses_are_aligned_as_the_code_takes_them(
    parameter: str, given: Any, align: int, linkage: str
) -> None:
    with pytest.raises(CompileError, match=f"a multiple of 4 bytes: say align={align} in the spec"):
        aligned(parameter, given, X, linkage)
    with pytest.raises(CompileError, match=f"a multiple of {align // 2} bytes: say align={align}"):
        aligned(parameter, given, tensor("float32", align=align // 2), linkage)
    assert aligned(parameter, given, tensor("float32", align=align), linkage)


def test_what_is_behind_a_type_without_a_name_is_aligned() -> None:
    found = cuda.module(f"{ALIGNED}__global__ void g(Own *x) {{}}", target="sm_80").code.facts
    assert found[0].aligned == (16,)


def test_a_typedef_that_is_const_is_what_it_names() -> None:
    source = 'typedef float real; extern "C" __global__ void g(const real *x) {}'
    given = {"grid": fixed(1), "block": 1, "target": "sm_80"}
    assert cuda.compile(source, Signature("g", [READ]), **given)


# ---- __restrict__ by other names ----


@pytest.mark.parametrize(
    "source",
    [
        "#define K(n) n##_kernel\n__global__ void K(g)(float *__restrict__ x, const float *y) {B}",
        "#define NAME g\n__global__ void NAME(float *__restrict__ x, const float *y) {B}",
        "#define MADE(T) __global__ void g_##T(T *__restrict__ x, \\\n const T *y) \\\n {B}\n"
        "MADE(float)",
        "#define KERNEL(name) __global__ void name(float *__restrict__ x, const float *y)\n"
        "KERNEL(g) {B}",
        '#define G static_assert(1, ""); __global__\n#define K(n) n\n'
        "G void __launch_bounds__(32) K(g)(float *__restrict__ x, const float *y) {B}",
    ],
)
def test_restrict_is_found_in_kernels_that_macros_name(source: str) -> None:
    found = cuda.module(source.replace("{B}", "{ x[0] = y[0]; }"), target="sm_80").code.facts
    assert found[0].restricted == (True, False)


def test_restrict_that_is_not_found_is_said() -> None:
    source = """#define TAKES float *__restrict__ x, const float *y
        __global__ void g(TAKES) { x[0] = y[0]; }"""
    given = {"grid": fixed(1), "block": 1, "target": "sm_80"}
    with pytest.warns(compiler.BuildWarning, match="which addresses _Z1gPfPKf declares __restr"):
        cuda.compile(source, Signature("g", [X, Y]), **given)
    assert cuda.compile(source, Signature("g", [X, Y]), apart=[X, Y], **given)


@pytest.mark.parametrize(
    ("before", "x", "y"),
    [
        ("typedef float *__restrict__ out;", "out x", "const float *y"),
        ("using out = float *__restrict__;", "out x", "const float *y"),
        ("template <class T> using rp = T *__restrict__;", "rp<float> x", "rp<const float> y"),
        ("template <class T> struct R { typedef T *__restrict__ p; };", "R<float>::p x", "float*y"),
        ("using out = float *__restrict__;\ntypedef out more;", "more x", "const float *y"),
    ],
)
def test_restrict_is_found_by_the_names_of_types(before: str, x: str, y: str) -> None:
    source = f"{before}\n__global__ void g({x}, {y}) {{ x[0] = y[0]; }}"
    made = cuda.module(source, target="sm_80")
    assert any(made.code.facts[0].restricted or ())


def test_a_parameter_that_is_called_as_such_a_type_is_not_restrict() -> None:
    source = """struct R { typedef float *__restrict__ p; };
        __global__ void g(float *p, const float *y) { p[0] = y[0]; }"""
    assert cuda.module(source, target="sm_80").code.facts[0].restricted == (False, False)


@pytest.mark.parametrize(
    "around",
    [
        'namespace N {{ extern "C" {} }}',
        'extern "C" {{ namespace N {{ namespace M {{ {} }} }} }}',
        'inline namespace V {{ __device__ void other() {{ }} extern "C" {} }}',
    ],
)
def test_kernels_in_namespaces_are_compared(around: str) -> None:
    kernel = "__global__ void g(double *__restrict__ x, const double *y) { x[0] = y[0]; }"
    made = cuda.module(around.format(kernel), target="sm_80")
    (facts,) = made.code.facts
    assert facts.types == ("double *", "const double *")
    assert facts.restricted == (True, False)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("void k();", "k"),
        ("namespace N { } void k();", "k"),
        ("namespace { void k(); }", "k"),
        ("namespace A::B { void h() { k(); } inline namespace V { void k(); } }", "A::B::V::k"),
        ("namespace N { struct S { void k(); }; }", "k"),
        ('namespace N { extern "" { void k(); } }', "N::k"),
    ],
)
def test_names_are_found_in_their_namespaces(text: str, wanted: str) -> None:
    assert scoped(text, "k") == wanted
