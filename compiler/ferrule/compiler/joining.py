"""`overload`: several compiled functions as one, selected by the arguments of a call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ferrule.compiler.artefacts import Pages
from ferrule.compiler.cache.keys import Uncacheable
from ferrule.compiler.cache.restored import RestoredOrigin
from ferrule.compiler.cache.through import Wanted, through
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.runtime.artefacts import Remarks
from ferrule.runtime.entry.key import CallTraits

if TYPE_CHECKING:
    from ferrule.compiler.cache.keys import Key
    from ferrule.compiler.origin import CompiledOrigin
    from ferrule.runtime import Function


def overload(functions: Sequence[Function], name: str | None = None) -> Function:
    """One function that calls the first of these compiled functions that accepts the arguments.

    `name`: by default that of the first one.  Raises CompileError for anything but compiled
    functions, and if the functions have different defaults.
    """
    if not isinstance(functions, Sequence) or not functions:
        got = "none" if isinstance(functions, Sequence) else repr(functions)
        raise CompileError(
            Diagnostic(
                f"overload takes compiled functions, but got {got}", expected="a list of them"
            )
        )
    given = list(functions)
    origins = [_origin(position, function) for position, function in enumerate(given)]
    named = given[0].name if name is None else name
    return through(Wanted(named, lambda: _key(named, origins), lambda: joined(named, origins)))


def _key(name: str, origins: Sequence[CompiledOrigin | RestoredOrigin]) -> Key:
    """The key of several functions as one, which are all the cache's."""
    keys = [origin.key for origin in origins if origin.key is not None]
    if len(keys) < len(origins):
        raise Uncacheable("it joins functions that the cache does not keep")
    return key_of_several(name, keys)


def key_of_several(name: str, keys: Sequence[Key], how: str = "") -> Key:
    """The key of a function that is made of several compilations."""
    from ferrule.compiler.cache.keys import joined as joined_keys
    from ferrule.compiler.cache.toolchain import toolchain

    named = {f"#{position}": key for position, key in enumerate(keys)}
    return joined_keys(name, named, {"how they are joined": how.encode(), **toolchain()})


def _origin(position: int, function: Any) -> CompiledOrigin | RestoredOrigin:
    from ferrule.compiler.origin import CompiledOrigin
    from ferrule.runtime import Function
    from ferrule.runtime.calls.plan import origin_of

    if not isinstance(function, Function):
        raise CompileError(
            Diagnostic(
                f"overload takes compiled functions, but #{position} is {function!r}",
                hint="compile it for its arguments first: fe.compile(f, ...)",
            )
        )
    origin = origin_of(function)
    if not isinstance(origin, CompiledOrigin | RestoredOrigin):
        raise CompileError(
            Diagnostic(
                f"overload: {function.name} was loaded, and is machine code that cannot be joined",
                hint="join functions where they are compiled, and export what that gives",
            )
        )
    return origin


def joined(
    name: str,
    given: Sequence[CompiledOrigin | RestoredOrigin],
    *,
    shown: str | None = None,
) -> CompiledOrigin:
    """The origin of one function of compiled ones; `shown` as in `Overloads`.

    Raises CompileError if they cannot be combined.
    """
    from ferrule.compiler.origin import CompiledOrigin
    from ferrule.compiler.overloading import overload_module
    from ferrule.specs.overloads import Overloads

    origins = [o.compiled() if isinstance(o, RestoredOrigin) else o for o in given]
    modules = [each for o in origins for each in o.module.candidates or (o.module,)]
    try:
        signature = Overloads(name, [module.signature for module in modules], shown)
        module = overload_module(signature, modules)
    except ValueError as error:
        raise CompileError(f"overload: {error}") from None
    docs = dict.fromkeys(origin.doc for origin in origins)
    doc = docs.popitem()[0] if len(docs) == 1 else None
    target, traits = origins[0].target, _traits([origin.traits for origin in origins])
    sources = {symbol: f for each in origins for symbol, f in each.sources.items()}
    return CompiledOrigin(
        module,
        lambda: _ir(origins),
        doc=doc,
        target=target,
        traits=traits,
        sources=sources,
        remarks=lambda: Remarks(each for origin in origins for each in origin.remarks()),
        pages=_pages(origins),
    )


def _pages(origins: Sequence[CompiledOrigin]) -> Pages | None:
    """One page of all bodies; None if there is none of one of them."""
    known = [origin.pages for origin in origins if origin.pages is not None]
    if len(known) < len(origins):
        return None
    return Pages(tuple(each for pages in known for each in pages.subjects), known[0].show)


def _ir(origins: Sequence[CompiledOrigin]) -> str:
    return "\n".join(origin.ir for origin in origins if origin.ir)


def _traits(given: Sequence[CallTraits]) -> CallTraits:
    """The union of the traits: an effect of one function can be an effect of all."""
    known = [asdict(traits) for traits in given]
    return CallTraits(**{key: any(each[key] for each in known) for key in known[0]})
