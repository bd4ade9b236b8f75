"""Output of commands: what cannot be written, and what is not theirs to say."""

from __future__ import annotations

import errno
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ferrule.commands import main

Writer = Callable[..., Path]

SPEAKING = '''
import os
import subprocess
import ferrule as fe

print("the file speaks")
os.write(1, b"and its file\\n")
subprocess.run(["echo", "and its program"], check=True)


@fe.jit
def same(value: fe.Int32) -> fe.Int32:
    """Ümlaut and \\udc80."""
    return value


library = fe.Library("small", [fe.Job(same, [fe.Int32(0)])])
'''


class Full(io.StringIO):
    """A file of a full disk."""

    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class Left(io.StringIO):
    """A pipe whose reader has gone."""

    def write(self, text: str) -> int:
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


class FullAtLast(io.StringIO):
    """A full disk behind a buffer."""

    def flush(self) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("words", [["cache", "path"], ["cache", "path", "--json"], ["--help"]])
@pytest.mark.parametrize(
    ("stream", "said"),
    [
        (Full(), "ferrule: error: the output cannot be written: No space left on device\n"),
        (FullAtLast(), "ferrule: error: the output cannot be written: No space left on device\n"),
        (None, "ferrule: error: the output cannot be written: it is closed\n"),
        (Left(), ""),
    ],
)
def test_a_stream_that_takes_nothing(
    words: list[str],
    stream: io.StringIO | None,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "stdout", stream)
    assert main(words) == 1
    monkeypatch.undo()
    assert capsys.readouterr().err == said


def test_wrong_arguments_without_a_place_for_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    with pytest.raises(SystemExit) as ended:
        main(["unknown"])
    assert ended.value.code == 2


def test_an_encoding_without_the_characters(
    source: Writer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = str(source(SPEAKING))

    def shown(*words: str) -> str:
        stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
        monkeypatch.setattr(sys, "stdout", stream)
        assert main(["inspect", file, *words]) == 0
        stream.seek(0)
        return stream.read()

    assert "    \\xdcmlaut and \\udc80." in shown()
    assert "Ümlaut and \\udc80." in json.loads(shown("--json"))["functions"]["same"]
    assert main(["build", file, "-o", str(tmp_path), "--format", "object"]) == 0
    assert "Ümlaut and \\udc80." in (tmp_path / "small.h").read_text("utf-8")


def test_the_standard_output_is_of_the_command_alone(source: Writer) -> None:
    """As programs: the file's own child writes to the same file."""
    # tvm-ffi imports torch where it is, which takes seconds.
    program = "import sys; sys.modules['torch'] = None; import ferrule.__main__"
    command = [sys.executable, "-c", program, "inspect", str(source(SPEAKING)), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and list(json.loads(done.stdout)["functions"]) == ["same"]
    said = ["the file speaks", "and its file", "and its program"]
    assert sorted(done.stderr.splitlines()) == sorted(said)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
@pytest.mark.parametrize("ending", [">/dev/full", ">&-"])
def test_a_program_whose_output_is_lost_says_so_once(ending: str) -> None:
    program = f"{sys.executable} -m ferrule --help {ending}"
    done = subprocess.run(["sh", "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("ferrule: error: the output cannot be written: ")
