"""The process that MLIR runs in: what comes back of it, and how it may end.  Needs no MLIR."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import mlir_functions
import pytest

from ferrule.compiler.errors import CompileError
from ferrule.compiler.mlir.child import alone
from ferrule.compiler.mlir.diagnostics import MlirMessage, Step, failure


@pytest.mark.parametrize(
    ("message", "hint"),
    [
        ('`!"torch"<"int">` type created with unregistered dialect', "linalg-on-tensors"),
        ("Dialect `stablehlo' not found for custom op 'stablehlo.add'", "StableHLO's pass"),
        ("Dialect `tm_tensor' not found for custom op 'tm_tensor.scan'", "tm-tensor-to-loops"),
        ("Dialect `mine' not found for custom op 'mine.add'", "to those of upstream before"),
    ],
)
def test_the_hint_says_how_a_dialect_is_lowered(message: str, hint: str) -> None:
    found = failure(Step("read"), [MlirMessage("error", "loc(unknown)", message)]).hint
    assert found is not None and hint in found


def test_a_value_comes_back() -> None:
    assert alone(mlir_functions.double, (1, "a")) == (1, "a", 1, "a")


def test_what_is_printed_is_no_answer() -> None:
    assert alone(mlir_functions.talk) == "answer"


def test_a_compile_error_comes_back() -> None:
    with pytest.raises(CompileError, match=r"^not so$"):
        alone(mlir_functions.refuse)


def test_a_mistake_of_the_function_is_no_compile_error() -> None:
    with pytest.raises(RuntimeError, match="KeyError: 'a mistake'"):
        alone(mlir_functions.broken)


def test_the_end_of_the_process_says_during_what_it_came() -> None:
    with pytest.raises(CompileError) as caught:
        alone(mlir_functions.abort, False)
    assert str(caught.value) == "MLIR cannot do what ends it: its process ended with SIGABRT"


def test_what_was_said_before_the_end_is_the_reason() -> None:
    with pytest.raises(CompileError) as caught:
        alone(mlir_functions.abort, True)
    assert str(caught.value).splitlines() == [
        "MLIR cannot do what ends it: this is no good",
        '  File "<mlir>", line 2, in module',
        "    2 | two @f",
        "      |     ^^",
    ]


def test_the_first_error_is_the_message_and_others_are_notes() -> None:
    note = MlirMessage("note", 'loc("-":1:1)', "see\nhere")
    said = [
        MlirMessage("warning", 'loc("-":1:1)', "careful"),
        MlirMessage("error", 'loc("k.mlir":7:3)', "first", (note,)),
        MlirMessage("error", "loc(unknown)", "second"),
    ]
    found = failure(Step("run", "text"), said)
    assert found.message == "MLIR cannot run: first"
    assert found.span is not None and (found.span.file, found.span.line) == ("k.mlir", 7)
    assert found.notes == ("1:1: see here", "second")


def test_a_place_beyond_the_text_is_left_out() -> None:
    found = failure(Step("run", "text"), [MlirMessage("error", 'loc("-":9:1)', "far")])
    assert found.span is None


# ---- a user's files of the same names ----

SCRIPT = """
import ferrule as fe

print("once")
try:
    fe.frontends.mlir.compile("func.func @f() { return }")
    print("compiled")
except ImportError as error:
    print(error)
"""


def run_script(path: Path) -> str:
    """What a script prints, which is run with nothing else on the path than ferrule."""
    import ferrule

    path.parent.mkdir(exist_ok=True)
    path.write_text(SCRIPT, encoding="utf-8")
    roots = os.pathsep.join(os.path.dirname(each) for each in ferrule.__path__)
    environment = {**os.environ, "PYTHONPATH": roots}
    done = subprocess.run(
        [sys.executable, path],
        capture_output=True,
        check=True,
        env=environment,
        text=True,
        timeout=60,
    )
    return done.stdout


@pytest.mark.parametrize("name", ["mlir", "iree"])
def test_a_script_that_is_called_like_a_package_of_mlir_runs_once(
    name: str, tmp_path: Path
) -> None:
    found = run_script(tmp_path / f"{name}.py")
    assert found.count("once") == 1
    assert "compiled" in found or f"note: {name} is the file {tmp_path / name}.py, no pack" in found


def test_a_package_beside_the_script_that_compiles_when_it_is_imported_ends(
    tmp_path: Path,
) -> None:
    (tmp_path / "mlir").mkdir()
    (tmp_path / "mlir" / "__init__.py").write_text(SCRIPT, encoding="utf-8")
    found = run_script(tmp_path / "main.py")
    assert found.count("once") == 1
    assert "compiled" in found or "note: mlir has no module ir (a process that MLIR runs" in found


def test_the_process_of_mlir_starts_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRULE_MLIR_PROCESS", "1")
    with pytest.raises(CompileError, match="a process that MLIR runs in is to start another one"):
        alone(mlir_functions.double, 1)
