"""The generated text and the objects made from it."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from ferrule.compiler import targets
from ferrule.compiler.artefacts import Body
from ferrule.compiler.assemble import verified
from ferrule.compiler.conventions import BodyCall
from ferrule.compiler.origin import CompiledOrigin, host_module
from ferrule.compiler.wrapper.builder import build_wrapper
from ferrule.runtime.llvm.capi import C_FUNCTIONS
from ferrule.runtime.objectfile import read_object
from ferrule.specs import Float16, Float32, Int32, Scalar, Signature, Tensor, sym_int

BODY = Body(
    "define i32 @ferrule_body(ptr %v, ptr %a, ptr %b, i32 %k, i32 %n) {\n  ret i32 0\n}\n",
    "ferrule_body",
    (),
)


def signature(name: str = "add") -> Signature:
    n = sym_int()
    a, b = (Tensor(each, (n,), Float32, device="cpu") for each in "ab")
    return Signature(name, (a, b, Scalar("k", Int32)))


def origin(of: Signature) -> CompiledOrigin:
    symbols = tuple(of.symbols)
    return CompiledOrigin(host_module(of, Body(BODY.text, BODY.symbol, symbols)), "the kernel IR")


def test_wrapper_text(golden: Callable[[str, str], None]) -> None:
    """One tensor and one scalar, unoptimised; the bytes of the messages are left out."""
    of = Signature("scale", (Tensor("a", (sym_int(),), Float32, device="cpu"), Scalar("k", Int32)))
    text = build_wrapper(of, BodyCall(Body("", "ferrule_body", tuple(of.symbols))))
    verified(text)
    golden("scale.ll", re.sub(r'\[\d+ x i8\] c"[^"]*"', '[… x i8] c"…"', text))


def test_texts_are_the_same_each_time() -> None:
    first, second = (build_wrapper(signature(), BodyCall(BODY)) for _ in range(2))
    assert first == second


def test_the_hot_way_calls_the_body_alone() -> None:
    text = build_wrapper(signature(), BodyCall(BODY))
    hot = text[: text.index("ret i32 0")]
    assert re.findall(r"call \w+ @\"(\w+)\"", hot) == ["ferrule_body"]


def test_objects_show_the_export_alone() -> None:
    here = targets.host()
    code = origin(signature()).emit("add", here.cpu, here.triple)
    found = read_object(code.data)
    assert set(found.defined) == {"__tvm_ffi_add"}
    assert set(found.undefined) <= set(C_FUNCTIONS) | {"_GLOBAL_OFFSET_TABLE_"}


def test_objects_are_the_same_each_time() -> None:
    here = targets.baseline()
    first, second = (origin(signature()).emit("add", here.cpu, here.triple) for _ in range(2))
    assert first == second


def test_an_object_is_made_once_for_a_name_and_a_cpu() -> None:
    made, here = origin(signature()), targets.baseline()
    first = made.emit("add", here.cpu, here.triple)
    assert made.emit("add", here.cpu, here.triple) is first
    other = made.emit("plus", here.cpu, here.triple)
    assert other.name == "plus"
    assert set(read_object(other.data).defined) == {"__tvm_ffi_plus"}
    assert b"`plus(a: Tensor([n0], float32)" in other.data
    assert b"`add(" not in other.data


def test_texts_of_an_origin() -> None:
    made = origin(signature())
    assert made.text("ir") == "the kernel IR"
    assert "@ferrule_body" in made.text("llvm")
    assert "__tvm_ffi_add" in made.text("llvm")
    assert "__tvm_ffi_add:" in made.text("asm")


def test_threads_assemble_at_once() -> None:
    here = targets.host()

    def make(number: int) -> bytes:
        name = f"f{number % 4}"
        return origin(signature(name)).emit(name, here.cpu, here.triple).data

    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(make, range(16)))
    assert len(set(made)) == 4
    assert made[:4] == made[4:8] == made[12:]


def test_two_byte_float_scalars_are_refused_by_name() -> None:
    with pytest.raises(NotImplementedError, match="the scalar parameter k is float16"):
        build_wrapper(Signature("f", (Scalar("k", Float16),)), BodyCall(BODY))


def test_a_device_must_be_decided() -> None:
    with pytest.raises(ValueError, match="the device type of the parameter a is not decided"):
        build_wrapper(Signature("f", (Tensor("a", (1,), Float32),)), BodyCall(BODY))
