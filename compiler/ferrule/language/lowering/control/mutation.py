"""Lists, dicts, sets, objects and iterators exist only at compile time.

Code under a run-time condition must not change them: both sides of a branch are lowered, and the
body of a loop once.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from types import FunctionType, GeneratorType, SimpleNamespace
from typing import Any, Final, NoReturn

from ferrule.compiler.errors import CompileError
from ferrule.language.dependencies.mutable import Held, Search
from ferrule.language.dependencies.witness import Outer
from ferrule.language.lowering.context import Frame, Lowering
from ferrule.language.lowering.control.assumptions import Assumed, Retry
from ferrule.language.lowering.regions import UNKNOWN, Region
from ferrule.language.values import Undefined

_WHERE: Final = "inside a run-time branch or loop"
_OUTSIDE: Final = "changes that happen at compile time, outside of it"


@contextmanager
def unchanged(low: Lowering, node: ast.AST, loop: Assumed | None = None) -> Iterator[None]:
    """Refuses code that changes an existing object under the run-time condition `node`.

    A branch enters it in a region of its own; a loop, which gives its assumptions, around it.
    """
    around, names, before = low.state.region, low.names, dict(low.settings)
    ahead = low.builder.around if loop is None else low.builder.current
    region = low.state.region = Region(names, dict(names), around, before, low.builder, ahead)
    if loop is not None and loop.settings:
        _keep_settings(low, region, loop)
    try:
        yield
    except CompileError:
        raise
    except Exception:  # the code is lowered again, from the current objects
        low.settings = before
        _compare(low, region, node)
        raise
    finally:
        low.state.region = around
        if around is not None:
            around.fresh.update(region.fresh)
    _compare(low, region, node)
    _forget_settings(low, region, loop)


def _keep_settings(low: Lowering, region: Region, loop: Assumed) -> None:
    """What an iteration sets and a later one uses is in memory, from here on."""
    from ferrule.language.lowering import settings

    for key, owner in loop.settings.items():
        settings.keep(low, region, key)
        low.settings[key] = (owner, UNKNOWN)


def _forget_settings(low: Lowering, region: Region, loop: Assumed | None) -> None:
    """Forget the settings of tiled multiplications that conditional code changes: behind it they
    are not known.

    Raises Retry in a loop that uses such a setting first, which is that of the last iteration.
    """
    before = region.settings
    changed = [
        key
        for key, (tiled, found) in low.settings.items()
        if found is not before.get(key, (tiled, False))[1]
    ]
    for key in changed:
        tiled = low.settings[key][0]
        if key not in before and not _existed(low, region, tiled):
            del low.settings[key]  # made in here, and nobody else has it
        else:
            low.settings[key] = (tiled, UNKNOWN)
    if loop is None:
        return
    used = region.read_first.intersection(changed, low.settings).difference(loop.settings)
    if used:
        found = {key: low.settings[key][0] for key in used}
        low.settings = dict(before)
        raise Retry(Assumed(settings=found), loop)


def _existed(low: Lowering, region: Region, value: Any) -> bool:
    """Whether a value was there before this code."""
    search = Search()
    search.visit_all(region.before.items())
    search.visit_all(_names_from(low, low.frame.caller))
    return id(value) in search.seen


def _compare(low: Lowering, region: Region, node: ast.AST) -> None:
    for held in region.found.held:
        if not held.is_same() and not _forget_attributes(low, region, held, node):
            _refuse(low, held, node)


def _forget_attributes(low: Lowering, region: Region, held: Held, node: ast.AST) -> bool:
    """Whether the changes are attributes of a SimpleNamespace that the code sets before it reads
    them: which values they have behind it is not known, and nobody may read them."""
    owner = held.value
    if not isinstance(owner, SimpleNamespace):
        return False
    before = dict(zip(held.content[::2], held.content[1::2], strict=True))
    after = vars(owner)
    changed = [name for name in after if before.get(name, UNKNOWN) is not after[name]]
    keys = {(id(owner), name) for name in changed}
    if keys & region.read_first or not before.keys() <= after.keys():
        return False
    reason = f"it is set under the condition or in the loop of line {low.location(node).line}"
    for name in changed:
        setattr(owner, name, Undefined(reason))
    return True


def _refuse(low: Lowering, held: Held, node: ast.AST) -> NoReturn:
    value, path = held.value, held.path
    if _is_iterator(value):
        low.fail(
            node,
            f"the {type(value).__name__} {path!r} is advanced {_WHERE}",
            expected="iterators that are advanced at compile time, outside of it",
            hint="call next before it, or make a list or tuple of the items and index that",
        )
    if isinstance(value, FunctionType):
        low.fail(node, f"what the function {path!r} keeps is changed {_WHERE}", expected=_OUTSIDE)
    if isinstance(value, dict) and value.get("__builtins__") is not None:
        low.fail(node, f"the global {path!r} is assigned {_WHERE}", expected=_OUTSIDE)
    kind = "class" if isinstance(value, type) else type(value).__name__
    low.fail(node, f"the {kind} {path!r} is changed {_WHERE}", expected=_OUTSIDE)


def _is_iterator(value: Any) -> bool:
    return isinstance(value, GeneratorType) or hasattr(type(value), "__next__")


def require_own(low: Lowering, value: Any, iterator: Any, node: ast.AST) -> None:
    """Refuses to continue with an iterator after a possible run-time break if other code can reach
    it too."""
    if iterator is not value and type(iterator).__module__ == "builtins":
        return  # made for this loop
    ours, theirs = Search(), Search()
    ours.visit(iterator, "")
    theirs.visit_all(_reachable(low))
    for each in ours.seen.values():
        if _is_iterator(each) and id(each) in theirs.seen:
            low.fail(
                node,
                f"this loop may end early at run time, and a {type(each).__name__} that it "
                f"advances is used outside of it too",
                expected="an iterator of the loop's own",
                hint="loop over a list or tuple, and over a part of it afterwards",
            )


def _reachable(low: Lowering) -> Iterator[tuple[str, Any]]:
    """The values of names that code after this place can read."""
    return _names_from(low, low.frame)


def _names_from(low: Lowering, frame: Frame | None) -> Iterator[tuple[str, Any]]:
    while frame is not None:
        yield from frame.names.items()
        yield from getattr(frame.source.outer, "maps", [{}])[0].items()
        frame = frame.caller
    for source in low.state.sources.values():
        yield from getattr(source.outer, "names", {}).items()


def require_inside(low: Lowering, owner: Any, node: ast.AST) -> None:
    """Refuses to store a run-time value in an object from outside of the program: it would outlive
    the compilation, and be meaningless then."""
    outside = low.state.outside
    outside.visit_all(_outside(low))
    if id(owner) in outside.seen:
        low.fail(
            node,
            f"a run-time value is put into a {type(owner).__name__} that was made outside of the "
            f"function, and is there after it",
            expected=f"a {type(owner).__name__} that is made in the function",
            hint="keep numbers for later calls in a tensor that the caller passes",
        )


def _outside(low: Lowering) -> Iterator[tuple[str, Any]]:
    """The outer names of functions, and their defaults, without the program's own objects."""
    frame: Frame | None = low.frame
    sources = list(low.state.sources.values())
    while frame is not None:
        sources.append(frame.source)
        frame = frame.caller
    for source in sources:
        maps = getattr(source.outer, "maps", (source.outer,))
        for each in maps:
            if isinstance(each, Outer):
                yield from each.names.items()
        if isinstance(source.outer, Outer):
            yield from source.defaults.items()


def require_seen(low: Lowering, values: tuple[Any, ...], node: ast.AST) -> None:
    """Refuses a call that may invisibly change an object from before a run-time branch."""
    region = low.state.region
    if region is None or not region.found.opaque:
        return
    for value in values:
        path = region.found.opaque.get(id(value))
        if path is not None:
            low.fail(
                node,
                f"{path!r} is used {_WHERE}, and nobody can see whether that changes it: "
                f"a {type(value).__name__} of {type(value).__module__}",
                expected="calls that happen at compile time, outside of it",
                hint="call it before, and give the result a name",
            )
