"""Source text of another language, from a string or a file, with a name for messages."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, TypeGuard

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.given import texts
from ferrule.specs import EnvStream, Signature
from ferrule.specs.deferred import dataclass
from ferrule.specs.params import Pointer, Scalar, Stream, Tensor

if TYPE_CHECKING:
    from ferrule.compiler.conventions.arguments import Argument

SourceLike: TypeAlias = "str | os.PathLike[str]"
"""The text, if it contains a line break, a brace or a semicolon; otherwise the path of a file."""


_OF_CPP: Final = frozenset({".cc", ".cpp", ".cxx", ".c++", ".C", ".hpp", ".hh", ".hxx"})
_MACRO: Final = re.compile(r"[^\W\d]\w*(?:\([\w, .]*\))?")
_NO_HEADER: Final = re.compile(
    r"""fatal error: ['"]?([^'":\n]+?)['"]?(?:: No such file| file not found)"""
)
"""Matches the messages of gcc and of clang."""


@dataclass(frozen=True, slots=True)
class Source:
    """A text; `name` is its name in messages, `folder` is where its own includes are."""

    text: str = field(repr=False)
    name: str
    folder: Path | None = None

    @property
    def language(self) -> str:
        """The language, in the form of C compilers' options: C++ if the suffix of the name is one
        of C++, otherwise C, also for a header."""
        return "c++" if Path(self.name).suffix in _OF_CPP else "c"

    @property
    def data(self) -> bytes:
        """The text as bytes; bytes of a file that are not UTF-8 are preserved."""
        return self.text.encode("utf-8", "surrogateescape")


def read_source(source: SourceLike, name: str) -> Source:
    """The source; `name` is the name of a source that is given as a text.

    Raises OSError for a file that cannot be read, ValueError for an empty text and for a path with
    a NUL, TypeError for any other object.
    """
    if is_text(source):
        return Source(source, name)
    path, data = read_file(source)
    # A source may have comments in another encoding; the bytes come back unchanged for the
    # compiler.
    text = data.decode("utf-8", "surrogateescape")
    return Source(text.replace("\r\n", "\n"), str(path), path.resolve().parent)


def is_text(source: object) -> TypeGuard[str]:
    """Whether this is the text of a source, not a path."""
    return isinstance(source, str) and any(each in source for each in "\n{;")


def read_file(source: SourceLike) -> tuple[Path, bytes]:
    """The path that a source names, and the contents of the file.  Raises the errors of
    `read_source`."""
    if not isinstance(source, str | os.PathLike):
        raise TypeError(f"expected the text or the path of a source, but got {source!r}")
    if not os.fspath(source):
        raise ValueError("expected the text or the path of a source, but got an empty text")
    if "\0" in str(source):
        raise ValueError(f"expected the text or the path of a source, but {source!r} has a NUL")
    path = Path(source)
    try:
        return path, path.read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(
            errno.ENOENT,
            "there is no such file (a source as text has a line break, a brace or a semicolon)",
            str(path),
        ) from None


def search_words(
    source: Source, include_paths: Sequence[str | os.PathLike[str]], defines: Mapping[str, object]
) -> list[str]:
    """The compiler's options for include folders and macros; True is defined as 1.

    Raises TypeError for a path that is not in a list, for macros that are not in a dict, and for a
    macro whose value is None; ValueError for a name that is not that of a macro.
    """
    if not isinstance(defines, Mapping):
        raise TypeError(f"defines must be a dict, such as {{'N': 4}}, but got {defines!r}")
    folders = [] if source.folder is None else [str(source.folder)]
    words = [f"-I{folder}" for folder in (*texts("include_paths", include_paths), *folders)]
    for name, value in defines.items():
        if not isinstance(name, str) or _MACRO.fullmatch(name) is None:
            raise ValueError(f"defines: {name!r} is no name of a macro")
        if value is None:
            raise TypeError(f"defines: the macro {name} is None: write True for 1, '' for nothing")
        words.append(f"-D{name}={int(value) if isinstance(value, bool) else value}")
    return words


def hint_for_headers(said: str) -> str | None:
    """The hint if a compiler of C or C++ reports that a file is missing."""
    found = _NO_HEADER.search(said)
    if found is None:
        return None
    return f"include_paths=[…] lists the folders in which headers such as {found[1]} are"


def in_order(signature: Signature) -> tuple[Argument, ...]:
    """The parameters in order: addresses of tensors, numbers, pointers; streams are omitted.

    Raises CompileError for a parameter of another kind.
    """
    found: list[Argument] = []
    for param in signature.params:
        match param:
            case Tensor():
                found.append(param.data)
            case Scalar() | Pointer():
                found.append(param)
            case EnvStream() | Stream():
                pass
            case _:
                raise CompileError(
                    Diagnostic(
                        f"{signature.name}: how the parameter {param.name!r} is passed is not "
                        "known",
                        hint="list what is passed, by expressions over the signature",
                    )
                )
    return tuple(found)
