"""Triton's compiler, without a GPU: one specialisation of a kernel for several architectures."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import groupby
from multiprocessing import process
from typing import Any, Final

from ferrule.compiler import workers
from ferrule.compiler.cuda.code import DeviceCode
from ferrule.compiler.cuda.launcher.images import Serves, images_of
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.progress import progress
from ferrule.frontends import packages
from ferrule.frontends.captured import own_values
from ferrule.frontends.triton import kept
from ferrule.frontends.triton.facts import WARP, Built, LaunchFacts, facts_of
from ferrule.frontends.triton.installed import Kernel, triton
from ferrule.frontends.triton.specialise import Specialisation
from ferrule.specs.deferred import dataclass

_ARCH: Final = re.compile(r"sm_?(\d{2,3})([af]?)")
_GPUS: Final = {"a100": 80, "a10": 86, "l4": 89, "l40s": 89, "h100": 90, "h200": 90, "b200": 100}
_KNOWN: Final = frozenset({70, 72, 75, 80, 86, 87, 88, 89, 90, 100, 101, 103, 110, 120, 121})


@dataclass(frozen=True, slots=True)
class Compiled:
    """A specialisation for the architectures whose launch facts are equal."""

    code: DeviceCode = field(repr=False)
    facts: LaunchFacts

    def serves(self, capability: int) -> bool:
        """Whether a GPU can run it; `capability` is ten times the compute capability."""
        return any(
            image.number == capability
            or (image.serves is Serves.NEWER and image.number <= capability)
            or (image.serves is Serves.FAMILY and image.number // 10 == capability // 10)
            for image in images_of(self.code)
        )


def architectures(target: str | Sequence[str]) -> tuple[int, ...]:
    """The numbers of architectures, such as 90 for "sm_90a".  Raises CompileError for other texts.

    Triton itself decides whether code is specific to one architecture.
    """
    several = isinstance(target, Sequence | set | frozenset) and not isinstance(target, str)
    named = list(target) if several else [target]
    words = [word.strip() for text in named for word in str(text).split(",")]
    found = [_ARCH.fullmatch(word) for word in words]
    numbers = [int(each[1]) for each in found if each is not None]
    if not words or None in found or not _KNOWN.issuperset(numbers):
        word = words[0].lower() if words else ""
        meant = re.fullmatch(r"(?:sm|compute|cc)?\W?(\d{2,3})[af]?", word)
        number = _GPUS.get(word) if meant is None else int(meant[1])
        raise CompileError(
            Diagnostic(
                f"the target is {target!r}",
                expected='an architecture such as "sm_90a", or several; of '
                + ", ".join(f"sm_{number}" for number in sorted(_KNOWN)),
                hint=f'did you mean "sm_{number}"?' if number in _KNOWN else None,
            )
        )
    return tuple(dict.fromkeys(numbers))


_GONE: Final = object()


@dataclass(frozen=True, slots=True)
class Wanted:
    """A specialisation with Triton's options: all that Triton compiles of."""

    specialisation: Specialisation
    options: Mapping[str, Any]

    def is_like(self, other: Wanted) -> bool:
        """Whether Triton compiles the same for both."""
        return self.options == other.options and self.specialisation.is_like(other.specialisation)


def compile_offline(
    kernel: Kernel, wanted: Sequence[Wanted], archs: Sequence[int]
) -> list[tuple[Compiled, ...]]:
    """Each specialisation for these architectures, grouped by equal launch facts.

    What is not kept from before is compiled at once, in a process for each processor, where this
    process can fork; one alone, too, for such a process needs no keys of Triton's.  Raises
    CompileError with Triton's message for a kernel that it cannot compile, for one with which it
    ends its process, and for one whose globals have changed.
    """
    _check_code(kernel)
    jobs = [_Job(kernel, each, arch) for each in wanted for arch in archs]
    made = dict(_known(jobs))
    todo = [at for at in range(len(jobs)) if at not in made]
    made |= _elsewhere(jobs, todo)
    for at in todo:
        if at not in made:
            made[at] = jobs[at].done()
    each = len(archs)
    return [
        _grouped({arch: made[at * each + i] for i, arch in enumerate(archs)})
        for at in range(len(wanted))
    ]


def _check_code(kernel: Kernel) -> None:
    """What Triton knows of the kernel and of its helpers is what is there now.  Raises CompileError
    for a global that has changed, or of which Triton makes no digest."""
    _check_globals(kernel)
    try:
        _forget_old_digests(kernel.function, set())
    except RuntimeError as error:
        raise CompileError(f"Triton cannot compile {kernel.name}: {error}") from error


def _forget_old_digests(function: Any, seen: set[int]) -> None:
    """Triton keeps a digest of a function with all that it calls.  Where a helper was redefined
    since, as in a notebook, it compiles the new one, and keeps the code under the old digest: such
    digests are forgotten, in the helpers first."""
    seen.add(id(function))
    for _, helper in own_values(function):
        if hasattr(helper, "used_global_vals") and id(helper) not in seen:
            _forget_old_digests(helper, seen)
    if function.hash is not None and function.hash != _digest_of(function):
        function.hash, function.used_global_vals = None, {}


def _digest_of(function: Any) -> Any:
    """Triton's digest of a function as it is now."""
    anew = object.__new__(type(function))
    vars(anew).update(vars(function))
    anew.hash, anew.used_global_vals = None, {}
    return anew.cache_key


def _check_globals(kernel: Kernel) -> None:
    """Raises CompileError if a global that the kernel reads has another value than at its first
    compilation, whose digest Triton keeps: under that it would keep other code, for every process.

    Triton's own launches make the same check.
    """
    used = getattr(kernel.function, "used_global_vals", {})
    for (name, _), (value, namespace) in used.items():
        now = namespace.get(name, _GONE)
        if now is _GONE or bool(now != value):
            shown = "gone" if now is _GONE else repr(now)
            raise CompileError(
                Diagnostic(
                    f"{kernel.name}: the global {name} was {value!r} when the kernel was first "
                    f"compiled, and is {shown} now",
                    hint="make it a tl.constexpr parameter, or define the kernel anew",
                )
            )


def keys_of(kernel: Kernel, wanted: Sequence[Wanted], archs: Sequence[int]) -> list[str | None]:
    """The keys of these specialisations for each architecture; None for one that is not kept.

    Raises CompileError for a kernel whose globals have changed.
    """
    _check_code(kernel)
    return [_Job(kernel, each, arch).key() for each in wanted for arch in archs]


def _grouped(built: Mapping[int, Built]) -> tuple[Compiled, ...]:
    made = sorted(built.items(), key=lambda each: repr(each[1].facts))
    groups = []
    for facts, several in groupby(made, key=lambda each: each[1].facts):
        members = sorted(several, key=lambda each: each[0])
        images = [image for _, each in members for image in each.images]
        code = DeviceCode.from_images(images, [facts.kernel])
        groups.append((members[0][0], Compiled(code, facts)))
    return tuple(compiled for _, compiled in sorted(groups, key=lambda each: each[0]))


@dataclass(frozen=True, slots=True)
class _Job:
    """A specialisation for one architecture."""

    kernel: Kernel
    wanted: Wanted
    arch: int

    def key(self) -> str | None:
        """The key under which it is kept; None if it must be compiled."""
        source, backend, options = self._given()
        with _failures(self.kernel, self.arch):
            return kept.key_of(source, backend, options, self.arch)

    def done(self) -> Built:
        """Compile the kernel with Triton, and keep the result."""
        return self._kept(self.key(), self._compiled())

    def done_apart(self) -> Built:
        """The same in a process that does nothing else: with a key, it is kept under ours alone."""
        key = self.key()
        with contextlib.nullcontext() if key is None else kept.apart():
            built = self._compiled()
        return self._kept(key, built)

    def _kept(self, key: str | None, built: Built) -> Built:
        if key is not None:
            kept.keep(key, built)
        return built

    def _compiled(self) -> Built:
        source, backend, options = self._given()
        with _failures(self.kernel, self.arch):
            compiled = triton().compile(source, target=backend.target, options=options)
            images = bytes(compiled.asm["cubin"]), str(compiled.asm["ptx"]).encode()
        return Built(images, facts_of(compiled.metadata))

    def _given(self) -> tuple[Any, Any, dict[str, Any]]:
        """The source, the backend and the options, as Triton's compiler takes them."""
        special = self.wanted.specialisation
        source = _source(self.kernel)(
            fn=self.kernel.function,
            signature=dict(special.types),
            constexprs=dict(special.constants),
            attrs=dict(special.attributes),
        )
        backends = packages.load("triton.backends.compiler", "triton")
        target = backends.GPUTarget("cuda", self.arch, WARP)
        backend = packages.load("triton.compiler.compiler", "triton").make_backend(target)
        return source, backend, dict(self.wanted.options)


def _known(jobs: Sequence[_Job]) -> Iterator[tuple[int, Built]]:
    """What is kept from before."""
    for at, job in enumerate(jobs):
        key = job.key()
        built = None if key is None else kept.read(key)
        if built is not None:
            yield at, built


def _elsewhere(jobs: Sequence[_Job], todo: Sequence[int]) -> dict[int, Built]:
    """What other processes compile.  A job that fails there is left for this one, whose error has
    its cause; one that ends its process is a CompileError."""
    count = min(workers.cores(), len(todo))
    # A process of a pool, which is a daemon, can start none.
    if count < 1 or not workers.forks() or process.current_process().daemon:
        return {}

    def work(payload: bytes) -> Built | None:
        with contextlib.suppress(Exception):
            return jobs[todo[int(payload)]].done_apart()
        return None

    load()
    made = {}
    numbers = [str(at).encode() for at in range(len(todo))]
    with progress("Triton compiles", len(todo)) as tell:
        for at, built in workers.run(work, numbers, count):
            job = jobs[todo[at]]
            if isinstance(built, workers.WorkerDied):
                raise CompileError(f"Triton compiles {job.kernel.name} for sm_{job.arch}: {built}")
            if built is not None:
                made[todo[at]] = built
            tell(f"{job.kernel.name} for sm_{job.arch}")
    return made


def load() -> None:
    """Import now what the first compilation in a process imports: forked processes then share
    it."""
    for module in ("triton.backends.compiler", "triton.backends.nvidia", "triton.compiler"):
        packages.load(module, "triton")


def warm() -> None:
    """Do now what the first compilation in a process does, which is half of a second: the imports,
    and the digest of Triton's own files, which it keeps."""
    load()
    package = triton()
    digest = getattr(package.runtime.cache, "triton_key", None)
    if digest is not None:  # some versions have it elsewhere, and only the time is lost
        digest()


def _source(kernel: Kernel) -> Any:
    if kernel.is_gluon:
        return packages.load("triton.experimental.gluon._runtime", "triton").GluonASTSource
    return packages.load("triton.compiler", "triton").ASTSource


@contextlib.contextmanager
def _failures(kernel: Kernel, arch: int) -> Iterator[None]:
    """Turns exceptions of Triton into CompileErrors; messages of its passes about the code are on
    stderr."""
    try:
        yield
    except Exception as error:
        raise CompileError(
            f"Triton cannot compile {kernel.name} for sm_{arch}: {_said(error)}"
        ) from error


def _said(error: BaseException) -> str:
    """The message of an error, and that of its cause: Triton shows the lines of a function that
    calls another, and the cause is in the called one."""
    text, first = f"{type(error).__name__}: {error}", error
    while first.__cause__ is not None:
        first = first.__cause__
    return text if str(first) in text else f"{text}\n{type(first).__name__}: {first}"
