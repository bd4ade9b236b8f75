"""The rows of operators say what operators are seen to be, and each wrong row is noticed."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from llvmlite import binding as llvm
from mlir_functions import needs_mlir
from scalar_facts import deeds, mlir, rows, tables
from scalar_facts.meanings import DTYPES, KINDS, NAMES, agree, count_of, kinds_of, meaning, samples

from ferrule.compiler.cuda import libdevice
from ferrule.compiler.errors import CompileError
from ferrule.language.codegen.cuda import approximate
from ferrule.language.ir.scalars import EVERY, ScalarOp
from ferrule.language.lowering.numbers.tables import (
    IR_BINARY,
    OF_BOOLS,
    PYTHON_BINARY,
    PYTHON_UNARY,
    SIZE_BINARY,
)
from ferrule.specs.dtypes import Kind
from ferrule.specs.expr import make

SIGNED = frozenset(("floordiv", "mod", "max", "min", "shr"))
"""The operators whose results depend on whether integers have a sign."""
OF_INTEGERS = [(name, kind) for name in NAMES for kind in KINDS[1:3] if kind in kinds_of(name)]
OF_FLOATS = [(name, KINDS[3]) for name in NAMES if "float" in kinds_of(name)]
OF_TWO = ("hypot", "fdim", "remainder")
"""Functions of libdevice for which there is no operator, and which take two floats."""
APPROXIMATE = 1 << 14
"""The error of approximations, in ulp."""


# ---- rows ----


def test_the_meaning_of_every_operator_is_known() -> None:
    assert set(NAMES) == set(EVERY)


def test_samples_tell_integers_with_a_sign_from_others() -> None:
    for name in {name for name, _ in OF_INTEGERS}:
        given = samples("uint", count_of(name))
        signed = meaning(name, "int", [each.view("i4") for each in given])
        assert (signed.view("u4") != meaning(name, "uint", given)).any() == (name in SIGNED), name


@pytest.mark.parametrize("name", EVERY)
def test_a_row_is_right(name: str) -> None:
    assert list(rows.complaints(name, EVERY[name])) == []


@pytest.mark.parametrize("name", EVERY)
def test_each_wrong_row_is_noticed(name: str) -> None:
    wrong = rows.mutations(name, EVERY[name])
    assert [how for how, row in wrong if next(rows.complaints(name, row), None) is None] == []


def test_every_column_is_made_wrong() -> None:
    made = [row for name in EVERY for _, row in rows.mutations(name, EVERY[name])]
    for column in fields(ScalarOp):
        assert len({str(getattr(row, column.name)) for row in made}) > 1, column.name


# ---- entries of tables: the own one is right, every other one is wrong ----


@pytest.mark.parametrize(
    "table",
    (deeds.emitted, deeds.formulas, tables.folded, tables.functions),
    ids=lambda each: each.__name__,
)
def test_each_entry_is_right_and_no_other_is(table: Callable[..., Any]) -> None:
    found = table()
    assert deeds.wrong(found) == []
    assert deeds.unnoticed(found, table(swapped=True)) == []


def test_what_is_an_instruction_is_folded() -> None:
    formulas = deeds.formulas()
    assert tables.folded().keys() == deeds.emitted().keys() - formulas.keys()


def test_ptx_of_each_operator_on_floats_is_right_and_no_other_is() -> None:
    found, ptx = tables.emulated(OF_FLOATS)
    assert deeds.wrong(found) == []
    swapped = [entry for entry in OF_FLOATS if count_of(entry[0]) == 2]
    assert deeds.unnoticed(found, tables.emulated(swapped, swapped=True)[0]) == []
    bodies = {each.partition("(")[0]: each for each in ptx.split(".entry ")[1:]}
    for name, instruction in tables.PTX_NAMES.items():
        assert instruction in bodies[f"{name}_float"]


def test_approximations_are_near_and_no_others_are() -> None:
    names = list(approximate._FAST)
    given = [np.roll(tables.POSITIVE, i) for i in range(2)]
    for found in (tables.approximations(names), tables.written_approximations(names)):
        for name, other in itertools.product(names, repeat=2):
            wanted = meaning(name, "float", given[: count_of(name)])
            assert agree(found[other], wanted, APPROXIMATE) == (name == other), (name, other)


# ---- libdevice ----


@pytest.fixture(scope="module")
def library() -> dict[str, str]:
    """The functions of libdevice with their types."""
    try:
        bitcode = libdevice.libdevice()
    except CompileError as error:
        pytest.skip(str(error.diagnostic.message))
    return tables.signatures(str(llvm.parse_bitcode(bitcode, llvm.create_context())))


def test_libdevice_has_the_functions_of_its_guide(library: dict[str, str]) -> None:
    for name in {*EVERY, *rows.LIBDEVICE}:
        listed = name in rows.LIBDEVICE
        given = (
            "{0},{0}" if name in {"hypot", "fdim", "remainder"} or count_of(name) == 2 else "{0}"
        )
        for suffix, type_ in (("f", "float"), ("", "double")):
            wanted = f"{type_}({given.format(type_)})"
            assert (library.get(name + suffix) == wanted) == listed, name + suffix


@pytest.mark.usefixtures("library")
def test_what_libdevice_computes_is_right_and_no_other_is() -> None:
    entries = [(name, kind) for name, kind in OF_FLOATS if EVERY[name].libdevice]
    found, _ = tables.emulated(entries, libdevice=True)
    assert deeds.wrong(found, ulps=8) == []
    swapped = [entry for entry in entries if count_of(entry[0]) == 2]
    other, _ = tables.emulated(swapped, libdevice=True, swapped=True)
    assert deeds.unnoticed(found, other, ulps=8) == []


# ---- MLIR ----


@needs_mlir
def test_mlir_means_the_same_by_its_operations() -> None:
    kinds: dict[Kind, Any] = {"bool": mlir.BOOLS, "int": mlir.INTEGERS, "float": mlir.FLOATS}
    cases, wanted = [], []
    for kind, table in kinds.items():
        for name, function in table.items():
            given = samples(kind, 2 if name in mlir.TWO else 1)
            with np.errstate(all="ignore"):
                each = np.asarray(function(*given)).astype(given[0].dtype)
            said = [n for n in range(len(each)) if mlir.is_folded(name, given, n)]
            chosen = said[:: max(1, len(said) // 24)]
            cases += [(name, [side[place] for side in given]) for place in chosen]
            wanted += [each[place] for place in chosen]
    found = tables.folded_by_mlir(cases)
    for (name, given), got, right in zip(cases, found, wanted, strict=True):
        if got is not None:
            assert agree(np.array([got]), np.array([right])), (name, given, got, right)


# ---- Python ----


def test_python_s_operators_are_those_of_their_signs_and_no_others() -> None:
    each = {name: rest for name, *rest in tables.python_operators()}
    for name, (real, function, sign) in each.items():
        assert function == sign == real, name
        assert [other for other in each if each[other][1] == real] == [name]


def test_operators_of_the_kernel_ir_are_those_of_python() -> None:
    pairs = [np.array(side, "i4") for side in zip(*tables.NUMBERS, strict=True)]
    floats = [each.astype("f8") for each in pairs]
    found = {name: meaning(name, "int", pairs) for name in SIZE_BINARY} | {
        name: meaning(name, "int", pairs) for name in IR_BINARY.values() if name != "div"
    }
    for op, name in IR_BINARY.items():
        real = tables.results(PYTHON_BINARY[op][1])
        if name == "div":
            assert meaning(name, "float", floats).tolist() == real
            continue
        known = [n for n, value in enumerate(real) if type(value) is int and abs(value) < 2**31]
        same = [
            other for other, values in found.items() if all(values[n] == real[n] for n in known)
        ]
        assert same == [name]


def test_operators_of_sizes_are_those_of_integers() -> None:
    pairs = [np.array(side, "i4") for side in zip(*tables.NUMBERS, strict=True)]
    for name, size in SIZE_BINARY.items():
        found = [make(size, x, y) for x, y in tables.NUMBERS]
        same = [each for each in SIZE_BINARY if meaning(each, "int", pairs).tolist() == found]
        assert same == [name]


def test_unary_operators_are_those_of_python() -> None:
    numbers = (-3, 0, 1, 8)
    for op, function in PYTHON_UNARY.items():
        real = [tables.written(op, each) for each in numbers]
        same = [o for o, f in PYTHON_UNARY.items() if [f(each) for each in numbers] == real]
        assert [function(each) for each in numbers] == real
        assert same == [op]


def test_the_larger_and_the_smaller_of_bools_are_operators_of_bits() -> None:
    for name, bits in OF_BOOLS.items():
        wanted = [
            {"max": max, "min": min}[name](*pair) for pair in itertools.product((0, 1), (0, 1))
        ]
        found = meaning(bits, "bool", samples("bool", 2)).tolist()
        assert found == wanted


def test_dtypes_of_the_samples_are_of_their_kinds() -> None:
    assert {kind: dtype.kind for kind, dtype in DTYPES.items()} == {kind: kind for kind in KINDS}
