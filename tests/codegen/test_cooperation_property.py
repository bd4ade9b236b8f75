"""Random kernels whose threads work together: in phases, as coroutines, and interpreted."""

from __future__ import annotations

import interpreter
import numpy as np
import pytest
from cooperative_programs import cooperative_kernels
from draws import hypothesised
from fuzz.cooperation import compiled, interpreted
from hypothesis import HealthCheck, given, settings

from ferrule.language.codegen.cpu.cooperate import blocks
from ferrule.language.ir import ops


@settings(
    max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(program=hypothesised(cooperative_kernels(most=4, depth=1)))
def test_all_forms_agree(program: ops.Program, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = interpreted(program, interpreter.upwards)
    np.testing.assert_array_equal(interpreted(program, interpreter.downwards), wanted)
    np.testing.assert_array_equal(compiled(program), wanted)
    with monkeypatch.context() as patch:
        patch.setattr(blocks, "split", lambda kernel, launched, flat: None)
        np.testing.assert_array_equal(compiled(program), wanted, "as coroutines")
