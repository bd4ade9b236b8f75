"""What commands print: lines for people, or one JSON object for programs.

The standard output has what a command says, and nothing else: what a build file, a compilation or a
program that they start prints goes to the standard error.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any, TextIO


class Failure(Exception):
    """A command cannot go on; the message is what the user reads.

    `kind` is the class of the error that it comes from.
    """

    def __init__(self, message: str, kind: str = "") -> None:
        super().__init__(message)
        self.kind = kind

    @classmethod
    def of(cls, error: BaseException, where: str = "") -> Failure:
        """A failure that an error of ferrule or of the system explains."""
        text = str(error) or type(error).__name__
        if isinstance(error, OSError) and error.strerror and error.filename:
            text = f"{error.filename}: {error.strerror}"
        return cls(f"{where}{text}", type(error).__name__)


class UnwritableError(Exception):
    """The standard output is closed, full or broken; the message says what the system says.

    `is_left`: its reader, such as head, has gone, of which nobody needs to be told.
    """

    def __init__(self, message: str, is_left: bool = False) -> None:
        super().__init__(message)
        self.is_left = is_left


class Output:
    """Lines for people on a stream; with `as_json` one object at the end instead.

    The stream is None where the process has no standard output.
    """

    def __init__(self, as_json: bool, stream: TextIO | None) -> None:
        self.as_json = as_json
        self._stream = stream
        self._data: dict[str, Any] = {}

    def line(self, text: str = "") -> None:
        """A line, or several, for people.  UnwritableError if they cannot be written."""
        if not self.as_json:
            self._write(text, representable(text, self._encoding()))

    def note(self, text: str) -> None:
        """A line about what is shown, which is no part of it: on the standard error."""
        tell(f"ferrule: note: {text}")

    def put(self, **data: Any) -> None:
        """Entries of the JSON object."""
        self._data.update(data)

    def finish(self) -> None:
        """Write the JSON object, if it is wanted.  UnwritableError if that is not possible."""
        if self.as_json:
            # Where the stream cannot have each character, all but ASCII is escaped, as JSON does.
            texts = (
                json.dumps(self._data, indent=2, ensure_ascii=each, default=str)
                for each in (False, True)
            )
            self._write(*texts)
        self.flush()

    def flush(self) -> None:
        """Write what is still buffered.  UnwritableError if that is not possible."""
        with _written():
            if self._stream is not None:
                self._stream.flush()

    def fail(self, failure: Failure) -> int:
        """Report a failure; returns the exit code."""
        if self.as_json:
            self.put(error={"kind": failure.kind, "message": str(failure)})
            self.finish()
        else:
            tell(f"ferrule: error: {failure}")
        return 1

    def _encoding(self) -> str:
        return getattr(self._stream, "encoding", None) or "utf-8"

    def _write(self, text: str, other: str) -> None:
        """Write a text, or the other one if the stream's encoding cannot have the first."""
        with _written():
            if self._stream is None:
                raise UnwritableError("it is closed")
            try:
                text.encode(self._encoding())
            except UnicodeEncodeError:
                text = other
            print(text, file=self._stream)


@contextmanager
def _written() -> Iterator[None]:
    """Writing to the standard output: UnwritableError for an error of the system."""
    try:
        yield
    except BrokenPipeError:
        raise UnwritableError("its reader has gone", is_left=True) from None
    except OSError as error:
        raise UnwritableError(error.strerror or str(error)) from None


def representable(text: str, encoding: str) -> str:
    """The text, with an escape for each character that the encoding does not have."""
    return text.encode(encoding, "backslashreplace").decode(encoding)


def tell(text: str) -> None:
    """A line on the standard error; if that cannot be written, nobody is there to be told."""
    if sys.stderr is not None:
        encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
        with suppress(OSError, ValueError):
            print(representable(text, encoding), file=sys.stderr, flush=True)


@contextmanager
def own_stream() -> Iterator[TextIO | None]:
    """The standard output for a command alone; all others write to the standard error meanwhile.

    A program's own file of the standard output is exchanged, and so for its child processes, too.
    """
    stream: TextIO | None = sys.stdout
    is_own = stream is sys.__stdout__
    if stream is None or not is_own:
        with redirect_stdout(sys.stderr):
            yield stream
        return
    with suppress(OSError):
        stream.flush()
    own = _copied(stream)
    try:
        os.dup2(2, 1)
    except OSError:  # there is no standard error
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    try:
        with redirect_stdout(sys.stderr):
            yield own
    finally:
        with suppress(OSError):
            os.dup2(own.fileno(), 1)
        with suppress(OSError):
            own.close()


def _copied(stream: TextIO) -> TextIO:
    """The same file, encoding and errors, behind another number."""
    file = os.fdopen(os.dup(1), "wb")
    lines = getattr(stream, "line_buffering", False)
    return io.TextIOWrapper(
        file, encoding=stream.encoding, errors=stream.errors, line_buffering=lines
    )


def table(rows: list[tuple[str, ...]]) -> str:
    """Rows in columns; the last column is as wide as it is."""
    if not rows:
        return ""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    lines = []
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        lines.append("  ".join([*cells, row[-1]]).rstrip())
    return "\n".join(lines)
