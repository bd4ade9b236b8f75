"""Libraries that register an operator of PyTorch when they are loaded, without ferrule."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from operator_kernels import compiled, fresh_name

import ferrule as fe
from ferrule.runtime.errors import StageError

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.needs_cc

_PROGRAM = """
import sys
import torch, tvm_ffi

for name in {names!r}:
    torch.ops.load_library(name)
space = torch.ops.{space}
assert "ferrule" not in sys.modules

x = torch.arange(4.0)
assert space.made(x, 2.0).tolist() == [0.0, 2.0, 4.0, 6.0]
assert space.returned(x).tolist() == [0.0, 2.0, 4.0, 6.0]
y = torch.zeros(4)
space.written(x, y, 3.0)
assert (y.tolist(), y._version) == ([0.0, 3.0, 6.0, 9.0], 1)


def refused(wanted, run):
    try:
        run()
    except RuntimeError as error:
        assert wanted in str(error), error
    else:
        raise AssertionError(wanted)


refused("got dtype=float64", lambda: space.made(x.double(), 2.0))
needs = x.clone().requires_grad_()
refused("is not implemented", lambda: space.made(needs, 2.0).sum().backward())
refused("writes to y", lambda: space.written(needs, y, 3.0))
module = tvm_ffi.load_module({names!r}[0])
module.scaled(tvm_ffi.from_dlpack(x), tvm_ffi.from_dlpack(y), 4.0)
assert y.tolist() == [0.0, 4.0, 8.0, 12.0]
print("right")
"""


def export(folder: Path, name: str, operator: str, **options: Any) -> str:
    path = folder / f"{operator.partition('::')[2]}.so"
    compiled(name).export_library(path, torch_op=operator, **options)
    return str(path)


def test_a_library_registers_its_operator(tmp_path: Path):
    space = fresh_name().partition("::")[2]
    names = [
        export(tmp_path, "scaled", f"{space}::made", out=["y"]),
        export(tmp_path, "scaled", f"{space}::written"),
        export(tmp_path, "doubled", f"{space}::returned"),
    ]
    program = _PROGRAM.format(names=names, space=space)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("right\n", 0), done.stderr


def test_no_path_of_this_machine_is_needed(tmp_path: Path):
    """Libraries that the process has are found by their names."""
    data = Path(export(tmp_path, "doubled", fresh_name())).read_bytes()
    assert b"libtorch_cpu.so" in data
    assert str(Path(torch.__file__).parent).encode() not in data


def test_the_same_function_gives_the_same_bytes(tmp_path: Path):
    name = fresh_name()
    first, second = tmp_path / "a", tmp_path / "b"
    for folder in (first, second):
        folder.mkdir()
        export(folder, "scaled", name, out=["y"])
    file = f"{name.partition('::')[2]}.so"
    assert (first / file).read_bytes() == (second / file).read_bytes()


def test_what_cannot_be_in_a_library_is_refused(tmp_path: Path):
    with pytest.raises(ValueError, match="kernel is Python"):
        export(tmp_path, "added", fresh_name())
    with pytest.raises(ValueError, match="namespace::name"):
        compiled("doubled").export_library(tmp_path / "a.so", torch_op="doubled")
    compiled("doubled").export_library(tmp_path / "plain.so")
    loaded = fe.runtime.load_module(tmp_path / "plain.so").doubled
    with pytest.raises(StageError, match="where it is compiled"):
        loaded.export_library(tmp_path / "b.so", torch_op="a::b")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["plain.so"]


def test_a_loaded_function_is_an_operator_too(tmp_path: Path):
    compiled("doubled").export_library(tmp_path / "plain.so")
    loaded = fe.runtime.load_module(tmp_path / "plain.so").doubled
    operator = fe.torch_op(loaded, fresh_name())
    assert operator(torch.ones(2)).tolist() == [2.0, 2.0]
    torch.library.opcheck(operator, (torch.ones(2),))


_CPP = """
#include <dlfcn.h>
#include <cstdio>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <torch/torch.h>
int main(int argc, char** argv) {
  if (!dlopen(argv[1], RTLD_NOW)) { std::puts(dlerror()); return 1; }
  torch::inductor::AOTIModelPackageLoader loader(argv[2]);
  c10::InferenceMode mode;
  auto x = torch::arange(4, torch::kFloat);
  auto y = loader.run({x}).at(0);
  bool right = torch::equal(y, x * 6 + 1);
  std::puts(right ? "right" : "wrong");
  return right ? 0 : 2;
}
"""


@pytest.mark.nightly
def test_a_cpp_program_runs_a_compiled_package(tmp_path: Path):
    """An AOTInductor package and the operator's library, without Python."""
    from tvm_ffi import libinfo

    name = fresh_name()
    library = export(tmp_path, "scaled", name, out=["y"])
    operator = fe.torch_op(compiled("scaled"), name, out=["y"])

    class Model(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return operator(x * 2, 3.0) + 1

    program = torch.export.export(Model(), (torch.arange(4.0),))
    package = torch._inductor.aoti_compile_and_package(
        program, package_path=str(tmp_path / "model.pt2")
    )
    root, source = Path(torch.__file__).parent, tmp_path / "main.cpp"
    source.write_text(_CPP)
    includes = [f"-I{root / each}" for each in ("include", "include/torch/csrc/api/include")]
    folders = [str(root / "lib"), str(Path(libinfo.find_libtvm_ffi()).parent)]
    links = [word for each in folders for word in (f"-L{each}", f"-Wl,-rpath,{each}")]
    libraries = ["-Wl,--no-as-needed", "-ltorch", "-ltorch_cpu", "-lc10", "-ltvm_ffi", "-ldl"]
    built = [
        *("g++", "-O0", "-std=c++20", str(source), "-o", str(tmp_path / "main")),
        *(*includes, *links, *libraries),
    ]
    subprocess.run(built, check=True, capture_output=True)
    done = subprocess.run(
        [str(tmp_path / "main"), library, package], capture_output=True, text=True
    )
    assert (done.stdout, done.returncode) == ("right\n", 0), done.stderr


@pytest.mark.needs_cc
def test_one_library_registers_several_operators(tmp_path: Path):
    path, names = tmp_path / "several.so", [fresh_name(), fresh_name()]
    functions = {"scaled": compiled("scaled"), "doubled": compiled("doubled")}
    operators = dict(zip(functions, names, strict=True))
    fe.runtime.export_library(path, functions, torch_ops=operators, out={"scaled": ["y"]})
    torch.ops.load_library(path)
    scaled, doubled = (getattr(torch.ops.ferrule_tests, each.partition("::")[2]) for each in names)
    x = torch.arange(3.0)
    assert scaled(x, 3.0).tolist() == [0.0, 3.0, 6.0]
    assert doubled(x).tolist() == [0.0, 2.0, 4.0]
    plain = fe.runtime.load_module(path)
    assert plain.doubled(x).tolist() == [0.0, 2.0, 4.0]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"torch_ops": {"other": "a::b"}}, "torch_ops has 'other', .* these are doubled"),
        ({"xla_handlers": {"other": "b"}}, "xla_handlers has 'other'"),
        ({"out": {"doubled": ["y"]}}, "out has 'doubled', which neither torch_ops"),
        ({"torch_ops": {"doubled": "a::b", "again": "a::b"}}, "'a::b' for two functions"),
    ],
)
def test_operators_of_a_library_are_named_once_and_known(
    tmp_path: Path, options: dict[str, Any], text: str
):
    functions = {"doubled": compiled("doubled")}
    if "two" in text:
        functions["again"] = compiled("doubled")
    with pytest.raises(ValueError, match=text):
        fe.runtime.export_library(tmp_path / "a.so", functions, **options)
    assert not (tmp_path / "a.so").exists()
