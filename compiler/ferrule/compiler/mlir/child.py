"""Functions in a process of their own, which may end as it likes.

MLIR's bindings dereference a null module where a translation fails, passes assert, and a text that
nests too deeply is the end of the stack.  The parent gets a value, the CompileError that was
raised, or one that says during which step the process ended and what MLIR had said until then.
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
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.mlir.bindings import open_mlir
from ferrule.compiler.mlir.said import Said, Step, failure
from ferrule.compiler.mlir.session import Report, opened

T = TypeVar("T")

_START: Final = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); sys.modules['torch'] = None; "
    "from ferrule.compiler.mlir.child import serve; serve()"
)
"""Without PyTorch, which tvm-ffi imports where it can, and which takes longer than all else."""

_FATAL: Final = re.compile(r"\berror:|\bERROR\b|Assertion")
_MOST_LINES: Final = 4


@dataclass(frozen=True, slots=True)
class _Value:
    value: Any


@dataclass(frozen=True, slots=True)
class _Raised:
    diagnostic: Diagnostic


@dataclass(frozen=True, slots=True)
class _Broken:
    text: str


def in_child(function: Callable[..., T], *arguments: object) -> T:
    """What `function(session, *arguments)` gives in a process with the bindings of MLIR.

    The function is one of a module; arguments and value are pickled.  Raises its CompileError, one
    that says what MLIR said where the process ended, and one where there are no bindings.
    """
    value: T = alone(_with_session, function, arguments)
    return value


def _with_session(report: Report, function: Callable[..., T], arguments: tuple[object, ...]) -> T:
    with opened(open_mlir(), report) as session:
        return function(session, *arguments)


def alone(function: Callable[..., T], *arguments: object) -> T:
    """What `function(report, *arguments)` gives in a process of its own; as `in_child` otherwise.

    `report` takes each `Step` before it begins, for the message where the process ends in it.
    """
    if not sys.executable:
        raise CompileError("this needs a Python process of its own, but sys.executable is empty")
    request = pickle.dumps(sys.path) + pickle.dumps((function, arguments))
    # Isolated, so that neither the current folder nor the environment replaces a module of it.
    command = [sys.executable, "-I", "-c", _START]
    done = subprocess.run(command, input=request, capture_output=True, check=False)
    value: T = _outcome(done.stdout, done.returncode, done.stderr.decode(errors="replace"))
    return value


def serve() -> None:
    """The child: answer the request on standard input, on what was standard output."""
    answers = os.fdopen(os.dup(1), "wb")
    # What MLIR prints is no answer.
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
    except Exception:
        answer(_Broken(traceback.format_exc()))
    # Without the interpreter's end: modules that are still alive would go after their context.
    os._exit(0)


def _without_core() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def _outcome(answers: bytes, status: int, printed: str) -> Any:
    step, said = Step("start"), list[Said]()
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
            case _Broken():
                raise RuntimeError(f"a function for MLIR failed in its process:\n{frame.text}")
            case Step():
                step = frame if frame.source else replace(frame, source=step.source)
                said.clear()
            case Said():
                said.append(frame)
    raise CompileError(_ended(step, said, status, printed))


def _ended(step: Step, said: list[Said], status: int, printed: str) -> Diagnostic:
    """What is said of a process that ended before it answered."""
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
