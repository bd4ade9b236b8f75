"""The example of SQLite's library runs and prints what SQLite has."""

from __future__ import annotations

import ctypes
import importlib.util
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "sqlite.py"


def test_it_reads_a_table_and_meets_two_errors(capsys: pytest.CaptureFixture[str]) -> None:
    spec = importlib.util.spec_from_file_location("examples.sqlite", EXAMPLE)
    assert spec is not None and spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    try:
        ctypes.CDLL(example.LIBRARY)
    except OSError:
        pytest.skip(f"{example.LIBRARY} is not installed")
    example.main()
    assert capsys.readouterr().out.splitlines() == [
        "Venus: 0",
        "Earth: 1",
        "Mars: 2",
        "with a moon: 2",
        "RuntimeError: sqlite3_exec returned 1: no such column: mass",
        "ValueError: sqlite3_exec returned 19: UNIQUE constraint failed: planets.name",
    ]
    sqlite = example.Sqlite(example.HostCode.from_library(example.LIBRARY))
    with pytest.raises(FileNotFoundError, match="returned 14: unable to open database file"):
        sqlite.open("/nowhere/planets.db")
    db = sqlite.open(":memory:")
    with pytest.raises(ZeroDivisionError):
        sqlite.execute(db, "SELECT 1", lambda *row: 1 // 0)
    with pytest.raises(RuntimeError, match="sqlite3_prepare_v2 returned 1: no such table: planets"):
        sqlite.count_above(db, 0)
    sqlite.close(db)
