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
from ferrule.compiler.cuda.assembly import assemble, find_program
from ferrule.compiler.cuda.disassembly import disassembled
from ferrule.language.reports.listings import Place, assembly_lines, llvm_lines, sass_lines

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
        "LLVM's pipeline",
        "Kernel IR: operations",
        "compiled by this process",
    ):
        assert part in words


def test_checks_have_the_instructions_that_the_wrapper_has(on_cpu: str) -> None:
    """Their sum is what the function's own wrapper has, however they are told apart."""
    rows = dict(re.findall(r'<td class="c">(\w+): Tensor.*?<br><b>(\d+)</b></td></tr>', on_cpu))
    assert set(rows) == {"x", "y"} and all(15 < int(count) < 80 for count in rows.values())
    (whole,) = re.findall(r"wrapper for this CPU, (\d+) in all", on_cpu)
    text = fe.compile(softmax, ROWS, ROWS).inspect_asm()
    wrapper = text.split("\n__tvm_ffi_softmax:")[1].split("\n.Lfunc_end")[0]
    own = [line for line in wrapper.splitlines() if re.match(r"\s+[a-z]", line)]
    assert len(own) == int(whole)
    for part in ("kind", "rank and dtype", "device", "sizes and strides", "address"):
        assert re.search(rf"{part} \d+<br>", on_cpu), part


class _Flames(HTMLParser):
    """The boxes of a chart: the widths of those side by side, for each box around them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.widths: list[list[float]] = [[]]
        self.sums: list[float] = []
        self.deepest = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "div":
            found = re.match(r"width:([\d.]+)%", given.get("style") or "")
            if found:
                self.widths[-1].append(float(found[1]))
            self.widths.append([])
            self.deepest = max(self.deepest, len(self.widths))

    def handle_endtag(self, tag: str) -> None:
        if tag == "div":
            self.sums += [sum(each) for each in (self.widths.pop(),) if each]


def test_stages_are_boxes_in_boxes(on_cpu: str) -> None:
    (chart,) = re.findall(r'<div class="flame".*?(?=<div class="wide">)', on_cpu, re.S)
    found = _Flames(chart)
    assert found.deepest >= 5, "stages, their parts, and boxes around these"
    assert all(total <= 100.1 for total in found.sums)
    assert 99.9 < found.sums[-1], "the outer ones are all of the time"


def test_a_function_from_the_cache_says_so_and_on_what_it_depends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FERRULE_CACHE", "1")
    monkeypatch.setenv("FERRULE_CACHE_DIR", str(tmp_path))
    vector = fe.row_major((fe.sym_int(),), fe.Float32)
    made, again = (fe.compile(doubled, vector, vector) for _ in range(2))
    first, second = ("".join(Page(each.report()).words) for each in (made, again))
    (digest,) = re.findall("the cache keeps it as ([0-9a-f]{12})", first)
    assert f"the cache kept it as {digest}; the stages ran for this page alone" in second
    assert "the arguments" in second.split("What it depends on")[1]


_NVDISASM = """\
\t.section\t.nv.info,"",@"SHT_CUDA_INFO"
        /*0000*/                   NOP ;
\t.section\t.text.k,"ax",@progbits
k:
.text.k:
\t//## File "/here/a.py", line 7 inlined at "/here/b.py", line 3
\t//## File "/here/b.py", line 3
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/              @!P1 BRA `(.L_x_1) ;
\t//## File "/here/a.py", line 9
        /*0020*/                   EXIT ;
.L_x_1:
"""


def test_lines_of_sass_are_the_innermost() -> None:
    found = [(line.text, line.place) for line in sass_lines(_NVDISASM)]
    seven, nine = Place("/here/a.py", 7), Place("/here/a.py", 9)
    assert found == [
        ("k:", None),
        ("  0000  LDC R1, c[0x0][0x28]", seven),
        ("  0010  @!P1 BRA `(.L_x_1)", seven),
        ("  0020  EXIT", nine),
        (".L_x_1:", None),
    ]


@pytest.mark.needs_ptxas
def test_sass_stands_beside_ptx() -> None:
    if find_program("nvdisasm") is None:
        pytest.skip("nvdisasm is not installed")
    options = "--target cuda --gpu-arch sm_90a"
    compiled = fe.compile(softmax, ROWS, ROWS, options=options)
    text = compiled.report()
    page = Page(text)
    (sass,) = page.of("SASS sm_90a", "<the quotient>")
    assert "MUFU.RCP" in sass and "STG" in sass
    assert len(text.encode()) <= 300_000
    # Lines change no instruction.
    whole = disassembled(assemble(compiled.inspect_ptx(), "sm_90a").cubin)
    count = len(re.findall(r"^\s*/\*[0-9a-f]{4}\*/ +\S", whole, re.M))
    assert "<td>SASS sm_90a: instructions</td>" in text
    (own,) = re.findall(r'SASS sm_90a: instructions</td><td class="n">([\d,]+)<', text)
    assert int(own.replace(",", "")) == count


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
