"""Programs of the language's own tests, which go through MLIR in a run of their own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from mlir_functions import needs_mlir

import ferrule as fe

ROOT = Path(__file__).parents[2]
PARTS = (
    *("test_arch_mbarriers", "test_arch_narrow_products", "test_arch_tensor_cores"),
    *("test_expressions", "test_fragments"),
    *("test_kernel_programs", "test_leaving_early", "test_printing", "test_programs"),
    *("test_records", "test_reductions", "test_tfloat32", "test_values", "test_views"),
)
"""Files of `tests/language`; `pytest tests/language --pipeline mlir` takes all of them."""


AGAIN = (
    "test_kernel_programs",
    "test_leaving_early",
    "test_programs",
    "test_records",
    "test_views",
)
"""Files whose programs are compiled again; `pytest tests/language --pipeline again` takes all."""


def run(pipeline: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """pytest with everything that tests compile going through MLIR."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    return subprocess.run(
        [*command, "--pipeline", pipeline, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@needs_mlir
def test_tests_of_the_language_hold_of_what_goes_through_mlir() -> None:
    done = run("mlir", *(f"tests/language/{name}.py" for name in PARTS))
    assert done.returncode == 0, done.stdout[-8000:]
    (through,) = map(int, re.findall(r"(\d+) through MLIR", done.stdout))
    assert through > 200
    assert re.search(r"\d+ kernels of \d+ programs as PTX", done.stdout)


@needs_mlir
def test_programs_are_compiled_again_from_their_text() -> None:
    done = run("again", *(f"tests/language/{name}.py" for name in AGAIN))
    assert done.returncode == 0, done.stdout[-8000:]
    said = r"(\d+) programs for the CPU, (\d+) for an emulated GPU, (\d+) refused"
    ((on_cpu, on_gpu, refused),) = re.findall(said, done.stdout)
    assert int(on_cpu) > 50 and int(on_gpu) > 10
    assert int(refused) <= 3, "a float decides, a host function reads memory, a part of a tensor"


def test_a_program_that_is_refused_is_compiled_by_the_first_pipeline_and_noted() -> None:
    from second_pipeline import SecondPipeline

    from ferrule.language.codegen.errors import CodegenError

    def lowered(program: str, options: fe.Options, origins: object) -> str:
        if options.pipeline == "mlir":
            raise CodegenError(program)
        return "by the first pipeline"

    class Unread(SecondPipeline):
        def read(self, program: Any, origins: Any) -> None:
            """No program, so no text."""

    second: Any = Unread(cast("Any", None), lowered)
    second.kernels = SimpleNamespace(add=lambda program: None)
    assert second.lower("for no reason", fe.Options(), None) == "by the first pipeline"
    (refused,) = second.refused
    assert refused.endswith("(call): for no reason")
