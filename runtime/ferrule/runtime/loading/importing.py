"""Functions of this process whose code calls functions that their module imports."""

from __future__ import annotations

from collections.abc import Sequence

from ferrule.runtime.abi import LIBRARY_CONTEXT
from ferrule.runtime.binaries.elf import ObjectFileError
from ferrule.runtime.binaries.importtree import Node
from ferrule.runtime.binaries.objectfile import read_object
from ferrule.runtime.calls.function import Function, described, make_function, origin_of
from ferrule.runtime.entry.key import ANY_FUNCTION
from ferrule.runtime.errors import StageError
from ferrule.runtime.linking.engine import Engine, host_triple


def with_imports(function: Function, nodes: Sequence[Node]) -> Function:
    """The function for a module with this import tree: the same one if its code uses no imports.

    Otherwise a new function with its own code, which can find the modules of the tree. These
    modules are never freed.
    """
    from llvmlite import binding

    from ferrule.runtime.loading.systemlib import give_imports

    origin = origin_of(function)
    try:
        code = origin.emit(function.name, binding.get_host_cpu_name(), host_triple())
        if LIBRARY_CONTEXT not in read_object(code.data).defined:
            return function
        engine = Engine.load(code)
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
