"""A function from the cache is what a compiled one is: calls, texts, exports, errors, overloads."""

from __future__ import annotations

import gc
import inspect
import pickle
import weakref
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule import compiler, specs
from ferrule.compiler import conventions
from ferrule.compiler.cache.through import MEMORY
from ferrule.runtime.errors import StageError

Written = Callable[..., ModuleType]
TEXT = '''
import ferrule as fe

FACTOR = 3.0


@fe.kernel
def kernel(a: fe.Tensor, b: fe.Tensor, k: fe.Float32):
    i = fe.arch.block_idx()[0] * fe.arch.block_dim()[0] + fe.arch.thread_idx()[0]
    if i < a.shape[0]:
        b[i] = k * a[i] * FACTOR


@fe.jit
def scale(a: fe.Tensor, b: fe.Tensor, k: fe.Float32 = 2.0):
    """Writes k * a to b."""
    if k < 0:
        raise ValueError(f"k is {k}")
    kernel(a, b, k).launch(grid=(fe.ceil_div(a.shape[0], 32), 1, 1), block=(32, 1, 1))
    return a.shape[0]


@fe.jit
def on_gpu(a: fe.Tensor, b: fe.Tensor):
    kernel(a, b, 2.0).launch(grid=(fe.ceil_div(a.shape[0], 32), 1, 1), block=(32, 1, 1))


@fe.jit
def called(x: fe.Int32):
    return fe.call("tests.cache.answer", result=fe.Int32) + x


@fe.jit
def largest(a: fe.Tensor):
    best = a[0]
    for i in range(a.shape[0]):
        best = max(best, a[i])
    return best
'''


def vectors(count: int = 2) -> list[Any]:
    n = fe.sym_int(symbol="n")
    return [fe.make_fake_compact_tensor(fe.Float32, (n,)) for _ in range(count)]


def both(compile: Callable[[], Any]) -> tuple[Any, Any]:
    """A function as it was compiled, and from the folder."""
    MEMORY.clear()
    first = compile()
    MEMORY.clear()
    second = compile()
    assert (first.origin, second.origin) == ("compiled", "from the cache")
    return first, second


@pytest.fixture
def scaled(folder: Path, written: Written) -> tuple[Any, Any]:
    module = written(TEXT)
    return both(lambda: fe.compile(module.scale, *vectors(), fe.Float32, options="--target cpu"))


def test_calls_give_the_same(scaled: tuple[Any, Any]) -> None:
    a = np.arange(100, dtype=np.float32)
    given = []
    for function in scaled:
        b = np.empty_like(a)
        assert function(a, b) == 100
        assert function(b=b, a=a, k=0.5) == 100
        given.append(b.tolist())
    assert given[0] == given[1] == (a * 1.5).tolist()


def test_descriptions_are_the_same(scaled: tuple[Any, Any]) -> None:
    first, second = scaled
    assert repr(first) == repr(second)
    assert first.__doc__ == second.__doc__
    assert first.__name__ == second.__name__
    assert first.notes == second.notes
    assert first.release_gil == second.release_gil
    assert inspect.signature(first) == inspect.signature(second)
    assert first.signature.text() == second.signature.text()


def test_errors_are_the_same(scaled: tuple[Any, Any]) -> None:
    a = np.zeros(4, np.float32)
    calls: list[tuple[Any, ...]] = [(a, a, -1.0), (a, np.zeros(3, np.float32)), (a,), (a, "b")]
    for arguments in calls:
        texts = []
        for function in scaled:
            with pytest.raises((ValueError, TypeError)) as told:
                function(*arguments)
            texts.append((type(told.value), str(told.value)))
        assert texts[0] == texts[1]


@pytest.mark.parametrize("stage", ["ir", "mlir", "llvm", "asm"])
def test_texts_are_the_same(scaled: tuple[Any, Any], stage: str) -> None:
    first, second = (getattr(function, f"inspect_{stage}")() for function in scaled)
    assert first == second


def test_exports_are_the_same(scaled: tuple[Any, Any], tmp_path: Path) -> None:
    for suffix in (".o", ".s", ".ll", ".bc", ".mlir"):
        name = None if suffix == ".mlir" else "other"
        paths = [tmp_path / f"{number}{suffix}" for number in (1, 2)]
        for function, path in zip(scaled, paths, strict=True):
            function.export_to_c(path, name)
        assert paths[0].read_bytes() == paths[1].read_bytes()
    for number, function in enumerate(scaled):
        folder = tmp_path / str(number)
        folder.mkdir()
        function.export_header(folder / "scale.h")
        function.export_stub(folder / "scale.pyi")
    for name in ("scale.h", "scale.pyi"):
        assert (tmp_path / "0" / name).read_text() == (tmp_path / "1" / name).read_text()
    again = pickle.loads(pickle.dumps(scaled[1]))
    assert again.origin == "loaded"
    assert fe.Module([scaled[1]]).inspect_source("ir") == scaled[0].inspect_ir()


def test_kernels_of_a_gpu_are_the_same(folder: Path, written: Written) -> None:
    module = written(TEXT)
    options = "--target cuda --gpu-arch sm_80,sm_90"
    first, second = both(lambda: fe.compile(module.on_gpu, *vectors(), options=options))
    assert first.inspect_ptx() == second.inspect_ptx()
    assert sorted(second.inspect_ptx()) == ["sm_80", "sm_90"]


def test_it_is_called_by_other_functions(folder: Path, written: Written) -> None:
    module = written(TEXT)
    _, inner = both(lambda: fe.compile(module.largest, *vectors(1), options="--target cpu"))
    outer = written(
        "import ferrule as fe\n\n"
        "def maker(inner):\n    @fe.jit\n    def twice(a: fe.Tensor):\n"
        "        return inner(a) * 2.0\n    return twice\n",
        "outer",
    ).maker(inner)
    first, second = both(lambda: fe.compile(outer, *vectors(1), options="--target cpu"))
    a = np.array([1, 5, 2], np.float32)
    assert first(a) == second(a) == 10
    assert first.inspect_ir() == second.inspect_ir()


def test_texts_after_a_change_are_refused(folder: Path, written: Written) -> None:
    module = written(TEXT)

    def compiled() -> Any:
        return fe.compile(module.scale, *vectors(), fe.Float32, options="--target cpu")

    first, second = both(compiled)
    module.FACTOR = 4.0
    assert "scale" in first.inspect_ir()
    with pytest.raises(StageError, match="has changed: the global FACTOR of kernels; compile it"):
        second.inspect_ir()
    a = np.ones(1, np.float32)
    second(a, a)
    assert a[0] == 6  # it is the code of its moment
    assert compiled().origin == "compiled"


def test_code_with_variables_is_loaded_afresh(folder: Path, written: Written) -> None:
    """What a function has looked up stays with it, as without a cache."""
    module = written(TEXT)
    fe.register_global_func("tests.cache.answer", lambda: 1, override=True)
    first = fe.compile(module.called, fe.Int32, options="--target cpu")
    assert first(1) == 2
    fe.register_global_func("tests.cache.answer", lambda: 10, override=True)
    second = fe.compile(module.called, fe.Int32, options="--target cpu")
    assert second.origin == "from the cache"
    assert (first(1), second(1)) == (2, 11)


def test_functions_of_one_code_are_several(scaled: tuple[Any, Any], written: Written) -> None:
    module = written(TEXT)

    def compiled() -> Any:
        return fe.compile(module.scale, *vectors(), fe.Float32, options="--target cpu")

    first, second = compiled(), compiled()
    assert first is not second
    first.release_gil = not second.release_gil
    assert first.release_gil != second.release_gil


def test_code_goes_with_its_last_function(folder: Path, written: Written) -> None:
    module = written(TEXT)
    function = fe.compile(module.largest, *vectors(1), options="--target cpu")
    (loaded,) = MEMORY._latest.values()
    gone = weakref.ref(loaded)
    del loaded
    fe.cache.clear()
    gc.collect()
    assert gone() is not None
    del function
    gc.collect()
    assert gone() is None


# ---- the other ways in ----


def test_direct_calls(folder: Path, written: Written) -> None:
    a, b = np.ones(4, np.float32), np.zeros(4, np.float32)
    written(TEXT).scale(a, b, 1.0)
    before = fe.cache.info()
    for _ in range(2):
        MEMORY.clear()
        module = written(TEXT)
        module.scale(a, b, 1.0)
        assert b.tolist() == [3.0] * 4
        module.FACTOR = 5.0  # a later call sees it, also of code from the cache
        module.scale(a, b, 1.0)
        assert b.tolist() == [5.0] * 4
        module.FACTOR = 3.0
        module.scale(a, b, 1.0)
        assert b.tolist() == [3.0] * 4
    after = fe.cache.info()
    assert (after.hits - before.hits, after.misses - before.misses) == (3, 1)


def test_free_dtypes(folder: Path, written: Written) -> None:
    module = written(TEXT)
    tensor = fe.make_fake_compact_tensor((fe.Float32, fe.Int64), (fe.sym_int(symbol="n"),))
    first, second = both(lambda: fe.compile(module.largest, tensor, options="--target cpu"))
    for function in (first, second):
        assert function(np.array([1, 4], np.int64)) == 4
        assert function(np.array([1.5, 0], np.float32)) == 1.5
    assert repr(first) == repr(second)
    assert first.inspect_ir() == second.inspect_ir()


def test_overloads(folder: Path, written: Written) -> None:
    module = written(TEXT)

    def joined() -> Any:
        tensors = [
            fe.make_fake_compact_tensor(dtype, (fe.sym_int(symbol="n"),))
            for dtype in (fe.Float32, fe.Int64)
        ]
        options = "--target cpu"
        return fe.overload([fe.compile(module.largest, each, options=options) for each in tensors])

    first, second = both(joined)
    assert second(np.array([1, 4], np.int64)) == 4
    assert first.inspect_llvm() == second.inspect_llvm()


def test_build(folder: Path) -> None:
    n = specs.sym_int64(symbol="n")
    signature = specs.Signature("length", [specs.params.Shape("shape", (n,))])

    def build(**more: Any) -> Any:
        call = conventions.CFunction("labs", [n], returns="int64")
        return compiler.build(signature, call, **more)

    first, second = both(build)
    assert first((21,)) == second((21,)) == 21
    assert first.inspect_llvm() == second.inspect_llvm()
    MEMORY.clear()
    assert build(doc="another").origin == "compiled"
    assert build(notes={"a": 1}).origin == "compiled"
    assert build(options="--no-cache").origin == "compiled"


def test_errors_of_a_compilation_are_not_kept(folder: Path, written: Written) -> None:
    module = written("import ferrule as fe\n@fe.jit\ndef f(a: fe.Tensor):\n    a[0] = missing\n")
    for _ in range(2):
        with pytest.raises(fe.CompileError, match="missing"):
            fe.compile(module.f, *vectors(1), options="--target cpu")
    assert not list(folder.rglob("*.ferrule"))
    module.missing = 3.0
    assert fe.compile(module.f, *vectors(1), options="--target cpu").origin == "compiled"


def test_options_that_write_files_are_kept_promises(
    folder: Path, written: Written, tmp_path: Path
) -> None:
    module = written(TEXT)
    for name in ("one", "two"):
        options = f"--target cuda --gpu-arch sm_80 --keep-ptx --dump-dir {tmp_path / name}"
        fe.compile(module.on_gpu, *vectors(), options=options)
        assert list((tmp_path / name).glob("*.ptx"))


def test_what_tvm_ffi_knows_is_asked_by_each_compilation(folder: Path, written: Written) -> None:
    module = written(
        "import ferrule as fe\n\n@fe.jit\ndef make():\n"
        "    return fe.make_object('tests.cache.NoSuchType', 1)\n"
    )
    with pytest.raises(fe.CompileError):
        fe.compile(module.make, options="--target cpu")
    from ferrule.compiler.cache.keys import noting
    from ferrule.language.lowering.objects.schemas import known_index

    with noting() as noted, noting():
        known_index("ffi.String")
    assert noted == ["it reads what tvm-ffi knows of the type ffi.String"]


def test_the_same_call_again_is_known_until_something_changes(
    folder: Path, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = written(TEXT)
    examples = vectors()

    def compiled(options: str = "--target cpu") -> Any:
        return fe.compile(module.scale, *examples, fe.Float32, options=options)

    assert compiled().origin == "compiled"
    assert compiled().origin == "from the cache"  # from now on it is watched
    with monkeypatch.context() as without:
        without.setattr("ferrule.language.compilation.wanted_of", None)
        again = compiled()
        assert again.origin == "from the cache"
    a = np.ones(1, np.float32)
    again(a, a)
    assert a[0] == 6
    module.FACTOR = 5.0
    assert compiled().origin == "compiled"
    module.FACTOR = 3.0
    assert compiled().origin == "from the cache"
    assert compiled("--target cpu --opt-level 1").origin == "compiled"
    monkeypatch.chdir(folder.parent)
    assert compiled().origin == "compiled"  # tracebacks show other paths
    monkeypatch.setenv("FERRULE_CACHE", "0")
    assert compiled().origin == "compiled"


def test_large_values_are_watched_as_well(folder: Path, written: Written) -> None:
    module = written(
        "import numpy as np\nimport ferrule as fe\n\n"
        "NUMBERS = list(range(9000))\nTABLE = np.arange(9000)\n\n@fe.jit\ndef read(a: fe.Tensor):\n"
        "    a[0] = fe.Float32(NUMBERS[8000] + int(TABLE[8000]))\n"
    )

    def result() -> tuple[str, float]:
        function = fe.compile(module.read, *vectors(1), options="--target cpu")
        a = np.zeros(1, np.float32)
        function(a)
        return function.origin, float(a[0])

    old, new = "from the cache", "compiled"
    assert [result() for _ in range(3)] == [(new, 16000), (old, 16000), (old, 16000)]
    module.NUMBERS[8000] = 1
    assert [result() for _ in range(3)] == [(new, 8001), (old, 8001), (old, 8001)]
    module.TABLE[8000] = 2
    assert [result() for _ in range(2)] == [(new, 3), (old, 3)]


def test_fast_maths_is_a_part_of_the_key(folder: Path, written: Written) -> None:
    module = written(
        "import ferrule as fe\n\n\ndef total(a, o):\n    s = fe.Float32(0)\n"
        "    for i in range(a.shape[0]):\n        s += a[i]\n    o[0] = s\n"
    )
    vector = fe.make_fake_compact_tensor("float32", (fe.sym_int(),))
    found = []
    for given in (True, False, "nsz", True, False):
        function = fe.compile(fe.jit(fast_math=given)(module.total), vector, vector,
                              options="--target cpu")  # fmt: skip
        MEMORY.clear()
        found.append((function.origin, "add.reassoc" in function.inspect_ir()))
    new, old = "compiled", "from the cache"
    assert found == [(new, True), (new, False), (new, False), (old, True), (old, False)]
    exact = fe.compile(fe.jit(fmad=False)(module.total), vector, vector, options="--target cpu")
    assert exact.origin == new
