"""Handlers in files: an object that defines a handler of XLA for an exported function.

A process without ferrule registers it: `jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(...))`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from llvmlite import binding

from ferrule import specs
from ferrule.compiler import targets
from ferrule.compiler.operators.jax.handler import emit_handler
from ferrule.compiler.operators.jax.plans import plan_of
from ferrule.runtime.abi import SYMBOL_PREFIX
from ferrule.runtime.artefacts import OperatorCode
from ferrule.runtime.linking.linker import find_runtime_libraries
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.passes import run_pipeline

_SYMBOL: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def handler_code(
    signature: specs.Signature,
    function_name: str,
    symbol: str,
    made: Sequence[str] | None,
    target: targets.HostTarget,
) -> OperatorCode:
    """The object that defines the handler `symbol`, and tvm-ffi's library.

    Raises the errors of `jax_call`, and TypeError or ValueError for no name of a symbol.
    """
    _check_symbol(symbol)
    e = Emitter("ferrule.jax_call", target.triple)
    emit_handler(e, plan_of(signature, made), symbol, SYMBOL_PREFIX + function_name)
    module = binding.parse_assembly(e.text(), context=binding.create_context())
    module.verify()
    machine = targets.machine(target)
    run_pipeline(module, machine, binding.create_pipeline_tuning_options(speed_level=2))
    data = bytes(machine.emit_object(module))
    return OperatorCode(data, tuple(find_runtime_libraries()))


def _check_symbol(symbol: str) -> None:
    if not isinstance(symbol, str):
        raise TypeError(f"xla_handler must be a name, but got {symbol!r}")
    if not _SYMBOL.fullmatch(symbol) or symbol.startswith(("__", "ferrule_")):
        raise ValueError(
            f"xla_handler must be a C identifier that begins with neither __ nor ferrule_, but got "
            f"{symbol!r}"
        )
