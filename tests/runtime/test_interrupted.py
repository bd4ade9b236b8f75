"""Building in the middle of which a signal or a finaliser comes."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import pytest

import ferrule as fe
from ferrule.language.source import display_path
from ferrule.runtime.calls import function as runtime_function
from ferrule.runtime.entry.entries import Entries
from ferrule.runtime.llvm.passes import link_in


@fe.jit
def twice(n: fe.Int32) -> fe.Int32:
    return n * 2


def test_a_module_whose_linking_is_interrupted_is_freed_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    context = llvm.create_context()
    texts = ("define void @f() { ret void }", "define void @g() { ret void }")
    module, other = (llvm.parse_assembly(text, context) for text in texts)
    freed: list[str] = []

    def interrupted() -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(other, "detach", interrupted)
        with pytest.raises(KeyboardInterrupt):
            link_in(module, other)
    monkeypatch.setattr(other, "_dispose", lambda: freed.append("again"))
    other.close()
    assert not freed
    assert "@g()" in str(module)


def test_a_finaliser_may_call_a_function_while_its_thread_prepares_a_first_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    inner, found = fe.compile(twice, fe.Int32), list[int]()
    load = Entries._load

    def interrupted(self: Entries, *given: Any) -> Any:
        if not found:
            found.append(0)
            found.append(inner(4))
        return load(self, *given)

    gate: Any = runtime_function._shared_gate()
    monkeypatch.setattr(gate._entries, "_engines", {})
    monkeypatch.setattr(Entries, "_load", interrupted)
    outer = fe.compile(twice, fe.Int32)
    thread = threading.Thread(target=lambda: found.append(outer(3)), daemon=True)
    thread.start()
    thread.join(10)
    assert found == [0, 8, 6]


def test_a_path_that_is_no_utf8_is_shown_as_text(tmp_path: Path) -> None:
    path = str(tmp_path / "f\udcff.py")
    assert display_path(path).endswith("f\\udcff.py")
    display_path(path).encode()
