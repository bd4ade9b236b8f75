"""Source text of another language, from a string or a file, with a name for messages."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from ferrule.compiler.conventions.arguments import Argument
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.specs import EnvStream, Signature
from ferrule.specs.params import Scalar, Stream, Tensor

SourceLike: TypeAlias = "str | os.PathLike[str]"
"""The text, if it has a line break or a brace; else the path of a file."""


@dataclass(frozen=True, slots=True)
class Source:
    """A text; `name` is what messages call it, `folder` where its own includes are."""

    text: str = field(repr=False)
    name: str
    folder: Path | None = None


def read_source(source: SourceLike, name: str) -> Source:
    """The source; `name` is for one that is a text.  FileNotFoundError, TypeError."""
    if isinstance(source, str) and any(each in source for each in "\n{;"):
        return Source(source, name)
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        return Source(path.read_text(encoding="utf-8"), str(path), path.resolve().parent)
    raise TypeError(f"expected the text or the path of a source, but got {source!r}")


def search_words(
    source: Source, include_paths: Sequence[str | os.PathLike[str]], defines: Mapping[str, object]
) -> list[str]:
    """The words for a compiler: where includes are found, and the macros; True is defined as 1."""
    folders = [] if source.folder is None else [source.folder]
    words = [f"-I{os.fspath(folder)}" for folder in (*include_paths, *folders)]
    for name, value in defines.items():
        words.append(f"-D{name}={int(value) if isinstance(value, bool) else value}")
    return words


def in_order(signature: Signature) -> tuple[Argument, ...]:
    """The parameters as they come: addresses of tensors, numbers; streams are left out.

    Raises CompileError for one that is neither.
    """
    found: list[Argument] = []
    for param in signature.params:
        match param:
            case Tensor():
                found.append(param.data)
            case Scalar():
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
