"""The form of importing modules in a file: one library, and a tree of its imports.

The machine code of all modules goes into the library. A module without machine code, such as one of
kind `ferrule.ptx`, becomes a node of the tree, with its own imports; so does a module of tvm-ffi of
this process, by the bytes that its kind makes of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from ferrule.runtime.binaries.elf import ObjectFileError
from ferrule.runtime.binaries.importtree import LIBRARY, Node, order, write_import_tree
from ferrule.runtime.calls.plan import is_compiled
from ferrule.runtime.exporting.livemodules import saved

if TYPE_CHECKING:
    import tvm_ffi

    from ferrule.runtime.loading.modules import Module

    _Imports: TypeAlias = Callable[[Module], Sequence[Module]]


def flattened(root: Module, *, here: bool = False) -> tuple[dict[str, Any], bytes]:
    """The compiled functions of all modules by name, and the import tree (empty if not needed).

    With `here` the tree is without `live_imports`. ValueError for two functions with the same name,
    and for a module that would import itself; for modules of tvm-ffi the errors of `saved`.
    """
    imports = _without_live if here else _all
    functions: dict[str, Any] = {}
    for module in _reached(root, imports):
        for name in module if module.is_code else ():
            function = _compiled(module, name)
            if functions.setdefault(name, function) is not function:
                raise ValueError(
                    f"two of the modules have a function {name!r}: one library has one of a name"
                )
    nodes = _tree(root, imports, _written)
    return functions, write_import_tree(nodes) if nodes else b""


def _compiled(module: Module, name: str) -> Any:
    """A function of a module; ValueError for one whose code cannot be copied."""
    function = module.original(name)
    if not is_compiled(function):
        raise ValueError(
            f"the function {name!r} is of a library, {module.path or 'without a file'}, whose code "
            "cannot be part of another: ship both, and import one into the other where they are "
            "loaded, tvm_ffi.Module.import_module"
        )
    return function


def live_imports(root: Module) -> list[tvm_ffi.Module]:
    """The modules of tvm-ffi that modules of machine code import, each once."""
    code = (module for module in _reached(root, _all_but_theirs) if module.is_code)
    found = {child.identity: child.live for module in code for child in module.imports}
    return [live for live in found.values() if live is not None]


def nodes_of(root: Module) -> list[Node]:
    """The import tree of a module in this process; empty if all modules are machine code.

    Modules of tvm-ffi are what they are. ValueError for a module that would import itself.
    """
    return _tree(root, _all_but_theirs, _held)


def _tree(root: Module, imports: _Imports, make: Callable[[Module], Node]) -> list[Node]:
    modules = _reached(root, imports)
    if all(module.is_code for module in modules):
        return []
    nodes = _nodes(modules, imports, make)
    try:
        order(nodes)
    except ObjectFileError:
        raise ValueError(
            f"{root!r} cannot be one library: a module that is no code imports code, which imports "
            "it; the code of all modules is one library"
        ) from None
    return nodes


def _all(module: Module) -> Sequence[Module]:
    return module.imports


def _all_but_theirs(module: Module) -> Sequence[Module]:
    """Without those of modules of tvm-ffi, which have them already."""
    return () if module.live is not None else module.imports


def _without_live(module: Module) -> Sequence[Module]:
    """Without the modules of tvm-ffi that machine code imports."""
    return [each for each in module.imports if each.live is None or not module.is_code]


def _reached(root: Module, imports: _Imports) -> Sequence[Module]:
    """The module and its direct and indirect imports, each once, in breadth-first order."""
    found: dict[int, Module] = {root.identity: root}
    waiting = [root]
    for module in waiting:
        for child in imports(module):
            if child.identity not in found:
                found[child.identity] = child
                waiting.append(child)
    return waiting


def _nodes(
    modules: Sequence[Module], imports: _Imports, make: Callable[[Module], Node]
) -> list[Node]:
    """The nodes of the tree, the root first; all machine code together is one node, the library."""
    keys = list(dict.fromkeys(map(_key, modules)))
    children: dict[int, dict[int, None]] = {key: {} for key in keys}
    found: dict[int, Node] = {}
    for module in modules:
        key = _key(module)
        for child in imports(module):
            # Modules of machine code become one library, so an import between two of them is no
            # edge: it would make the library import itself.
            if _key(child) != key:
                children[key][keys.index(_key(child))] = None
        if key not in found:
            found[key] = make(module)
    return [replace(found[key], children=tuple(children[key])) for key in keys]


def _written(module: Module) -> Node:
    """The node of a module in a file."""
    if module.live is not None:
        return Node(module.kind, saved(module.live), ())
    return Node(LIBRARY, b"", ()) if module.data is None else Node(module.kind, module.data, ())


def _held(module: Module) -> Node:
    """The node of a module in this process."""
    if module.live is None:
        return _written(module)
    return Node(module.kind, str(module.identity).encode(), (), module.live)


def _key(module: Module) -> int:
    return 0 if module.is_code else module.identity
