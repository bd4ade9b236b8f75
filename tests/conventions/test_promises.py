"""What LLVM IR promises of its parameters and its processor is kept, or refused."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule import compiler, specs
from ferrule.compiler import targets
from ferrule.compiler.conventions import (
    NULL,
    Array,
    CFunction,
    CString,
    HostCode,
    Memref,
    Out,
    Reference,
    Sequence,
    Struct,
    cast,
)
from ferrule.compiler.errors import CompileError
from ferrule.runtime import ObjectFileError, cpus
from ferrule.specs import Optional, Pointer, Scalar, Signature, Tensor

n = specs.sym_int64(symbol="n")
x, y, w = (Tensor(name, (n,), "float32") for name in ("x", "y", "w"))
memory = np.zeros(256, np.float32)
memory = memory[-memory.ctypes.data % 128 // 4 :]


def code(parameters: str, body: str = "", attributes: str = "") -> HostCode:
    return HostCode.from_llvm(
        f"define void @f({parameters}) {attributes} {{\n{body}\n  ret void\n}}\n"
    )


def built(source: HostCode, params: Any, *given: Any, **more: Any) -> fe.Function:
    return compiler.build(Signature("s", params), CFunction("f", given, code=source), **more)


# ---- noalias ----

SHIFTED = """
  %a = load float, ptr %src
  store float 5.0, ptr %dst
  %b = load float, ptr %src
  %p = getelementptr float, ptr %dst, i64 1
  %sum = fadd float %a, %b
  store float %sum, ptr %p
"""


def test_arrays_that_must_be_apart_are_refused_where_they_overlap() -> None:
    fn = built(code("ptr noalias %dst, ptr noalias %src", SHIFTED), [y, x], y.data, x.data)
    fn(memory[:4], memory[4:8])
    assert fn.notes["assumes"] == ["y shares no memory with x"]
    with pytest.raises(ValueError, match=r"y and x overlap in memory.*\(noalias\)"):
        fn(memory[:4], memory[:4])
    with pytest.raises(ValueError, match="y and x overlap in memory"):
        fn(memory[:4], memory[3:7])


@pytest.mark.parametrize("parameters", ["ptr noalias %dst, ptr %src", "ptr %dst, ptr noalias %src"])
def test_one_that_promises_is_enough(parameters: str) -> None:
    fn = built(code(parameters, SHIFTED), [y, x], y.data, x)
    with pytest.raises(ValueError, match="y and x overlap"):
        fn(memory[:4], memory[:4])


SUM = """
  %a = load float, ptr %one
  %b = load float, ptr %two
  %sum = fadd float %a, %b
  store float %sum, ptr %dst
"""


def test_arrays_that_are_only_read_may_be_the_same_though_nothing_says_so() -> None:
    source = code("ptr noalias %dst, ptr noalias %one, ptr noalias %two", SUM)
    fn = built(source, [y, x, w], y.data, x.data, w.data)
    fn(memory[:4], memory[4:8], memory[4:8])
    with pytest.raises(ValueError, match="y and w overlap"):
        fn(memory[:4], memory[4:8], memory[2:6])
    square = built(source, [y, x], y.data, x.data, x.data)
    square(memory[:4], memory[4:8])


def test_what_the_call_allocates_needs_no_check() -> None:
    source = code("ptr noalias %dst, ptr noalias %src", SHIFTED)
    fn = built(source, [x], y.data, x.data, results=[y])
    assert fn.notes == {} and fn(memory[:4]).shape == (4,)


def test_one_array_twice_cannot_be_apart() -> None:
    source = code("ptr noalias %dst, ptr noalias %src", SHIFTED)
    with pytest.raises(CompileError, match=r"f is given x twice.*\(noalias\)"):
        built(source, [x], x.data, x.data)
    whole = Tensor("whole", (4096,), "float32")
    built(source, [whole], whole.data, whole.data.byte_offset(64))


def test_memrefs_as_bare_pointers_keep_it_too() -> None:
    source = code("ptr noalias %dst, ptr noalias %src", SHIFTED)
    fn = compiler.build(Signature("s", [y, x]), Memref("f", [y, x], interface="bare", code=source))
    with pytest.raises(ValueError, match="y and x overlap"):
        fn(memory[:4], memory[:4])


# ---- align ----


def test_an_alignment_is_what_the_spec_promises_at_least() -> None:
    source = code("ptr align 32 %x")
    with pytest.raises(CompileError, match=r"multiple of 32 bytes.*x is promised at one of 4") as e:
        built(source, [x], x.data)
    assert "align=32" in str(e.value)
    wide = Tensor("wide", (n,), "float32", align=64)
    fn = built(source, [wide], wide.data.byte_offset(96))
    fn(memory[:4])
    with pytest.raises(ValueError, match="Misaligned"):
        fn(memory[1:4])
    with pytest.raises(CompileError, match="wide is promised at one of 16 alone"):
        built(source, [wide], wide.data.byte_offset(16))


def test_what_is_allocated_is_aligned_and_what_a_call_tells_is_checked_there() -> None:
    built(code("ptr align 64 %x"), [x], y.data, results=[y])
    with pytest.raises(CompileError, match="y is promised at one of 64"):
        built(code("ptr align 128 %x"), [x], y.data, results=[y])
    k = Scalar("k", "int64")
    wide = Tensor("wide", (n,), "float32", align=64)
    fn = built(code("ptr align 32 %x"), [wide, k], wide.data.byte_offset(k.value))
    fn(memory[:4], 32)
    with pytest.raises(ValueError, match=r"wide\.data\.byte_offset\(k\) is not aligned to 32"):
        fn(memory[:4], 16)


def test_alignments_of_other_addresses() -> None:
    built(code("ptr align 16 %x"), [], Reference(Struct([cast(1, "int32")], align=16)))
    built(code("ptr align 16 %x"), [], NULL)
    with pytest.raises(CompileError, match="align 16"):
        built(code("ptr align 16 %x"), [], Reference(cast(1, "int32")))
    p = Pointer("p", "float32", align=16)
    built(code("ptr align 16 %x"), [p], p)
    with pytest.raises(CompileError, match="p is promised at one of 16"):
        built(code("ptr align 32 %x"), [p], p)


# ---- nonnull, dereferenceable, range ----


def test_no_null_pointer_where_none_is_taken() -> None:
    source, p = code("ptr nonnull %x"), Pointer("p")
    with pytest.raises(CompileError, match=r"takes no null pointer as argument #0 of f"):
        built(source, [], NULL)
    with pytest.raises(ValueError, match="p is null"):
        built(source, [p], p)(None)
    maybe = Optional("maybe", Tensor("inner", (n,), "float32"))
    fn = built(source, [maybe], maybe.item.data)
    fn(memory[:3])
    with pytest.raises(ValueError, match="inner is null"):
        fn(None)


def test_an_empty_array_is_somewhere() -> None:
    source = code("ptr nonnull %x")
    torch = pytest.importorskip("torch", reason="torch is not installed")
    built(source, [x], x.data)(torch.empty(0))


def test_bytes_that_can_be_read_are_there() -> None:
    source = code("ptr dereferenceable(64) %x")
    fn = built(source, [x], x.data)
    fn(memory[:16])
    for count in (15, 0):
        with pytest.raises(ValueError, match=f"x has {4 * count} bytes, but .* 64"):
            fn(memory[:count])
    fn = built(source, [x], x.data.byte_offset(8))
    fn(memory[:18])
    with pytest.raises(ValueError, match="x has 60 bytes"):
        fn(memory[:17])


def test_sizes_that_are_known_are_compared_by_the_build() -> None:
    source, known = code("ptr dereferenceable(64) %x"), Tensor("known", (4, 4), "float32")
    built(source, [known], known.data)
    with pytest.raises(CompileError, match=r"64 bytes \(dereferenceable\), but known has 60"):
        built(source, [known], known.data.byte_offset(4))
    with pytest.raises(CompileError, match=r"argument #0 of f has 8"):
        built(code("ptr dereferenceable(16) %x"), [], Reference(cast(1, "int64")))


def test_what_may_be_null_may_be_left_out() -> None:
    maybe = Optional("maybe", Tensor("inner", (n,), "float32"))
    fn = built(code("ptr dereferenceable_or_null(64) %x"), [maybe], maybe.item.data)
    fn(None)
    fn(memory[:16])
    with pytest.raises(ValueError, match="inner has 8 bytes"):
        fn(memory[:2])


CALLEE = f"""
define internal void @g(ptr noalias %dst, ptr %src) noinline {{{SHIFTED}
  ret void
}}
define internal void @"deeper one"(i32 %k, ptr %src, ptr %dst) noinline {{
  %q = getelementptr i8, ptr %dst, i64 0
  call void @g(ptr %q, ptr %src)
  ret void
}}
define internal void @free(ptr %dst, ptr %src) noinline {{{SHIFTED}
  ret void
}}
declare void @far(ptr noalias, ptr)
"""


def calling(*lines: str) -> HostCode:
    body = "\n".join(lines)
    return HostCode.from_llvm(
        f"{CALLEE}define void @f(ptr %a, ptr %b, ptr %c) {{\n{body}\n  ret void\n}}\n"
    )


@pytest.mark.parametrize(
    "lines",
    [
        ["call void @g(ptr %a, ptr %b)"],
        ["call fastcc void @g(ptr nonnull %b, ptr align 4 %a)"],
        ["%p = getelementptr float, ptr %a, i64 1", "tail call void @g(ptr %p, ptr %b)"],
        ['call void @"deeper one"(i32 7, ptr %a, ptr %b)'],
        ["call void @free(ptr noalias %a, ptr %b)"],
    ],
)
def test_what_is_apart_for_a_function_that_is_called_is_checked(lines: list[str]) -> None:
    fn = built(calling(*lines), [x, y, w], x.data, y.data, w.data)
    assert fn.notes["assumes"] == ["x shares no memory with y"]
    other = np.zeros(4, np.float32)
    fn(memory[:4], memory[4:8], memory[4:8])
    fn(memory[:4], other, memory[:4])
    with pytest.raises(ValueError, match=r"x and y overlap in memory.*\(noalias\)"):
        fn(memory[:4], memory[1:5], other)


@pytest.mark.parametrize(
    "lines",
    [
        ["call void @free(ptr %a, ptr %b)"],
        ["call void @g(ptr %a, ptr %a)"],
        ["%s = alloca [4 x float]", "call void @g(ptr %a, ptr %s)"],
    ],
)
def test_what_a_function_that_is_called_does_not_promise_is_not_checked(lines: list[str]) -> None:
    fn = built(calling(*lines), [x, y, w], x.data, y.data, w.data)
    assert "assumes" not in fn.notes
    fn(memory[:4], memory[:4], memory[1:5])


def test_what_is_aligned_for_a_function_that_is_called_is_compared() -> None:
    source = HostCode.from_llvm(
        "define internal void @g(ptr align 32 %p) noinline {\nstore float 1.0, ptr %p, align 4\n"
        "ret void\n}\ndefine void @f(ptr %a) {\ncall void @g(ptr %a)\nret void\n}\n"
    )
    with pytest.raises(CompileError, match="multiple of 32 bytes .*x is promised at one of 4"):
        built(source, [x], x.data)


@pytest.mark.parametrize(
    ("dtype", "limits", "said", "good", "bad"),
    [
        ("uint32", "i32 0, -1", r"\[0, 4294967295\)", 4294967294, 4294967295),
        ("uint8", "i8 100, -56", r"\[100, 200\)", 199, 200),
        ("uint8", "i8 -2, 10", r"\[0, 10\) or \[254, 256\)", 255, 253),
        ("int8", "i8 0, -1", r"\[-128, -1\) or \[0, 128\)", -128, -1),
        ("uint64", "i64 1, 0", r"\[1, 18446744073709551616\)", 18446744073709551615, 0),
        ("uint64", "i64 0, -1", r"\[0, 18446744073709551615\)", 5, 18446744073709551615),
    ],
)
def test_a_range_is_shown_as_the_dtype_has_its_numbers(
    dtype: str, limits: str, said: str, good: int, bad: int
) -> None:
    k = Scalar("k", dtype)
    fn = built(code(f"{limits.split()[0]} range({limits}) %k"), [k], k)
    assert fn.notes["assumes"] == [f"k is in {said}".replace("\\", "")]
    fn(good)
    with pytest.raises(ValueError, match=rf"k must be in {said} for .*but got {bad}$"):
        fn(bad)


def test_numbers_lie_in_their_range() -> None:
    k = Scalar("k", "int32")
    fn = built(code("i32 range(i32 -2, 10) %k"), [k], k)
    for right in (-2, 0, 9):
        fn(right)
    for wrong in (-3, 10, 1 << 30):
        with pytest.raises(ValueError, match=rf"k must be in \[-2, 10\).*got {wrong}"):
            fn(wrong)


def test_a_bool_lies_in_its_range() -> None:
    k = Scalar("k", "bool")
    fn = built(code("i1 zeroext range(i1 0, 1) %k"), [k], k)
    fn(False)
    with pytest.raises(ValueError, match="k must be in"):
        fn(True)


def test_all_that_calls_check_stands_in_the_notes_and_the_documentation() -> None:
    k, a, p = Scalar("k", "int32"), Scalar("a", "float32"), Pointer("p")
    wide = Tensor("wide", (n,), "float32", align=64)
    source = code(
        "ptr nonnull %p, i32 range(i32 0, 10) %k, float nofpclass(nan ninf) %a, "
        "ptr dereferenceable(32) %x, ptr dereferenceable_or_null(32) %y, ptr align 32 %z"
    )
    at = wide.data.byte_offset(n)
    fn = built(source, [p, k, a, x, wide], p, k, a, x.data, x.data.byte_offset(8), at)
    assert fn.notes["assumes"] == [
        "wide is 64-byte aligned",
        "p is not null",
        "k is in [0, 10)",
        "a is not NaN",
        "a is not -inf",
        "x has 32 bytes",
        "x.data.byte_offset(8) has 32 bytes, or is null",
        "wide.data.byte_offset(n) is 32-byte aligned",
    ]
    assert fn.__doc__ is not None and "k is in [0, 10)" in fn.__doc__


def test_what_the_specs_say_already_is_not_said_again() -> None:
    known = Tensor("known", (16,), "float32")
    assert built(code("ptr nonnull dereferenceable(64) %x"), [known], known.data).notes == {}


@pytest.mark.parametrize(
    ("way", "right", "wrong"), [("signext", "int", "uint"), ("zeroext", "uint", "int")]
)
@pytest.mark.parametrize("bits", [8, 16])
def test_an_integer_has_the_sign_that_it_is_extended_with(
    way: str, right: str, wrong: str, bits: int
) -> None:
    source = code(f"i{bits} {way} %k")
    k = Scalar("k", f"{right}{bits}")
    built(source, [k], k)
    bad = Scalar("k", f"{wrong}{bits}")
    with pytest.raises(CompileError, match=rf"argument #0 of f as an integer with .* \({way}\)"):
        built(source, [bad], bad)
    built(code(f"i{bits} %k"), [bad], bad)


# ---- the processor ----


def needing(features: str, cpu: str = "") -> HostCode:
    said = f'"target-cpu"="{cpu}" "target-features"="{features}"' if cpu else ""
    return code("ptr %x", attributes=said or f'"target-features"="{features}"')


def exported(source: HostCode, path: Path) -> Any:
    fn = built(source, [x], x.data)
    fn.export_to_c(str(path))
    return path


@pytest.mark.skipif(not targets.host().triple.startswith("x86_64"), reason="names x86-64's")
def test_what_the_cpu_must_have_is_in_the_file(tmp_path: Path, monkeypatch: Any) -> None:
    path = exported(needing("+sse4.2,+cx8,-avx", "x86-64-v2"), tmp_path / "s.o")
    fe.runtime.load_module(str(path)).s(memory[:3])
    monkeypatch.setattr(cpus, "host_features", lambda architecture: frozenset({"sse3"}))
    with pytest.raises(ObjectFileError, match="needs cx16, popcnt, sahf, sse4.1, sse4.2, ssse3"):
        fe.runtime.load_module(str(path))


@pytest.mark.skipif(not targets.host().triple.startswith("x86_64"), reason="names x86-64's")
def test_a_cpu_without_it_is_refused_before_anything_runs(monkeypatch: Any) -> None:
    host = targets.host()
    words = host.features.replace("+sse4.2", "-sse4.2")
    monkeypatch.setattr(targets, "host", lambda: dataclasses.replace(host, features=words))
    with pytest.raises(CompileError, match=r"s has LLVM IR that needs sse4.2, which this machine"):
        built(needing("+sse4.2"), [x], x.data)


def test_a_cpu_alone_does_not_say_what_it_has() -> None:
    with pytest.raises(CompileError, match="is for the CPU znver3, and does not say"):
        code("ptr %x", attributes='"target-cpu"="znver3"')
    code("ptr %x", attributes='"target-cpu"="generic"')


# ---- memory that nobody has written ----

ADDED = """
  %a = load float, ptr %dst
  %b = load float, ptr %src
  %sum = fadd float %a, %b
  store float %sum, ptr %dst
"""


def test_a_result_that_is_read_first_is_a_warning() -> None:
    source = code("ptr %dst, ptr %src", ADDED)
    with pytest.warns(compiler.BuildWarning, match="f reads y before it writes to it"):
        fn = built(source, [x], y.data, x.data, results=[y])
    assert len(fn.notes["remarks"]) == 1


@pytest.mark.filterwarnings("error")
def test_what_another_call_may_have_written_is_none() -> None:
    source = code("ptr %dst, ptr %src", ADDED)
    built(source, [y, x], y.data, x.data)
    built(code("ptr %dst, ptr %src", SHIFTED), [x], y.data, x.data, results=[y])
    steps = [
        CFunction("memcpy", [y.data, x.data, x.nbytes]),
        CFunction("f", [y.data, x.data], code=source),
    ]
    compiler.build(Signature("s", [x]), Sequence(steps), results=[y])


# ---- numbers that nobody gets ----

WRITES = "  store i32 7, ptr %x"
READS = "  %a = load i32, ptr %x"


def test_what_is_written_behind_an_out_comes_back() -> None:
    info = Tensor("info", (), "int32")
    assert np.from_dlpack(built(code("ptr %x", WRITES), [], info.data, results=[info])()) == 7
    number = Reference(cast(0, "int32"), discards=True)
    assert built(code("ptr %x", WRITES), [], number)() is None
    with pytest.raises(CompileError, match="f may write through argument #0, a Reference"):
        built(code("ptr %x", WRITES), [], Reference(cast(0, "int32")))


LOST: list[tuple[Any, str]] = [
    (Reference(cast(0, "int32")), r"argument #1, a Ref.*\n.*conventions.Out\('int32'\), which beg"),
    (Reference(5), r"conventions.Out\('int64'\)"),
    (Reference(Out("uint8", "o", initial=1).value), "give it the Out 'o' itself"),
    (Reference(Out("float32", "o").value), "give it the Out 'o' itself"),
    (Reference(NULL), r"conventions.Out\('pointer'\)"),
    (Reference(x.data), r"conventions.Out\('pointer'\)"),
    (Reference(CString("text")), r"conventions.Out\(conventions.CString\)"),
    (Reference(Struct([cast(0, "int32")])), r"a field that it changes is .*Out\(dtype\).field"),
    (Reference(Array([cast(0, "int32")])), r"specs.Tensor\('name', \(length,\), dtype\)"),
    (Struct([Reference(cast(0, "int32"))]), "through a field of argument #1, a Reference"),
    (Reference(Struct([Out("int32").field, Reference(5)])), "through a field of argument #1"),
]


@pytest.mark.parametrize(("given", "said"), LOST)
def test_what_a_library_writes_is_not_lost_without_a_word(given: Any, said: str) -> None:
    call = CFunction("frexp", [cast(8.0, "float64"), given])
    with pytest.raises(CompileError, match=f"(?s)s: frexp may write .*{said}") as caught:
        compiler.build(Signature("s", [x]), call)
    assert "reads_only=True says that it writes nothing there" in str(caught.value)


@pytest.mark.filterwarnings("error")
def test_a_reference_says_whether_somebody_writes() -> None:
    eight, inner = cast(8.0, "float64"), Reference(cast(0, "int32"))
    for said in (
        Reference(inner.value, reads_only=True),
        Reference(inner.value, discards=True),
        Reference(Struct([inner]), discards=True),
        Reference(Struct([Out("int32").field, Reference(5, reads_only=True)])),
    ):
        assert compiler.build(Signature("s", []), CFunction("frexp", [eight, said])).notes == {}
    assert built(code("ptr %x", READS), [], inner).notes == {}
    with pytest.raises(TypeError, match="reads_only must be True or False"):
        Reference(cast(0, "int32"), reads_only=1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="discards must be True or False"):
        Reference(cast(0, "int32"), discards=None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="leave one of them out"):
        Reference(cast(0, "int32"), reads_only=True, discards=True)


@pytest.mark.filterwarnings("error")
def test_an_int_that_nobody_gets_is_a_note() -> None:
    source = HostCode.from_llvm("define i32 @f() {\n  ret i32 -1\n}")
    (remark,) = built(source, []).notes["remarks"]
    assert remark.startswith("f returns i32, which nobody gets: returns='status'")
    call = CFunction("f", [], returns="int32", code=source)
    assert compiler.build(Signature("s", []), call).notes == {}
