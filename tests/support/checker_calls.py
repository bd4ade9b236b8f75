"""The checker alone under test: a function that runs a check program and keeps what comes out.

`Checked` builds `__tvm_ffi_<name>`, which only calls `ferrule_check`, so that a call shows what the
checker decides, and which leaves and symbols it hands back, without any hot code before it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

import llvmlite.binding as llvm
from wrapper_calls import Argument, Refused, _raised, forge

from ferrule.compiler import targets
from ferrule.compiler.artefacts import Location, Relation
from ferrule.compiler.checker.program import Program, build_program
from ferrule.compiler.messages.support import CHECK
from ferrule.compiler.messages.table import Table
from ferrule.compiler.support.library import CHECKS, Need, support_data
from ferrule.runtime.artefacts import ObjectCode
from ferrule.runtime.linking.engine import Engine
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I32
from ferrule.specs import Param, Requirement, Signature

ROOM = 8


@cache
def checker() -> tuple[Engine, Any]:
    """`i32 check(table, program, args, num_args, values, out)`, loaded."""
    emitter = Emitter("checker")
    with emitter.define("__tvm_ffi_check", I32, CHECK.args) as function:
        check = emitter.symbol("ferrule_check", CHECK)
        emitter.ret(emitter.call(check, list(function.args)))
    here = targets.host()
    machine = targets.machine(here)
    text = emitter.text() + support_data((Need(CHECKS),), here.triple)
    module = llvm.parse_assembly(text, llvm.create_context())
    module.triple = here.triple
    module.verify()
    data = bytes(machine.emit_object(module))
    engine = Engine.load(ObjectCode(name="check", data=data, triple=here.triple, cpu=here.cpu))
    arguments = [ctypes.c_int if kind is I32 else ctypes.c_void_p for kind in CHECK.args]
    kind = ctypes.CFUNCTYPE(ctypes.c_int, *arguments)
    return engine, kind(engine.address("__tvm_ffi_check"))


class Checked:
    """A check program, ready to be run."""

    def __init__(
        self,
        *params: Param,
        name: str = "f",
        relations: Sequence[Relation] = (),
        location: Location | None = None,
        requires: Sequence[Requirement] = (),
    ) -> None:
        self.signature = Signature(name, params, requires=tuple(requires))
        table = Table()
        self.program: Program = build_program(self.signature, relations, table, location)
        self._program = ctypes.create_string_buffer(self.program.data, len(self.program.data))
        self._table = ctypes.create_string_buffer(table.data())
        self.function = checker()[1]

    def run(self, args: Any, count: int) -> tuple[int, ...]:
        """Leaves, then symbols, of arguments in C's form.  Raises Refused."""
        slots = self.program.leaves + len(self.signature.symbols)
        out = (ctypes.c_int64 * (slots + 1))(*[-77] * (slots + 1))
        values = (ctypes.c_int64 * ROOM)()
        status = self.function(
            ctypes.addressof(self._table),
            ctypes.addressof(self._program),
            args,
            count,
            ctypes.addressof(values),
            ctypes.addressof(out),
        )
        assert out[slots] == -77, "the checker wrote past its slots"
        if status != 0:
            assert status == -1
            raise _raised()
        return tuple(out)[:-1]

    def __call__(self, *arguments: Argument) -> tuple[int, ...]:
        """The same of forged arguments."""
        forged = forge(arguments)
        return self.run(ctypes.addressof(forged.args), len(arguments))

    def refused(self, *arguments: Argument) -> str:
        """The error of a call that must be refused: `ValueError: …`."""
        try:
            self(*arguments)
        except Refused as error:
            return str(error)
        raise AssertionError("the call was accepted")
