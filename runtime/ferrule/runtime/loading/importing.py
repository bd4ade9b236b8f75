"""Functions of this process whose code calls functions that their module imports."""

from __future__ import annotations

from collections.abc import Sequence

from ferrule.runtime.abi import LIBRARY_CONTEXT
from ferrule.runtime.artefacts import ObjectCode, Origin
from ferrule.runtime.binaries.elf import ObjectFileError
from ferrule.runtime.binaries.importtree import Node
from ferrule.runtime.binaries.objectfile import read_object
from ferrule.runtime.calls.function import Function, make_function
from ferrule.runtime.calls.plan import described, origin_of
from ferrule.runtime.entry.key import ANY_FUNCTION
from ferrule.runtime.errors import StageError
from ferrule.runtime.linking.engine import host_triple
from ferrule.runtime.linking.objectgroup import load_group


def with_imports(function: Function, nodes: Sequence[Node]) -> Function:
    """The function for a module with this import tree: the same one if its code uses no imports.

    Otherwise a new function with its own code, which can find the modules of the tree. These
    modules are never freed.
    """
    from ferrule.runtime.loading.systemlib import give_imports, member

    origin = origin_of(function)
    try:
        code = _object_of(origin, function.name)
        if LIBRARY_CONTEXT not in read_object(code.data).defined:
            return function
        (engine,) = load_group([member(code.name, code.data)])
    except (StageError, ObjectFileError):
        return function
    give_imports([engine], nodes)
    signature, doc = described(function)
    traits = getattr(origin, "traits", ANY_FUNCTION)
    address = engine.address(code.symbol)
    notes = function.notes
    return make_function(
        address, signature, origin, owner=engine, doc=doc, traits=traits, notes=notes
    )


def _object_of(origin: Origin, name: str) -> ObjectCode:
    """The object of a function: made for this machine, or as it was loaded.

    StageError for a function of a library.
    """
    from llvmlite import binding

    try:
        return origin.emit(name, binding.get_host_cpu_name(), host_triple())
    except StageError:
        return ObjectCode(name, origin.export(name, ".o"), "", "")
