"""Runs functions in a separate process, which may crash.

MLIR's bindings dereference a null module if a translation fails, passes assert, and deeply nested
text overflows the stack.  The parent gets a value, the CompileError that was raised, or a
CompileError with the step during which the process ended and MLIR's messages until then.
"""

from __future__ import annotations

import io
import os
import pickle
import re
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, TypeVar

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.mlir.bindings import NoBindingsError, open_mlir
from ferrule.compiler.mlir.diagnostics import MlirMessage, Step, failure
from ferrule.compiler.mlir.session import Report, opened
from ferrule.specs.deferred import dataclass

T = TypeVar("T")

_START: Final = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); sys.modules['torch'] = None; "
    "from ferrule.compiler.mlir.child import serve; serve()"
)
"""The child does not import PyTorch, which tvm-ffi imports if it can: it takes longer than
everything else."""

_MARK: Final = "FERRULE_MLIR_PROCESS"
"""An environment variable that marks such a process; it starts no further one."""

_FATAL: Final = re.compile(r"\berror:|\bERROR\b|Assertion")
_MOST_LINES: Final = 4


@dataclass(frozen=True, slots=True)
class _Value:
    value: Any


@dataclass(frozen=True, slots=True)
class _Raised:
    diagnostic: Diagnostic


@dataclass(frozen=True, slots=True)
class _Missing:
    text: str
    package: str | None


@dataclass(frozen=True, slots=True)
class _Broken:
    text: str


def in_child(function: Callable[..., T], *arguments: object) -> T:
    """The result of `function(session, *arguments)` in a process with the bindings of MLIR.

    The function must be at module level; arguments and result are pickled.  Raises the function's
    CompileError, a CompileError with MLIR's messages if the process ended, and ImportError if there
    are no bindings.
    """
    value: T = alone(_with_session, function, arguments)
    return value


def _with_session(report: Report, function: Callable[..., T], arguments: tuple[object, ...]) -> T:
    with opened(open_mlir(), report) as session:
        return function(session, *arguments)


def alone(function: Callable[..., T], *arguments: object) -> T:
    """The result of `function(report, *arguments)` in a separate process; otherwise like
    `in_child`.

    `report` is called with each `Step` before it begins, for the message if the process ends in it.
    """
    if not sys.executable:
        raise CompileError("this needs a Python process of its own, but sys.executable is empty")
    if _MARK in os.environ:
        raise CompileError(_within_another())
    # The path comes first: without it the child cannot import the function's module.
    request = pickle.dumps(_path()) + pickle.dumps((function, arguments))
    # Isolated, so that neither the current folder nor the environment can shadow its modules.
    command = [sys.executable, "-I", "-c", _START]
    environment = {**os.environ, _MARK: "1"}
    done = subprocess.run(command, input=request, capture_output=True, check=False, env=environment)
    value: T = _outcome(done.stdout, done.returncode, done.stderr.decode(errors="replace"))
    return value


def _within_another() -> Diagnostic:
    return Diagnostic(
        "a process that MLIR runs in is to start another one",
        expected="modules that compile nothing when MLIR's bindings import them",
        hint=f"a file of yours has the name of a module that MLIR needs: rename it, or unset "
        f"{_MARK}, if it was set by hand",
    )


def _path() -> list[str]:
    """The path on which the process finds modules: the same folders, with the script's own last.

    A script, or a file beside it, may have the name of a package that includes MLIR.
    """
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    own = {_real(""), _real(os.path.dirname(main or ""))}
    ours = {_real(os.path.dirname(each)) for each in sys.modules["ferrule"].__path__}
    return sorted(sys.path, key=lambda each: _real(each) in own - ours)


def _real(folder: str) -> str:
    try:
        return os.path.realpath(folder or ".")
    except OSError:  # the current folder is gone
        return folder


def serve() -> None:
    """The child: answer the request on standard input, on what was standard output."""
    answers = os.fdopen(os.dup(1), "wb")
    # Keep MLIR's output out of the answer.
    os.dup2(2, 1)
    _without_core()

    def answer(frame: object) -> None:
        pickle.dump(frame, answers)
        answers.flush()

    function, arguments = pickle.load(sys.stdin.buffer)
    try:
        answer(_Value(function(answer, *arguments)))
    except CompileError as error:
        answer(_Raised(error.diagnostic))
    except NoBindingsError as error:
        answer(_Missing(str(error), error.name))
    except Exception:
        answer(_Broken(traceback.format_exc()))
    # Skip the interpreter's shutdown: it would destroy modules that are still alive after their
    # context.
    os._exit(0)


def _without_core() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def _outcome(answers: bytes, status: int, printed: str) -> Any:
    step, said = Step("start"), list[MlirMessage]()
    reading = io.BytesIO(answers)
    while reading.tell() < len(answers):
        try:
            frame = pickle.load(reading)
        except (EOFError, pickle.UnpicklingError):
            break
        match frame:
            case _Value():
                return frame.value
            case _Raised():
                raise CompileError(frame.diagnostic)
            case _Missing():
                raise NoBindingsError(frame.text, name=frame.package)
            case _Broken():
                raise RuntimeError(f"a function for MLIR failed in its process:\n{frame.text}")
            case Step():
                step = frame if frame.source else replace(frame, source=step.source, file=step.file)
                said.clear()
            case MlirMessage():
                said.append(frame)
    raise CompileError(_ended(step, said, status, printed))


def _ended(step: Step, said: list[MlirMessage], status: int, printed: str) -> Diagnostic:
    """The diagnostic for a process that ended before it answered."""
    how = _signal(-status) if status < 0 else f"status {status}"
    words = [line.strip() for line in printed.splitlines() if _FATAL.search(line)]
    if said:
        return failure(step, said)
    more = (f"its process ended with {how}", *words[:_MOST_LINES])
    return failure(step, (), "\n".join(more))


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
