"""In the process of MLIR: the requested function of a module, and its type."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.mlir.attributes import UNSIGNED
from ferrule.compiler.mlir.session import Session
from ferrule.frontends.mlir.kinds import (
    DTYPES,
    Buffer,
    FunctionType,
    Kind,
    Number,
    Unsupported,
    vector,
)
from ferrule.specs import as_dtype

_PLACE: Final = re.compile(r'loc\("-":(\d+):(\d+)\)')
_LINE: Final = re.compile(r'^loc\("([^"]*)":(\d+):\d+\)$')
_NAMED: Final = re.compile(r'loc\("([^"]+)"')
_SSA: Final = re.compile(rb"%([A-Za-z_]\w*)(?![\w.$-])")
_PLAIN_SPACES: Final = (None, "0", "#gpu.address_space<global>", "1")
_HOST_SPACES: Final = (None, "0")


def walk(operation: Any) -> Iterator[Any]:
    """An operation and all operations within it, outermost first."""
    yield operation
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from walk(inner.operation)


def reached(module: Any, function: Any) -> Iterator[Any]:
    """The operations of a function, and those of the functions that it calls."""
    functions, found = _functions(module.operation), {symbol(function)}
    waiting = [function]
    while waiting:
        for each in walk(waiting.pop()):
            yield each
            called = str(each.attributes["callee"].value) if each.name == "func.call" else ""
            if called in functions and called not in found:
                found.add(called)
                waiting.append(functions[called])


def attribute(operation: Any, name: str) -> Any:
    """An attribute, None if it is missing."""
    attributes = operation.attributes
    return attributes[name] if name in attributes else None


def symbol(operation: Any) -> str:
    """The symbol name of a function or module."""
    return str(operation.attributes["sym_name"].value)


def where(location: str) -> str:
    """The line of an operation in the given text, or in the file of its location, as text for
    messages; empty if it is not known."""
    found = _LINE.match(location)
    if found is None:
        return ""
    return f" in line {found[2]} of {'the module' if found[1] == '-' else found[1]}"


def find_function(module: Any, name: str | None) -> Any:
    """The `func.func` of this name; without a name, the only public one.

    Raises CompileError if there is none, if it has no body, or if there are several to choose from.
    """
    functions = _functions(module.operation)
    if name is not None and name not in functions:
        raise CompileError(
            Diagnostic(
                f"the module has no function @{name}",
                expected=_listed(functions) or "a func.func, of which it has none",
                notes=tuple(_others(module)),
            )
        )
    chosen = [functions[name]] if name is not None else list(filter(_is_public, functions.values()))
    if len(chosen) != 1:
        raise CompileError(
            Diagnostic(
                f"the module has {len(chosen)} public functions with a body",
                expected="one, or its name: function=…",
                notes=(f"there are {_listed(functions) or 'none at all'}", *_others(module)),
            )
        )
    if not _has_body(chosen[0]):
        raise CompileError(f"the function @{name} has no body: it is only declared")
    return chosen[0]


def _functions(module: Any) -> dict[str, Any]:
    return {
        symbol(each.operation): each.operation
        for each in module.regions[0].blocks[0].operations
        if each.operation.name == "func.func"
    }


def _others(module: Any) -> Iterator[str]:
    """Other functions that may be meant: those of nested modules, and those of the dialect llvm."""
    for each in module.body.operations:
        operation = each.operation
        if operation.name == "builtin.module" and (functions := _functions(operation)):
            where = attribute(operation, "sym_name")
            within = "a module" if where is None else f"the module @{where.value}"
            yield f"{_listed(functions)} of {within} within: give that module alone"
        elif operation.name == "gpu.module":
            yield from map(_kernel_note, kernels_of(operation))
        elif operation.name == "llvm.func" and _has_body(operation):
            yield (
                f"@{symbol(operation)} is of the dialect llvm, which conventions.CFunction calls: "
                "ferrule.compiler.mlir.jobs.translated(text, 'builtin.module()') is its LLVM IR"
            )


def kernels_of(gpu_module: Any) -> Iterator[Any]:
    """The kernels of a `gpu.module`."""
    for each in gpu_module.regions[0].blocks[0].operations:
        operation = each.operation
        marks = (attribute(operation, mark) for mark in ("kernel", "gpu.kernel"))
        if operation.name == "gpu.func" and any(mark is not None for mark in marks):
            yield operation


def _kernel_note(kernel: Any) -> str:
    path = f"{symbol(kernel.parent.operation)}::{symbol(kernel)}"
    return f"{path} is a kernel, which grid=… and block=… launch"


def _listed(functions: dict[str, Any]) -> str:
    return ", ".join(f"@{name}" for name in functions)


def _has_body(function: Any) -> bool:
    return len(function.regions[0].blocks) > 0


def _is_public(function: Any) -> bool:
    visibility = attribute(function, "sym_visibility")
    return _has_body(function) and (visibility is None or visibility.value == "public")


def described(session: Session, function: Any, text: str, *, on_gpu: bool) -> FunctionType:
    """The type of a function; `text` is the module's text, from which the names of arguments are
    read."""
    kind = function.attributes["function_type"].value
    names = argument_names(function, text)
    kinds = [
        _signed(function, "arg_attrs", position, _kind(session, each, on_gpu))
        for position, each in enumerate(kind.inputs)
    ]
    for position, each in enumerate(kinds):
        if isinstance(each, Buffer) and each.is_value and _writable(function, position):
            kinds[position] = replace(each, is_value=False)
    results = tuple(
        _signed(function, "res_attrs", position, _kind(session, each, on_gpu, is_result=True))
        for position, each in enumerate(kind.results)
    )
    return FunctionType(symbol(function), tuple(names), tuple(kinds), results)


def argument_names(function: Any, text: str) -> Iterator[str]:
    """The names of a function's arguments; `text` as for `described`."""
    count = len(function.attributes["function_type"].value.inputs)
    arguments = list(function.regions[0].blocks[0].arguments)[:count]
    return _names([str(each.location) for each in arguments], text.encode().splitlines())


def _names(places: list[str], lines: list[bytes]) -> Iterator[str]:
    """A name for each argument: that of its value in the text, that of its location, otherwise
    `argN`."""
    taken: set[str] = set()
    for position, place in enumerate(places):
        name = _name(place, lines)
        if name is None or name in taken or not name.isidentifier() or keyword.iskeyword(name):
            name = f"arg{position}"
        taken.add(name)
        yield name


def _name(place: str, lines: list[bytes]) -> str | None:
    if found := _PLACE.fullmatch(place):
        line, column = int(found[1]), int(found[2])
        if line <= len(lines):
            value = _SSA.match(lines[line - 1], column - 1)
            return value[1].decode() if value else None
    named = _NAMED.match(place)
    return named[1] if named and not _PLACE.fullmatch(place) else None


def _writable(function: Any, position: int) -> bool:
    """Whether the module marks a tensor argument as writable in place."""
    return str(_said_of(function, "arg_attrs", position, "bufferization.writable")) == "true"


def is_unsigned(function: Any, position: int) -> bool:
    """Whether the module marks the integers of an argument as unsigned."""
    return _said_of(function, "arg_attrs", position, UNSIGNED) is not None


def _signed(function: Any, attributes: str, position: int, kind: Kind) -> Kind:
    """The kind of an argument or result, unsigned where the module says so."""
    if _said_of(function, attributes, position, UNSIGNED) is None:
        return kind
    if isinstance(kind, Buffer) and f"u{kind.element}" in DTYPES:
        return replace(kind, element=f"u{kind.element}")
    if isinstance(kind, Number) and f"u{kind.kind}" in DTYPES:
        return Number(f"u{kind.kind}")
    text = kind.kind if isinstance(kind, Number) else kind.text
    return Unsupported(text, f"it is marked as {UNSIGNED}, expected integers of 8 to 64 bits")


def _said_of(function: Any, attributes: str, position: int, name: str) -> Any:
    """An attribute of an argument or result of a function, None if it is missing."""
    given = attribute(function, attributes)
    if given is None or name not in given[position]:
        return None
    return given[position][name]


def _kind(session: Session, kind: Any, on_gpu: bool, *, is_result: bool = False) -> Kind:
    """The kind that a type has for a call; the elements of a result may begin at any offset."""
    ir, text = session.ir, str(kind)
    if isinstance(kind, ir.MemRefType):
        return _memref(kind, text, on_gpu, is_result=is_result)
    if isinstance(kind, ir.RankedTensorType):
        if kind.encoding is not None:
            return Unsupported(text, "a tensor with an encoding has no plain layout")
        if on_gpu:
            return Unsupported(text, "a function that launches kernels takes memrefs: bufferize it")
        return _buffer(text, kind, None, 0, is_value=True)
    if text in DTYPES and not text.startswith(("complex", "f8")):
        return Number(text)
    if text.startswith(("memref<*", "tensor<*")):
        return Unsupported(text, "its rank is unknown: cast it to one of a known rank")
    return Unsupported(text, "expected a memref, a tensor, index, an integer or a float")


def _memref(memref: Any, text: str, on_gpu: bool, *, is_result: bool) -> Kind:
    space = None if memref.memory_space is None else str(memref.memory_space).partition(" ")[0]
    if space not in (_PLAIN_SPACES if on_gpu else _HOST_SPACES):
        return Unsupported(text, "arguments of a call are in no such memory space")
    try:
        strides, offset = memref.get_strides_and_offset()
    except RuntimeError:
        return Unsupported(text, "its layout has no strides")
    dynamic = memref.get_dynamic_stride_or_offset()
    if offset not in (0, dynamic) and not is_result:
        return Unsupported(text, "its offset is neither 0 nor dynamic")
    identity = str(memref.layout.__class__.__name__) != "StridedLayoutAttr" and offset == 0
    if identity and not _is_identity(memref):
        identity = False
    known = None if identity else tuple(None if each == dynamic else each for each in strides)
    found = vector(str(memref.element_type))
    if found is not None:
        return _of_vectors(text, memref, found, on_gpu, plain=known is None and not is_result)
    return _buffer(text, memref, known, None if offset == dynamic else 0)


def _of_vectors(
    text: str, memref: Any, found: tuple[tuple[int, ...], str], on_gpu: bool, *, plain: bool
) -> Kind:
    """A memref whose elements are vectors.  Loads of them on a GPU are as wide as they."""
    if not plain:
        return Unsupported(text, "memrefs of vectors are compact arguments")
    sizes, element = found
    size = as_dtype(DTYPES[element]).bits // 8
    whole = (*_shape(memref), *sizes)
    align = size * sizes[-1] if on_gpu else None
    return Buffer(text, element, whole, None, 0, inner=len(sizes), align=align)


def _is_identity(memref: Any) -> bool:
    rank = len(memref.shape)
    return str(memref.affine_map) == str(memref.affine_map.get_identity(rank))


def _buffer(
    text: str,
    shaped: Any,
    strides: tuple[int | None, ...] | None,
    offset: int | None,
    *,
    is_value: bool = False,
) -> Kind:
    element = str(shaped.element_type)
    if element.startswith("vector<"):
        wanted = (
            "a vector in an array is one of a power of two of floats or integers of whole bytes"
        )
        return Unsupported(text, wanted)
    if element not in DTYPES:
        return Unsupported(text, f"elements of an array are never {element}")
    return Buffer(text, element, _shape(shaped), strides, offset, is_value)


def _shape(shaped: Any) -> tuple[int | None, ...]:
    dynamic = shaped.get_dynamic_size()
    return tuple(None if size == dynamic else size for size in shaped.shape)
