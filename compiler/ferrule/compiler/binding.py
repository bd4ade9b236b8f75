"""Loads compiled code into this process and makes a callable function of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ferrule.compiler import targets
from ferrule.compiler.errors import CompileError
from ferrule.runtime.abi import SYMBOL_PREFIX
from ferrule.runtime.calls.function import make_function
from ferrule.runtime.errors import LinkError
from ferrule.runtime.linking.engine import Engine
from ferrule.runtime.linking.links import Resolved, resolve

if TYPE_CHECKING:
    from ferrule.compiler.origin import CompiledOrigin
    from ferrule.runtime.artefacts import ObjectCode
    from ferrule.runtime.calls.function import Function


def load(origin: CompiledOrigin) -> Function:
    """Compile the modules of an origin for this machine's CPU, and make the function.

    Raises CompileError for a symbol of another library that cannot be found.
    """
    _, engine = linked(origin)
    return function_of(origin, engine)


def function_of(origin: CompiledOrigin, engine: Engine) -> Function:
    """The function of an origin, whose object an engine has linked."""
    signature = origin.module.signature
    return make_function(
        engine.address(SYMBOL_PREFIX + signature.name),
        signature,
        origin,
        owner=engine,
        doc=origin.doc,
        traits=origin.traits,
        notes=origin.notes,
    )


def linked(origin: CompiledOrigin) -> tuple[ObjectCode, Engine]:
    """Compile the modules of an origin for this machine's CPU, and link them into this process.

    Raises CompileError for a symbol of another library that cannot be found.
    """
    host = targets.host()
    found = _resolved(origin)
    code = origin.emit(origin.module.signature.name, host.cpu, host.triple)
    return code, Engine.load(code, found.addresses, owners=found.owners)


def _resolved(origin: CompiledOrigin) -> Resolved:
    """The addresses of the functions of other objects that a function calls."""
    try:
        return resolve(origin.module.body.links, origin.sources)
    except LinkError as error:
        raise CompileError(f"{origin.module.signature.name}: {error}") from None
