"""The installed C compiler: its command."""

from __future__ import annotations

import os
import shlex
import shutil
from typing import Final

from ferrule.compiler.errors import CompileError, Diagnostic

_COMPILERS: Final = ("clang", "gcc", "cc")


def compiler_words(named: str | None) -> list[str]:
    """The compiler's command, split into words."""
    if named is not None and not isinstance(named, str):
        raise TypeError(f"cc must be the command of a compiler, such as 'gcc', but got {named!r}")
    who = "cc" if named is not None else "the environment variable CC"
    text = named if named is not None else os.environ.get("CC", "")
    try:
        chosen = shlex.split(text)
    except ValueError as error:
        raise CompileError(f"{who} is {text!r}, which is no command: {error}") from None
    if chosen:
        if shutil.which(chosen[0]) is None:
            there = ", ".join(filter(shutil.which, _COMPILERS))
            raise CompileError(
                Diagnostic(
                    f"there is no C compiler {chosen[0]!r}, which {who} names",
                    hint=f"there are: {there}" if there else "install clang or gcc",
                )
            )
        return chosen
    found = next((each for each in _COMPILERS if shutil.which(each)), None)
    if found is None:
        raise CompileError(
            "there is no C compiler: install clang or gcc, or name one with cc=… or CC; code that "
            "was compiled elsewhere is for ferrule.compiler.conventions.HostCode.from_object"
        )
    return [found]
