"""A whole kernel language on top of ferrule: elementwise functions of vectors and numbers.

    python examples/tiny_dsl.py

`build` calls a function of the language once, with a `Value` for each parameter; each operation on
these writes an instruction, of LLVM's language for the CPU or of PTX for a GPU. The rest is
ferrule's: it checks arguments, makes the result, calls or launches, and exports.
"""

from __future__ import annotations

import inspect
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from string import Template
from typing import Any

import numpy as np

import ferrule as fe
from ferrule import compiler, specs
from ferrule.compiler import conventions

BLOCK = 256
KINDS = {float: "number", "float": "number"}  # what else a parameter may be: a vector
INSTRUCTIONS = {  # for the CPU and for the GPU; {0} is the register that gets the result
    "vector": (
        "{0}.at = getelementptr float, ptr %{1}, i64 %i\n  {0} = load float, ptr {0}.at",
        "ld.param.u64 %d2, [{1}]; add.s64 %d2, %d2, %d1; ld.f32 {0}, [%d2];",
    ),
    "number": ("{0} = bitcast float %{1} to float", "ld.param.f32 {0}, [{1}];"),
    "add": ("{0} = fadd float {1}, {2}", "add.rn.f32 {0}, {1}, {2};"),
    "sub": ("{0} = fsub float {1}, {2}", "sub.rn.f32 {0}, {1}, {2};"),
    "mul": ("{0} = fmul float {1}, {2}", "mul.rn.f32 {0}, {1}, {2};"),
    "div": ("{0} = fdiv float {1}, {2}", "div.rn.f32 {0}, {1}, {2};"),
    "max": ("{0} = call float @llvm.maxnum.f32(float {1}, float {2})", "max.f32 {0}, {1}, {2};"),
}
LLVM = Template("""\
declare float @llvm.maxnum.f32(float, float)
define void @tiny(ptr %out, i64 %n$parameters) {
start:
  br label %next
next:
  %i = phi i64 [0, %start], [%behind, %each]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %each, label %end
each:
$lines
  %to = getelementptr float, ptr %out, i64 %i
  store float $result, ptr %to
  %behind = add i64 %i, 1
  br label %next
end:
  ret void
}
""")
PTX = Template("""\
.version 7.8
.target sm_80
.address_size 64
.visible .entry tiny(.param .u64 out, .param .u64 n$parameters)
{
  .reg .pred %past; .reg .b32 %r<3>; .reg .b64 %d<3>; .reg .f32 %f<$count>;
  mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x;
  cvt.u64.u32 %d0, %r2; mad.wide.u32 %d0, %r0, %r1, %d0;
  ld.param.u64 %d1, [n]; setp.ge.s64 %past, %d0, %d1; @%past ret;
  shl.b64 %d1, %d0, 2;
$lines
  ld.param.u64 %d2, [out]; add.s64 %d2, %d2, %d1; st.f32 [%d2], $result;
  ret;
}
""")


def _method(op: str, swap: bool = False) -> Callable[[Value, Any], Value]:
    return lambda a, b: a.write(op, b, a) if swap else a.write(op, a, b)


@dataclass(frozen=True)
class Value:
    """A float32 of the element at hand: its register in the code that is written."""

    gpu: bool
    lines: list[str] = field(default_factory=list)
    register: str = ""

    def write(self, op: str, *operands: Any) -> Value:
        """One more instruction, and its result."""
        result = f"%f{len(self.lines)}"
        given = map(self.text, operands)
        self.lines.append("  " + INSTRUCTIONS[op][self.gpu].format(result, *given))
        return Value(self.gpu, self.lines, result)

    def text(self, operand: Any) -> str:
        """A name, a register, or the bits of a number, which in LLVM's language are a float64's."""
        if isinstance(operand, (str, Value)):
            return operand if isinstance(operand, str) else operand.register
        bits = struct.pack(">f" if self.gpu else ">d", np.float32(float(operand)))
        return ("0f" if self.gpu else "0x") + bits.hex()

    __add__, __radd__ = _method("add"), _method("add", swap=True)
    __sub__, __rsub__ = _method("sub"), _method("sub", swap=True)
    __mul__, __rmul__ = _method("mul"), _method("mul", swap=True)
    __truediv__, __rtruediv__ = _method("div"), _method("div", swap=True)
    maximum = _method("max")


def build(function: Callable[..., Value], target: str = "cpu") -> fe.Function:
    """The TVM-FFI function of the vector of what `function` says of each element."""
    start, n = Value(target == "cuda"), specs.sym_int64()
    parameters = inspect.signature(function).parameters
    kinds = [KINDS.get(each.annotation, "vector") for each in parameters.values()]
    result = function(*[start.write(kind, f"p{i}") for i, kind in enumerate(kinds)])
    names = ["_".join(["out", *parameters]), *parameters]  # the result's is unlike any other

    out, *params = [
        specs.Scalar(name, "float32")
        if kind == "number"
        else specs.Tensor(name, (n,), "float32", device=target)
        for name, kind in zip(names, ["vector", *kinds], strict=True)
    ]
    sig = specs.Signature(function.__name__, params)
    given = [out.data, n, *(p.data if isinstance(p, specs.Tensor) else p for p in params)]
    types = {"vector": ("ptr %", ".param .u64 "), "number": ("float %", ".param .f32 ")}
    text = (PTX if start.gpu else LLVM).substitute(
        parameters="".join(f", {types[kind][start.gpu]}p{i}" for i, kind in enumerate(kinds)),
        lines="\n".join(start.lines),
        result=start.text(result),
        count=len(start.lines),
    )
    call: conventions.CallingConvention
    if start.gpu:
        grid, code = (specs.ceil_div(n, BLOCK), 1, 1), fe.DeviceCode.from_ptx(text)
        call = conventions.CudaLaunch(code, "tiny", given, grid=grid, block=(BLOCK, 1, 1))
    else:
        call = conventions.CFunction("tiny", given, code=conventions.HostCode.from_llvm(text))
    return compiler.build(sig, call, results=[out], doc=function.__doc__)


def axpy(alpha: float, x: Value, y: Value) -> Value:
    """alpha * x + y, and 0 where that is less."""
    return (alpha * x + y).maximum(0)


if __name__ == "__main__":
    compiled, ones = build(axpy), np.ones(4, "f4")
    print(compiled.signature)
    print(np.from_dlpack(compiled(2, np.arange(4, dtype="f4"), -ones)))
