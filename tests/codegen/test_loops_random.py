"""Random nests of loops: the same with and without cutting them for the sake of vectors."""

from __future__ import annotations

from typing import Any

import nested_loops
import numpy as np
import pytest

import ferrule as fe
from ferrule.language.codegen.cpu.cooperate import frames, strided
from ferrule.language.codegen.facts.uniform import Uniform

SEEDS = (*range(20), 494)
"""The last one has a result that comes from either of two phases."""

COUNT = 600


def built(text: str) -> Any:
    names: dict[str, Any] = {"fe": fe}
    fe.from_source(text, names)
    x, o = (fe.make_fake_compact_tensor("float32", (fe.sym_int(symbol=s),)) for s in "xo")
    options = "--target cpu --opt-level 1"
    return fe.compile(names["host"], x, o, *[fe.Int32] * 4, options=options)


def test_each_thread_computes_what_it_computes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As each thread makes its loops alone, without strided ones."""
    cut = 0
    for seed in SEEDS:
        text = nested_loops.program(seed)
        together = built(text)
        with monkeypatch.context() as patch:
            patch.setattr(frames, "pays", lambda kernel: False)
            patch.setattr(frames.Frames, "uniform", lambda self, kernel: Uniform.of(kernel))
            patch.setattr(strided, "find", lambda *given: None)
            alone = built(text)
        cut += together.inspect_llvm() != alone.inspect_llvm()
        for given in nested_loops.ARGUMENTS:
            x = np.random.default_rng(seed).standard_normal(COUNT).astype(np.float32)
            found, wanted = np.zeros((2, COUNT), np.float32)
            together(x, found, *given)
            alone(x, wanted, *given)
            np.testing.assert_array_equal(found, wanted, f"seed {seed}, {given}\n{text}")
    assert cut >= len(SEEDS) // 4
