"""ferrule's own linker for aarch64: instructions by their bytes, and programs that qemu runs."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from llvmlite import binding

from ferrule.runtime.binaries import elf
from ferrule.runtime.binaries.objectfile import Machine, read_object
from ferrule.runtime.linking import aarch64, codememory, direct, unwinding
from ferrule.runtime.linking.codememory import Parts, Sizes
from ferrule.runtime.linking.relocation import Site, Unlinkable

from .test_direct import PROGRAM, both, call, emitted

TRIPLE = "aarch64-unknown-linux-gnu"
BASES = (0x10000, 0x200000, 0x400000)
"""Where the parts of a test's block are."""


@pytest.mark.parametrize(
    ("kind", "before", "target", "after"),
    [
        # `objdump` of binutils shows these words as the instructions on their right, at 0x10000.
        (283, 0x94000000, 0x10100, 0x94000040),  # bl 0x10100
        (282, 0x14000000, 0xFF00, 0x17FFFFC0),  # b 0xff00
        (280, 0x54000001, 0x10100, 0x54000801),  # b.ne 0x10100
        (279, 0x36000000, 0x10100, 0x36000800),  # tbz w0, #0, 0x10100
        (274, 0x10000000, 0x10101, 0x30000800),  # adr x0, 0x10101
        (273, 0x58000000, 0x10100, 0x58000800),  # ldr x0, 0x10100
        (275, 0x90000000, 0x212345, 0xD0001000),  # adrp x0, 0x212000
        (277, 0x91000000, 0x212345, 0x910D1400),  # add x0, x0, #0x345
        (278, 0x39400000, 0x212345, 0x394D1400),  # ldrb w0, [x0, #0x345]
        (284, 0x79400000, 0x212344, 0x79468800),  # ldrh w0, [x0, #0x344]
        (285, 0xB9400000, 0x212344, 0xB9434400),  # ldr w0, [x0, #0x344]
        (286, 0xF9400000, 0x212348, 0xF941A400),  # ldr x0, [x0, #0x348]
        (299, 0x3DC00000, 0x212340, 0x3DC0D000),  # ldr q0, [x0, #0x340]
        (264, 0xF2800000, 0x1122334455667788, 0xF28EF100),  # movk x0, #0x7788
        (266, 0xF2A00000, 0x1122334455667788, 0xF2AAACC0),  # movk x0, #0x5566, lsl #16
        (268, 0xF2C00000, 0x1122334455667788, 0xF2C66880),  # movk x0, #0x3344, lsl #32
        (269, 0xF2E00000, 0x1122334455667788, 0xF2E22440),  # movk x0, #0x1122, lsl #48
    ],
)
def test_instructions(kind: int, before: int, target: int, after: int) -> None:
    assert f"{relocated(kind, before, target):#x}" == f"{after:#x}"


def relocated(kind: int, word: int, target: int) -> int:
    site = Site()
    site.code, site.at, site.place = bytearray(struct.pack("<I", word)), 0, 0x10000
    site.symbol, site.addend, site.slot, site.stub, site.table = target - 4, 4, 0, 0, 0
    size, rule = aarch64.RULES[kind]
    assert size == 4
    rule(site)
    (found,) = struct.unpack("<I", site.code)
    return int(found)


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        (283, 1 << 28),
        (280, 1 << 21),
        (279, 1 << 18),
        (274, 1 << 21),
        (275, 1 << 33),
        (283, 0x10002),
    ],
)
def test_what_does_not_reach_is_refused(kind: int, target: int) -> None:
    with pytest.raises(Unlinkable, match="does not reach"):
        relocated(kind, 0, target)


@pytest.mark.parametrize(("kind", "target"), [(286, 4), (299, 8), (285, 2), (284, 1)])
def test_what_is_not_aligned_is_refused(kind: int, target: int) -> None:
    with pytest.raises(Unlinkable, match="not aligned"):
        relocated(kind, 0, target)


class Block(codememory.Block):
    """A block that keeps what is written to it; nothing is mapped."""

    parts: Parts

    def fill(self, parts: Parts) -> None:
        self.parts = parts

    def release(self) -> None:
        pass


def placed(
    data: bytes, imports: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> tuple[Block, dict[str, int]]:
    """An object for aarch64, linked to `BASES`."""
    made: list[Block] = []

    def allocate(sizes: Sizes, align: int) -> Block:
        made.append(Block(None, BASES, sizes))  # type: ignore[arg-type]
        return made[-1]

    monkeypatch.setattr(codememory, "allocate", allocate)
    monkeypatch.setattr(unwinding, "register", lambda _: None)
    header = read_object(data)
    assert header.machine is Machine.AARCH64
    linked = direct.link(data, header.machine, imports, header.defined)
    return made[0], dict(linked.addresses)


def arm(text: str, model: str, opt: int) -> bytes:
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    module = binding.parse_assembly(text)
    machine = binding.Target.from_triple(TRIPLE).create_target_machine(
        opt=opt, reloc="pic", codemodel=model
    )
    return bytes(machine.emit_object(module))


START, OUTSIDE, NUMBER = 0x8000, 0x2000_0000, 0x2001_0000
THRICE_AND_1 = (0x8B000400, 0x91000400, 0xD65F03C0)  # add x0, x0, x0, lsl #1; add x0, x0, #1; ret


def started(at: int, value: int) -> bytes:
    """Code at `START` that exits with the lowest byte of a function of a value."""
    words = [0xD2800000 | value << 5, 0x94000000 | (at - START - 4 >> 2), 0xD2800BA8, 0xD4000001]
    return struct.pack("<4I", *words)


def program(pieces: dict[int, bytes]) -> bytes:
    """A static program with these bytes at these addresses, which starts at `START`."""
    head = b"\x7fELF\x02\x01\x01" + bytes(9)
    where, file, headers = 64 + 56 * len(pieces), b"", b""
    for address, data in pieces.items():
        gap = -(where + len(file)) % 4096
        file += bytes(gap)
        offset = where + len(file)
        fields = (1, 7, offset, address, address, len(data), len(data) + 0x1000, 4096)
        headers += elf.SEGMENT.pack(*fields)
        file += data
    fixed = (2, Machine.AARCH64, 1, START, 64, 0, 0, 64, 56, len(pieces), 64, 0, 0)
    return head + elf.HEADER.pack(*fixed)[16:] + headers + file


@pytest.mark.parametrize("model", ["small", "large"])
@pytest.mark.parametrize("opt", [0, 2])
def test_qemu_runs_what_was_linked(
    model: str, opt: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    qemu = shutil.which("qemu-aarch64")
    if qemu is None:
        pytest.skip("no qemu-aarch64")
    text = PROGRAM.format(seed=77, align=16, linkage="", nonlazy="")
    imports = {"outside": OUTSIDE, "number": NUMBER, "memset": OUTSIDE}
    block, addresses = placed(arm(text, model, opt), imports, monkeypatch)
    pieces = {at: bytes(part) for at, part in zip(BASES, block.parts, strict=True)}
    pieces[OUTSIDE], pieces[NUMBER] = struct.pack("<3I", *THRICE_AND_1), struct.pack("<q", 9)
    path = tmp_path / "program"
    for value in (0, 1, 2, 3, 5, 40):
        path.write_bytes(program({START: started(addresses["main"], value), **pieces}))
        path.chmod(0o755)
        done = subprocess.run([qemu, str(path)], check=False, timeout=20)
        assert done.returncode == expected(text, value), (value, done)


def expected(text: str, value: int) -> int:
    """What the program of this machine gives."""
    import ctypes

    from .test_direct import address_of, near

    number = ctypes.c_int64(9)
    imports = {"outside": address_of(near), "number": ctypes.addressof(number)}
    _, theirs = both(emitted(text), {**imports, "memset": 0})
    return call(theirs, "main", value)[0] & 255
