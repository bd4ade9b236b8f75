"""The generated text and the objects made from it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from llvm_text import verified

from ferrule.compiler import targets
from ferrule.compiler.artefacts import Body
from ferrule.compiler.assemble import assemble, assembly_text
from ferrule.compiler.origin import CompiledOrigin, host_module
from ferrule.compiler.support.precompiled import read
from ferrule.compiler.wrapper.builder import build_wrapper
from ferrule.compiler.wrapper.callee import BodyCall
from ferrule.runtime.binaries.objectfile import read_object
from ferrule.runtime.cfunctions import C_FUNCTIONS
from ferrule.specs import Float32, Int32, Scalar, Signature, Tensor, sym_int
from ferrule.specs.params import Tuple

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


def test_texts_are_the_same_each_time() -> None:
    first, second = (build_wrapper(signature(), BodyCall(BODY)) for _ in range(2))
    assert first == second


def instructions(tensors: int) -> int:
    sizes = [sym_int() for _ in range(4)]
    params = [Tensor(f"t{i}", sizes, Float32, device="cpu") for i in range(tensors)]
    text = build_wrapper(Signature("f", params), BodyCall(Body("", "ferrule_body", ())))
    return sum(line.startswith("  ") for line in text.splitlines())


def test_wrappers_grow_with_the_number_of_their_tensors() -> None:
    step = instructions(3) - instructions(2)
    assert step < 80
    assert instructions(40) - instructions(20) == 20 * step


def test_names_that_llvm_cannot_read() -> None:
    params = (Tensor("größe", (2,), Float32, device="cpu"), Tuple("t", (Scalar("0", Int32),)))
    verified(build_wrapper(Signature("f", params), BodyCall(Body("", "ferrule_body", ()))))


@pytest.mark.parametrize("level", range(4))
def test_bodies_are_optimised_as_far_as_was_asked(level: int) -> None:
    text = "define i32 @ferrule_body(ptr %v, i32 %k) {\n  %a = alloca i32\n"
    text += "  store i32 %k, ptr %a\n  %r = load i32, ptr %a\n  ret i32 0\n}\n"
    module = host_module(
        Signature("f", (Scalar("k", Int32),)), Body(text, "ferrule_body", ()), level
    )
    here = targets.baseline()
    shown = assembly_text(module, here.cpu, here.triple)
    body = shown.partition("ferrule_body:")[2].partition("ret")[0]
    assert ("mov" in body) == (level == 0)
    assert assemble(module, "f", here.cpu, here.triple).data


def test_support_code_is_the_same_as_bytes_and_as_assembly() -> None:
    """The bytes export nothing; the assembly is what is shown, and defines what wrappers call."""
    here = targets.baseline()
    made = origin(signature()).emit("add", here.cpu, here.triple)
    assert set(read_object(made.data).defined) == {"__tvm_ffi_add"}
    assert "ferrule_check:" in origin(signature()).text("asm")
    assert read(b"no object") is None


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
    assert b"plus(a: Tensor([n0], float32)" in other.data
    assert b"add(a:" not in other.data


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


def test_a_device_must_be_decided() -> None:
    with pytest.raises(ValueError, match="the device type of the parameter a is not decided"):
        build_wrapper(Signature("f", (Tensor("a", (1,), Float32),)), BodyCall(BODY))
