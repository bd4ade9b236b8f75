"""Several modules as one code: texts of LLVM IR, objects and archives, device codes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from bare_python import run_bare
from c_objects import c_object
from cuda_device import FakeCuda
from gpu_functions import floats

import ferrule as fe
from ferrule import compiler, specs
from ferrule.compiler.conventions import CFunction, CudaLaunch, FirstOf, HostCode, Sequence
from ferrule.compiler.errors import CompileError
from ferrule.compiler.hostcode import trial
from ferrule.compiler.hostcode.child import __file__ as child_file
from ferrule.compiler.hostcode.worker import Ended, Worker, Workers
from ferrule.runtime import Function
from ferrule.runtime.binaries.archive import write_archive
from ferrule.specs import Signature
from ferrule.specs.params import Scalar, Tensor

K = Scalar("i", "int32")


def built(code: HostCode, name: str) -> Function:
    call = CFunction(name, [K], returns="int32", code=code)
    return compiler.build(Signature(name, [K]), call)


# ---- LLVM IR ----

FIRST = """
@count = internal global i32 0
declare i32 @second(i32)
define internal i32 @helper(i32 %k) {
  %n = load i32, ptr @count
  %m = add i32 %n, 1
  store i32 %m, ptr @count
  ret i32 %m
}
define i32 @first(i32 %k) {
  %a = call i32 @helper(i32 %k)
  %b = call i32 @second(i32 %k)
  %c = add i32 %a, %b
  ret i32 %c
}
"""
SECOND = """
@count = internal global i32 1000
define internal i32 @helper(i32 %k) {
  %n = load i32, ptr @count
  ret i32 %n
}
define i32 @second(i32 %k) {
  %a = call i32 @helper(i32 %k)
  %b = add i32 %a, %k
  ret i32 %b
}
"""


def test_texts_call_each_other_and_their_own_names_are_apart(tmp_path: Path) -> None:
    code = HostCode.from_llvm([FIRST, SECOND, SECOND])
    first, second = built(code, "first"), built(code, "second")
    assert [first(5), first(5), second(7)] == [1006, 1007, 1007]
    first.export_library(tmp_path / "first.so")
    assert run_bare(tmp_path / "first.so", "print(module.first(5))") == "1006\n"


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ("define i32 @first(i32 %k) {\n ret i32 0\n}\n", "of the list both define first"),
        ("define void @second(ptr %p) {\n ret void\n}\n", "declares second with another type"),
        ("define i32 @second(i32 %k) {\n ret i32\n}\n", "LLVM IR #1 of the list cannot be read"),
        ("", "LLVM IR #1 of the list is empty"),
        ('target triple = "riscv64-linux"\n@x = global i32 1\n', "#1 of the list is for riscv64"),
    ],
)
def test_texts_that_do_not_fit_are_named(other: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        HostCode.from_llvm([FIRST, other])


READS = """
@v = {} {}
define i32 @reads(i32 %i) {{
  %p = getelementptr i32, ptr {}@v, i32 %i
  %n = load i32, ptr {}%p
  ret i32 %n
}}
"""
SAME = "define i32 @g({}) {{\n ret i32 7\n}}\n"
CALLS = "declare {} i32 @g({})\ndefine i32 @reads(i32 %i) {{\n {}\n ret i32 %n\n}}\n"


@pytest.mark.parametrize(
    ("first", "other", "message"),
    [
        (("external global", "i64"), "@v = global i32 5", "i64 of 8 bytes.* i32 of 4 bytes"),
        (("common global", "[2 x i32] zeroinitializer"), "@v = global i32 5", "i32. of 8 bytes"),
        (("external thread_local global", "i32"), "@v = global i32 5", "i32 thread_local of 4"),
        (("external global", "i32, align 64"), "@v = global i32 5, align 4", "align 64, .*align 4"),
        (
            ("external global", "i32"),
            SAME.format("i32 %i").replace("@g", "@v"),
            r"a variable i32 .*, i32 \(i32\)",
        ),
    ],
)
def test_variables_have_what_others_take_for_granted(
    first: tuple[str, str], other: str, message: str
) -> None:
    with pytest.raises(CompileError, match=f"another type than LLVM IR #1 .*: .*{message}"):
        HostCode.from_llvm([READS.format(*first, "", ""), f"{other}\n"])


@pytest.mark.parametrize(
    ("convention", "declared", "call", "defined", "message"),
    [
        ("fastcc", "i32", "%n = call fastcc i32 @g(i32 %i)", "i32 %i", r"fastcc i32 \(i32\), i32"),
        ("", "ptr", "%n = call i32 @g(ptr null)", "ptr byval(i32) %p", r"#0 byval\(i32\)"),
        ("", "i8", "%n = call i32 @g(i8 -1)", "i8 signext %i", "#0 signext"),
        ("", "i64", "%n = call i32 @g(i64 1)", "i32 %i", r"i32 \(i64\), i32 \(i32\)"),
    ],
)
def test_functions_are_called_as_they_are_defined(
    convention: str, declared: str, call: str, defined: str, message: str
) -> None:
    caller = CALLS.format(convention, declared, call)
    # A definition that another may replace is one, too.
    for linkage in ("define i32", "define weak i32"):
        with pytest.raises(CompileError, match=f"another type than .*: .*{message}"):
            HostCode.from_llvm([caller, SAME.format(defined).replace("define i32", linkage)])


def test_what_is_larger_or_extended_for_nothing_fits() -> None:
    pair = '@v = global [2 x i32] [i32 4, i32 5]\n@text = constant [9 x i8] c", align 8"\n'
    reads = READS.format("external global", "[0 x i32]", "", "")
    assert built(HostCode.from_llvm([reads, pair]), "reads")(1) == 5
    commons = (
        READS.format("common global", f"[{n} x i32] zeroinitializer", "", "") for n in (1, 3)
    )
    one, three = commons
    three = three.replace("@reads", "@others")
    assert built(HostCode.from_llvm([one, three]), "others")(2) == 0
    caller = CALLS.format("", "i8 signext", "%n = call i32 @g(i8 signext 1)")
    assert built(HostCode.from_llvm([caller, SAME.format("i8 %i")]), "reads")(0) == 7


def test_a_text_behind_a_null_byte_is_not_forgotten() -> None:
    assert built(HostCode.from_llvm(SAME.format("i32 %i") + "\0"), "g")(0) == 7
    with pytest.raises(CompileError, match="the text goes on behind a null byte"):
        HostCode.from_llvm(SAME.format("i32 %i") + "\0@x = global i32 1")


def test_lists_of_nothing_and_of_something_else() -> None:
    for make in (HostCode.from_llvm, HostCode.from_object):
        with pytest.raises(ValueError, match="at least one code in the list"):
            make([])
        with pytest.raises(TypeError, match="#1 of the list, but got int"):
            make([b"", 3])  # type: ignore[list-item]


def test_the_same_text_again_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    code = HostCode.from_llvm(SECOND)
    monkeypatch.setattr(trial, "_answer", None)
    assert HostCode.from_llvm(SECOND) is code


@pytest.mark.needs_cc
def test_a_common_variable_of_an_object_is_named(tmp_path: Path) -> None:
    (tmp_path / "k.c").write_text("int tally;\nint f(int i) { return tally + i; }\n")
    command = ["gcc", "-fcommon", "-fPIC", "-c", "k.c", "-o", "k.o"]
    subprocess.run(command, cwd=tmp_path, check=True)
    with pytest.raises(CompileError, match="the variable 'tally' is common, .* -fno-common"):
        HostCode.from_object(tmp_path / "k.o")


# ---- hostile texts, and the process that gets them ----


def _loops(count: int) -> str:
    """A text that LLVM needs long for."""
    body = "\n".join(
        f"  %v{at} = call <64 x double> @llvm.sin.v64f64(<64 x double> %v{at - 1})"
        for at in range(1, count)
    )
    return (
        "declare <64 x double> @llvm.sin.v64f64(<64 x double>)\n"
        f"define void @f(ptr %x) {{\n  %v0 = load <64 x double>, ptr %x\n{body}\n"
        f"  store <64 x double> %v{count - 1}, ptr %x\n  ret void\n}}\n"
    )


def test_a_text_that_takes_too_long_is_refused_and_the_next_one_is_not() -> None:
    with pytest.raises(CompileError, match="not done after 1 seconds of the processor's time"):
        trial.tried_in_child([(_loops(3000).encode(), "the text")], "", seconds=1)
    assert "f" in trial.tried_in_child([(_loops(2).encode(), "the text")], "")["functions"]


def test_a_process_that_dies_takes_nothing_with_it(tmp_path: Path) -> None:
    """Whatever ends it: a signal, a status, a message without an end, before or after the first."""
    program = tmp_path / "program.py"
    program.write_text("""
import os, sys
for line in sys.stdin.buffer:
    request = sys.stdin.buffer.read(int(line))
    os.write(2, b"words")
    if request == b"abort": os.abort()
    if request == b"leave": os._exit(0)
    if request == b"part": os.write(1, b"100\\nhalf"); os._exit(3)
    os.write(1, b"%d\\n%s" % (len(request), request[::-1]))
""")
    workers = Workers((str(program),))
    assert workers.answer(b"one") == b"eno"
    for request, status in ((b"abort", -6), (b"part", 3), (b"leave", 0)):
        assert workers.answer(request) == Ended(status, "words"), request
        assert workers.answer(b"again") == b"niaga"
    assert workers.answer(b"x" * 1_000_000) == b"x" * 1_000_000


def test_a_worker_that_left_meanwhile_is_replaced_without_a_word() -> None:
    HostCode.from_llvm("define i32 @a1() {\n ret i32 1\n}\n")
    (worker, *_) = trial._workers()._idle
    worker._process.terminate()
    worker._process.wait()
    # As after much memory, which it gives back by leaving.
    worker._process.returncode = 0
    HostCode.from_llvm("define i32 @a2() {\n ret i32 2\n}\n")


def test_threads_and_forks_have_processes_of_their_own() -> None:
    texts = [f"define i32 @of{at}() {{\n ret i32 {at}\n}}\n" for at in range(12)]
    made: dict[int, HostCode] = {}

    def make(at: int) -> None:
        made[at] = HostCode.from_llvm(texts[at])

    threads = [threading.Thread(target=make, args=(at,)) for at in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(f"of{at}" in made[at].source.functions for at in range(8))  # type: ignore[union-attr]
    assert len(trial._workers()._idle) <= 2
    child = os.fork()
    if child == 0:
        make(8)
        os._exit(0 if "of8" in made[8].source.functions else 1)  # type: ignore[union-attr]
    make(9)
    assert os.waitpid(child, 0)[1] == 0
    make(10)


def test_the_process_ends_with_its_parent() -> None:
    program = """
import os, signal
from ferrule.compiler.conventions import HostCode
from ferrule.compiler.hostcode import trial
HostCode.from_llvm("define i32 @f() {\\n ret i32 1\\n}\\n")
(worker,) = trial._workers()._idle
print(worker._process.pid, flush=True)
if os.fork() == 0:  # It has nothing that keeps the worker.
    import time; time.sleep(0.3); os._exit(0)
os.kill(os.getpid(), signal.SIGKILL)
"""
    command = [sys.executable, "-c", program]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    state = Path(f"/proc/{int(said)}/cmdline")
    for _ in range(100):
        if not state.exists() or child_file.encode() not in state.read_bytes():
            return
        threading.Event().wait(0.05)
    pytest.fail("the process is still there")


def test_an_interrupted_request_ends_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = Worker([sys.executable, "-c", "import time; time.sleep(60)"])

    def interrupted(self: Worker, request: bytes) -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr(Worker, "_exchange", interrupted)
    with pytest.raises(KeyboardInterrupt):
        worker.answer(b"")
    assert worker._process.returncode == -9


# ---- objects and archives ----

A = """
extern int table[]; int helper(int); static int k = 1;
__attribute__((visibility("hidden"))) int* place = &table[2];
int bump(int x) { k++; return helper(x) + table[1] + k + *place; }
"""
B = """
int table[3] = {10, 20, 30}; static int k = 100; int deeper(int);
int helper(int x) { k++; return deeper(x) * 2 + k; }
"""
C = """
__attribute__((weak)) int chosen(void) { return 1; }
int deeper(int x) { return x + chosen(); }
"""
STRONG = "int chosen(void) { return 3; }"
BAD = "int nowhere_at_all(int); int unneeded(int x) { return nowhere_at_all(x); }"


def _archive(**sources: str) -> bytes:
    return write_archive({name: c_object(source) for name, source in sources.items()})


@pytest.mark.needs_cc
def test_objects_and_what_is_needed_of_an_archive(tmp_path: Path) -> None:
    library = tmp_path / "libx.a"
    library.write_bytes(_archive(b_with_a_name_of_many_letters=B, c=C, bad=BAD))
    code = HostCode.from_object([c_object(A), library])
    bump = built(code, "bump")
    assert [bump(5), bump(5)] == [165, 167], "data of their own, and each its static k"
    bump.export_library(tmp_path / "bump.so")
    assert run_bare(tmp_path / "bump.so", "print(module.bump(5))") == "165\n"
    with pytest.raises(CompileError, match="the function unneeded needs nowhere_at_all, which"):
        built(code, "unneeded")
    with pytest.raises(CompileError, match="no function nope; there are: bump, chosen, deeper, "):
        built(code, "nope")
    strong = HostCode.from_object([c_object(A), c_object(B), c_object(C), c_object(STRONG)])
    assert built(strong, "bump")(5) == 169, "a definition replaces a weak one, also in its object"
    assert built(HostCode.from_object(library), "helper")(1) == 105, "an archive alone"
    assert built(fe.frontends.files.load(library), "helper")(1) == 105  # type: ignore[arg-type]


@pytest.mark.needs_cc
def test_objects_that_do_not_fit_are_named(tmp_path: Path) -> None:
    for name, source in (("one.o", STRONG), ("two.o", STRONG + "int more;")):
        (tmp_path / name).write_bytes(c_object(source))
    paths = [tmp_path / "one.o", tmp_path / "two.o"]
    with pytest.raises(CompileError, match="(?s)one.o and .*two.o both define chosen.*static"):
        HostCode.from_object(paths)
    with pytest.raises(CompileError, match="needs helper, table, which are neither"):
        HostCode.from_object([c_object(A), _archive(c=C)])
    both = HostCode.from_object([_archive(a=STRONG + "int left(int i) { return i; }", b=STRONG)])
    assert built(both, "left")(4) == 4, "of two in an archive only the needed one counts"
    pulled = "int left(int); int right(int i) { return left(i) + chosen(); } " + STRONG
    clash = [_archive(a=STRONG + "int left(int i) { return i; }", b="int chosen(void);" + pulled)]
    with pytest.raises(CompileError, match="both define chosen"):
        built(HostCode.from_object(clash), "right")
    for data, message in (
        (b"!<arch>\n" + b"x" * 60, "the archive is damaged: no member begins at 8"),
        (_archive(a=C)[:-40], "the archive is cut off"),
        (write_archive({})[:8], "has no function|there are: none"),
        (b"!<thin>\n", "(?s)cannot be embedded.*--thin"),
        (_archive(a=C).replace(b"\x7fELF", b"\x7fELG"), "a of an object file cannot be embedded"),
    ):
        with pytest.raises(CompileError, match=message):
            built(HostCode.from_object(data), "f")


# ---- device code ----

N = specs.sym_int64(symbol="n")
X = Tensor("x", (N,), "float32", device="cuda")


def ptx(kernel: str, arch: str = "sm_80") -> fe.DeviceCode:
    """A kernel with a variable of the same name as all others."""
    return fe.DeviceCode.from_ptx(
        f".version 7.8\n.target {arch}\n.address_size 64\n.global .u32 counter;\n"
        f".visible .entry {kernel}(.param .u64 x, .param .u64 n) {{ ret; }}\n"
    )


def launch(code: fe.DeviceCode, kernel: str, **more: Any) -> CudaLaunch:
    return CudaLaunch(code, kernel, [X.data, N], specs.ceil_div(N, 256), 256, **more)


@pytest.mark.parametrize("is_joined", [False, True])
def test_launches_of_several_codes_enter_the_device_once(
    fake_cuda: FakeCuda, is_joined: bool
) -> None:
    codes = [ptx("one"), ptx("two"), ptx("one", "sm_75")]
    names = ["one", "two", "one"]
    if is_joined:
        joined = fe.DeviceCode.joined(*codes, names=[{}, {}, {"one": "three"}])
        assert joined.kernels == ("one", "two", "three")
        assert joined.archs == ("sm_80", "sm_75")
        codes, names = [joined] * 3, ["one", "two", "three"]
    steps = list(map(launch, codes, names))
    f = compiler.build(Signature("three", [X]), Sequence(steps))
    x = floats(300, device=1)
    for _ in range(2):
        fake_cuda.clear()
        f(x)
        assert [each.kernel for each in fake_cuda.launches()] == ["one", "two", "one"]
        told = fake_cuda.names()
        assert [told.count(f"cuCtx{name}Current_v2") for name in ("Push", "Pop")] == [1, 1]
        assert (told.count("cuCtxGetDevice"), fake_cuda.depth) == (1, 0)
    assert fake_cuda.libraries == 3


def test_a_code_that_no_call_needs_is_not_loaded(fake_cuda: FakeCuda) -> None:
    """The device is entered for a launch that every call makes, or else where it is needed."""
    some = [launch(ptx("one"), "one", when=N < 0), launch(ptx("two"), "two", when=N > 1)]
    first = compiler.build(Signature("f", [X]), Sequence([*some, FirstOf([launch(ptx("o"), "o")])]))
    first(floats(3))
    assert [each.kernel for each in fake_cuda.launches()] == ["two", "o"]
    assert (fake_cuda.libraries, fake_cuda.depth) == (2, 0)
    fake_cuda.fail("cuLibraryLoadData", 1)
    nested = Sequence([Sequence([launch(ptx("one"), "one")]), launch(ptx("two"), "two")])
    with pytest.raises(fe.CudaError, match="at the start of g"):
        compiler.build(Signature("g", [X]), nested)(floats(3))
    fake_cuda.fail("cuLibraryLoadData", 1, after=1)
    with pytest.raises(fe.CudaError, match="at the start of h"):
        compiler.build(Signature("h", [X]), nested)(floats(3, device=1))
    assert fake_cuda.depth == 0, "left also where a later code cannot be loaded"


@pytest.mark.parametrize(
    ("given", "names", "message"),
    [
        (("a", "a"), None, r"both have a kernel a: name one of .*names=\[{}, {'a': 'a_2'}\]"),
        (("a", "b"), [{}], "there are 2 codes, and names for 1"),
        (("a", "b"), [{}, {"a": "c"}], "no kernel 'a' to be named 'c'; there are: b"),
        (("a", "b"), [{}, {"b": "a"}], "codes #0 and #1 both have a kernel a"),
        ((), None, "at least one code"),
    ],
)
def test_kernels_that_cannot_be_joined(given: Any, names: Any, message: str) -> None:
    codes = [ptx(name, arch) for name, arch in zip(given, ("sm_80", "sm_90"), strict=False)]
    with pytest.raises(ValueError, match=message):
        fe.DeviceCode.joined(*codes, names=names)


def test_what_is_no_code_and_codes_for_different_gpus() -> None:
    with pytest.raises(TypeError, match="#1 is a str"):
        fe.DeviceCode.joined(ptx("a"), "b")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="must be a list with new names for each code"):
        fe.DeviceCode.joined(ptx("a"), names={"a": "b"})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"no GPU has an image of each .*#0: sm_90a.*#1: sm_100a"):
        fe.DeviceCode.joined(ptx("a", "sm_90a"), ptx("b", "sm_100a"))
    joined = fe.DeviceCode.joined(ptx("a"), ptx("b"))
    assert joined.parameters("b").sizes == (8, 8)
    with pytest.raises(CompileError, match="there is no kernel 'c'"):
        compiler.build(Signature("f", [X]), launch(joined, "c"))
