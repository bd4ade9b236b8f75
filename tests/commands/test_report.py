"""The page about a compilation: what it shows, its links between lines, and `ferrule report`."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
from collections import defaultdict
from html.parser import HTMLParser
from pathlib import Path

import pytest

import ferrule as fe
from ferrule.commands import main
from ferrule.language.reports.listings import Place, assembly_lines, llvm_lines

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")


@fe.kernel
def softmax_kernel(x: fe.Tensor, y: fe.Tensor):
    row, t = fe.arch.block_idx()[0], fe.arch.thread_idx()[0]
    top = fe.Float32(float("-inf"))
    for i in range(t, x.shape[1], 128):
        top = max(top, x[row, i])
    top = fe.arch.block_reduction(top, lambda a, b: max(a, b))
    total = fe.Float32(0)
    for i in range(t, x.shape[1], 128):
        total += fe.math.exp(x[row, i] - top)
    total = fe.arch.block_reduction(total, lambda a, b: a + b)
    for i in range(t, x.shape[1], 128):
        y[row, i] = fe.math.exp(x[row, i] - top) / total  # <the quotient> & more


@fe.jit
def softmax(x: fe.Tensor, y: fe.Tensor):
    """Softmax of each row, exp(x) < inf."""
    softmax_kernel(x, y).launch(grid=(x.shape[0], 1, 1), block=(128, 1, 1))


ROWS = fe.row_major((fe.sym_int(), fe.sym_int(divisibility=4)), fe.Float32)


class Page(HTMLParser):
    """The listings of a page: the numbers of places, and the texts of the lines with each."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.panes: dict[str, dict[str, list[str]]] = {}
        self.open: list[str] = []
        self.number: str | None = None
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == [], "an element is not closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        assert tag != "link", "a page needs nothing from elsewhere"
        assert "src" not in given
        if tag not in ("meta", "br"):
            self.open.append(tag)
        if tag == "section":
            self.panes[str(given["aria-label"])] = defaultdict(list)
        if tag == "span":
            self.number = given.get("data-p")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        if tag == "span":
            self.number = None

    def handle_data(self, data: str) -> None:
        self.words.append(data)
        if self.number is not None:
            list(self.panes.values())[-1][self.number].append(data)

    def of(self, pane: str, text: str) -> list[str]:
        """The lines of a listing that belong to a line of the source with this text."""
        numbers = [
            number
            for number, texts in self.panes["Source"].items()
            if any(text in each for each in texts)
        ]
        return ["".join(self.panes[pane][each]) for each in numbers if each in self.panes[pane]]


@fe.jit
def scaled(x: fe.Tensor, factor: fe.Float32):
    y = fe.empty((x.shape[0],), fe.Float32)
    y[:] = x[:] * factor
    return y


@fe.jit
def doubled(x: fe.Tensor, y: fe.Tensor):
    y[:] = x[:] + x[:]


@fe.jit
def scaled_rows(x: fe.Tensor, y: fe.Tensor, factor: fe.Int32, twice: fe.Boolean):
    y[:, :] = x[:, :] * factor
    if twice:
        y[:, :] = y[:, :] * factor


@pytest.fixture(scope="module")
def on_cpu() -> str:
    return fe.compile(softmax, ROWS, ROWS).report()


def test_lines_of_the_cpu_lead_to_each_other(on_cpu: str) -> None:
    page = Page(on_cpu)
    assert list(page.panes) == [
        "Source",
        "Kernel IR",
        "LLVM IR",
        "Assembly",
        "Wrapper (LLVM IR)",
    ]
    (quotient,) = page.of("Kernel IR", "<the quotient>")
    assert "div" in quotient
    assert "store" in quotient
    (llvm,) = page.of("LLVM IR", "<the quotient>")
    assert "fdiv" in llvm
    (assembly,) = page.of("Assembly", "<the quotient>")
    assert re.search("v?div[ps]s", assembly)
    assert not page.of("Kernel IR", "def softmax")
    assert len(on_cpu.encode()) <= 300_000


def test_a_page_says_what_happened(on_cpu: str) -> None:
    words = "".join(Page(on_cpu).words)
    for part in (
        "Softmax of each row, exp(x) < inf.",
        "shape[1] gives n1 (an int32, divisible by 4)",
        "vectorised",
        "LLVM optimises",
        "Kernel IR: operations",
    ):
        assert part in words


def test_kernels_of_a_gpu_are_shown_for_each_architecture() -> None:
    options = "--target cuda --gpu-arch sm_80,sm_90a"
    page = Page(fe.compile(softmax, ROWS, ROWS, options=options).report())
    for arch in ("sm_80", "sm_90a"):
        (ptx,) = page.of(f"PTX {arch}", "<the quotient>")
        assert "div.rn.f32" in ptx
        assert ".loc" not in "".join(map("".join, page.panes[f"PTX {arch}"].values()))
    assert "LLVM IR" in page.panes, "of the launches"


def test_the_code_is_that_of_the_function(on_cpu: str) -> None:
    """Lines change nothing: each instruction of the page is in the function's own assembly."""
    own = fe.compile(softmax, ROWS, ROWS).inspect_asm().split()
    assembly = Page(on_cpu).panes["Assembly"]
    names = {text.split()[0] for texts in assembly.values() for text in texts if text.split()}
    assert names <= set(own)


def test_lines_of_llvm_are_those_of_the_innermost_scope() -> None:
    text = """\
define void @f() !dbg !3 {
  call void @g(), !dbg !5
  call void @g(), !dbg !6
  ret void
}
!1 = !DIFile(filename: "a.py", directory: "/here")
!2 = !DIFile(filename: "/there/b.py", directory: "")
!3 = distinct !DISubprogram(name: "f", scope: !1, file: !1, line: 3, unit: !9)
!4 = !DILexicalBlockFile(scope: !3, file: !2, discriminator: 0)
!5 = !DILocation(line: 7, column: 0, scope: !3)
!6 = !DILocation(line: 8, column: 0, scope: !4)
"""
    lines = list(llvm_lines(text))
    assert [line.place for line in lines] == [
        None,
        Place("/here/a.py", 7),
        Place("/there/b.py", 8),
        None,
        None,
    ]
    assert lines[1].text == "  call void @g()"


def test_lines_of_assembly_end_with_their_function() -> None:
    text = """\
\t.file\t1 "/here" "a.py"
f:
\t.loc\t1 7 0 prologue_end
\tincl\t%eax
\t.loc\t1 0 0
\tincl\t%ebx
\t.loc\t1 8 0
\tretq
.Lfunc_end0:
g:
\tretq
\t.section\t.debug_line,"",@progbits
\t.long\t1
"""
    found = [(line.text.strip(), line.place) for line in assembly_lines(text)]
    seven, eight = Place("/here/a.py", 7), Place("/here/a.py", 8)
    assert found == [
        ("f:", None),
        ("incl\t%eax", seven),
        ("incl\t%ebx", None),
        ("retq", eight),
        ("g:", None),
        ("retq", None),
    ]


def test_files_of_any_name_are_linked_and_can_be_hidden(tmp_path: Path) -> None:
    folder = tmp_path / 'Köln "日本" \\x'
    folder.mkdir()
    source = folder / "kernels_of_cologne.py"
    source.write_text(
        "import ferrule as fe\n\n"
        "@fe.kernel\ndef double_kernel(x: fe.Tensor, y: fe.Tensor):\n"
        "    t = fe.arch.thread_idx()[0]\n"
        "    y[t] = x[t] * 3  # triple\n\n"
        "@fe.jit\ndef double(x: fe.Tensor, y: fe.Tensor):\n"
        "    double_kernel(x, y).launch(grid=1, block=32)\n",
        encoding="utf-8",
    )
    spec = importlib.util.spec_from_file_location("kernels_of_cologne", source)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    vector = fe.make_fake_compact_tensor(fe.Float32, (32,))
    compiled = fe.compile(module.double, vector, vector, options="--strip-paths")
    text = compiled.report(tmp_path / "page.html")
    page = Page((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert [len(page.of(pane, "# triple")) for pane in ("LLVM IR", "Assembly")] == [1, 1]
    assert "Köln" not in text and "# kernels_of_cologne.py" in text
    options = "--target cuda --gpu-arch sm_90a --generate-line-info"
    on_gpu = fe.compile(module.double, vector, vector, options=options)
    assert len(Page(on_gpu.report()).of("PTX sm_90a", "# triple")) == 1


def test_lines_are_those_of_functions_that_return_memory() -> None:
    compiled = fe.compile(scaled, fe.row_major((fe.sym_int(),), fe.Float32), fe.Float32(1))
    page = Page(compiled.report())
    (allocation,) = page.of("Assembly", "fe.empty")
    assert "ferrule_allocate" in allocation


def test_an_overload_shows_all_its_bodies() -> None:
    dtype = fe.sym_dtype(fe.Float32, fe.Float64)
    tensor = fe.row_major((fe.sym_int(),), dtype)
    text = fe.compile(doubled, tensor, tensor).report()
    page = Page(text)
    assert text.count('aria-label="Kernel IR"') == 2
    assert "float64" in "".join(page.words)


def test_checks_are_what_a_call_checks() -> None:
    size = fe.sym_int(min=4, max=1000)
    rows = fe.row_major((size, 8), fe.Float32)
    compiled = fe.compile(scaled_rows, rows, rows, fe.Int32(1), fe.Boolean(True))
    words = "".join(Page(compiled.report()).words)
    for part in ("n0 (an int32, >= 4, <= 1000)", "an int that fits int32", "True, False, 0 or 1"):
        assert part in words
    assert "stride[0] == 8, where shape[0] is not 1" in words
    assert "4 arguments" in words


def test_what_was_not_compiled_has_no_page(tmp_path: Path) -> None:
    compiled = fe.compile(softmax, ROWS, ROWS)
    compiled.export_library(tmp_path / "lib.so")
    loaded = fe.runtime.load_module(tmp_path / "lib.so").softmax
    with pytest.raises(fe.runtime.StageError, match="no 'report' text: it was loaded"):
        loaded.report()


def test_the_command_writes_pages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "kernels_of_report.py"
    source.write_text(
        "import ferrule as fe\n\n"
        "@fe.jit\ndef double(x: fe.Tensor, y: fe.Tensor):\n    y[:] = x[:] * 2\n\n"
        "V = fe.row_major((fe.sym_int(),), fe.Float32)\n"
        "doubled = fe.compile(double, V, V)\n"
    )
    folder = tmp_path / "pages"
    assert main(["report", f"{source}:doubled", "-o", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pages"] == {"doubled": str(folder / "doubled.html")}
    text = (folder / "doubled.html").read_text(encoding="utf-8")
    assert "y[:] = x[:] * 2" in "".join(Page(text).words)
    assert main(["report", f"{source}:other"]) == 1
    assert "has no function 'other'; its functions: doubled" in capsys.readouterr().err


_CHOOSE = """<script>
const from = [...document.querySelectorAll('.pane span[data-p]')]
  .find(line => line.textContent.includes('<the quotient>'));
from.focus();
const hot = document.querySelectorAll('.hot').length;
from.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true }));
const panes = [...document.querySelectorAll('.pane')].filter(pane => {
  const line = pane.querySelector('.kept');
  if (!line || !pane.offsetParent) return false;
  const box = pane.querySelector('pre').getBoundingClientRect();
  const at = line.getBoundingClientRect();
  return at.top >= box.top && at.bottom <= box.bottom;
});
document.title = hot + ' hot, kept in ' + panes.map(pane => pane.ariaLabel).join(', ');
</script>"""


@pytest.mark.skipif(BROWSER is None, reason="no Chromium")
def test_a_browser_leads_from_line_to_line(tmp_path: Path, on_cpu: str) -> None:
    file = tmp_path / "page.html"
    file.write_text(on_cpu.replace("</body>", f"{_CHOOSE}</body>"), encoding="utf-8")
    command = [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", file.as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    (title,) = re.findall("<title>(.*?)</title>", shown)
    assert re.fullmatch(r"\d+ hot, kept in Source, Kernel IR, LLVM IR, Assembly", title)
    assert int(title.split()[0]) > 4
