"""What of the support code goes into an object, and that it works there."""

from __future__ import annotations

import struct
from dataclasses import replace
from types import MappingProxyType

import pytest
from oracle.wrapped import Wrapped as Loaded
from wrapper_calls import Refused, Wrapped

from ferrule.compiler import targets
from ferrule.compiler.artefacts import Fault
from ferrule.compiler.checker.format import Op, pack_row, row_size
from ferrule.compiler.messages.catalogue import body_fault
from ferrule.compiler.messages.table import Table, phrases
from ferrule.compiler.support.library import CHECKS, Need, support_data
from ferrule.compiler.support.placement import Wanted, as_data
from ferrule.compiler.support.precompiled import Piece, Precompiled, Reference, joined
from ferrule.specs import Float32, Int32, Param, Scalar, Signature, Tensor, sym_int
from ferrule.specs.params import Map, String

X86 = targets.architecture(targets.host_triple()) == "x86_64"


def object_of(*params: Param) -> bytes:
    return Loaded(Signature("f", params)).engine.code.data


def test_an_object_carries_what_its_parameters_need() -> None:
    tensors = object_of(Tensor("a", (sym_int(), 4), Float32, device="cpu"))
    pairs = object_of(Map("m", String("key"), Scalar("value", Int32)))
    assert b"ForwardIterFunctor" in pairs
    assert b"ForwardIterFunctor" not in tensors
    assert b".strides[%d]" in tensors


@pytest.mark.skipif(not X86, reason="the sizes are those of x86-64's code")
def test_objects_are_small() -> None:
    assert len(object_of(Scalar("i", Int32))) <= 8 * 1024
    vectors = [Tensor(name, (sym_int(),), Float32, device="cpu") for name in "ab"]
    assert len(object_of(*vectors)) <= 10 * 1024
    twenty = [Tensor(f"a{i}", (sym_int(),) * 4, Float32, device="cpu") for i in range(20)]
    assert len(object_of(*twenty)) <= 32 * 1024


def test_what_is_not_known_to_be_needed_is_all_there() -> None:
    triple = targets.host_triple()
    few, all_of_it = (
        support_data((Need(CHECKS, part),), triple) for part in (frozenset[str](), None)
    )
    assert len(few) < len(all_of_it) / 2


# ---- placement ----


def piece(*references: Reference, data: bytes = bytes(8)) -> Piece:
    return Piece(".text.f", data, 1, False, references)


def placed(pieces: dict[int, Piece], *tables: str) -> str:
    symbols = {f"f{number}": (number, 0) for number in pieces}
    code = Precompiled(MappingProxyType(pieces), MappingProxyType(symbols))
    wanted = Wanted(frozenset({"f1"}), lambda symbol: ("f4",) if symbol == "f2" else (), tables)
    return as_data(code, "t", ("f1",), wanted)


def numbers(text: str) -> tuple[int, ...]:
    """The section, as words."""
    (line,) = (line for line in text.splitlines() if line.startswith(".ascii"))
    data = bytes(int(part, 8) for part in line.split('"')[1].split("\\")[1:])
    return struct.unpack(f"<{len(data) // 4}i", data[: len(data) // 4 * 4])


def test_what_is_reached_is_placed_and_nothing_else() -> None:
    to_2 = Reference(0, "R_X86_64_PC32", "", 2, 0)
    text = placed({1: piece(to_2), 2: piece(), 3: piece(), 4: piece()})
    assert numbers(text) == (8, 0, 0, 0, 0, 0)  # 1 refers to 2, which implies 4
    assert ".reloc" not in text
    assert ".set f1, .Lferrule_t+0" in text


def test_the_offsets_of_a_table_end_with_the_last_handler_that_is_there() -> None:
    offsets = [Reference(4 * i, "R_X86_64_PC32", "", 2 + i, 4 * i) for i in range(3)]
    table = piece(*offsets, Reference(12, "R_X86_64_PC32", "elsewhere", 0, 12), data=bytes(16))
    to_table, to_3 = (Reference(4 * i, "R_X86_64_PC32", "", (5, 3)[i], 4 * i) for i in (0, 1))
    code = {1: piece(to_table, to_3), 2: piece(), 3: piece(), 4: piece(), 5: table}
    assert numbers(placed(code, "f5")) == (16, 8, 0, 0, 0, -8)


def test_calls_outside_go_through_one_jump() -> None:
    call = Reference(1, "R_X86_64_PLT32", "memcpy", 0, -4)
    code = {1: piece(call, replace(call, offset=4)), 2: piece()}
    text = placed(code)
    assert text.count("memcpy") == 1
    assert ".reloc .Lferrule_t+9, R_X86_64_PLT32, memcpy-4" in text
    assert placed({1: piece(call)}).count(".reloc .Lferrule_t+1,") == 1


def test_two_halves_find_each_other() -> None:
    calls = Precompiled(
        MappingProxyType({1: piece(Reference(0, "R_X86_64_PC32", "g", 0, 0))}),
        MappingProxyType({"f": (1, 0)}),
    )
    defines = Precompiled(MappingProxyType({1: piece()}), MappingProxyType({"g": (1, 4)}))
    both = joined(calls, defines)
    assert both.symbols == {"f": (1, 0), "g": (3, 4)}
    (found,) = both.pieces[1].references
    assert (found.symbol, found.piece, found.addend) == ("", 3, 4)


# ---- messages and rows ----


def test_a_message_shows_every_byte_and_word_as_it_is() -> None:
    words = [phrase.decode() for phrase in phrases() if phrase.isascii() and phrase.isalpha()]
    said = f"\x01\n\t\x1f, but got {' '.join(words)} é\x10"
    fault = Fault("my.Error", said.replace("{", "{{"))
    with pytest.raises(Refused) as caught:
        Wrapped(Scalar("i", Int32), faults=(fault,), status=1)(3)
    assert str(caught.value) == f"my.Error: {said}"


def test_messages_share_words() -> None:
    table = Table()
    table.add(body_fault(Fault("ValueError", "Mismatched Tensor, but got {}")))
    assert len(table.data()) < len("ValueError" + "Mismatched Tensor, but got ")


@pytest.mark.parametrize(
    ("b", "size"),
    [(0, 8), (1, 12), (-1, 12), (1 << 31, 16), (-(1 << 31), 12), (-(1 << 31) - 1, 16)],
)
def test_a_row_is_as_long_as_its_number(b: int, size: int) -> None:
    assert row_size(b) == size == len(pack_row(Op.EXACT, 0, 0, 0, b))
