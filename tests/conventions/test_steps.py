"""`inspect_ir()` of built functions: the steps that a convention makes, one by one."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from c_objects import c_object
from each_convention import OUT, SOURCE, K, N, X, each_function

import ferrule as fe
from ferrule import compiler, specs
from ferrule.compiler import conventions
from ferrule.compiler.conventions import (
    Apart,
    Call,
    CallingConvention,
    CFunction,
    CudaLaunch,
    DLTensors,
    FirstOf,
    Give,
    HostCode,
    Memref,
    Out,
    Require,
    SafeCall,
    Sequence,
    Sized,
    TensorMap,
    Zero,
)
from ferrule.specs import Data, Param, Signature, Tensor

PTX = """\
.version 8.0
.target sm_90
.address_size 64
.visible .const .align 4 .f32 factor;
.visible .entry add(.param .align 64 .b8 map[128], .param .u64 y, .param .u32 n) {
  .reg .f32 %f<2>;
  ld.const.f32 %f1, [factor];
  ret;
}
"""
TAKEN = {
    *(CFunction, Memref, DLTensors, SafeCall, Sequence, FirstOf, Sized),  # each_convention
    *(Apart, Require, Give, Zero, CudaLaunch),
}


class Silent:
    """A convention that says nothing of its steps, but for the check that it makes."""

    when = None

    def codes(self) -> tuple[fe.DeviceCode, ...]:
        return ()

    def results(self) -> tuple[Param, ...]:
        return ()

    def emit(self, call: Call) -> None:
        call.refuse(call.condition(N > 4), conventions.Fault("ValueError", "{{n}} is {}"))


def test_every_convention_is_shown_here() -> None:
    every = {getattr(conventions, name) for name in conventions.__all__}
    assert TAKEN == {each for each in every if hasattr(each, "emit")} - {CallingConvention}


@pytest.mark.needs_cc
def test_calls_on_the_host(golden: Callable[[str, str], None]) -> None:
    code = HostCode.from_object(c_object(SOURCE))
    golden("steps_host.txt", "\n".join(each.inspect_ir() for each in each_function(code)))


def test_checks_values_and_a_convention_of_somebody(golden: Callable[[str, str], None]) -> None:
    exponent = Out("int32", "exponent", initial=3)
    steps = [
        Require(N > 1, "two are needed"),
        Apart(X, OUT, Tensor("y", (N,), "float32")),
        Zero(OUT),
        CFunction("frexpf", [K, exponent], returns="float32"),
        Silent(),
        Give(N),
    ]
    params: list[Param] = [X, Tensor("y", (N,), "float32"), K]
    built = compiler.build(Signature("several", params), Sequence(steps), results=[OUT])
    golden("steps_several.txt", built.inspect_ir())


def launching() -> fe.Function:
    launch = CudaLaunch(
        fe.DeviceCode.from_ptx(PTX),
        "add",
        [TensorMap(X, box=(128,)), OUT.data, N],
        specs.ceil_div(N, 128),
        128,
        constants={"factor": b"\0\0\0\0"},
        when=N > 0,
    )
    return compiler.build(Signature("launching", [X]), launch, results=[OUT], zero=True)


def test_a_launch(golden: Callable[[str, str], None]) -> None:
    golden("steps_launch.txt", launching().inspect_ir())


def test_the_steps_keep_no_code_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[weakref.ref[Any]] = []

    def address(call: Call, data: Data) -> Any:
        kept.append(weakref.ref(call.emitter.module))
        return before(call, data)

    before = Call.address
    monkeypatch.setattr(Call, "address", address)
    built = launching()
    gc.collect()
    assert kept
    assert {each() for each in kept} == {None}
    assert "launch add(" in built.inspect_ir()
