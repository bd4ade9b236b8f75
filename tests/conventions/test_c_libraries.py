"""The blocks of `docs/conventions/c_libraries.md`, each where its library is installed."""

from __future__ import annotations

import ctypes
import io
import re
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pages import blocks_of

from ferrule import CompileError
from ferrule.compiler.conventions import HostCode

ROOT = Path(__file__).parents[2]
PAGE = "conventions/c_libraries.md"
(BEGIN,) = blocks_of(PAGE, "python")
BLOCKS = {
    re.search(r"it needs (\w+);", each)[1]: each  # type: ignore[index]
    for each in blocks_of(PAGE, "python no-run")
}


def ran(name: str) -> dict[str, Any]:
    """The names of a block after it has run."""
    for library in re.findall(r'from_library\("([^"]+)"\)', BLOCKS[name]):
        try:
            HostCode.from_library(library)
        except CompileError:
            pytest.skip(f"{name} is not installed: {library}")
    names: dict[str, Any] = {}
    exec(compile(BEGIN + BLOCKS[name], str(Path(PAGE).name), "exec"), names)
    return names


def test_lapack() -> None:
    solve = ran("LAPACK")["solve"]
    rng = np.random.default_rng(0)
    a, b = rng.random((5, 5)), rng.random((3, 5))
    x = b.copy()
    pivots = np.from_dlpack(solve(a.copy(), x))
    np.testing.assert_allclose(x @ a, b, rtol=1e-9)
    assert pivots.min() >= 1 and pivots.max() <= 5
    with pytest.raises(RuntimeError, match="^dgesv_ left 1 in info$"):
        solve(np.zeros((2, 2)), np.ones((1, 2)))
    with pytest.raises(ValueError, match="expected to be at least 1, but got 0"):
        solve(np.zeros((0, 0)), np.ones((1, 0)))


def test_lapacke() -> None:
    eigen, a = ran("LAPACKE")["eigen"], np.random.default_rng(1).random((6, 6))
    symmetric = a + a.T
    wanted = np.linalg.eigvalsh(symmetric)
    np.testing.assert_allclose(np.from_dlpack(eigen(symmetric)), wanted, atol=1e-12)


def test_gsl() -> None:
    integrate = ran("GSL")["integrate"]

    def inner(x: float) -> float:
        return float(integrate(lambda y: x * y, 0, 1)[0])  # a call in a callback

    assert abs(integrate(inner, 0, 2)[0] - 1) < 1e-9
    with pytest.raises(RuntimeError, match="qng returned 14: failed to reach the specified tol"):
        integrate(lambda x: abs(x) ** -0.5 if x else 0.0, 0, 1)
    with pytest.raises(ZeroDivisionError):
        integrate(lambda x: 1 / x, -1, 1)


def test_nlopt() -> None:
    minimise, calls = ran("NLopt")["minimise"], []

    def fails(*given: object) -> float:
        calls.append(given)
        raise KeyError("no such point")

    with pytest.raises(KeyError, match="no such point"):
        minimise(fails, np.zeros(3))
    assert len(calls) == 1


def test_gmp() -> None:
    square = ran("GMP")["square"]
    assert [square(each) for each in ("0", "-12")] == ["0", "144"]
    with pytest.raises(ValueError, match="^no decimal number$"):
        square("12x")


def test_expat() -> None:
    parse, seen = ran("Expat")["parse"], list[str]()

    def entered(name: str, attributes: Any) -> None:
        seen.append(name)

    def parsed(text: str) -> None:
        parse(np.frombuffer(text.encode(), np.uint8), entered, lambda name: seen.append(f"/{name}"))

    parsed("<a><b x='1'/></a>")
    assert seen == ["a", "b", "/b", "/a"]
    with pytest.raises(RuntimeError, match="^XML_GetErrorCode returned 7: mismatched tag$"):
        parsed("<a></b>")


def test_libcurl(tmp_path: Path) -> None:
    fetch, got = ran("libcurl")["fetch"], list[bytes]()
    (tmp_path / "some.txt").write_text("some text")

    def take(at: Any, size: int, count: int) -> int:
        got.append(ctypes.string_at(at.value, size * count))
        return size * count

    fetch(f"file://{tmp_path}/some.txt", take)
    assert got == [b"some text"]
    with pytest.raises(FileNotFoundError, match=r"curl_easy_perform returned 37: .* /nowhere/x$"):
        fetch("file:///nowhere/x", take)
    with pytest.raises(ZeroDivisionError):
        fetch(f"file://{tmp_path}/some.txt", lambda *given: 1 // 0)


def test_pcre2() -> None:
    search = ran("PCRE2")["search"]
    assert search("h(.)y", "oh, hey") == (2, 4)
    with pytest.raises(LookupError, match="^it is not there$"):
        search("h(.)y", "oh")
    with pytest.raises(RuntimeError, match="returned a null pointer: missing closing parenthesis$"):
        search("h(.y", "oh")


def test_libarchive() -> None:
    first_file, packed = ran("libarchive")["first_file"], io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as file:
        about = tarfile.TarInfo("some.txt")
        about.size = 4
        file.addfile(about, io.BytesIO(b"text"))
    parts = [packed.getvalue(), b"no archive" * 100]
    kept = [ctypes.create_string_buffer(each) for each in parts]

    def reading(which: int) -> Any:
        left = [len(parts[which])]

        def read(_: Any, to: Any) -> int:
            ctypes.c_void_p.from_address(to.value).value = ctypes.addressof(kept[which])
            return left.pop() if left else 0

        return read

    assert first_file(reading(0)) == ("some.txt", 4)
    with pytest.raises(RuntimeError, match="archive_read_open returned -30: Unrecognized archive"):
        first_file(reading(1))
    with pytest.raises(ZeroDivisionError):
        first_file(lambda *given: 1 // 0)


def test_libxml2() -> None:
    parse, seen = ran("libxml2")["parse"], list[str]()
    parse("<a><ä x='1'/></a>".encode(), lambda name, _: seen.append(name), seen.append)
    assert seen == ["a", "ä", "ä", "a"]
    with pytest.raises(RuntimeError, match="^xmlSAXUserParseMemory returned 77$"):
        parse(b"<a>", lambda *given: None, lambda name: None)
    with pytest.raises(ZeroDivisionError):
        parse(b"<a/>", lambda *given: None, lambda name: 1 // 0)


def test_zstd() -> None:
    names = ran("zstd")
    numbers = np.random.default_rng(2).integers(0, 4, 9999, np.uint8)
    small = np.from_dlpack(names["compress"](numbers, 19))
    assert 2000 < small.size < 4000
    assert (np.from_dlpack(names["decompress"](small, 9999)) == numbers).all()
    with pytest.raises(RuntimeError, match="^ZSTD_decompress returned -70: Destination buffer is"):
        names["decompress"](small, 9998)
    with pytest.raises(RuntimeError, match="^ZSTD_decompress returned -10: Unknown frame"):
        names["decompress"](numbers, 1)
    with pytest.raises(ValueError, match="expected at least 0, but got -1"):
        names["decompress"](small, -1)


CALLED = {
    "LAPACK": 1,
    "LAPACKE": 1,
    "GSL": 3,
    "NLopt": 7,
    "GMP": 5,
    "Expat": 7,
    "libcurl": 5,
    "PCRE2": 7,
    "libarchive": 9,
    "libxml2": 1,
    "zstd": 3,
    "SQLite": 11,
}
"""How many functions of C each block calls, those for texts and for freeing among them."""
ROW = re.compile(r"^\| lines of code of a C function, .*: (.*) \| at most (\d+) \| ([\d., ]+), by ")


def lines_of(name: str) -> int:
    """The lines that describe functions of C, from the library to the last function."""
    if name == "SQLite":
        text = (ROOT / "examples" / "sqlite.py").read_text(encoding="utf-8")
        text = text[text.index("    def _open(") : text.index("\n\ndef texts(")]
    else:
        head, last, _ = BLOCKS[name].rpartition("compiler.build(")
        text = head + last
    lines = (line.strip() for line in text.splitlines())
    return sum(bool(line) and not line.startswith(("#", '"""')) for line in lines)


def test_a_function_takes_as_few_lines_as_the_page_says() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    (row,) = (found for line in page.splitlines() if (found := ROW.match(line)))
    assert row[1].split(", ") == list(CALLED)
    found = [lines_of(name) / count for name, count in CALLED.items()]
    assert all(each <= int(row[2]) for each in found)
    assert [f"{each:.1f}".removesuffix(".0") for each in found] == [
        each.removesuffix(".0") for each in row[3].split(", ")
    ]


def test_every_block_has_a_test() -> None:
    assert {f"test_{name.lower()}" for name in BLOCKS} <= set(globals())
