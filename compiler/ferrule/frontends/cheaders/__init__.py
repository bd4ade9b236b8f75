"""The functions of a shared library, by its C header: `fe.frontends.c.library`."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.ccompilers import compiler_words
from ferrule.frontends.cheaders.calls import Planned, Size, dims_of, is_out, plan
from ferrule.frontends.cheaders.contexts import (
    Context,
    LeftOut,
    check_context,
    check_kept,
    checked_contexts,
    own_contexts,
)
from ferrule.frontends.cheaders.declared import (
    HINT_FOR_WORDS,
    Address,
    Declared,
    Header,
    read_header,
)
from ferrule.frontends.given import texts
from ferrule.frontends.sources import SourceLike, search_words
from ferrule.specs import Signature

if TYPE_CHECKING:
    from ferrule.compiler.conventions.c.returns import Returns
    from ferrule.compiler.hostcode import HostCode
    from ferrule.runtime import Function

__all__ = ["Library", "read_library"]


class Library:
    """The functions that a header declares and a shared library has, each as an attribute.

    A function is made when it is first asked for.  `signatures` are those of all by name,
    `left_out` are the reasons for those that cannot be called.
    """

    def __init__(
        self,
        header: Header,
        code: HostCode,
        planned: Mapping[str, Planned],
        left_out: Mapping[str, str],
        command: Sequence[str] | None,
    ) -> None:
        self._header = header
        self._code = code
        self._planned = planned
        self._command = command
        self._made: dict[str, Function] = {}
        self.left_out: Mapping[str, str] = MappingProxyType(dict(left_out))

    @property
    def signatures(self) -> Mapping[str, Signature]:
        """What each function takes."""
        return {name: each.signature for name, each in self._planned.items()}

    def __getattr__(self, name: str) -> Function:
        if name.startswith("__") or "_planned" not in self.__dict__:
            raise AttributeError(name)
        if name in self.left_out:
            raise AttributeError(f"{self._header.name}: {name} is left out: {self.left_out[name]}")
        if name not in self._planned:
            near = _near(name, self._planned)
            raise AttributeError(f"{self._header.name} has no function {name}{near}")
        if name not in self._made:
            self._made[name] = self._build(name)
        return self._made[name]

    def __dir__(self) -> Iterable[str]:
        return [*super().__dir__(), *self._planned]

    def __repr__(self) -> str:
        count, left = len(self._planned), len(self.left_out)
        return f"<Library {self._header.name}: {count} functions, {left} left out>"

    def _build(self, name: str) -> Function:
        """The function; the compiler compares the types of its parameters with the arguments."""
        from ferrule.compiler.building import build
        from ferrule.compiler.conventions import CFunction, Reference
        from ferrule.compiler.conventions import Sequence as Steps
        from ferrule.frontends.callchecks import checks_before
        from ferrule.frontends.prototypes import check_call

        planned, source = self._planned[name], self._header.source
        called = CFunction(name, planned.arguments, returns=planned.returns, code=self._code)
        steps: list[Any] = []
        if self._command is not None and source is not None:
            prototype = check_call(self._command, source, planned.signature, called)
            steps += checks_before(called, prototype, None)
        for held, size in planned.before:
            given = Reference(size, reads_only=True)
            steps.append(CFunction("memcpy", [held.data, given, held.nbytes]))
        call = Steps([*steps, called]) if steps else called
        return build(planned.signature, call, results=planned.results)


def read_library(
    header: SourceLike,
    library: str | os.PathLike[str] | HostCode | None,
    *,
    functions: Sequence[str] | None,
    sizes: Mapping[str, Size] | None,
    callbacks: Mapping[str, Context] | None,
    kept: Sequence[str],
    returns: Mapping[str, Returns] | None,
    cc: str | None,
    include_paths: Sequence[str | os.PathLike[str]],
    defines: Mapping[str, object] | None,
) -> Library:
    """The library; see `fe.frontends.c.library`."""
    from ferrule.compiler.hostcode import HostCode
    from ferrule.frontends.sources import Source

    wanted = None if functions is None else texts("functions", functions)
    said, contexts = _checked_sizes(sizes or {}), checked_contexts(callbacks or {})
    code = library if isinstance(library, HostCode) else HostCode.from_library(library)
    nowhere = Source("", "header.h")
    search = search_words(nowhere, include_paths, defines or {})
    command = _command(cc)
    read = read_header(header, command, search)
    declared, left_out = _chosen(read, wanted)
    _require_readable(read, left_out, said)
    _check_keys(read.name, declared, said, returns or {})
    for key in contexts:
        check_context(read.name, declared, key)
    keeps = texts("kept", kept)
    check_kept(read.name, keeps, contexts)
    planned: dict[str, Planned] = {}
    for name, function in declared.items():
        try:
            _require(code, name)
            own, mine = _own_sizes(function, said), own_contexts(function, contexts)
            given = (returns or {}).get(name)
            planned[name] = plan(function, own, mine, given, kept=name in keeps)
        except LeftOut as reason:
            left_out[name] = str(reason)
    if wanted is not None and left_out:
        _refuse(read.name, left_out)
    words = None if command is None else [*command, *search]
    return Library(read, code, planned, left_out, words)


def _command(cc: str | None) -> list[str] | None:
    """The words of the C compiler; None if none is named and none is installed."""
    try:
        return compiler_words(cc)
    except CompileError:
        if cc is not None or os.environ.get("CC"):
            raise
        return None


def _chosen(
    read: Header, wanted: Sequence[str] | None
) -> tuple[Mapping[str, Declared], dict[str, str]]:
    """The functions that the caller names, also from included headers, or all of the header itself;
    and for each of them that cannot be read the reason."""
    if wanted is None:
        if not read.functions:
            raise _no_functions(read)
        return read.functions, dict(read.odd)
    known = {**read.others, **read.functions}
    odd = {**read.others_odd, **read.odd}
    for name in wanted:
        if name not in known and name not in odd:
            near = _near(name, read.functions)
            raise ValueError(f"functions: {read.name} declares no {name!r}{near}")
    return (
        {name: known[name] for name in wanted if name in known},
        {name: odd[name] for name in wanted if name not in known},
    )


def _no_functions(read: Header) -> CompileError:
    """The error for a header that has nothing of its own, and perhaps includes others."""
    if not read.others:
        return CompileError(f"the header {read.name} declares no functions")
    known = list(read.others)
    return CompileError(
        Diagnostic(
            f"the header {read.name} declares no functions itself",
            hint="functions=[…] names those that are wanted of the headers that it includes: "
            f"{', '.join(known[-3:])} …",
        )
    )


def _require_readable(read: Header, odd: Mapping[str, str], sizes: Mapping[str, Size]) -> None:
    """Raises CompileError for a function that `sizes` names and that cannot be read."""
    named = {key.rpartition(".")[0] for key in sizes}
    asked = {name: reason for name, reason in odd.items() if name in named}
    if asked:
        _refuse(read.name, asked)


def _near(name: str, known: Iterable[str]) -> str:
    found = difflib.get_close_matches(name, list(known), 3)
    return f"; there are {', '.join(found)}" if found else ""


def _checked_sizes(sizes: Mapping[str, Size]) -> Mapping[str, Size]:
    if not isinstance(sizes, Mapping):
        raise TypeError(
            f"sizes must be a dict, such as {{'compress.source': 'sourceLen'}}, but got {sizes!r}"
        )
    for key, size in sizes.items():
        if not isinstance(key, str):
            raise TypeError(f"sizes: {key!r} is no name of a parameter, such as 'crc32.buf'")
        listed = size if isinstance(size, tuple) else (size,)
        fits = all(isinstance(each, str | int) and not isinstance(each, bool) for each in listed)
        if is_out(size):
            continue
        if not (size is None or fits) or size == ():
            raise TypeError(
                f"sizes: {key!r} is {size!r}: wanted the name of a parameter, a number, a tuple of "
                "these, a conventions.Out, or None for any address"
            )
        if any(isinstance(each, int) and each < 0 for each in listed):
            raise ValueError(f"sizes: {key!r} is {size!r}: a size is never negative")
    return sizes


def _check_keys(
    header: str,
    declared: Mapping[str, Declared],
    sizes: Mapping[str, Size],
    returns: Mapping[str, Returns],
) -> None:
    """Raises ValueError for an entry that belongs to no function, or has another's names."""
    for name in returns:
        if name not in declared:
            raise ValueError(f"returns: {header} has no {name!r}{_near(name, declared)}")
    for key, size in sizes.items():
        function, _, parameter = key.rpartition(".")
        if not function:
            if not any(_applies(each, parameter, size) for each in declared.values()):
                raise ValueError(
                    f"sizes: {key!r}: no function of {header} has an address {parameter} and "
                    f"{' and '.join(map(str, dims_of(size))) or 'nothing else'}"
                )
            continue
        if function not in declared:
            raise ValueError(
                f"sizes: {key!r}: {header} has no {function!r}{_near(function, declared)}"
            )
        known = declared[function].parameters
        for each in (parameter, *(one for one in dims_of(size) if isinstance(one, str))):
            if each not in known:
                listed = ", ".join(known) or "nothing"
                raise ValueError(f"sizes: {key!r}: {function} takes {listed}, and no {each}")
        if not isinstance(known[parameter], Address):
            raise ValueError(f"sizes: {key!r}: {parameter} is no address")


def _applies(function: Declared, parameter: str, size: Size) -> bool:
    """Whether a size without a function's name is one of this function's."""
    named = [each for each in dims_of(size) if isinstance(each, str)]
    is_address = isinstance(function.parameters.get(parameter), Address)
    return is_address and all(each in function.parameters for each in named)


def _own_sizes(function: Declared, sizes: Mapping[str, Size]) -> dict[str, Size]:
    """The sizes of a function's parameters; those with its name win."""
    plain = {
        key: size for key, size in sizes.items() if "." not in key and _applies(function, key, size)
    }
    named = {
        key.rpartition(".")[2]: size
        for key, size in sizes.items()
        if key.rpartition(".")[0] == function.name
    }
    return plain | named


def _require(code: HostCode, name: str) -> None:
    """Raises LeftOut for a function that the library does not have."""
    if not code.has(name):
        raise LeftOut("the library does not have it")


def _refuse(header: str, left_out: Mapping[str, str]) -> None:
    """Raises CompileError for functions that were asked for by name."""
    listed = tuple(f"{name}: {reason}" for name, reason in left_out.items())
    is_odd = any(
        reason.startswith("its declaration cannot be read") for reason in left_out.values()
    )
    raise CompileError(
        Diagnostic(
            f"{header}: {', '.join(left_out)} cannot be called",
            hint=HINT_FOR_WORDS if is_odd else None,
            notes=listed,
        )
    )
