"""`pytest --pipeline mlir`: whatever a test compiles of the language goes through MLIR.

A pytest plugin, loaded by `tests/conftest.py`.  A program that MLIR cannot express is compiled by
the first pipeline, so that its test says something in any case, and is an error at the end of the
last test.  The terminal says how many programs went through MLIR.

The kernels of all programs, those for the CPU among them, become PTX through MLIR as well, which
ptxas assembles, as `ptx_collector` does it for the first pipeline.

MLIR also reads and verifies the text of each program that people read.

MLIR runs in processes of its own, as always, but they are forked from one that has imported it.
"""

from __future__ import annotations

import os
import pickle
import re
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO, ClassVar

import ptx_collector
import pytest

OTHERS = {
    r"test_wide_accesses\.py::test_(an_aligned_part_is_one|parts_of_more|strides_that_are|a_vector"
    r"ised|indices_written_by_hand)": "MLIR's passes make no wide accesses of several",
    r"test_views_of_what_nobody_writes": "MLIR's passes make no wide accesses of several",
    r"test_without_libdevice": "MLIR's process looks for libdevice itself",
    r"tests/cpu/test_(threads|interrupts)\.py": "what MLIR made runs on one core, without Ctrl-C",
    r"test_the_boxed_one_assembles": "it counts the instructions of ferrule's own lowering",
    r"test_strips\.py::test_(the_naive|elements_beside|few_threads_keep|a_bound_from|carried_val"
    r"ues)|test_steady\.py::test_(a_row_found|each_side)|::test_the_vectors_of_a_short_row"
    r"|test_barriers\.py::test_the_end_of_a_coroutine": "it "
    "reads the LLVM IR of ferrule's own lowering",
    r"test_sizes\.py::test_only_work": "what MLIR made runs on one core, without Ctrl-C",
    r"test_engine\.py::test_memory_does_not": "this plugin keeps the text of every program",
    r"test_barriers\.py::test_the_inner_loop_of_a_tiled_product": "its threads run one by one",
}
"""Tests that say what code ferrule's own lowering makes, by a pattern of their names, and why they
do not hold of MLIR's."""

_MEANING = {"afn": "approx", "contract": "fma"}
"""Flags of MLIR's operations, and what PTX may have for them."""

_SIZE, _STATUS = struct.Struct("<Q"), struct.Struct("<i")
_START = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); sys.modules['torch'] = None; "
    "from second_pipeline import serve; serve()"
)


class Forking:
    """A process that has imported MLIR, and forks for each request."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", _START],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._to: BinaryIO = self._process.stdin
        self._from: BinaryIO = self._process.stdout
        self._to.write(pickle.dumps(sys.path))
        self._to.flush()

    def in_child(self, function: Callable[..., Any], *arguments: object) -> Any:
        """As `ferrule.compiler.mlir.child.in_child`."""
        from ferrule.compiler.mlir import child

        with self._lock:
            write(self._to, pickle.dumps((function, arguments)))
            (status,) = _STATUS.unpack(read(self._from))
            answers = read(self._from)
        return child._outcome(answers, status, "")

    def close(self) -> None:
        self._to.close()
        self._from.close()
        self._process.wait()


def read(file: BinaryIO) -> bytes:
    (size,) = _SIZE.unpack(file.read(_SIZE.size))
    return file.read(size)


def write(file: BinaryIO, data: bytes) -> None:
    file.write(_SIZE.pack(len(data)) + data)
    file.flush()


def serve() -> None:
    """The process of `Forking`."""
    from ferrule.compiler.mlir import bindings
    from ferrule.frontends.mlir import lowering as lowering
    from ferrule.language.mlir import pipeline as pipeline

    bindings.open_mlir()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while size := sys.stdin.buffer.read(_SIZE.size):
        request = sys.stdin.buffer.read(_SIZE.unpack(size)[0])
        status, data = _forked(request)
        write(answers, _STATUS.pack(status))
        write(answers, data)


def _forked(request: bytes) -> tuple[int, bytes]:
    """The status of a process that answers a request, and what it answers."""
    source, target = os.pipe()
    if (process := os.fork()) == 0:
        _answer(request, target)
    os.close(target)
    with os.fdopen(source, "rb") as file:
        data = file.read()
    _, status = os.waitpid(process, 0)
    return os.waitstatus_to_exitcode(status), data


def _answer(request: bytes, target: int) -> None:
    from ferrule.compiler.errors import CompileError
    from ferrule.compiler.mlir import child

    function, arguments = pickle.loads(request)
    with os.fdopen(target, "wb") as file:

        def answer(frame: object) -> None:
            pickle.dump(frame, file)
            file.flush()

        try:
            answer(child._Value(child._with_session(answer, function, arguments)))
        except CompileError as error:
            answer(child._Raised(error.diagnostic))
        except Exception as error:
            answer(child._Broken(repr(error)))
    os._exit(0)


def _verified(session: Any, text: str) -> None:
    """Reads a text; MLIR verifies it then."""
    session.parse(text)


@dataclass
class SecondPipeline:
    """What went through MLIR in one process."""

    forking: Forking
    lowered: Callable[..., Any]
    through: int = 0
    refused: list[str] = field(default_factory=list)
    """The tests with a program that MLIR cannot express, and why."""
    kernels: Kernels = field(init=False)

    def __post_init__(self) -> None:
        self.kernels = Kernels(self.forking)

    def lower(self, program: Any, options: Any, origins: Any) -> Any:
        """As `language.stages._lowered`, through MLIR."""
        from ferrule.language.codegen.errors import CodegenError

        if options.index_bitwidth == 32:  # this pipeline computes in 64 bits, and says so
            return self.lowered(program, options, origins)
        try:
            body = self.lowered(program, replace(options, pipeline="mlir"), origins)
        except CodegenError as error:
            body = self.lowered(program, options, origins)  # an error of both is one
            self.refused.append(f"{os.environ.get('PYTEST_CURRENT_TEST', '?')}: {error}")
        else:
            self.through += 1
        self.kernels.add(program)
        self.read(program, origins)
        return body

    def read(self, program: Any, origins: Any) -> None:
        """Has MLIR verify the text that people read."""
        from ferrule.compiler.errors import CompileError
        from ferrule.language.checks.places import Places
        from ferrule.language.codegen.errors import CodegenError
        from ferrule.language.mlir.module import program_text

        try:
            self.forking.in_child(_verified, program_text(program, Places.of(origins or {})))
        except (CodegenError, CompileError) as error:
            self.refused.append(f"{os.environ.get('PYTEST_CURRENT_TEST', '?')}: {error}")

    def summary(self) -> str:
        ways = f"{self.through} through MLIR, {len(self.refused)} refused"
        return f"programs of the language: {ways}; {ptx_collector.summary(self.kernels)}"


class Kernels(ptx_collector.Collector):
    """The kernels of programs as MLIR's text, which MLIR makes PTX of."""

    entry: ClassVar[str] = "gpu.func @"

    def __init__(self, forking: Forking) -> None:
        super().__init__()
        self.forking = forking

    def module(self, program: Any, arch: str, entries: dict[str, tuple[Any, ...]]) -> str:
        from ferrule.compiler.cuda import archs
        from ferrule.compiler.cuda.options import DeviceOptions
        from ferrule.language.codegen.cuda import approximate
        from ferrule.language.codegen.cuda.threads import require_cooperation
        from ferrule.language.mathlib import expand_maths
        from ferrule.language.mlir.device.module import device_text

        program = expand_maths(program, approximate.keeps)
        for kernel in program.kernels:
            require_cooperation(kernel, arch)
        names = {kernel: each[-1].name for kernel, each in entries.items()}
        return device_text(program, names, archs.capability(arch), DeviceOptions((arch,)))

    def unwanted(self, text: str, module: str) -> str:
        """As for the first pipeline, but flags of MLIR's say what may be approximated."""
        asked = " ".join(_MEANING[flag] for flag in _MEANING if flag in text)
        return super().unwanted(f"{text}\n{asked}", module)

    def to_ptx(self, jobs: Sequence[tuple[str, str]]) -> tuple[list[str], str]:
        """As `ptx_collector.to_ptx`."""
        from ferrule.language.mlir import pipeline

        passes, made = pipeline.device_pipeline(), list[str]()
        for arch, text in jobs:
            job = pipeline._DeviceJob(arch, text, 0)
            try:
                made += self.forking.in_child(pipeline._assembled, (job,), passes, 3)
            except Exception as error:
                return made, str(error)
        return made, ""


# ---- the plugin ----

OPTION = "--pipeline"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        OPTION,
        choices=("llvm", "mlir", "again"),
        default="llvm",
        help="what lowers the functions that tests compile; again: the text that people read is "
        "compiled as well, see compiled_again",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption(OPTION) != "mlir":
        return
    for item in items:
        for pattern, reason in OTHERS.items():
            if re.search(pattern, item.nodeid):
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session", autouse=True)
def is_compiled_again(request: pytest.FixtureRequest) -> Iterator[None]:
    """Programs that are run in all ways are so through their text, too, if that was asked for."""
    if request.config.getoption(OPTION) != "again":
        yield
        return
    from compiled_again import comparing

    with comparing() as again:
        yield
    ptx_collector.say(request.config, again.summary())


@pytest.fixture(scope="session", autouse=True)
def goes_through_mlir(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Whatever is compiled goes through MLIR, if that was asked for."""
    if request.config.getoption(OPTION) != "mlir":
        yield
        return
    from ferrule.language import stages
    from ferrule.language.mlir import pipeline

    forking, in_child, lowered = Forking(), pipeline.in_child, stages._lowered
    second = SecondPipeline(forking, lowered)
    pipeline.in_child, stages._lowered = forking.in_child, second.lower
    yield
    pipeline.in_child, stages._lowered = in_child, lowered
    refused = second.kernels.assembled(tmp_path_factory.mktemp("mlir"))
    forking.close()
    ptx_collector.say(request.config, second.summary())
    if refused or second.refused:
        text = "\n".join([*second.refused, refused])
        pytest.fail(f"programs of the tests that MLIR does not compile:\n{text}", pytrace=False)
