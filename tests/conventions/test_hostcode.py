"""Code that others made as a part of functions: objects, LLVM IR, bitcode, libraries."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from bare_python import run_bare
from c_objects import c_object

import ferrule as fe
from ferrule import compiler, specs
from ferrule.compiler import targets
from ferrule.compiler.conventions import CFunction, HostCode, Sequence
from ferrule.compiler.errors import CompileError
from ferrule.compiler.hostcode.embedding import embed
from ferrule.compiler.support.library import as_module_assembly
from ferrule.runtime import Function
from ferrule.runtime.binaries.objectfile import read_object
from ferrule.specs import Signature
from ferrule.specs.params import Scalar, Tensor

K = Scalar("i", "int32")
X = Scalar("x", "float64")
FLAG, HALF = Scalar("flag", "bool"), Scalar("half", "float16")


def built(code: HostCode, name: str, *params: Any, returns: str | None = "int32") -> Function:
    """A function of the same name and parameters as one of the code."""
    call = CFunction(name, params, returns=returns, code=code)
    return compiler.build(Signature(name, params), call)


SOURCE = """
static int counter;
static const char* const names[] = {"zero", "one", "two"};
int data = 5;
extern double exp(double);
extern char** environ;
static double table[4] = {1, 2, 3, 4};
int bump(void) { return ++counter; }
int add_to(int k) { data += k; return data; }
const char* name_of(int i) { return names[i % 3]; }
int (*pointers[2])(void) = {bump, bump};
int through(int i) { return pointers[i](); }
double choose(int k) {
    switch (k) {
    case 0: return 3.5;
    case 1: return 7.25;
    case 2: return 1;
    case 3: return 9;
    case 4: return 11;
    default: return table[k & 3];
    }
}
double exponential(double x) { return exp(x) + data; }
int has_environment(void) { return environ != 0; }
"""


@cache
def c_code(*flags: str) -> HostCode:
    return HostCode.from_object(c_object(SOURCE, *flags))


@pytest.mark.needs_cc
@pytest.mark.parametrize("flags", [(), ("-O0",), ("-O3", "-g"), ("-ffunction-sections",)])
def test_an_object_keeps_its_code_constants_and_data(flags: tuple[str, ...]) -> None:
    code = c_code(*flags)
    bump, add_to = built(code, "bump"), built(code, "add_to", K)
    assert [bump(), bump(), built(code, "through", K)(1)] == [1, 2, 1], "data of its own"
    assert [add_to(3), add_to(4)] == [8, 12]
    chosen = built(code, "choose", K, returns="float64")
    assert [chosen(k) for k in range(7)] == [3.5, 7.25, 1, 9, 11, 2, 3]
    assert built(code, "exponential", X, returns="float64")(0.0) == 6
    assert built(code, "has_environment")() == 1
    name_of = built(code, "name_of", K, returns="pointer")
    assert ctypes.string_at(name_of(1).value) == b"one"


@pytest.mark.needs_cc
def test_an_object_of_the_large_code_model() -> None:
    if "x86_64" not in llvm.get_process_triple():
        pytest.skip("of x86-64")
    source = """
static int counter, *place = &counter;
int shown = 40;
extern char** environ;
double exp(double);
int bump(void) { return ++*place; }
int through(void) { return bump() + shown + (environ == 0); }
double exponential(double x) { return exp(x) + exp(x); }
"""
    code = HostCode.from_object(c_object(source, "-mcmodel=large"))
    assert [built(code, name)() for name in ("bump", "through")] == [1, 41]
    assert built(code, "exponential", X, returns="float64")(0.0) == 2


@pytest.mark.needs_cc
def test_the_symbols_that_an_object_needs_are_listed_with_their_library() -> None:
    found = {link.symbol: link.library for link in c_code().links}
    assert found == {"exp": "libm.so.6", "environ": "libc.so.6"}


@pytest.mark.needs_cc
def test_nothing_of_an_embedded_object_is_visible(tmp_path: Path) -> None:
    fn = built(c_code(), "bump")
    fn.export_to_c(tmp_path / "bump.o")
    shown = read_object((tmp_path / "bump.o").read_bytes())
    assert {name for name in shown.defined if not name.startswith("__tvm_ffi_")} == set()
    assert {"exp", "environ"} <= set(shown.undefined)


@pytest.mark.needs_cc
@pytest.mark.parametrize("suffix", [".s", ".ll", ".bc"])
def test_every_form_of_export_carries_the_object(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"bump{suffix}"
    built(c_code(), "bump").export_to_c(path)
    assert b"ferrule_code_" in path.read_bytes()


@pytest.mark.needs_cc
def test_a_library_with_an_object_runs_without_ferrule(tmp_path: Path) -> None:
    functions = [built(c_code(), "bump"), built(c_code(), "exponential", X, returns="float64")]
    fe.export_library(tmp_path / "lib.so", functions)
    said = run_bare(
        tmp_path / "lib.so", "print(module.bump(), module.bump(), module.exponential(0.0))"
    )
    assert said == "1 2 6.0\n"


@pytest.mark.needs_cc
def test_a_library_names_those_that_it_needs(tmp_path: Path) -> None:
    """Whoever loads it need not have loaded them before."""
    try:
        code = HostCode.from_library("libz.so.1")
    except CompileError as error:
        pytest.skip(str(error))
    start = Scalar("start", "uint64")
    fn = compiler.build(
        Signature("crc32", [start]),
        CFunction("crc32", [start, fe.compiler.conventions.NULL, 0], returns="uint64", code=code),
    )
    if shutil.which("readelf") is None:
        pytest.skip("needs readelf")
    try:
        fn.export_library(tmp_path / "lib.so")
    except fe.runtime.LinkError as error:
        pytest.skip(f"this machine's linker does not find it: {error}")
    read = subprocess.run(
        ["readelf", "-d", tmp_path / "lib.so"], capture_output=True, text=True, check=True
    )
    assert "[libz.so.1]" in read.stdout
    assert run_bare(tmp_path / "lib.so", "print(module.crc32(7))") == "0\n"


@pytest.mark.needs_cc
def test_an_exported_object_is_loaded_again(tmp_path: Path) -> None:
    built(c_code(), "exponential", X, returns="float64").export_to_c(tmp_path / "exponential.o")
    assert fe.runtime.load_module(tmp_path / "exponential.o").exponential(0.0) == 6


@pytest.mark.needs_cc
def test_another_export_name_keeps_the_code(tmp_path: Path) -> None:
    built(c_code(), "add_to", K).export_library(tmp_path / "lib.so", "other")
    assert run_bare(tmp_path / "lib.so", "print(module.other(2))") == "7\n"


@pytest.mark.needs_cc
def test_one_object_behind_several_calls_is_there_once() -> None:
    code = c_code()
    steps = [CFunction("bump", code=code), CFunction("bump", code=code, returns="int32")]
    fn = compiler.build(Signature("twice", []), Sequence(steps))
    assert [fn(), fn()] == [2, 4]


@pytest.mark.needs_cc
def test_another_machine_gets_no_object(tmp_path: Path) -> None:
    call = CFunction("bump", code=c_code())
    fn = compiler.build(Signature("bump", []), call, options="--host-target riscv64-linux-gnu")
    with pytest.raises(CompileError, match="an object for .* cannot be exported for riscv64"):
        fn.export_to_c(tmp_path / "bump.o")


CANNOT = {
    "constructor": ("int g; __attribute__((constructor)) void f(void) { g = 1; }", (), "runs when"),
    "thread-local": ("_Thread_local int x; int f(void) { return x; }", (), "thread-local"),
    "common": ("int x; int f(void) { return x; }", ("-fcommon",), "the variable 'x' is common"),
    "nowhere": ("void no_such(void); void f(void) { no_such(); }", (), "needs no_such, which"),
}


@pytest.mark.needs_cc
@pytest.mark.parametrize("case", CANNOT)
def test_objects_that_only_a_linker_can_use(case: str) -> None:
    source, flags, match = CANNOT[case]
    with pytest.raises(CompileError, match=match):
        HostCode.from_object(c_object(source, *flags))


LOADED = """
_Thread_local int counter = 3;
extern _Thread_local int elsewhere;
static _Thread_local char room[10];
static int one(void) { return 1; }
static int (*choose(void))(void) { return one; }
int chosen(void) __attribute__((ifunc("choose")));
int next(void) { return ++counter; }
int other(void) { return elsewhere; }
char *buffer(void) { return room; }
int both(int x) { return x + next(); }
int by_choice(int x) { return x + chosen(); }
int plain(int x) { return x + 1; }
"""


@pytest.mark.needs_cc
def test_what_only_a_loader_can_do_is_refused_where_a_function_reaches_it(tmp_path: Path) -> None:
    data = c_object(LOADED, "-ffunction-sections", "-fdata-sections")
    code = HostCode.from_object(data, functions=["plain"])
    assert built(code, "plain", K)(4) == 5 and not code.links
    cases = dict.fromkeys(("next", "other", "buffer", "both"), "thread-local data")
    for name, said in {**cases, "by_choice": "ifunc"}.items():
        with pytest.raises(CompileError, match=rf"(?s){said}.*functions=\['run'\] leaves it out"):
            HostCode.from_object(data, functions=[name])
    (tmp_path / "loaded.o").write_bytes(data)
    subprocess.run(["ar", "rc", "libloaded.a", "loaded.o"], cwd=tmp_path, check=True)
    two = c_object("int two(int x) { return x + 2; }")
    whole = HostCode.from_object([two, tmp_path / "libloaded.a"])
    assert built(whole, "two", K)(4) == 6
    with pytest.raises(CompileError, match="it has thread-local data"):
        built(whole, "plain", K)


def test_ir_is_refused_where_a_function_reaches_what_cannot_be_embedded() -> None:
    text = """
    @x = thread_local global i32 0
    @table = constant [1 x ptr] [ptr @next]
    @more = global i32 5
    @odd = alias i32, ptr @more
    declare i32 @__gxx_personality_v0(...)
    define i32 @next() {
      %v = load i32, ptr @x
      ret i32 %v
    }
    define i32 @indirect() {
      %f = load ptr, ptr @table
      %r = call i32 %f()
      ret i32 %r
    }
    define i32 @by_plain(i32 %x) personality ptr @__gxx_personality_v0 {
      %r = call i32 @plain(i32 %x)
      ret i32 %r
    }
    define i32 @by_alias() {
      %m = load i32, ptr @odd
      ret i32 %m
    }
    define i32 @plain(i32 %x) {
      %m = load i32, ptr @more
      %r = add i32 %x, %m
      ret i32 %r
    }
    """
    code = HostCode.from_llvm(text)
    f = built(code, "plain", K)
    assert f(3) == 8 and not code.links
    refused = {
        "next": "thread-local",
        "indirect": "thread-local",
        "by_alias": "aliases",
        "by_plain": "exc",
    }
    for name, said in refused.items():
        with pytest.raises(CompileError, match=f"the function {name} cannot be embedded: .*{said}"):
            built(code, name)
    with pytest.raises(CompileError, match="has no function missing; there are: plain"):
        built(code, "missing")


@pytest.mark.needs_cc
def test_an_object_that_cannot_be_moved() -> None:
    if "x86_64" not in llvm.get_process_triple():
        pytest.skip("of x86-64")
    data = c_object("extern int x; int f(void) { return x; }", "-fno-pic", "-fno-pie")
    with pytest.raises(CompileError, match=r"position-independent.*\n.*hint: compile it with"):
        HostCode.from_object(data)


@pytest.mark.needs_cc
def test_a_damaged_object_is_refused() -> None:
    data = c_object(SOURCE)
    for cut in (0, 3, 64, len(data) // 2, len(data) - 8):
        with pytest.raises(CompileError, match="an object file cannot be embedded"):
            HostCode.from_object(data[:cut])


@pytest.mark.needs_cc
def test_any_byte_of_an_object_may_be_wrong() -> None:
    """What is read becomes assembly that LLVM takes, or an error."""
    data = c_object(SOURCE)
    machine = targets.machine(targets.host())
    taken = 0
    for position in range(0, len(data), 11):
        changed = bytearray(data)
        changed[position] ^= 0x5A
        try:
            embedded = embed(bytes(changed), "a damaged object")
        except CompileError:
            continue
        with llvm.parse_assembly(as_module_assembly(embedded.assembly)) as module:
            assert machine.emit_object(module)
        taken += 1
    assert taken > 20, "bytes of the code itself are nobody's to judge"


IR = """
@state = global i32 0
@text = constant [12 x i8] c", comdat, x\\00"
declare float @llvm.exp.f32(float)
declare double @cbrt(double)
$more = comdat any
define linkonce_odr i32 @more(i32 %x) comdat {
  %y = add i32 %x, 1
  ret i32 %y
}
define i32 @bump() {
  %a = load i32, ptr @state
  %b = call i32 @more(i32 %a)
  store i32 %b, ptr @state
  ret i32 %b
}
define double @root(double %x) {
  %y = call double @cbrt(double %x)
  ret double %y
}
define i1 @flip(i1 %x) {
  %y = xor i1 %x, true
  ret i1 %y
}
define half @twice(half %x) {
  %y = fadd half %x, %x
  ret half %y
}
define bfloat @same(bfloat %x) {
  ret bfloat %x
}
define {i32, i32} @pair() {
  ret {i32, i32} zeroinitializer
}
"""


@cache
def ir_code() -> HostCode:
    return HostCode.from_llvm(IR)


def test_ir_is_a_part_of_the_function() -> None:
    code = ir_code()
    bump = built(code, "bump")
    assert [bump(), bump(), built(code, "bump")()] == [1, 2, 1]
    assert built(code, "root", X, returns="float64")(27.0) == pytest.approx(3)


def test_flags_and_halves_of_ir() -> None:
    flip = built(ir_code(), "flip", FLAG, returns="bool")
    assert [flip(True), flip(False)] == [False, True]
    assert built(ir_code(), "twice", HALF, returns="float16")(1.25) == 2.5
    brain = Scalar("brain", "bfloat16")
    assert built(ir_code(), "same", brain, returns="bfloat16")(1.5) == 1.5


def test_two_functions_of_one_module_share_its_data() -> None:
    steps = [CFunction("bump", code=ir_code()), CFunction("bump", code=ir_code(), returns="int32")]
    fn = compiler.build(Signature("twice", []), Sequence(steps))
    assert [fn(), fn()] == [2, 4]


@pytest.mark.needs_cc
def test_names_of_ir_never_clash(tmp_path: Path) -> None:
    other = HostCode.from_llvm("define i32 @bump() {\n  ret i32 40\n}\n")
    steps = [CFunction("bump", code=ir_code()), CFunction("bump", code=other, returns="int32")]
    both = compiler.build(Signature("both", []), Sequence(steps))
    assert both() == 40
    fe.export_library(tmp_path / "lib.so", [both, built(ir_code(), "bump")])
    said = run_bare(tmp_path / "lib.so", "print(module.both(), module.bump())")
    assert said == "40 1\n"


@pytest.mark.needs_cc
def test_compiled_code_calls_what_was_built_of_other_code(tmp_path: Path) -> None:
    source = "static int all; int count(int k) { return all += k; }"
    text = "define i32 @count(i32 %k) {\n  %r = mul i32 %k, %k\n  ret i32 %r\n}\n"
    codes = (HostCode.from_object(c_object(source)), HostCode.from_llvm(text))
    summed, squared = (built(code, "count", K) for code in codes)

    @fe.jit
    def both(k: fe.Int32) -> fe.Int32:
        return summed(k) * 100 + squared(k)

    fn = fe.compile(both, fe.Int32(1))
    assert [fn(2), fn(3)] == [204, 509]
    fn.export_to_c(tmp_path / "both.o")
    assert fe.runtime.load_module(tmp_path / "both.o").both(4) == 416


@pytest.mark.needs_cc
def test_candidates_of_an_overload_share_an_object() -> None:
    source = """
static int all;
int count(int k) { return all += k; }
double more(double x) { return x + all; }
"""
    code = HostCode.from_object(c_object(source))
    calls = [("count", K, "int32"), ("more", X, "float64")]
    functions = [built(code, name, param, returns=kind) for name, param, kind in calls]
    either = fe.overload(functions, name="either")
    assert [either(3), either(0.5)] == [3, 3.5]


def test_ir_without_a_triple_is_exported_for_another_platform(tmp_path: Path) -> None:
    call = CFunction("bump", returns="int32", code=ir_code())
    fn = compiler.build(Signature("bump", []), call, options="--host-target riscv64-linux-gnu")
    fn.export_to_c(tmp_path / "bump.o")
    assert read_object((tmp_path / "bump.o").read_bytes()).machine.name == "RISCV64"


@pytest.mark.parametrize("is_portable", [False, True])
def test_ir_that_another_platform_does_not_have(tmp_path: Path, is_portable: bool) -> None:
    if "x86_64" not in llvm.get_process_triple():
        pytest.skip("of x86-64")
    triple = "" if is_portable else f'target triple = "{llvm.get_process_triple()}"\n'
    text = f"""{triple}
declare void @llvm.x86.sse2.pause()
define void @pause() {{
  call void @llvm.x86.sse2.pause()
  ret void
}}
"""
    call = CFunction("pause", code=HostCode.from_llvm(text))
    fn = compiler.build(Signature("pause", []), call, options="--host-target riscv64-linux-gnu")
    said = "needs|cannot be compiled by LLVM" if is_portable else "cannot be exported for riscv64"
    with pytest.raises(CompileError, match=said):
        fn.export_to_c(tmp_path / "pause.o")


def test_bitcode_and_files_of_either() -> None:
    bitcode = llvm.parse_assembly(IR).as_bitcode()
    assert built(HostCode.from_llvm(bitcode), "bump")() == 1


def test_files_by_their_paths(tmp_path: Path) -> None:
    path = tmp_path / "code.ll"
    path.write_text(IR)
    assert built(HostCode.from_llvm(path), "bump")() == 1
    path.write_text("define i32 @f( {\n")
    with pytest.raises(CompileError, match=r"code\.ll cannot be read by LLVM [\d.]+: .*"):
        HostCode.from_llvm(path)
    with pytest.raises(FileNotFoundError):
        HostCode.from_object(tmp_path / "missing.o")


BAD_IR = {
    "hello\n": "cannot be read by LLVM .*expected top-level entity",
    "define i32 @f() {\n  ret i32 %x\n}\n": "use of undefined value '%x'",
    "define i32 @f() {\n  %a = add i32 %b, 1\n  %b = add i32 %a, 1\n  ret i32 %a\n}\n": "dominate",
    'module asm "foo bar"\n': "cannot be compiled by LLVM .*foo",
    "declare float @llvm.nvvm.ex2.approx.f(float)\ndefine float @f(float %x) {\n"
    "  %y = call float @llvm.nvvm.ex2.approx.f(float %x)\n  ret float %y\n}\n": "Cannot select",
    'define void @f() gc "nothing" {\n  ret void\n}\n': "unsupported GC",
    'target triple = "riscv64-linux-gnu"\n': "is for riscv64-linux-gnu",
    'target datalayout = "E-p:32:32"\n': "data layout",
    "@x = thread_local global i32 0\ndefine ptr @f() {\n  ret ptr @x\n}\n": "thread-local",
    "@x = global i32 0\n@y = alias i32, ptr @x\n": "aliases",
    "declare void @no_such()\ndefine void @f() {\n  call void @no_such()\n  ret void\n}\n": (
        "needs no_such, which is neither in the libraries that were named nor in this process"
    ),
    "declare void @llvm.none()\ndefine void @f() {\n  call void @llvm.none()\n  ret void\n}\n": (
        "needs llvm.none"
    ),
    "@llvm.global_ctors = appending global [0 x { i32, ptr, ptr }] zeroinitializer\n": "runs when",
}


@pytest.mark.parametrize("text", BAD_IR)
def test_bad_ir_is_an_error_and_not_the_end(text: str) -> None:
    with pytest.raises(CompileError, match=f"(?s){BAD_IR[text]}"):
        HostCode.from_llvm(text)


def test_damaged_bitcode_is_an_error_and_not_the_end() -> None:
    bitcode = llvm.parse_assembly(IR).as_bitcode()
    for cut in (4, 100, len(bitcode) // 2):
        with pytest.raises(CompileError, match=r"cannot be read by LLVM"):
            HostCode.from_llvm(bitcode[:cut])


def test_what_ir_takes_is_compared_with_the_call() -> None:
    with pytest.raises(CompileError, match=r"expected: double \(double\)\n.*note: the call is "):
        built(ir_code(), "root", K, returns="float64")
    with pytest.raises(CompileError, match="the function root of the code does not take"):
        built(ir_code(), "root", returns="float64")
    with pytest.raises(CompileError, match="pair returns {i32,i32}, which no C function does"):
        built(ir_code(), "pair", returns=None)


@pytest.mark.parametrize("kind", ["object", "ir"])
def test_a_function_that_is_not_there_names_those_that_are(kind: str) -> None:
    if kind == "object":
        if shutil.which("cc") is None:
            pytest.skip("needs a C compiler")
        code = c_code()
    else:
        code = ir_code()
    with pytest.raises(CompileError, match="has no function missing; there are: .*bump"):
        built(code, "missing")


@pytest.mark.needs_cc
def test_a_relative_path_is_that_of_the_folder_where_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also for what is kept: the same words in another folder are another library."""
    ir = "declare i32 @more(i32) define i32 @f(i32 %i) { %r = call i32 @more(i32 %i) ret i32 %r }"
    results = []
    for number in (1, 2):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "more.c").write_text(f"int more(int x) {{ return x + {number}; }}")
        monkeypatch.chdir(folder)
        command = ["cc", "-shared", "-fPIC", "-o", "libmore.so", "more.c"]
        subprocess.run(command, check=True, timeout=60)
        for code, name in (
            (HostCode.from_library("./libmore.so"), "more"),
            (HostCode.from_library(Path("libmore.so")), "more"),
            (HostCode.from_llvm(ir, libraries=["./libmore.so"]), "f"),
        ):
            results.append(built(code, name, K)(1))
    assert results == [2, 2, 2, 3, 3, 3]


def test_a_library_that_cannot_be_loaded() -> None:
    for wrong, hint in (
        ("nothing", "such as libz"),
        ("f.o", "from_object"),
        ("f.a", "from_object"),
    ):
        with pytest.raises(CompileError, match=f"(?s)cannot be loaded.*hint: .*{hint}"):
            HostCode.from_library(wrong)
    with pytest.raises(ValueError, match="path of a shared library, but got ''"):
        HostCode.from_library("")
    with pytest.raises(CompileError, match="the library libnothing.so cannot be loaded"):
        HostCode.from_library("libnothing.so")


def test_ir_that_runs_for_long_loops_is_optimised(tmp_path: Path) -> None:
    """It gets the passes of a body: the loop of a sum is vectorised."""
    n = specs.sym_int64()
    x = Tensor("x", (n,), "int32")
    text = """
define i32 @sum(ptr %x, i64 %n) {
entry:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %loop, label %end
loop:
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
  %s = phi i32 [ 0, %entry ], [ %t, %loop ]
  %p = getelementptr i32, ptr %x, i64 %i
  %v = load i32, ptr %p
  %t = add i32 %s, %v
  %j = add i64 %i, 1
  %more = icmp slt i64 %j, %n
  br i1 %more, label %loop, label %end
end:
  %r = phi i32 [ 0, %entry ], [ %t, %loop ]
  ret i32 %r
}
"""
    call = CFunction("sum", [x.data, n], returns="int32", code=HostCode.from_llvm(text))
    fn = compiler.build(Signature("sum", [x]), call)
    assert fn(np.arange(100, dtype=np.int32)) == 4950
    fn.export_to_c(tmp_path / "sum.ll")
    assert "<4 x i32>" in (tmp_path / "sum.ll").read_text()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (".version 8.0\n.target sm_80\n", "is PTX, not LLVM IR\n  hint: PTX is for fe.Device"),
        ("module {\n  func.func @f() { return }\n}\n", "is MLIR, not LLVM IR\n  hint: fe.front"),
        ("int f(int a)\n{ return a; }\n", "is a source, not LLVM IR\n  hint: fe.frontends.c.c"),
        ("\n", "what was given as LLVM IR is empty"),
    ],
)
def test_what_is_taken_for_llvm_ir(text: str, said: str) -> None:
    with pytest.raises(CompileError, match=said):
        HostCode.from_llvm(text)


def test_llvm_ir_with_words_of_other_languages_is_read() -> None:
    text = """
; int f(int a) {
@module = constant [9 x i8] c"module {\\0A"
define i32 @f(i32 %a) {
  ret i32 %a
}
"""
    assert "f" in HostCode.from_llvm(text).source.functions  # type: ignore[union-attr]


@pytest.mark.needs_cc
@pytest.mark.skipif(sys.platform != "linux", reason="needs the loader of Linux")
def test_the_names_of_a_library_are_compared(tmp_path: Path) -> None:
    """What C++ makes of a name, and one that is nearly right."""
    source, library = tmp_path / "names.c", tmp_path / "libnames.so"
    source.write_text("int _ZN2ns3addEi(int a) { return a; }\nint scale(int a) { return a; }\n")
    cc = os.environ.get("CC", "cc").split()
    subprocess.run([*cc, "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    code = HostCode.from_library(library)
    for name, said in (
        ("add", "C\\+\\+ calls it _ZN2ns3addEi"),
        ("scael", "did you mean scale"),
    ):
        with pytest.raises(CompileError, match=said):
            compiler.build(Signature("f", []), CFunction(name, code=code))
