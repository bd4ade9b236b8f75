"""ferrule's own linker: it gives what LLVM's gives, and refuses what it does not know."""

from __future__ import annotations

import ctypes
import gc
import os
import re
import struct
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llvmlite import binding

from ferrule.compiler.support.shipped import FOLDER
from ferrule.runtime import Engine, ObjectCode, ObjectFileError
from ferrule.runtime.binaries import elf
from ferrule.runtime.binaries.objectfile import Machine, read_object
from ferrule.runtime.cfunctions import C_FUNCTIONS
from ferrule.runtime.host import host_machine, host_triple, initialize_llvm
from ferrule.runtime.linking import codememory, direct, lljit, unwinding
from ferrule.runtime.linking.engine import Linked, c_address
from ferrule.runtime.linking.relocation import Unlinkable

pytestmark = pytest.mark.skipif(
    host_machine() is not Machine.X86_64, reason="the linker runs code of x86-64 alone here"
)

INT = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)


@INT
def near(x: int) -> int:
    return x * 3 + 1


def emitted(text: str, model: str = "default", opt: int = 2) -> bytes:
    initialize_llvm()
    module = binding.parse_assembly(text)
    module.verify()
    machine = binding.Target.from_triple(host_triple()).create_target_machine(
        opt=opt, reloc="pic", codemodel=model
    )
    return bytes(machine.emit_object(module))


def both(data: bytes, imports: dict[str, int]) -> tuple[Linked, Linked]:
    """The object linked by ferrule and by LLVM."""
    header = read_object(data)
    given = data, header.machine, imports, header.defined
    return direct.link(*given), lljit.link(*given)


def call(linked: Linked, name: str, *values: int) -> list[int]:
    function = INT(linked.addresses[name])
    return [function(value) for value in values]


def address_of(function: object) -> int:
    address = ctypes.cast(function, ctypes.c_void_p).value  # type: ignore[arg-type]
    assert address is not None
    return address


PROGRAM = """
@table = internal constant [4 x i64] [i64 11, i64 22, i64 33, i64 {seed}]
@pointers = internal constant [3 x ptr] [ptr @f0, ptr @f1, ptr @outside]
@text = private unnamed_addr constant [6 x i8] c"hello\\00"
@where = global ptr @text, align {align}
@count = internal global i64 {seed}
@zeros = {linkage} global [37 x i64] zeroinitializer, align {align}
declare i64 @outside(i64)
declare ptr @memset(ptr, i32, i64)
define {linkage} i64 @f0(i64 %x) {{
  %r = mul i64 %x, 7
  ret i64 %r
}}
define hidden i64 @f1(i64 %x) noinline {{
  %r = call i64 @outside(i64 %x){nonlazy}
  ret i64 %r
}}
define i64 @tail(i64 %x) {{
  %r = tail call i64 @outside(i64 %x){nonlazy}
  ret i64 %r
}}
define i64 @choose(i64 %x) {{
  switch i64 %x, label %other [i64 0, label %a
    i64 1, label %b
    i64 2, label %c
    i64 3, label %d
    i64 4, label %e]
a:
  ret i64 5
b:
  %rb = call i64 @f1(i64 %x)
  ret i64 %rb
c:
  ret i64 -77
d:
  %rd = call i64 @tail(i64 %x)
  ret i64 %rd
e:
  ret i64 1234567
other:
  %rest = and i64 %x, 1
  %at = getelementptr ptr, ptr @pointers, i64 %rest
  %f = load ptr, ptr %at
  %r = call i64 %f(i64 %x)
  ret i64 %r
}}
define i64 @main(i64 %x) uwtable {{
  %i = and i64 %x, 3
  %at = getelementptr i64, ptr @table, i64 %i
  %v = load i64, ptr %at
  %n = load i64, ptr @count
  %next = add i64 %n, %x
  store i64 %next, ptr @count
  %j = urem i64 %x, 37
  %z = getelementptr i64, ptr @zeros, i64 %j
  %old = load i64, ptr %z
  store i64 %next, ptr %z
  %p = load ptr, ptr @where
  %c = load i8, ptr %p
  %wide = zext i8 %c to i64
  %chosen = call i64 @choose(i64 %i)
  %d = sitofp i64 %x to double
  %scaled = fmul double %d, 0x3FF3333333333333
  %back = fptosi double %scaled to i64
  %big = call i64 @choose(i64 %x)
  %s1 = add i64 %v, %n
  %s2 = xor i64 %s1, %old
  %s3 = add i64 %s2, %wide
  %s4 = add i64 %s3, %chosen
  %s5 = add i64 %s4, %back
  %s6 = add i64 %s5, %big
  %outer = load i64, ptr @number
  %s7 = add i64 %s6, %outer
  ret i64 %s7
}}
@number = external global i64
"""


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(-(2**62), 2**62),
    align=st.sampled_from([8, 16, 64, 256, 4096]),
    linkage=st.sampled_from(["", "internal", "hidden", "weak", "linkonce_odr"]),
    nonlazy=st.sampled_from(["", " nonlazybind"]),
    model=st.sampled_from(["default", "small", "large"]),
    opt=st.sampled_from([0, 2]),
    values=st.lists(st.integers(0, 2**40), min_size=1, max_size=6),
)
def test_programs_do_the_same_by_both_linkers(
    seed: int, align: int, linkage: str, nonlazy: str, model: str, opt: int, values: list[int]
) -> None:
    form = {"seed": seed, "align": align, "linkage": linkage, "nonlazy": nonlazy}
    if nonlazy:
        form["nonlazy"] = " #0"
    text = PROGRAM.format(**form) + "attributes #0 = { nonlazybind }\n"
    number = ctypes.c_int64(seed ^ 5)
    imports = {
        "outside": address_of(near),
        "memset": c_address("memset"),
        "number": ctypes.addressof(number),
    }
    ours, theirs = both(emitted(text, model, opt), imports)
    assert ours.addresses.keys() == theirs.addresses.keys()
    for name in ("tail", "choose", "main", "main"):
        assert call(ours, name, *values) == call(theirs, name, *values)
    assert all(ours.addresses[name] % align == 0 for name in ours.addresses if name == "where")
    ours.free()


FAR = """
declare i64 @far(i64)
declare i64 @low(i64)
define i64 @f(i64 %x) {{
  %a = call i64 @far(i64 %x){lazy}
  %b = call i64 @low(i64 %a){lazy}
  ret i64 %b
}}
define i64 @jump(i64 %x) {{
  %r = tail call i64 @low(i64 %x){lazy}
  ret i64 %r
}}
define ptr @address() {{
  ret ptr @low
}}
attributes #0 = {{ nonlazybind }}
"""

TWICE = b"\x48\x8d\x04\x3f\xc3"  # lea (%rdi,%rdi), %rax; ret


@cache
def mapped(at: int) -> int:
    """A page at an address that doubles its argument."""
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_size_t
    libc.mmap.argtypes = (ctypes.c_size_t,) * 2 + (ctypes.c_int,) * 3 + (ctypes.c_long,)
    found = int(libc.mmap(at, 4096, 3, 0x22, -1, 0))
    ctypes.memmove(found, TWICE, len(TWICE))
    libc.mprotect(ctypes.c_size_t(found), ctypes.c_size_t(4096), 5)
    return found


@pytest.mark.parametrize("lazy", ["", " #0"])
def test_functions_that_are_far_away(lazy: str) -> None:
    far, low = mapped(0x200000000000), mapped(0x12340000)
    assert low < 1 << 32
    data = emitted(FAR.format(lazy=lazy))
    linked, _ = both(data, {"far": far, "low": low})
    assert call(linked, "f", 5, 1 << 40) == [20, 1 << 42]
    assert call(linked, "jump", 21) == [42]
    assert ctypes.CFUNCTYPE(ctypes.c_void_p)(linked.addresses["address"])() == low


def test_far_data_without_a_table_is_left_to_llvm() -> None:
    text = "@far = external hidden global i64\ndefine i64 @f(i64 %x) {\n"
    text += " %r = load i64, ptr @far\n ret i64 %r\n}"
    data = emitted(text)
    header = read_object(data)
    with pytest.raises(Unlinkable, match="does not reach its symbol"):
        direct.link(data, header.machine, {"far": 1 << 45}, header.defined)


def test_support_code_is_linked_without_llvm() -> None:
    """All support code that is shipped, or could be."""
    files = sorted(FOLDER.glob(f"{host_triple().split('-')[0]}*/*.o"))
    if not files:
        pytest.skip("support code was not made into files: python -m ferrule.compiler.support.ship")
    # The objects reach each other without a table, so what stands for another one must be near.
    neighbour = codememory.allocate((64, 0, 0), 16)
    for path in files:
        data = path.read_bytes()
        header = read_object(data)
        imports = dict.fromkeys(header.undefined, neighbour.addresses[0])
        imports |= {n: c_address(n) for n in header.undefined if n in C_FUNCTIONS}
        try:
            ours, theirs = both(data, imports)
        except ObjectFileError as error:
            # In a long run LLVM's memory may be further than 2 GiB from ours.
            if "LLVM cannot link" not in str(error):
                raise
            neighbour.release()
            pytest.skip(f"{path.name}: {str(error)[:60]}: it may be too far from its neighbour")
        assert ours.addresses.keys() == theirs.addresses.keys(), path
        assert relocated(ours, data) == relocated(theirs, data), path
        ours.free()
    neighbour.release()


def relocated(linked: Linked, data: bytes) -> dict[str, bytes]:
    """The bytes of each function, but for those that a linker changes."""
    header = elf.read_header(data, elf.FileType.OBJECT)
    sections = [elf.read_section(data, at) for at in header.sections]
    changed: dict[int, set[int]] = {}
    for section in sections:
        if section.kind == elf.SHT_RELA:
            for at, _, _ in elf.entries(elf.RELOCATION, data, section):
                changed.setdefault(section.info, set()).update(range(at - 3, at + 8))
    (table,) = (section for section in sections if section.kind == elf.SHT_SYMTAB)
    names = data[sections[table.link].offset :][: sections[table.link].size]
    found = {}
    for name_at, _, _, home, value, size in elf.entries(elf.SYMBOL, data, table):
        name = elf.read_name(names, name_at)
        if name in linked.addresses and 0 < home < len(sections):
            memory = ctypes.string_at(linked.addresses[name], size)
            skipped = changed.get(home, set())
            kept = (byte for i, byte in enumerate(memory) if value + i not in skipped)
            found[name] = bytes(kept)
    return found


class Bases(ctypes.Structure):
    _fields_ = [("text", ctypes.c_void_p), ("data", ctypes.c_void_p), ("function", ctypes.c_void_p)]


def table_of(address: int) -> int | None:
    """The entry for an address by which libgcc would unwind."""
    library = unwinding.unwinder()
    if library is None:
        pytest.skip("this process has no libgcc")
    find = library._Unwind_Find_FDE
    find.restype, find.argtypes = ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_void_p)
    found: int | None = find(address, ctypes.byref(Bases()))
    return found


def test_unwinding_is_known_while_the_code_is_there() -> None:
    text = "define i64 @f(i64 %x) uwtable {\n %r = add i64 %x, 1\n ret i64 %r\n}"
    data = emitted(text)
    header = read_object(data)
    linked = direct.link(data, header.machine, {}, header.defined)
    inside = linked.addresses["f"] + 1
    assert table_of(inside)
    linked.free()
    assert not table_of(inside)


THROWING = r"""
extern "C" int caught(int x) {
    try {
        if (x > 3) throw x;
    } catch (int y) {
        return y * 10;
    }
    return -1;
}
extern "C" void thrown(int x) { throw x; }
"""
CATCHING = r"""
extern "C" int through(void (*f)(int), int x) {
    try { f(x); } catch (int y) { return y + 100; }
    return 0;
}
"""


@pytest.mark.needs_cc
def test_exceptions_of_cpp(tmp_path: Path) -> None:
    """Exceptions are thrown and caught in linked code, and pass through it."""
    (tmp_path / "a.cpp").write_text(THROWING)
    (tmp_path / "b.cpp").write_text(CATCHING)
    for command in (["-c", "a.cpp"], ["-shared", "-o", "b.so", "b.cpp"]):
        done = subprocess.run(["g++", "-O1", "-fPIC", *command], cwd=tmp_path, capture_output=True)
        if done.returncode:
            pytest.skip("no C++ compiler")
    data = (tmp_path / "a.o").read_bytes()
    header = read_object(data)
    runtime = ctypes.CDLL("libstdc++.so.6")
    imports = {
        name: address_of(getattr(runtime, name))
        for name in header.undefined
        if not name.startswith("_GLOBAL")
    }
    linked = direct.link(data, header.machine, imports, header.defined)
    caught = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(linked.addresses["caught"])
    assert [caught(3), caught(4)] == [-1, 40]
    through = ctypes.CDLL(str(tmp_path / "b.so")).through
    assert through(ctypes.c_void_p(linked.addresses["thrown"]), 7) == 107


# ---- what is refused ----


SOUND = emitted(
    PROGRAM.format(seed=3, align=16, linkage="", nonlazy="")
    + "@constants = constant [2 x ptr] [ptr @f0, ptr @zeros]\n"
)


def changed_relocation(kind: int) -> bytes:
    data = bytearray(SOUND)
    for at in elf.read_header(SOUND, elf.FileType.OBJECT).sections:
        section = elf.read_section(SOUND, at)
        if section.kind == elf.SHT_RELA and section.size:
            struct.pack_into("<I", data, section.offset + 8, kind)
            return bytes(data)
    raise AssertionError("no relocation")


def imports_of(data: bytes) -> dict[str, int]:
    return {name: address_of(near) for name in read_object(data).undefined}


@pytest.mark.parametrize("kind", [22])
def test_unknown_relocations_are_left_to_llvm(kind: int) -> None:
    data = changed_relocation(kind)
    header = read_object(data)
    with pytest.raises(Unlinkable, match=f"a relocation of kind {kind}"):
        direct.link(data, header.machine, imports_of(data), header.defined)


def test_unknown_sections_are_left_to_llvm() -> None:
    data = bytearray(SOUND)
    for at in elf.read_header(SOUND, elf.FileType.OBJECT).sections:
        section = elf.read_section(SOUND, at)
        if section.kind == 1 and section.flags & elf.SHF_ALLOC:
            struct.pack_into("<I", data, at + 4, 0x60000001)
    header = read_object(bytes(data))
    with pytest.raises(Unlinkable, match="a section of type 1610612737"):
        direct.link(bytes(data), header.machine, imports_of(bytes(data)), header.defined)


def test_code_that_could_be_written_is_left_to_llvm() -> None:
    data = bytearray(SOUND)
    for at in elf.read_header(SOUND, elf.FileType.OBJECT).sections:
        section = elf.read_section(SOUND, at)
        if section.flags & 4:
            struct.pack_into("<Q", data, at + 8, section.flags | 1)
    header = read_object(bytes(data))
    with pytest.raises(Unlinkable, match="code that writes itself"):
        direct.link(bytes(data), header.machine, imports_of(bytes(data)), header.defined)


def test_another_machine_is_left_to_llvm() -> None:
    with pytest.raises(Unlinkable, match="no rules for riscv64"):
        direct.link(SOUND, Machine.RISCV64, {}, ())


FUZZ = """
import random, sys
from pathlib import Path
from ferrule.runtime.binaries.elf import ObjectFileError
from ferrule.runtime.binaries.objectfile import read_object
from ferrule.runtime.linking import direct
random.seed(int(sys.argv[2]))
counts = {"linked": 0, "Unlinkable": 0, "ObjectFileError": 0}
for path in sorted(Path(sys.argv[1]).iterdir()):
    sound = path.read_bytes()
    for _ in range(int(sys.argv[3])):
        size = random.choice([len(sound), len(sound), random.randrange(len(sound))])
        data = bytearray(sound[:size])
        for _ in range(random.randrange(4)):
            if data:
                at = random.randrange(len(data))
                flipped = data[at] ^ 1 << random.randrange(8)
                data[at] = random.choice([0, 255, flipped, random.randrange(256)])
        data = bytes(data)
        try:
            header = read_object(data)
            imports = {name: 0x7F0000001000 for name in header.undefined}
            direct.link(data, header.machine, imports, header.defined).free()
            counts["linked"] += 1
        except (direct.Unlinkable, ObjectFileError) as error:
            counts[type(error).__name__] += 1
print(counts)
assert all(counts.values()), counts
"""


def test_damaged_objects_are_refused_or_linked(tmp_path: Path) -> None:
    """Whatever the bytes are, there is an object or an error of these two, and no crash."""
    objects = tmp_path / "objects"
    objects.mkdir()
    (objects / "a").write_bytes(SOUND)
    (objects / "b").write_bytes(
        emitted(PROGRAM.format(seed=3, align=8, linkage="weak", nonlazy=""), "large")
    )
    (tmp_path / "fuzz.py").write_text(FUZZ)
    command = [sys.executable, "fuzz.py", str(objects), "1", "1500"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + done.stdout


@given(data=st.binary(max_size=120))
@settings(max_examples=300, deadline=None)
def test_tables_for_unwinding_are_read_whatever_they_are(data: bytes) -> None:
    try:
        unwinding.check(data, 0x1000, range(0x1000, 0x2000))
    except Unlinkable:
        pass


def test_llvm_links_what_ferrule_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> Linked:
        raise Unlinkable("it is a test")

    monkeypatch.setattr(direct, "link", refuse)
    engine = Engine.load(
        ObjectCode("f", emitted("define i64 @f(i64 %x) {\n ret i64 %x\n}"), "", "")
    )
    assert INT(engine.address("f"))(9) == 9


# ---- memory ----


SMALL = emitted("define i64 @f(i64 %x) {\n %r = add i64 %x, 1\n ret i64 %r\n}\n@g = global i64 5")


def linked(data: bytes = SMALL) -> Linked:
    header = read_object(data)
    return direct.link(data, header.machine, imports_of(data), header.defined)


def protections(address: int) -> str:
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, flags, *_ = line.split()
        start, end = (int(each, 16) for each in span.split("-"))
        if start <= address < end:
            return flags
    return "none"


@pytest.fixture(params=["shared", "alone"])
def memory(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Memory of arenas, and memory as it is where the system has none."""
    monkeypatch.setattr(codememory, "_CURRENT", [])
    if request.param == "alone":

        def missing(name: str) -> int:
            raise OSError("not here")

        monkeypatch.setattr(os, "memfd_create", missing)
    yield request.param
    for arena in codememory._CURRENT:
        arena.close()


def open_memory() -> set[str]:
    """Memory that can be written and executed: libffi's, where the system lets it."""
    return set(re.findall(r"^\S+ .wx.*", Path("/proc/self/maps").read_text(), re.M))


def test_no_memory_is_writable_and_executable(memory: str) -> None:
    before = open_memory()
    objects = [linked(), linked(SOUND)]
    for each in objects:
        code = [at for name, at in each.addresses.items() if name in ("f", "main")]
        assert [protections(at)[:3] for at in code] == ["r-x"]
    assert protections(objects[0].addresses["g"])[:3] == "rw-"
    assert protections(objects[1].addresses["constants"])[:3] == "r--"
    assert open_memory() == before
    assert call(objects[0], "f", 1) == [2]


def test_small_objects_share_pages() -> None:
    pages = {linked().addresses["f"] // 4096 for _ in range(20)}
    assert len(pages) < 5


def test_large_objects_have_memory_of_their_own(memory: str) -> None:
    lines = "\n".join(
        f"define i64 @f{i}(i64 %x) {{\n %r = mul i64 %x, {i}\n ret i64 %r\n}}" for i in range(2000)
    )
    big = linked(emitted(lines + "\n@zeros = global [100000 x i64] zeroinitializer\n"))
    assert call(big, "f1999", 3) == [5997]
    zeros = (ctypes.c_int64 * 100000).from_address(big.addresses["zeros"])
    assert not any(zeros)
    address = big.addresses["f1"]
    big.free()
    assert protections(address) != "r-xp"


def test_memory_goes_with_the_last_object_of_an_arena(memory: str) -> None:
    def mappings() -> int:
        return len(Path("/proc/self/maps").read_text().splitlines())

    first = linked()
    gc.collect()
    before = mappings()
    for _ in range(3000):
        linked().free()
    assert mappings() - before < 12
    assert call(first, "f", 7) == [8]


def test_threads_link_at_once(memory: str) -> None:
    def work(number: int) -> bool:
        text = "define i64 @f(i64 %x) {\n %r = add i64 %x, 1\n ret i64 %r\n}"
        data, right = emitted(text.replace("1", str(number))), []
        for _ in range(60):
            each = linked(data)
            right.append(call(each, "f", 5) == [5 + number])
            each.free()
        return all(right)

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(work, range(1, 13)))


FORKED = """
import ctypes, os, sys
sys.modules["torch"] = None
from ferrule.runtime.binaries.objectfile import read_object
from ferrule.runtime.linking import direct
INT = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
def made(path):
    data = open(path, "rb").read()
    linked = direct.link(data, read_object(data).machine, {}, ("f",))
    return linked, INT(linked.addresses["f"])
kept, f = made("f.o")
child = os.fork()
links = [made("g.o" if child else "h.o") for _ in range(200)]
want = 2000 if child else 3000
ok = f(1) == 1001 and all(g(1) == want + 1 for _, g in links)
if not child:
    kept.free()
    for each, _ in links[::2]:
        each.free()
    os._exit(0 if ok and all(g(1) == want + 1 for _, g in links[1::2]) else 1)
_, status = os.waitpid(child, 0)
assert status == 0 and ok and f(1) == 1001
"""


def test_a_fork_does_not_share_new_code(tmp_path: Path) -> None:
    """Parent and child link on, each for itself, and free what they have."""
    for name, add in (("f", 1000), ("g", 2000), ("h", 3000)):
        text = f"define i64 @f(i64 %x) {{\n %r = add i64 %x, {add}\n ret i64 %r\n}}"
        (tmp_path / f"{name}.o").write_bytes(emitted(text))
    (tmp_path / "forked.py").write_text(FORKED)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "forked.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_an_object_error_is_one_of_the_user() -> None:
    with pytest.raises(ObjectFileError, match="needs the symbol outside"):
        Engine.load(ObjectCode("f", SOUND, "", ""))
