"""SQLite's C library as checked functions: handles, callbacks, and its own texts of errors.

    python examples/sqlite.py

Each function is a call of the library, described in a few lines. `open` gives back the connection
that `sqlite3_open` writes to a `sqlite3**`; `execute` calls a function of Python, or a compiled
one, for each row; what goes wrong is an error with SQLite's own words.
"""

from __future__ import annotations

import ctypes
from typing import Any

import ferrule as fe
from ferrule import compiler
from ferrule.compiler.conventions import (
    CODE,
    NULL,
    Callback,
    CFunction,
    CString,
    HostCode,
    Out,
    ReturnCode,
    Sequence,
    cast,
)
from ferrule.specs import Signature
from ferrule.specs.params import Function, Pointer, Scalar, String

LIBRARY = "libsqlite3.so.0"
CANTOPEN, CONSTRAINT, ROW = 14, 19, 100
DB, PATH, SQL, EACH, LOW = (
    Pointer("db"), String("path"), String("sql"), Function("each"), Scalar("low", "int64"),
)  # fmt: skip


class Sqlite:
    """The functions; `sqlite` is the code of the library."""

    def __init__(self, sqlite: HostCode) -> None:
        self.sqlite = sqlite
        self.open = self._open()
        self.execute = self._execute()
        self.close = self._close()
        self.count_above = self._count_above()

    def _open(self) -> fe.Function:
        db = Out("pointer", "db", free="sqlite3_close")  # closed only if the call fails
        message = CFunction("sqlite3_errmsg", [db.value], returns="string", code=self.sqlite)
        failed = ReturnCode(text=message, errors={CANTOPEN: FileNotFoundError})
        call = CFunction("sqlite3_open", [CString(PATH), db], returns=failed, code=self.sqlite)
        return compiler.build(Signature("open", [PATH]), call)

    def _execute(self) -> fe.Function:
        message = Out(CString, "message", free="sqlite3_free", result=False)
        row = Callback(
            EACH, ["int32", "pointer", "pointer"], returns="int32", context=0, on_error=1
        )
        given = [DB, CString(SQL), row, row.user_data, message]
        failed = ReturnCode(text=message, errors={CONSTRAINT: ValueError})
        call = CFunction("sqlite3_exec", given, returns=failed, code=self.sqlite)
        return compiler.build(Signature("execute", [DB, SQL, EACH]), call)

    def _close(self) -> fe.Function:
        text = CFunction("sqlite3_errstr", [CODE], returns="string", code=self.sqlite)
        call = CFunction("sqlite3_close", [DB], returns=ReturnCode(text=text), code=self.sqlite)
        return compiler.build(Signature("close", [DB]), call)

    def _count_above(self) -> fe.Function:
        """A prepared statement: four calls, of which the first makes what the others use."""
        text = CFunction("sqlite3_errmsg", [DB], returns="string", code=self.sqlite)
        query = Out("pointer", "query", free="sqlite3_finalize", result=False)
        sql = CString("SELECT count(*) FROM planets WHERE moons > ?")
        steps = [
            (
                "sqlite3_prepare_v2",
                [DB, sql, cast(-1, "int32"), query, NULL],
                ReturnCode(text=text),
            ),
            ("sqlite3_bind_int64", [query.value, cast(1, "int32"), LOW], ReturnCode(text=text)),
            ("sqlite3_step", [query.value], None),
            ("sqlite3_column_int64", [query.value, cast(0, "int32")], "int64"),
        ]
        calls = [CFunction(name, given, returns=r, code=self.sqlite) for name, given, r in steps]
        return compiler.build(Signature("count_above", [DB, LOW]), Sequence(calls))


def texts(count: int, values: Any, names: Any) -> list[str]:
    """The values of a row, from the `char**` that a callback gets."""
    found = ctypes.cast(values, ctypes.POINTER(ctypes.c_char_p))
    return [(found[i] or b"NULL").decode() for i in range(count)]


def main() -> None:
    """Make a table, read it, and meet two errors."""
    sqlite = Sqlite(HostCode.from_library(LIBRARY))
    rows: list[list[str]] = []

    def each(count: int, values: Any, names: Any) -> int:
        rows.append(texts(count, values, names))
        return 0

    db = sqlite.open(":memory:")
    sqlite.execute(db, "CREATE TABLE planets (name TEXT UNIQUE, moons INTEGER)", each)
    sqlite.execute(db, "INSERT INTO planets VALUES ('Earth', 1), ('Mars', 2), ('Venus', 0)", each)
    sqlite.execute(db, "SELECT name, moons FROM planets ORDER BY moons", each)
    print(*(f"{name}: {moons}" for name, moons in rows), sep="\n")
    print("with a moon:", sqlite.count_above(db, 0))
    for sql in ("SELECT mass FROM planets", "INSERT INTO planets VALUES ('Mars', 3)"):
        try:
            sqlite.execute(db, sql, each)
        except (RuntimeError, ValueError) as error:
            print(f"{type(error).__name__}: {error}")
    sqlite.close(db)


if __name__ == "__main__":
    main()
