"""The folder: whatever happens to it, a compilation gives the right function and no error."""

from __future__ import annotations

import errno
import multiprocessing
import os
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule.compiler.cache import entries, store
from ferrule.compiler.cache.keys import Key
from ferrule.compiler.cache.through import MEMORY


@fe.jit
def doubled(a: fe.Tensor):
    a[0] = a[0] * 2.0


@fe.jit
def tripled(a: fe.Tensor):
    a[0] = a[0] * 3.0


VECTOR = fe.make_fake_compact_tensor(fe.Float32, (fe.sym_int(symbol="n"),))


def made(function: Any = doubled, factor: float = 2.0) -> str:
    """Compile without what is in memory, call, and say where the code is from."""
    MEMORY.clear()
    compiled = fe.compile(function, VECTOR, options="--target cpu")
    a = np.ones(3, np.float32)
    compiled(a)
    assert a.tolist() == [factor, 1.0, 1.0]
    return compiled.origin


def files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.ferrule"))


def test_an_entry_is_found_and_its_folder_is_private(folder: Path) -> None:
    assert made() == "compiled"
    (file,) = files(folder)
    assert made() == "from the cache"
    assert file.stat().st_mode & 0o777 == 0o600
    assert all(each.stat().st_mode & 0o777 == 0o700 for each in (folder, file.parent))
    assert fe.cache.info().entries == 1
    assert fe.cache.info().bytes == file.stat().st_size
    assert fe.cache.folder() == folder


def test_what_is_kept_is_no_pickle_and_has_the_metadata(folder: Path) -> None:
    made()
    (file,) = files(folder)
    entry = entries.unpacked(file.read_bytes())
    assert entry.code.startswith(b"\x7fELF")
    assert '"signature":"doubled(' in entry.metadata
    assert entries.packed(entry) == file.read_bytes()


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "cut in its head": lambda data: data[:20],
    "cut at its end": lambda data: data[:-1],
    "longer": lambda data: data + b"\0",
    "a bit of the code": lambda data: data[:-100] + bytes([data[-100] ^ 1]) + data[-99:],
    "a bit of the header": lambda data: data[:60] + bytes([data[60] ^ 1]) + data[61:],
    "a bit of the digest": lambda data: data[:20] + bytes([data[20] ^ 1]) + data[21:],
    "an older format": lambda data: b"ferrule cache 0\n" + data[16:],
    "another file": lambda data: b"#!/bin/sh\n" * 100,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_entry_is_a_miss_and_goes(folder: Path, damage: str) -> None:
    made()
    (file,) = files(folder)
    whole = file.read_bytes()
    file.write_bytes(DAMAGES[damage](whole))
    assert [problem.path for problem in fe.cache.verify()] == [file]
    assert made() == "compiled"
    assert file.read_bytes() == whole
    assert fe.cache.verify() == []


def test_every_flipped_byte_is_seen(folder: Path) -> None:
    made()
    (file,) = files(folder)
    data = file.read_bytes()
    for at in range(0, len(data), 97):
        changed = bytearray(data)
        changed[at] ^= 1
        with pytest.raises(entries.EntryError):
            entries.unpacked(bytes(changed))


def test_an_entry_of_another_key_is_a_miss(folder: Path) -> None:
    made()
    (file,) = files(folder)
    made(tripled, 3.0)
    (other,) = [each for each in files(folder) if each != file]
    other.write_bytes(file.read_bytes())
    assert made(tripled, 3.0) == "compiled"


def test_a_code_that_cannot_be_linked_is_a_miss(folder: Path) -> None:
    made()
    (file,) = files(folder)
    entry = entries.unpacked(file.read_bytes())
    changed = {name: getattr(entry, name) for name in entry.__slots__}
    file.write_bytes(entries.packed(entries.Entry(**{**changed, "code": b"\x7fELF no"})))
    assert made() == "compiled"
    assert made() == "from the cache"


def test_an_entry_for_another_cpu_is_a_miss(folder: Path) -> None:
    made()
    (file,) = files(folder)
    entry = entries.unpacked(file.read_bytes())
    changed = {name: getattr(entry, name) for name in entry.__slots__}
    file.write_bytes(entries.packed(entries.Entry(**{**changed, "features": "+none"})))
    assert made() == "compiled"


@pytest.mark.parametrize("mode", [0o622, 0o660, 0o666])
def test_a_file_that_others_can_write_is_refused(folder: Path, mode: int) -> None:
    made()
    (file,) = files(folder)
    file.chmod(mode)
    store._WARNED.clear()
    with pytest.warns(fe.cache.CacheWarning, match=f"{file} can be written by others"):
        assert made() == "compiled"
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_folder_that_others_can_write_is_refused_with_one_warning(folder: Path) -> None:
    made()
    folder.chmod(0o777)
    store._WARNED.clear()
    with pytest.warns(fe.cache.CacheWarning, match="chmod go-w") as told:
        assert made() == "compiled"
        assert made() == "compiled"
    assert len(told) == 1
    folder.chmod(0o700)
    assert made() == "from the cache"


def test_a_link_is_not_followed(folder: Path, tmp_path: Path) -> None:
    made()
    (file,) = files(folder)
    elsewhere = tmp_path / "elsewhere"
    file.rename(elsewhere)
    file.symlink_to(elsewhere)
    assert made() == "compiled"
    assert not file.is_symlink()
    assert elsewhere.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_of_somebody_else_is_refused(folder: Path) -> None:
    made()
    (file,) = files(folder)
    os.chown(file, 12345, 12345)
    store._WARNED.clear()
    with pytest.warns(fe.cache.CacheWarning, match="can be written by others"):
        assert made() == "compiled"


def test_the_least_recently_used_go_first(folder: Path) -> None:
    made()
    (first,) = files(folder)
    made(tripled, 3.0)
    (second,) = [each for each in files(folder) if each != first]
    os.utime(first, (1, 1))
    os.utime(second, (2, 2))
    assert made() == "from the cache"  # it is the latest now
    size = first.stat().st_size + second.stat().st_size
    fe.cache.limit(size - 1)
    assert fe.cache.info().limit == size - 1
    assert made(tripled, 3.0) == "from the cache"
    os.utime(second, (2, 2))
    store.Store(folder, size - 1).shrink()
    assert files(folder) == [first]


def test_what_was_left_aside_goes_after_a_time(folder: Path) -> None:
    made()
    (file,) = files(folder)
    old, new = file.parent / ".new-1-a", file.parent / ".new-2-b"
    for each in (old, new):
        each.write_bytes(b"half")
    os.utime(old, (1, 1))
    store.Store(folder, 1 << 30).shrink()
    assert not old.exists()
    assert new.exists()
    assert fe.cache.info().entries == 1


def test_a_look_at_the_size_serves_other_processes_for_a_time(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []
    shrink = store.Store.shrink
    monkeypatch.setattr(
        store.Store, "shrink", lambda self: looks.append(self.limit) or shrink(self)
    )
    key = Key("anything", {}, "cd" * 8)

    def written(limit: int, count: int = 1) -> int:
        """How often a new process looks at the size that writes so often."""
        looks.clear()
        new = store.Store(folder, limit)
        for _ in range(count):
            assert new.write_bytes(b"x" * 100, key)
        return len(looks)

    assert written(1 << 20) == 1
    assert written(1 << 20) == 0
    assert written(1 << 19) == 1  # another limit
    assert written(1600, 3) == 2  # and after 1/16 of it
    os.utime(folder / ".looked", (1, 1))
    assert written(1600) == 1
    later = time.time() + 3600
    os.utime(folder / ".looked", (later, later))  # a clock that was set back
    assert written(1600) == 1


def test_clear_removes_everything_and_functions_stay(folder: Path) -> None:
    compiled = fe.compile(doubled, VECTOR, options="--target cpu")
    assert fe.cache.clear() == 1
    assert files(folder) == []
    a = np.ones(1, np.float32)
    compiled(a)
    assert a[0] == 2
    assert made() == "compiled"


# ---- a file system that fails ----


def failing(number: int) -> Callable[..., Any]:
    def fail(*args: Any, **kwargs: Any) -> Any:
        raise OSError(number, os.strerror(number))

    return fail


FAULTS = ["open", "replace", "mkdir", "utime", "stat", "fstat", "unlink", "scandir"]


@pytest.mark.parametrize(
    "number", [errno.ENOSPC, pytest.param(errno.ESTALE, marks=pytest.mark.nightly)]
)
@pytest.mark.parametrize("name", FAULTS)
def test_a_failing_call_loses_at_most_the_entry(
    folder: Path, name: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing:
        """The module `os` of the store, with one function that fails."""

        def __getattr__(self, wanted: str) -> Any:
            return failing(number) if wanted == name else getattr(os, wanted)

    made(tripled, 3.0)
    with monkeypatch.context() as changed:
        changed.setattr(store, "os", Failing())
        assert made() == "compiled"
        assert made(tripled, 3.0) in ("compiled", "from the cache")
    assert made(tripled, 3.0) in ("compiled", "from the cache")
    assert made() in ("compiled", "from the cache")
    assert made() == "from the cache"
    assert [each for each in folder.rglob(".new-*") if name != "unlink"] == []


def test_a_read_only_folder_is_only_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made()
    with monkeypatch.context() as changed:
        changed.setattr(store, "_replace", failing(errno.EROFS))
        changed.setattr(store.os, "utime", failing(errno.EROFS))
        assert made() == "from the cache"
        assert made(tripled, 3.0) == "compiled"


def test_no_home_is_one_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRULE_CACHE", "1")
    for name in ("FERRULE_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    store._WARNED.clear()
    with pytest.warns(fe.cache.CacheWarning, match="no home") as told:
        assert made() == "compiled"
        assert made() == "compiled"
    assert len(told) == 1
    assert fe.cache.info().folder is None


def test_the_default_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("FERRULE_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert fe.cache.folder() == tmp_path / "ferrule"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert fe.cache.folder() == tmp_path / ".cache" / "ferrule"


PROGRAM = """
import os, signal, sys
import numpy as np
import ferrule as fe
from ferrule.compiler.cache import store

@fe.jit
def f(a: fe.Tensor):
    a[0] = a[0] * 2.0

DEATH = int(sys.argv[1])
calls = 0

class Dying:
    def __getattr__(self, name):
        global calls
        if name in ("open", "replace", "mkdir", "unlink", "utime", "urandom"):
            calls += 1
            if calls == DEATH:
                os.kill(os.getpid(), signal.SIGKILL)
        return getattr(os, name)

store.os = Dying()
compiled = fe.compile(f, fe.make_fake_compact_tensor(fe.Float32, (4,)), options="--target cpu")
a = np.ones(4, np.float32)
compiled(a)
assert a[0] == 2
print(compiled.origin, calls)
"""


def run(program: Path, *words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(program), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.nightly
def test_a_kill_at_any_moment_loses_at_most_the_entry(folder: Path, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    for death in range(1, 30):
        killed = run(program, death)
        if killed.returncode == 0:
            break
        assert killed.returncode < 0, killed.stderr
        assert fe.cache.verify() == []
        again = run(program, 0)
        assert again.returncode == 0, again.stderr
        fe.cache.clear()
    assert death > 3


def test_a_kill_between_write_and_rename_leaves_no_entry(folder: Path) -> None:
    """A child that ends there; what it left aside is no entry."""
    pid = os.fork()
    if not pid:
        store.os = type("Dying", (), {"__getattr__": lambda _, name: _dying(name)})()
        try:
            made()
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 42
    assert files(folder) == []
    assert len(list(folder.rglob(".new-*"))) == 1
    assert made() == "compiled"
    assert made() == "from the cache"


def _dying(name: str) -> Any:
    if name == "replace":
        os._exit(42)
    return getattr(os, name)


def test_many_writers_and_readers_of_one_key(folder: Path) -> None:
    """Threads that write, remove and read one entry: a reader has all of it or nothing."""
    made()
    (file,) = files(folder)
    key_data = file.read_bytes()
    entry = entries.unpacked(key_data)
    key = store.Key(entry.about, entry.parts, entry.key)
    here = store.Store(folder, 1 << 30)
    end = time.monotonic() + 0.5
    wrong: list[object] = []

    def work(number: int) -> None:
        while time.monotonic() < end:
            if number % 4 == 0:
                here.remove(file)
            elif number % 2:
                here.write_bytes(key_data, key)
            elif here.read(key) not in (None, entry):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert wrong == []
    assert list(folder.rglob(".new-*")) == []


def _in_child(queue: Any) -> None:
    try:
        queue.put(made())
    except BaseException as error:
        queue.put(repr(error))


def _children(count: int) -> list[str]:
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks with threads
        children = [context.Process(target=_in_child, args=(queue,)) for _ in range(count)]
        for each in children:
            each.start()
    told = [queue.get(timeout=120) for _ in children]
    for each in children:
        each.join()
    return told


def test_processes_at_once_on_one_key(folder: Path) -> None:
    told = _children(6)
    assert set(told) <= {"compiled", "from the cache"}
    assert made() == "from the cache"
    assert len(files(folder)) == 1


@pytest.mark.nightly
def test_sixty_four_processes_at_once_on_one_key(folder: Path) -> None:
    assert set(_children(64)) <= {"compiled", "from the cache"}
    assert fe.cache.verify() == []
    assert made() == "from the cache"


# ---- what a user says wrongly ----


def test_a_folder_that_is_a_file_is_an_error(folder: Path, tmp_path: Path) -> None:
    folder.write_text("mine")
    for call in (made, fe.cache.info, fe.cache.clear, fe.cache.verify):
        with pytest.raises(NotADirectoryError, match="which is a file: name a folder"):
            call()
    with pytest.raises(NotADirectoryError, match="name a folder"):
        fe.cache.folder(folder)
    assert folder.read_text() == "mine"
    fe.cache.folder(tmp_path / "other")
    try:
        assert made() == "compiled"
        assert fe.cache.info().entries == 1
    finally:
        fe.cache.settings.set_folder(None)


def test_wrong_arguments_are_errors(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TypeError, match="folder takes a path, a str or a Path, but got 3"):
        fe.cache.folder(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="limit takes a number of bytes, but got '2G'"):
        fe.cache.limit("2G")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="limit takes a number of bytes, but got -1"):
        fe.cache.limit(-1)
    monkeypatch.setenv("FERRULE_CACHE_SIZE", "much")
    with pytest.raises(fe.CompileError, match="FERRULE_CACHE_SIZE is 'much'"):
        fe.cache.limit()
    for text, size in {"5": 5, "2k": 2048, "3MiB": 3 << 20, "1G": 1 << 30}.items():
        monkeypatch.setenv("FERRULE_CACHE_SIZE", text)
        assert fe.cache.limit() == size


@pytest.mark.parametrize("off", ["variable", "option"])
def test_it_can_be_turned_off(folder: Path, off: str, monkeypatch: pytest.MonkeyPatch) -> None:
    options = "--target cpu"
    if off == "variable":
        monkeypatch.setenv("FERRULE_CACHE", "0")
    else:
        options += " --no-cache"
    for _ in range(2):
        assert fe.compile(doubled, VECTOR, options=options).origin == "compiled"
    assert not folder.exists()
