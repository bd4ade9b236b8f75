"""Functions from LLVM text with traits of a test's choice, and their calls by every path."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tvm_ffi
from llvmlite import binding

from ferrule import specs
from ferrule.runtime import Function, ObjectCode, Stage, make_function
from ferrule.runtime.calls.callpath import name_hidden, prepare_call
from ferrule.runtime.entry.key import ANY_FUNCTION, CallTraits
from ferrule.runtime.linking.engine import Engine, host_triple, initialize_llvm

HEAD = "define i32 @__tvm_ffi_f(ptr %handle, ptr %args, i32 %n, ptr %result)"

DECLARED = """
declare i32 @TVMFFIAnyViewToOwnedAny(ptr, ptr)
declare i32 @TVMFFIFunctionCall(ptr, ptr, i32, ptr)
declare ptr @TVMFFIEnvGetStream(i32, i32)
declare i32 @TVMFFIEnvCheckSignals()
declare void @TVMFFIErrorSetRaisedFromCStr(ptr, ptr)
declare i32 @usleep(i32)
"""

KEEP = CallTraits(releases_gil=False, uses_stream=False, allocates=False)


@dataclass(frozen=True, slots=True)
class NoOrigin:
    """An origin that is never asked."""

    def emit(self, name: str, cpu: str, triple: str) -> ObjectCode:
        raise NotImplementedError

    def text(self, stage: Stage) -> str:
        raise NotImplementedError

    def export(self, name: str, form: Any) -> bytes:
        raise NotImplementedError


def function(
    body: str, *params: specs.Param, traits: CallTraits = ANY_FUNCTION, constants: str = ""
) -> Function:
    """`f` with this body: LLVM instructions that see `%args`, `%n` and `%result`."""
    initialize_llvm()
    module = binding.parse_assembly(f"{constants}\n{HEAD} {{\n{body}\n}}\n{DECLARED}")
    module.verify()
    machine = binding.Target.from_triple(host_triple()).create_target_machine(
        reloc="pic", codemodel="default"
    )
    code = ObjectCode("f", bytes(machine.emit_object(module)), host_triple(), "")
    engine = Engine.load(code)
    return make_function(
        engine.address("__tvm_ffi_f"),
        specs.Signature("f", params),
        NoOrigin(),
        owner=engine,
        traits=traits,
    )


def number(expression: str) -> str:
    """A body that returns the i64 `%x`, which these instructions compute."""
    return (
        f"{expression}\n  store i64 1, ptr %result\n"
        "  %payload = getelementptr i8, ptr %result, i64 8\n"
        "  store i64 %x, ptr %payload\n  ret i32 0"
    )


def payload(place: int) -> str:
    """Instructions for `%x`, the payload of an argument."""
    return f"  %at = getelementptr i8, ptr %args, i64 {16 * place + 8}\n  %x = load i64, ptr %at"


def slow(called: Function, *values: Any, **keywords: Any) -> Any:
    """The call as the slow path makes it, whatever the values are."""
    given = (*values, *keywords.values())
    prepared = prepare_call(called, given, tuple(keywords))
    try:
        return tvm_ffi.Function.__call__(called, *prepared)
    except Exception:
        name_hidden(called, prepared)
        raise


def outcome(call: Callable[[], Any]) -> Any:
    """What a call gives, or the class and message of its error, without torch's C++ stack."""
    try:
        return call()
    except Exception as error:
        return type(error), str(error).partition("\nException raised from")[0]
