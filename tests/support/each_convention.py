"""A function of each calling convention on the host, for tests of what all of them promise."""

from __future__ import annotations

from collections.abc import Callable

from ferrule import compiler, specs
from ferrule.compiler.conventions import (
    CallingConvention,
    CFunction,
    DLTensors,
    FirstOf,
    HostCode,
    Memref,
    ReturnCode,
    SafeCall,
    Sequence,
    Sized,
    cast,
)
from ferrule.runtime import Function
from ferrule.specs import Param, Scalar, Signature, Tensor

N = specs.sym_int(symbol="n")
X, OUT = (Tensor(name, (N,), "float32") for name in ("x", "out"))
K = Scalar("k", "float32")

SOURCE = """
#include <stdint.h>
#include <stdlib.h>
typedef struct { float *allocated, *aligned; int64_t offset, size, stride; } Memref;
typedef struct { float* data; int32_t device[2], ndim, dtype; int64_t *shape; } Lent;
typedef struct { int32_t index; uint32_t zero; union { int64_t i; double f; Lent* t; } v; } Any;
extern void TVMFFIErrorSetRaisedFromCStr(const char* kind, const char* message);
static int calls;

int scale(float* out, const float* x, int32_t n, float k) {
    for (int32_t i = 0; i < n; i++) out[i] = x[i] * k;
    calls++;
    return k < 0 ? -1 : 0;
}
int64_t above(float* out, const float* x, int32_t n, float k) {
    int64_t found = 0;
    for (int32_t i = 0; i < n; i++) if (x[i] > k) out[found++] = x[i];
    return k < 0 ? n + 1 : found;
}
int32_t count(void) { return calls; }
void _mlir_ciface_scale(Memref* out, Memref* x, float k) {
    float* data = malloc(x->size * sizeof(float) + 1);
    Memref made = {data, data, 0, x->size, 1};
    for (int64_t i = 0; i < x->size; i++) data[i] = x->aligned[x->offset + i * x->stride] * k;
    *out = made;
}
double _mlir_ciface_last(Memref* x) { return x->aligned[x->offset + (x->size - 1) * x->stride]; }
double sum(Lent* x) {
    double all = 0;
    for (int64_t i = 0; i < x->shape[0]; i++) all += x->data[i];
    return all;
}
int safe(void* self, const Any* args, int32_t count, Any* result) {
    result->index = 3;
    result->v.f = sum(args[0].v.t) * args[1].v.f;
    if (args[1].v.f >= 0) return 0;
    TVMFFIErrorSetRaisedFromCStr("ValueError", "k is below 0");
    return -1;
}
"""
"""Written out what `dlpack.h` and `tvm/ffi/c_api.h` declare, so that it compiles without them."""

TEXT = """
define void @shift(ptr %out, ptr %x, i32 %n, float %k) {
start:
  br label %next
next:
  %i = phi i32 [ 0, %start ], [ %j, %loop ]
  %more = icmp slt i32 %i, %n
  br i1 %more, label %loop, label %end
loop:
  %from = getelementptr float, ptr %x, i32 %i
  %value = load float, ptr %from
  %sum = fadd float %value, %k
  %to = getelementptr float, ptr %out, i32 %i
  store float %sum, ptr %to
  %j = add i32 %i, 1
  br label %next
end:
  ret void
}
"""


def built(
    name: str, call: CallingConvention, *, out: bool = False, params: tuple[Param, ...] = (X, K)
) -> Function:
    """The function of a call; with `out` it gives back a vector like `x`."""
    results = [OUT] if out else []
    return compiler.build(Signature(name, params), call, results=results)


def c_function(code: HostCode) -> Function:
    """`x * k`, and a RuntimeError where k is below 0."""
    given = [OUT.data, X.data, N, K]
    return built("c_function", CFunction("scale", given, returns="status", code=code), out=True)


def memref(code: HostCode) -> Function:
    """`x * k`, in memory that the function allocates itself."""
    return built("memref", Memref("scale", [X, K], returns=[OUT], code=code))


def last(code: HostCode) -> Function:
    """The last element of `x`, which is a memref."""
    return built("last", Memref("last", [X], returns="float64", code=code), params=(X,))


def dltensors(code: HostCode) -> Function:
    """The sum of `x`."""
    call = DLTensors("sum", [X], returns="float64", code=code)
    return built("dltensors", call, params=(X,))


def safe_call(code: HostCode) -> Function:
    """The sum of `x * k`, and a ValueError where k is below 0."""
    return built("safe_call", SafeCall("safe", [X, K], returns="float64", code=code))


def sequence(code: HostCode) -> Function:
    """`x * k * k` by way of a temporary, and how often the code was called; errors as above."""
    between = Tensor("between", (N,), "float32")
    failed = ReturnCode(errors={-1: (ValueError, "k is below 0")})
    steps = [
        CFunction("scale", [between.data, X.data, N, K], returns=failed, code=code),
        CFunction("scale", [OUT.data, between.data, N, K], code=code, when=N > 0),
        CFunction("count", returns="int32", code=code),
    ]
    return built("sequence", Sequence(steps, temporaries=[between]), out=True)


def first_of(code: HostCode) -> Function:
    """`x * 2` for no more than 8 elements, `x * k` for a number that 4 divides; else an error."""
    two = cast(2.0, "float32")
    choices = [
        CFunction("scale", [OUT.data, X.data, N, two], code=code, when=N <= 8),
        CFunction("scale", [OUT.data, X.data, N, K], code=code, when=specs.divisible(N, 4)),
    ]
    return built("first_of", FirstOf(choices), out=True)


def sized(code: HostCode) -> Function:
    """The elements of `x` above `k`; a RuntimeError where k is below 0."""
    size = specs.sym_int64(symbol="found")
    out = Tensor("out", (size,), "float32", capacity=N)
    call = CFunction("above", [out.data, X.data, N, K], returns="int64", code=code)
    return compiler.build(Signature("sized", (X, K)), Sized(call, size), results=[out])


def llvm_ir() -> Function:
    """`x + k`, by code that is for every platform."""
    code = HostCode.from_llvm(TEXT)
    return built("llvm_ir", CFunction("shift", [OUT.data, X.data, N, K], code=code), out=True)


WITH_OBJECT: tuple[Callable[[HostCode], Function], ...] = (
    c_function,
    memref,
    last,
    dltensors,
    safe_call,
    sequence,
    first_of,
    sized,
)


def each_function(code: HostCode) -> list[Function]:
    """All of the above; `code` is the object of `SOURCE`."""
    return [*(make(code) for make in WITH_OBJECT), llvm_ir()]
