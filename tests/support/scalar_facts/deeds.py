"""What tables of operators do: each entry is executed, and so is each in the place of another.

An entry that is wrong computes something else.  So for each operator all entries are compared with
what the operator means: its own has to agree, and no other, nor its own with the operands the
other way round where the order matters.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Final

import numpy as np
from llvmlite import binding as llvm
from maths_reference import run

from ferrule.language.codegen import CodegenError
from ferrule.language.codegen.values import arithmetic
from ferrule.language.mathlib import expand
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import F32, I1, I8, I32, PTR, VOID
from ferrule.specs.dtypes import Kind
from scalar_facts.meanings import (
    DTYPES,
    KINDS,
    NAMES,
    Array,
    agree,
    count_of,
    is_commutative,
    kinds_of,
    meaning,
    samples,
)

Entry = tuple[str, Kind]
Deeds = Mapping[Entry, Array]
"""The results of entries of a table for the samples."""
_MEMORY: Final = {"bool": I8, "int": I32, "uint": I32, "float": F32}
_SWAPPED: Final = " with its operands the other way round"


def operands(name: str, kind: Kind, swapped: bool = False) -> tuple[Array, ...]:
    """The samples of an operator, the other way round if wanted."""
    return samples(kind, count_of(name))[:: -1 if swapped else 1]


def wrong(found: Deeds, ulps: float = 4) -> list[str]:
    """Entries that do not do what they should."""
    return [
        f"{name} of {kind}"
        for (name, kind), each in found.items()
        if not _is(name, kind, each, ulps)
    ]


def unnoticed(found: Deeds, swapped: Deeds, ulps: float = 4) -> list[str]:
    """What could be in the place of an entry without another result."""
    return [
        f"{other[0]} of {other[1]}{how} as {name} of {kind}"
        for name, kind in found
        for how, entries in (("", found), (_SWAPPED, swapped))
        for other, results in entries.items()
        if _fits(name, kind, other) and _differs(name, kind, other, how)
        if _is(name, kind, results, ulps)
    ]


def _is(name: str, kind: Kind, results: Array, ulps: float) -> bool:
    wanted = _wanted(name, kind)
    if isinstance(results, np.ma.MaskedArray):
        shown = ~np.ma.getmaskarray(results)
        return agree(results.data[shown], wanted[shown], ulps)
    return agree(results, wanted, ulps)


@cache
def _wanted(name: str, kind: Kind) -> Array:
    return meaning(name, kind, samples(kind, count_of(name)))


def _fits(name: str, kind: Kind, other: Entry) -> bool:
    """Whether an entry was tried on the same operands."""
    return other[1] == kind and count_of(name) == count_of(other[0])


def _differs(name: str, kind: Kind, other: Entry, how: str) -> bool:
    """Whether an entry means something else; a commutative operator may have its operands so."""
    if other[0] != name:
        return True
    return bool(how) and not is_commutative(name, kind)


# ---- LLVM ----


def emitted(swapped: bool = False) -> Deeds:
    """What LLVM makes of the operators that are instructions, on this CPU."""
    emitter, symbols = Emitter("operators"), dict[Entry, str]()
    for name, kind in itertools.product(NAMES, KINDS):
        if (count_of(name) == 2 or not swapped) and _is_emitted(name, kind):
            symbols[name, kind] = _function(emitter, name, kind, swapped)
    return _called(emitter.text(), symbols)


def _is_emitted(name: str, kind: Kind) -> bool:
    """Whether LLVM has instructions for an operator."""
    try:
        _function(Emitter("one operator"), name, kind, swapped=False)
    except CodegenError:
        return False
    return True


def _function(emitter: Emitter, name: str, kind: Kind, swapped: bool) -> str:
    """A function that stores the result of an operator.  CodegenError if it has no code."""
    symbol, dtype = f"{name}_{kind}", DTYPES[kind]
    function = emitter.declare(symbol, VOID, [PTR] * (count_of(name) + 1))
    with emitter.body(function):
        builder = emitter.builder
        given = [builder.load(each, typ=_MEMORY[kind]) for each in function.args[:-1]]
        if kind == "bool":
            given = [builder.trunc(each, I1) for each in given]
        if swapped:
            given.reverse()
        emit: Any = arithmetic.unary if len(given) == 1 else arithmetic.binary
        result = emit(emitter, name, dtype, *given)
        result = builder.zext(result, I8) if kind == "bool" else result
        builder.store(result, function.args[-1])
        builder.ret_void()
    return symbol


def _called(text: str, names: Mapping[Entry, str]) -> Deeds:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(opt=1)
    with llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine) as engine:
        engine.finalize_object()
        found = {}
        for (name, kind), symbol in names.items():
            given = samples(kind, count_of(name))
            kinds = [ctypes.c_void_p] * (len(given) + 1)
            call = ctypes.CFUNCTYPE(None, *kinds)(engine.get_function_address(symbol))
            found[name, kind] = _each(call, given)
        return found


def _each(call: Callable[..., Any], given: tuple[Array, ...]) -> Array:
    out = np.zeros_like(given[0])
    arrays = (*given, out)
    for place in range(len(out)):
        call(*(each.ctypes.data + place * each.itemsize for each in arrays))
    return out


# ---- the library ----


def formulas(swapped: bool = False) -> Deeds:
    """What the formulas of the library compute, of float32 on this CPU."""
    names = expand.BINARY if swapped else {**expand.UNARY, **expand.BINARY}
    return {
        (name, "float"): run(name, DTYPES["float"], *operands(name, "float", swapped))
        for name in names
    }


# ---- functions of Python ----


def called(
    table: Mapping[str, Callable[..., Any]], kind: Kind, dtype: str, swapped: bool = False
) -> Iterator[tuple[Entry, Array]]:
    """What functions of Python's numbers compute, in a dtype; hidden where they raise."""
    for name, function in table.items():
        if kind not in kinds_of(name) or (swapped and count_of(name) < 2):
            continue
        given = operands(name, kind, swapped)
        each = zip(*(side.tolist() for side in given), strict=True)
        results = [_result(function, one) for one in each]
        hidden = [result is None for result in results]
        filled = [0 if result is None else result for result in results]
        yield (name, kind), np.ma.array(filled, dtype, mask=hidden)


def _result(function: Callable[..., Any], given: tuple[Any, ...]) -> Any:
    try:
        return function(*given)
    except (ArithmeticError, ValueError):
        return None
