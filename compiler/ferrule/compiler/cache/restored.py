"""`RestoredOrigin`: the origin of a function from the cache, which compiles again on demand.

The entry has the machine code for this process.  All else that a compiled function offers (texts,
exports, code for other CPUs) comes from the modules, which a second compilation makes when they are
first asked for.  It is made only while everything that the function depends on is still as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ferrule.compiler.cache.keys import Key, Uncacheable, differing
from ferrule.runtime.artefacts import (
    ExportForm,
    KernelInfo,
    ObjectCode,
    OperatorCode,
    Remarks,
    Stage,
)
from ferrule.runtime.errors import StageError
from ferrule.runtime.forks import ForkLock

if TYPE_CHECKING:
    from ferrule.compiler.artefacts import HostModule
    from ferrule.compiler.exports import ExportTarget
    from ferrule.compiler.origin import CompiledOrigin
    from ferrule.runtime.calls.function import Function
    from ferrule.runtime.entry.key import CallTraits


class RestoredOrigin:
    """The `runtime.Origin` of a function that was not compiled by this call.

    `key` is its key, `code` its object for this process.
    """

    __slots__ = ("_key_of", "_lock", "_make", "_made", "code", "key", "where")

    def __init__(
        self,
        key: Key,
        code: ObjectCode,
        key_of: Callable[[], Key],
        make: Callable[[], CompiledOrigin],
        made: CompiledOrigin | None = None,
    ) -> None:
        """`make` compiles the function, and `key_of` returns the key of a compilation now; `made`
        is the result of one that this process has done already."""
        self.where = "from the cache"
        """What `Function.origin` says."""
        self.key: Final = key
        self.code: Final = code
        self._key_of: Final = key_of
        self._make: Final = make
        self._made = made
        self._lock: Final = ForkLock()

    def compiled(self) -> CompiledOrigin:
        """The origin of a compilation, made at the first need.

        StageError if something that the function depends on has changed since.
        """
        with self._lock:
            if self._made is None:
                self._check()
                self._made = self._make()
                self._check()
            return self._made

    def _check(self) -> None:
        try:
            now = self._key_of()
        except Uncacheable as why:
            raise self._changed(str(why)) from None
        except Exception as error:
            raise self._changed(f"{type(error).__name__}: {error}") from error
        if now.digest != self.key.digest:
            raise self._changed(", ".join(differing(now, self.key.parts)))

    def _changed(self, what: str) -> StageError:
        return StageError(
            "ir",
            (),
            f"{self.code.name} came from the cache, and what it was compiled from has changed: "
            f"{what}; compile it again",
        )

    @property
    def module(self) -> HostModule:
        """Body and wrapper."""
        return self.compiled().module

    @property
    def sources(self) -> Mapping[str, Function]:
        """The functions of other objects that the code calls; the cache keeps no code with any."""
        return self.compiled().sources

    @property
    def ir(self) -> str:
        """The kernel IR."""
        return self.compiled().ir

    @property
    def doc(self) -> str | None:
        """The docstring."""
        return self.compiled().doc

    @property
    def notes(self) -> Mapping[str, Any]:
        """The notes of the function."""
        return self.compiled().notes

    @property
    def target(self) -> ExportTarget | None:
        """The target of `export`."""
        return self.compiled().target

    @property
    def traits(self) -> CallTraits:
        """The needs of a call."""
        return self.compiled().traits

    def emit(self, name: str, cpu: str, triple: str) -> ObjectCode:
        """The object that exports `__tvm_ffi_<name>`."""
        code = self.code
        if (name, cpu, triple) == (code.name, code.cpu, code.triple):
            return code
        return self.compiled().emit(name, cpu, triple)

    def export(self, name: str, form: ExportForm, system_lib: str | None = None) -> bytes:
        """The code of a file that exports the function under this name."""
        return self.compiled().export(name, form, system_lib)

    def operator(self, name: str, operator: str, out: Sequence[str]) -> OperatorCode:
        """The object that registers the exported function as an operator of PyTorch."""
        return self.compiled().operator(name, operator, out)

    def handler(self, name: str, symbol: str, out: Sequence[str] | None) -> OperatorCode:
        """The object that defines a handler of XLA for the exported function."""
        return self.compiled().handler(name, symbol, out)

    def wrapper_text(self) -> str:
        """Wrapper, body and support code as one LLVM module."""
        return self.compiled().wrapper_text()

    def text(self, stage: Stage) -> str:
        """The text of a stage."""
        return self.compiled().text(stage)

    def remarks(self) -> Remarks:
        """What became of each loop and launch."""
        return self.compiled().remarks()

    def report(self) -> str:
        """A page about the compilation."""
        from ferrule.compiler.artefacts import Kept

        text = f"the cache kept it as {self.key.digest[:12]}; the stages ran for this page alone"
        return self.compiled().report(Kept(text, tuple(self.key.parts)))

    def ptx(self) -> Mapping[str, str]:
        """The PTX of the kernels by architecture."""
        return self.compiled().ptx()

    def kernel_info(self) -> Mapping[str, Mapping[str, KernelInfo]]:
        """The resources of each kernel, by architecture and name."""
        return self.compiled().kernel_info()
