"""Structs that C functions take and return by value."""

from __future__ import annotations

import cmath
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bare_python import called_bare
from c_objects import c_object

import ferrule as fe
from ferrule import compiler
from ferrule.compiler.conventions import CFunction, HostCode, Struct, TensorMap, cast
from ferrule.compiler.conventions.c.by_value import Shape, call_text
from ferrule.compiler.errors import CompileError
from ferrule.runtime.llvm.layouts import F32, F64, I8, I16, I32, I64, PTR
from ferrule.specs import Scalar, Signature, Tensor

C_TYPES = {
    "int8": "int8_t",
    "int16": "int16_t",
    "int32": "int32_t",
    "int64": "int64_t",
    "float32": "float",
    "float64": "double",
}
OUT = Tensor("out", (64,), "float64")


class Program:
    """A C function of this number that writes all that it gets to `out` and returns some of it."""

    def __init__(self, number: int) -> None:
        self.name, chosen = f"f{number}", random.Random(number)
        self.groups = list(self._groups(chosen))
        self.back = self._members(chosen)
        leaves = [kind for group in self.groups for kind in group]
        self.params = [Scalar(f"x{i}", kind) for i, kind in enumerate(leaves)]
        self.given = [-i if "int" in kind else i + 0.5 for i, kind in enumerate(leaves, 1)]

    def _groups(self, chosen: random.Random) -> Iterator[list[str]]:
        for _ in range(chosen.choice([1, 2, 4, 8])):
            yield self._members(chosen) if chosen.random() < 0.6 else [chosen.choice([*C_TYPES])]

    def _members(self, chosen: random.Random) -> list[str]:
        count = chosen.choice([2, 2, 3, 4, 5])
        if chosen.random() < 0.3:
            return [chosen.choice(["float32", "float64"])] * count
        return [chosen.choice([*C_TYPES]) for _ in range(count)]

    def source(self) -> str:
        """The function and its structs."""
        structs, params, lines = [struct(f"{self.name}_r", self.back)], [], []
        for i, group in enumerate(self.groups):
            if len(group) > 1:
                structs.append(struct(f"{self.name}_{i}", group))
                params.append(f"struct {self.name}_{i} a{i}")
                lines += [f"*out++ = a{i}.m{j};" for j in range(len(group))]
            else:
                params.append(f"{C_TYPES[group[0]]} a{i}")
                lines.append(f"*out++ = a{i};")
        listed = ", ".join(str(100 + i) for i in range(len(self.back)))
        made = f"struct {self.name}_r r = {{{listed}}}; return r;"
        head = f"struct {self.name}_r {self.name}(double* out, {', '.join(params)})"
        return f"{' '.join(structs)}\n{head} {{ {' '.join(lines)} {made} }}\n"

    def build(self, code: HostCode) -> fe.Function:
        """The function that calls it."""
        rest, arguments = list(self.params), list[Any]([OUT.data])
        for group in self.groups:
            taken, rest = rest[: len(group)], rest[len(group) :]
            arguments.append(Struct(taken) if len(taken) > 1 else taken[0])
        call = CFunction(self.name, arguments, returns=self.back, code=code)
        return compiler.build(Signature(self.name, [OUT, *self.params]), call)


def struct(name: str, members: Sequence[str]) -> str:
    fields = " ".join(f"{C_TYPES[kind]} m{i};" for i, kind in enumerate(members))
    return f"struct {name} {{ {fields} }};"


@pytest.mark.needs_cc
def test_structs_arrive_and_come_back_as_a_c_compiler_passes_them() -> None:
    programs = [Program(number) for number in range(10)]
    text = "#include <stdint.h>\n" + "".join(each.source() for each in programs)
    code = HostCode.from_object(c_object(text))
    for each in programs:
        out = np.zeros(64)
        back = each.build(code)(out, *each.given)
        assert back == tuple(range(100, 100 + len(each.back))), each.source()
        assert out[: len(each.given)].tolist() == each.given, each.source()


def test_a_complex_number_is_a_struct_of_two_floats() -> None:
    parts = [Scalar("re", "float64"), Scalar("im", "float64")]
    call = CFunction("cexp", [Struct(parts)], returns=["float64", "float64"])
    cexp = compiler.build(Signature("cexp", parts), call)
    assert complex(*cexp(0.5, 1.0)) == pytest.approx(cmath.exp(0.5 + 1j))
    call = CFunction("cabs", [Struct(parts)], returns="float64")
    assert compiler.build(Signature("cabs", parts), call)(3, 4) == 5


def test_members_come_back_as_a_tuple() -> None:
    a, b = Scalar("a", "int32"), Scalar("b", "int32")
    call = CFunction("div", [a, b], returns=["int32", "int32"])
    div = compiler.build(Signature("div", [a, b]), call)
    assert div(17, 5) == (3, 2)
    assert str(div.signature).endswith("-> Tuple[int32, int32]")


@pytest.mark.needs_cc
def test_structs_stand_before_dots_and_behind_them() -> None:
    text = """
    #include <stdarg.h>
    struct pair { double a, b; };
    double sum(struct pair first, int count, ...) {
        va_list rest; va_start(rest, count);
        struct pair last = va_arg(rest, struct pair);
        return first.a + 10 * first.b + 100 * last.a + 1000 * last.b + va_arg(rest, double);
    }
    """
    parts = [Scalar("a", "float64"), Scalar("b", "float64")]
    pair, code = Struct(parts), HostCode.from_object(c_object(text))
    more: dict[str, Any] = {"returns": "float64", "code": code}
    given = [pair, cast(2, "int32"), pair, parts[0]]
    call = CFunction("sum", given, variadic_from=2, **more)
    assert compiler.build(Signature("sum", parts), call)(1, 2) == 2122
    short = CFunction("sum", [*given[:3], cast(0.5, "float32")], variadic_from=2, **more)
    with pytest.raises(TypeError, match="sum: value #3 is float, which C makes wider"):
        compiler.build(Signature("sum", parts), short)


def test_a_call_with_dots_says_what_stands_before_them() -> None:
    text = call_text("x86_64", "f", I32, [WIDE, "i16 zeroext", TWO_FLOATS, "i32"], fixed=2)
    assert "declare i32 @f(ptr byval([24 x i8]) align 8, i16 zeroext, ...)" in text
    assert "call i32 (ptr, i16, ...) @f(ptr byval([24 x i8]) align 8 %a0, i16 zeroext %a1" in text


TWO_FLOATS, FOUR = Shape.of_types([F32, F32]), Shape.of_types([F64] * 4)
MIXED, NARROW = Shape.of_types([F32, I32, F64]), Shape.of_types([I8, I16])
WIDE = Shape.of_types([I64, I64, PTR])


@pytest.mark.parametrize(
    ("machine", "returned", "passed", "said"),
    [
        ("x86_64", I32, [TWO_FLOATS], "call i32 @f(double %a0.0)"),
        ("x86_64", I32, [MIXED], "call i32 @f(i64 %a0.0, double %a0.1)"),
        ("x86_64", I32, [WIDE], "call i32 @f(ptr byval([24 x i8]) align 8 %a0)"),
        ("x86_64", MIXED, [], "call { i64, double } @f()"),
        ("x86_64", FOUR, ["i8 signext"], "sret([32 x i8]) align 8 %result, i8 signext %a0)"),
        (
            "x86_64",
            I32,
            [*["i64"] * 5, Shape.of_types([I64, I64]), NARROW],
            "i64 %a4, ptr byval([16 x i8]) align 8 %a5, i64 %a6.0)",
        ),
        (
            "x86_64",
            WIDE,
            [*["ptr"] * 4, Shape.of_types([I64, I64])],
            "ptr %a3, ptr byval([16 x i8]) align 8 %a4)",
        ),
        (
            "x86_64",
            I32,
            [*["double"] * 7, Shape.of_types([F64, F64]), TWO_FLOATS],
            "double %a6, ptr byval([16 x i8]) align 8 %a7, double %a8.0)",
        ),
        ("aarch64", I32, [TWO_FLOATS], "call i32 @f([2 x float] %a0.0)"),
        ("aarch64", I32, [MIXED], "call i32 @f([2 x i64] %a0.0)"),
        ("aarch64", I32, [NARROW], "call i32 @f(i64 %a0.0)"),
        ("aarch64", I32, [WIDE], "call i32 @f(ptr %a0)"),
        ("aarch64", FOUR, [FOUR], "call [4 x double] @f([4 x double] %a0.0)"),
        ("aarch64", WIDE, [], "call void @f(ptr sret([24 x i8]) align 8 %result)"),
        ("aarch64", I32, [Shape.of_types([F64] * 5)], "call i32 @f(ptr %a0)"),
    ],
)
def test_what_the_abi_of_a_processor_says(
    machine: str, returned: Any, passed: Any, said: str
) -> None:
    assert said in call_text(machine, "f", returned, passed)


@pytest.mark.needs_cc
def test_what_is_exported_passes_structs_for_its_platform(tmp_path: Path) -> None:
    parts = [Scalar("a", "int32"), Scalar("b", "int32")]
    call = CFunction("less", [Struct([*parts, parts[0]])], returns="int32", code=less())
    compiler.build(Signature("less", parts), call).export_to_c(tmp_path / "less.o")
    assert called_bare([tmp_path / "less.o"], "", "print(module.less(9, 4))") == "5\n"
    call = CFunction("div", parts, returns=["int32", "int32"])
    for triple in ("aarch64-linux-gnu", "riscv64-linux-gnu"):
        other = compiler.build(Signature("div", parts), call, options=f"--host-target {triple}")
        if triple.startswith("aarch64"):
            assert other.export_to_c(tmp_path / "other.o") is None
            continue
        with pytest.raises(
            CompileError, match=r"on x86_64 and aarch64, but not on riscv64\n  hint"
        ):
            other.export_to_c(tmp_path / "another.o")


def less() -> HostCode:
    text = "struct s { int a, b, c; }; int less(struct s x) { return x.c - x.b; }"
    return HostCode.from_object(c_object(text))


def test_a_struct_that_c_does_not_pass_so_is_refused() -> None:
    with pytest.raises(TypeError, match="argument #0 of f: C has no struct without members"):
        CFunction("f", [Struct([])])
    with pytest.raises(TypeError, match=r"of 16 bytes that is aligned to 16 .* Reference\("):
        CFunction("f", [Struct([1], align=16)])
    with pytest.raises(ValueError, match=r"returns=\[\] is a struct without members"):
        CFunction("f", returns=[])
    with pytest.raises(ValueError, match="can give nothing back"):
        CFunction("f", returns=["int32"] * 2, when=Scalar("a", "int32").value > 1)


def test_structs_in_structs_take_no_longer_to_read_the_deeper_they_are() -> None:
    inner = Struct([cast(1, "int8"), cast(1, "float64")])
    for _ in range(100):
        inner = Struct([inner, cast(1, "int8")])
    assert (inner.size, inner.align, inner.offsets) == (816, 8, (0, 808))


def test_llvm_ir_has_no_structs_by_value() -> None:
    code = HostCode.from_llvm("define i32 @f(i64 %a) {\n  ret i32 1\n}\n")
    with pytest.raises(CompileError, match="g: f is LLVM IR, which has no structs of C by"):
        compiler.build(Signature("g", []), CFunction("f", [Struct([1])], code=code))


def test_what_has_bytes_alone_goes_in_memory() -> None:
    """A tensor map is 128 bytes that are aligned to 64."""
    shape = Shape.of(TensorMap(Tensor("x", (4,), "float32"), (4,)), "it")
    text = call_text("x86_64", "f", I32, [shape])
    assert "call i32 @f(ptr byval([128 x i8]) align 64 %a0)" in text
