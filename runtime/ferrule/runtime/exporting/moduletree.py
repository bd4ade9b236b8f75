"""The form of importing modules in a file: one library, and a tree of its imports.

The machine code of all modules goes into the library. A module without machine code, such as one of
kind `ferrule.ptx`, becomes a node of the tree, with its own imports.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ferrule.runtime.binaries.elf import ObjectFileError
from ferrule.runtime.binaries.importtree import LIBRARY, Node, order, write_import_tree

if TYPE_CHECKING:
    from ferrule.runtime.loading.modules import Module


def flattened(root: Module) -> tuple[dict[str, Any], bytes]:
    """The compiled functions of all modules by name, and the import tree (empty if not needed).

    ValueError for two functions with the same name, and for a module that would import itself.
    """
    modules = _reached(root)
    functions: dict[str, Any] = {}
    for module in modules:
        for name in module if module.data is None else ():
            function = module.original(name)
            if functions.setdefault(name, function) is not function:
                raise ValueError(
                    f"two of the modules have a function {name!r}: one library has one of a name"
                )
    nodes = nodes_of(root)
    return functions, write_import_tree(nodes) if nodes else b""


def nodes_of(root: Module) -> list[Node]:
    """The import tree of a module; empty if all modules are machine code. Errors of `flattened`."""
    modules = _reached(root)
    if all(module.data is None for module in modules):
        return []
    nodes = _nodes(root, modules)
    try:
        order(nodes)
    except ObjectFileError:
        raise ValueError(
            f"{root!r} cannot be one library: a module that is no code imports code, which imports "
            "it; the code of all modules is one library"
        ) from None
    return nodes


def _reached(root: Module) -> Sequence[Module]:
    """The module and its direct and indirect imports, each once, in breadth-first order."""
    found: dict[int, Module] = {id(root): root}
    waiting = [root]
    for module in waiting:
        for child in module.imports:
            if id(child) not in found:
                found[id(child)] = child
                waiting.append(child)
    return list(found.values())


def _nodes(root: Module, modules: Sequence[Module]) -> list[Node]:
    """The nodes of the tree, the root first; all machine code together is one node, the library."""
    keys = list(dict.fromkeys(map(_key, modules)))
    children: dict[int, dict[int, None]] = {key: {} for key in keys}
    found: dict[int, Node] = {}
    for module in modules:
        key = _key(module)
        for child in module.imports:
            # Modules of machine code become one library, so an import between two of them is no
            # edge: it would make the library import itself.
            if _key(child) != key:
                children[key][keys.index(_key(child))] = None
        data = module.data
        found[key] = Node(LIBRARY if data is None else module.kind, data or b"", ())
    return [Node(found[key].kind, found[key].data, tuple(children[key])) for key in keys]


def _key(module: Module) -> int:
    return 0 if module.data is None else id(module)
