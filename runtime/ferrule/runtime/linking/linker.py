"""Links objects to a shared library with a C compiler or a linker of this machine.

The command is the one that a user would type, and errors show it.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ferrule.runtime.binaries.objectfile import ObjectFileError, read_object
from ferrule.runtime.cpus import host_architecture
from ferrule.runtime.errors import LinkError
from ferrule.specs.deferred import dataclass

_COMPILERS: Final = ("cc", "gcc", "clang")
_LINKERS: Final = ("ld.lld", "ld")


@dataclass(frozen=True, slots=True)
class Linker:
    """A linker, given by the first words of its command line."""

    words: tuple[str, ...]

    def command(
        self,
        sources: Sequence[Path],
        target: Path,
        libraries: Sequence[str] = (),
        loaded: Sequence[str] = (),
    ) -> list[str]:
        """The command that links the sources to a shared library that needs these libraries.

        The loader searches a library with a path in that folder, then beside the shared library.
        The libraries in `loaded`, paths, are needed by name alone: the process has them.
        """
        needed = [name if "/" in name else f"-l:{name}" for name in libraries]
        folders = dict.fromkeys(os.path.dirname(name) for name in libraries if "/" in name)
        if folders:
            needed += self._run_path(":".join([*map(os.path.abspath, folders), "$ORIGIN"]))
        return [*self.words, "-shared", "-o", str(target), *map(str, sources), *loaded, *needed]

    def _run_path(self, folders: str) -> list[str]:
        """The options that set the library's search path for the libraries that it needs."""
        is_linker = Path(self.words[0]).name in _LINKERS
        words = ["--enable-new-dtags", "-rpath", folders]
        return words if is_linker else [word for each in words for word in ("-Xlinker", each)]

    def link(
        self,
        sources: Sequence[Path],
        target: Path,
        libraries: Sequence[str] = (),
        loaded: Sequence[str] = (),
        shown: Path | None = None,
    ) -> None:
        """Make the library; if that fails, LinkError with the linker's output.

        With `shown` the sources and the target are temporary: the error has their names without the
        folder, and this path.
        """
        command = self.command(sources, target, libraries, loaded)
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            # Without PATH a compiler does not find its linker, where a shell would.
            env={"PATH": os.defpath, **os.environ},
        )
        if done.returncode != 0:
            said = (
                f"{shlex.join(command)} failed with status {done.returncode}:\n"
                f"{done.stderr.strip()}"
            )
            if shown is not None:
                # They are gone when somebody reads this; export_to_c writes the same objects.
                said = said.replace(str(target), str(shown))
                for folder in {f"{source.parent}{os.sep}" for source in sources}:
                    said = said.replace(folder, "")
            raise LinkError(said)


def find_linker(machine: str, target: Path) -> Linker:
    """The linker for objects of this machine: `CC`, otherwise the first one that is found.

    The candidates are cc, gcc, clang, ld.lld and ld; for objects of another machine they are
    <machine>-linux-gnu-gcc and ld.lld. LinkError if there is none; `target` is for its message.
    """
    text = os.environ.get("CC", "")
    try:
        chosen = shlex.split(text)
    except ValueError as error:
        raise LinkError(f"CC is {text!r}, which is no command: {error}") from None
    named = shutil.which(chosen[0]) if chosen else None
    if named is not None:
        return Linker((named, *chosen[1:]))
    foreign = (f"{machine}-linux-gnu-gcc", "ld.lld")
    names = (*_COMPILERS, *_LINKERS) if machine == host_architecture() else foreign
    # The full path: a compiler searches its own parts relative to the path by which it is called.
    found = next(filter(None, map(shutil.which, names)), None)
    if chosen or found is None:
        missing = f"CC={chosen[0]}" if chosen else f"{', '.join(names[:-1])} or {names[-1]}"
        by_hand = Linker((names[0],)).command([Path(f"{target.stem}.o")], target)
        raise LinkError(
            f"no C compiler or linker to make {target.name} with: {missing} is not on PATH. "
            f"Write the object with export_to_c and run: {shlex.join(by_hand)}"
        )
    return Linker((found,))


def machine_of(code: bytes, target: Path) -> str:
    """The machine of an object; LinkError for an object that this machine cannot link."""
    try:
        return read_object(code).machine.name.lower()
    except ObjectFileError as error:
        raise LinkError(
            f"{target.name} cannot be linked here ({error}); write the object with export_to_c and "
            f"link it on the machine that it is for"
        ) from None


def find_runtime_libraries(*, enable_tvm_ffi: bool = True) -> list[str]:
    """The paths of the libraries to link with a program or library that has exported functions.

    A library for Python needs none of them: Python's tvm-ffi loads its own.
    """
    from tvm_ffi import libinfo

    return [str(libinfo.find_libtvm_ffi())] if enable_tvm_ffi else []
