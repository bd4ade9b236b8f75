"""What commands print: lines for people, or one JSON object for programs."""

from __future__ import annotations

import json
import sys
from typing import Any


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


class Output:
    """Lines for people on the standard output; with `as_json` one object at the end instead."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self._data: dict[str, Any] = {}

    def line(self, text: str = "") -> None:
        """A line, or several, for people."""
        if not self.as_json:
            print(text)

    def note(self, text: str) -> None:
        """A line about what is shown, which is no part of it: on the standard error."""
        print(f"ferrule: note: {text}", file=sys.stderr)

    def put(self, **data: Any) -> None:
        """Entries of the JSON object."""
        self._data.update(data)

    def finish(self) -> None:
        """Write the JSON object, if it is wanted."""
        if self.as_json:
            print(json.dumps(self._data, indent=2, ensure_ascii=False, default=str))
        sys.stdout.flush()

    def fail(self, failure: Failure) -> int:
        """Report a failure; returns the exit code."""
        if self.as_json:
            self.put(error={"kind": failure.kind, "message": str(failure)})
            self.finish()
        else:
            sys.stdout.flush()
            print(f"ferrule: error: {failure}", file=sys.stderr)
        return 1


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
