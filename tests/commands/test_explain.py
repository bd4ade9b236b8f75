"""`ferrule explain`: the entry of the catalogue that a message is of."""

from __future__ import annotations

import io
import json
import sys
import traceback

import numpy as np
import pytest

import ferrule as fe
from ferrule.commands import main
from ferrule.commands.explain import entry_of
from ferrule.compiler.messages.catalogue import CATALOGUE, Entry
from ferrule.compiler.messages.page import example


@pytest.mark.parametrize("entry", CATALOGUE, ids=lambda entry: entry.code)
def test_every_example_is_found_again(entry: Entry) -> None:
    text = example(entry)
    assert entry_of(text) == entry
    assert entry_of(f"Traceback …\n{entry.error}: {text}\n") == entry
    assert entry_of(text.replace(", expected", ",\n  expected")) == entry
    assert entry_of(text.partition(" when calling")[0]) is None


@fe.jit
def copied(x: fe.Tensor, y: fe.Tensor):
    y[:] = x[:]


def test_a_message_of_a_call_with_its_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    vector = fe.row_major((fe.sym_int(),), fe.Float32)
    compiled = fe.compile(copied, vector, vector)
    with pytest.raises(ValueError) as caught:
        compiled(np.zeros(3, np.float32), np.zeros(2, np.float32))
    text = "".join(traceback.format_exception(caught.value))
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    assert main(["explain", "-"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("CALL22, a ValueError: Two places that have one symbol")
    assert "for example:\n    Mismatched b.shape[0] on argument #1" in said


def test_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "call12", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["code"] == "CALL12" and "dtype" in found["meaning"]
    assert main(["explain", "CALL17"]) == 1
    said = "no error has the number CALL17: those beside it are CALL15 and CALL21"
    assert said in capsys.readouterr().err
    assert main(["explain", "CALL99"]) == 1
    assert "those beside it are CALL54" in capsys.readouterr().err


def test_another_text_is_no_message_of_a_call(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "the", "name", "'x'", "is", "not", "defined"]) == 1
    assert "this is no message of a call that a wrapper refused" in capsys.readouterr().err
