"""Assembles the kernels of the tests: a pytest plugin, loaded by `tests/conftest.py`.

Programs that tests compile for the CPU through the language are kept, by day the first
`OF_A_TEST` of each test, with whatever parameters, at night all.  When the last test of a process
is done, their kernels become PTX for the oldest of `ptxas.ARCHS`, in a process of their own (LLVM
ends the process where it finds no instruction), and ptxas assembles all of it for the oldest and
the newest, at night for each; every tenth program becomes PTX for each of the others as well.
What is refused is an error at the end of the last test and names the tests that it comes from.
The terminal says what was done, and why programs were left out.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import ptxas
import pytest
from nightly import is_nightly

SAMPLE = 10
"""Every so many programs are compiled for every architecture."""

OF_A_TEST = 4
"""So many programs of a test are kept by day: with other parameters it has similar ones."""

WITHOUT_KERNELS = ("emulator", "layouts", "project", "specs")
"""Folders of tests that compile nothing."""

HEADER = (".version", ".target", ".address_size")

UNWANTED = re.compile(
    r"\.extern\b(?! +\.func[^;]*?\b(?:vprintf|__assertfail)\b)|"
    r"\.approx\b|\.ftz\b|\bfma\.|(?<![.\w])(?:add|sub|mul)\.(?:bf16|f16|f32|f64)(?:x2)?\b"
)
"""Calls out, and what rounds otherwise than the kernel says: ptxas itself may make one operation of
a multiplication and an addition that do not say how they round."""


@dataclass
class Collector:
    """The programs of one process: the test that each comes from first, by the kernels' text."""

    entry: ClassVar[str] = "define ptx_kernel"
    """With what a kernel begins in a text."""

    tests: dict[str, str] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    kernels: int = 0
    of_tests: Counter[str] = field(default_factory=Counter)
    """How many programs of a test function are kept."""

    def add(self, program: Any) -> None:
        """Keeps the kernels of a program, as LLVM's text for the oldest architecture."""
        test = os.environ.get("PYTEST_CURRENT_TEST", "?")
        function = test.partition("[")[0].partition(" ")[0]
        if self.of_tests[function] >= OF_A_TEST and not is_nightly():
            self.left_out["its test has others, which are enough by day"] += 1
            return
        text = self.text(program, ptxas.ARCHS[0])
        if text is not None and text not in self.tests:
            self.kernels += text.count(self.entry)
            self.of_tests[function] += 1
            self.tests[text] = test

    def text(self, program: Any, arch: str) -> str | None:
        """The kernels as LLVM's text, with neutral names; None where there are none for a GPU."""
        from ferrule.compiler.cuda.options import DeviceOptions
        from ferrule.language.codegen.cuda.kernels import Entry, entries_of
        from ferrule.language.codegen.errors import CodegenError
        from ferrule.language.ir.facts import all_ops
        from ferrule.language.ir.passes.outline import outline

        program = outline(program)
        # Of two versions of a kernel the one that nearly all launches take.
        short = entries_of(program, DeviceOptions((arch,), index_bitwidth=32))
        entries = {
            kernel: (Entry(f"entry{i}", versions[0].measured),)
            for i, (kernel, versions) in enumerate(short.items())
        }
        if not entries:
            self.left_out["no kernel"] += 1
            return None
        if any(getattr(op, "inserted", False) for k in program.kernels for op in all_ops(k.body)):
            self.left_out["it has checks, which are for the CPU"] += 1
            return None
        if any(map(_has_too_much, program.kernels)):
            self.left_out["it has memory of the CPU's own, too much for a GPU"] += 1
            return None
        try:
            return self.module(program, arch, entries)
        except CodegenError as error:
            self.left_out[str(error)] += 1
            return None

    def module(self, program: Any, arch: str, entries: Any) -> str:
        """The kernels as text; CodegenError for what the target cannot do."""
        from ferrule.language.codegen.cuda.kernels import device_module

        return device_module(program, arch, entries)

    def to_ptx(self, jobs: Sequence[tuple[str, str]]) -> tuple[list[str], str]:
        """PTX for an architecture, of a text, for each pair; where one cannot be made, why."""
        return to_ptx(jobs)

    def assembled(self, folder: Path) -> str:
        """What was refused, as one text; empty if all is well."""
        if not self.tests:
            return ""
        oldest, *others = ptxas.ARCHS
        texts = list(self.tests)
        chosen = {oldest: texts} | dict.fromkeys(others, texts[::SAMPLE])
        jobs = [(arch, text) for arch in chosen for text in chosen[arch]]
        made, reason = self.to_ptx(jobs)
        if reason:
            arch, text = jobs[len(made)]
            return f"{self.tests[text]}: no PTX for {arch}: {reason}"
        pairs = list(zip(jobs, made, strict=True))
        refused = [self.unwanted(text, module) for (_, text), module in pairs]
        if ptxas.find_ptxas() is not None:
            for arch, own in chosen.items():
                modules = [module for job, module in pairs if job[0] == arch]
                merged = Merged.of(modules, [self.tests[text] for text in own])
                places = _everywhere() if arch == oldest else (arch,)
                refused += [merged.refused(place, folder) for place in places]
        return "\n".join(filter(None, refused))

    def unwanted(self, text: str, module: str) -> str:
        """What a module has that its kernels did not ask for, fma and approximations by name."""
        found = {match[0] for match in UNWANTED.finditer(module)}
        asked = {word for word in found if word.strip(".") in text or _allowed(word, text)}
        return f"{self.tests[text]}: {', '.join(sorted(found - asked))}" if found > asked else ""


def _has_too_much(kernel: Any) -> bool:
    """Whether shared memory of a CPU's own lets a kernel take more than GPUs allow."""
    from ferrule.language.ir import ops, shared

    extra = any(op.extra for op in kernel.facts.each(ops.Shared))
    return extra and shared.places(kernel)[1] > 48 << 10


def _everywhere() -> tuple[str, ...]:
    """The architectures for which all programs are assembled: by day the oldest and the newest."""
    return ptxas.ARCHS if is_nightly() else (ptxas.ARCHS[0], ptxas.ARCHS[-1])


def _allowed(word: str, text: str) -> bool:
    """Whether an instruction with fast-math flags may become this."""
    flag = "afn" if word == ".approx" else "contract"
    return word != ".ftz" and bool(re.search(rf"\bf\w+ (?:\w+ )*{flag} ", text))


@dataclass(frozen=True)
class Merged:
    """Modules as one, and the test behind each of its lines."""

    ptx: str
    tests: tuple[str, ...]

    @classmethod
    def of(cls, modules: Sequence[str], tests: Sequence[str]) -> Merged:
        """The first module's header, and the entries of all under names of their own."""
        lines: list[str] = []
        origins: list[str] = []
        for number, (module, test) in enumerate(zip(modules, tests, strict=True)):
            own = re.sub(
                r"\b(?:entry|bytes_)(?=\d)|_\$_bytes_(?=\$)", f"k{number}_\\g<0>", module
            ).splitlines()
            own = own if number == 0 else [line for line in own if not line.startswith(HEADER)]
            lines += own
            origins += [test] * len(own)
        return cls("\n".join(lines), tuple(origins))

    def refused(self, arch: str, folder: Path) -> str:
        """What ptxas says against it, with the test of each line."""
        try:
            ptxas.assemble(self.ptx, arch, folder, "-O0")
        except ptxas.Refused as error:
            found = [f"{self.tests[line - 1]}: {text}" for line, text in error.lines]
            return "\n".join([*found[:20], *([] if found else [str(error)])])
        return ""


def to_ptx(jobs: Sequence[tuple[str, str]]) -> tuple[list[str], str]:
    """PTX for an architecture, of a module, for each pair of them, made in one other process; where
    that ended before the last one, why."""
    done = subprocess.run(
        [sys.executable, __file__],
        input="\n".join(map(json.dumps, jobs)),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    made = [json.loads(line) for line in done.stdout.splitlines()]
    return made, "" if len(made) == len(jobs) else f"{done.returncode}\n{done.stderr[-2000:]}"


def _serve() -> None:
    """The other side of `to_ptx`: PTX for the job on each line."""
    sys.modules["torch"] = None  # type: ignore[assignment] # tvm_ffi imports it, for two seconds
    from ferrule.language.codegen.cuda.kernels import ptx

    for line in sys.stdin:
        arch, text = json.loads(line)
        print(json.dumps(ptx(text, arch)), flush=True)


# ---- the plugin ----

_REPORT = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session", autouse=True)
def kernels_assemble(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Collects while the tests run, and assembles at the end."""
    if all(item.path.parent.name in WITHOUT_KERNELS for item in request.session.items):
        yield  # what the rest imports takes a second
        return
    from ferrule.language import codegen

    collector, lower_cpu = Collector(), codegen.lower_cpu

    def lower_and_collect(program: Any, *more: Any, **named: Any) -> Any:
        body = lower_cpu(program, *more, **named)
        collector.add(program)
        return body

    codegen.lower_cpu = lower_and_collect
    yield
    codegen.lower_cpu = lower_cpu
    if collector.tests:
        refused = collector.assembled(tmp_path_factory.mktemp("ptx"))
        say(request.config, summary(collector))
        if refused:
            pytest.fail(f"kernels of the tests are no good as PTX:\n{refused}", pytrace=False)


def summary(collector: Collector) -> str:
    how = ", ".join(ptxas.ARCHS) if ptxas.find_ptxas() else "LLVM alone: there is no ptxas"
    left_out = "; ".join(f"{count}: {why}" for why, count in collector.left_out.most_common())
    text = f"{collector.kernels} kernels of {len(collector.tests)} programs as PTX ({how})"
    return f"{text}; left out {left_out}" if left_out else text


def say(config: pytest.Config, line: str) -> None:
    """Leaves a line for the terminal, which another process may have."""
    output = getattr(config, "workeroutput", None)
    if output is None:
        config.stash.setdefault(_REPORT, []).append(line)
    else:
        output["ptx"] = line


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """What a process of pytest-xdist said."""
    line = getattr(node, "workeroutput", {}).get("ptx")
    if line is not None:
        node.config.stash.setdefault(_REPORT, []).append(line)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    for line in config.stash.get(_REPORT, []):
        terminalreporter.write_line(line)


if __name__ == "__main__":
    _serve()
