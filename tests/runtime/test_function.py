"""`Function`: a TVM-FFI function that calls fast, says what it takes, and owns its code."""

from __future__ import annotations

import copy
import gc
import inspect
import io
import pickle
import pydoc
import subprocess
import sys
import threading
import types
import weakref
from enum import IntEnum
from typing import Any

import numpy as np
import pytest
import tvm_ffi

from ferrule import specs
from ferrule.runtime import (
    CudaError,
    DivergenceError,
    Engine,
    Function,
    LaunchError,
    RaceError,
    StageError,
    make_function,
)
from ferrule.runtime.calls.function import HEAP

from .conftest import COUNT, Maker, TextOrigin, compile_text, int32


def _tensor(name: str) -> specs.Tensor:
    """One that a function may keep, such as one that gives its argument back."""
    return specs.Tensor(name, (specs.sym_int(symbol="n"),), specs.Float32, owning=True)


def _float(name: str, default: Any = specs.REQUIRED) -> specs.Scalar:
    return specs.Scalar(name, specs.Float32, default)


def _bool(name: str) -> specs.Scalar:
    return specs.Scalar(name, specs.Boolean)


class Colour(IntEnum):
    RED = 3


def test_calls(make: Maker) -> None:
    add = make.add()
    assert add(3, 4) == 7
    assert add(a=3, b=4) == add(3, b=4) == add(b=4, a=3) == 7
    assert make.count()() == 0


def test_is_a_function_of_tvm_ffi(make: Maker) -> None:
    add = make.add()
    assert isinstance(add, Function)
    assert isinstance(add, tvm_ffi.Function)
    assert tvm_ffi.convert(add)(1, 2) == 3
    assert callable(add)


def test_is_passed_to_other_functions(make: Maker) -> None:
    apply = tvm_ffi.convert(lambda function, a, b: function(a, b))
    assert apply(make.add(), 20, 22) == 42


@pytest.mark.parametrize(
    ("param", "value", "wanted"),
    [
        (int32("x"), 5, 5),
        (int32("x"), True, True),
        (int32("x"), np.int32(5), 5),
        (int32("x"), np.uint8(5), 5),
        (int32("x"), np.bool_(True), True),
        (int32("x"), Colour.RED, 3),
        (int32("x"), specs.Int32(5), 5),
        (int32("x"), specs.Boolean(True), True),
        (_bool("x"), True, True),
        (_bool("x"), 1, 1),
        (_bool("x"), np.bool_(False), False),
        (_float("x"), 1.5, 1.5),
        (_float("x"), 2, 2),
        (_float("x"), np.float32(1.5), 1.5),
        (_float("x"), np.float64(1.5), 1.5),
        (_float("x"), np.float16(1.5), 1.5),
        (_float("x"), np.int64(4), 4),
        (_float("x"), specs.Float32(1.5), 1.5),
    ],
)
def test_scalars_arrive_as_plain_values(
    make: Maker, param: specs.Param, value: Any, wanted: Any
) -> None:
    came = make.echo(param)(value)
    assert (came, type(came)) == (wanted, type(wanted))


def test_what_no_kind_takes_goes_on_as_it_is(make: Maker) -> None:
    assert make.echo(int32("x"))(1.5) == 1.5
    assert make.echo(int32("x"))("text") == "text"
    assert make.echo(int32("x"))(None) is None
    assert make.echo(_tensor("x"))(None) is None


def test_arrays(make: Maker) -> None:
    echo = make.echo(_tensor("x"))
    array = np.arange(4, dtype=np.float32)
    for value in (array, tvm_ffi.from_dlpack(array), array.view(np.memmap), _Exporter(array)):
        np.testing.assert_array_equal(np.from_dlpack(echo(value)), array)


class _Exporter:
    """Something that speaks DLPack and is no array."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


def test_read_only_array_is_refused_by_name(make: Maker) -> None:
    array = np.zeros(4, np.float32)
    array.flags.writeable = False
    function = make.count(int32("a"), _tensor("x"))
    with pytest.raises(BufferError) as caught:
        function(1, array)
    assert str(caught.value) == (
        "Mismatched x on argument #1 when calling: `count(a: int32, x: Tensor([n], float32))`, "
        "expected an array that can be written, but got a read-only one"
    )


@pytest.mark.needs_torch
def test_torch(make: Maker) -> None:
    import torch

    echo = make.echo(_tensor("x"))
    tensor = torch.arange(4, dtype=torch.float32)
    assert torch.equal(echo(tensor), tensor)
    assert torch.equal(echo(x=tensor), tensor)
    parameter = torch.nn.Parameter(tensor)
    assert torch.equal(echo(parameter), tensor)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        echo()


def test_defaults(make: Maker) -> None:
    echo = make.echo(int32("a"), int32("b", 7))
    assert echo(1) == echo(a=1) == 7
    assert echo(1, 2) == echo(1, b=2) == 2


def test_what_a_call_of_the_wrong_form_says(make: Maker) -> None:
    add = make.add(name="add_one")
    for call, message in [
        (lambda: add(1), "add_one() missing 1 required positional argument: 'b'"),
        (lambda: add(1, 2, 3), "add_one() takes 2 positional arguments but 3 were given"),
        (lambda: add(1, 2, c=3), "add_one() got an unexpected keyword argument 'c'"),
        (lambda: add(1, a=2), "add_one() got multiple values for argument 'a'"),
    ]:
        with pytest.raises(TypeError) as caught:
            call()
        assert str(caught.value) == message


def _frames(error: BaseException) -> list[str]:
    names, trace = [], error.__traceback__
    while trace is not None:
        names.append(trace.tb_frame.f_code.co_name)
        trace = trace.tb_next
    return names[1:]


@pytest.mark.parametrize("argument", [1, np.int32(1)])
def test_errors_of_the_wrapper_have_short_tracebacks(make: Maker, argument: Any) -> None:
    with pytest.raises(ValueError, match="it is broken") as caught:
        make.fail(int32("a")).prepare()(argument)
    assert len(_frames(caught.value)) <= 3
    with pytest.raises(TypeError) as refused:
        make.fail(int32("a")).prepare()()
    assert len(_frames(refused.value)) <= 3


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("ValueError", ValueError),
        ("LaunchError", LaunchError),
        ("DivergenceError", DivergenceError),
        ("RaceError", RaceError),
        ("CudaError", CudaError),
        ("ZeroDivisionError", ZeroDivisionError),
        ("OverflowError", OverflowError),
        ("NoSuchError", RuntimeError),
    ],
)
def test_kinds_of_errors(make: Maker, kind: str, expected: type[Exception]) -> None:
    with pytest.raises(expected) as caught:
        make.fail(kind=kind)()
    assert type(caught.value) is expected
    assert str(caught.value) == "it is broken"


def test_what_it_says_of_itself(make: Maker) -> None:
    add = make(COUNT, int32("a"), int32("b", 2), name="add", doc="  Adds.\n\n    More.")
    assert repr(add) == "<ferrule.Function add(a: int32, b: int32 = 2)>"
    assert add.name == add.__name__ == add.__qualname__ == "add"
    assert str(add.signature) == "add(a: int32, b: int32 = 2)"
    assert add.__doc__ == "add(a: int32, b: int32 = 2)\n\nAdds.\n\nMore."
    signature = inspect.signature(add)
    assert str(signature) == "(a: int32, b: int32 = 2)"
    assert signature.parameters["b"].default == 2
    text = io.StringIO()
    pydoc.Helper(output=text)(add)
    assert "add(a: int32, b: int32 = 2)" in text.getvalue()
    assert "Adds." in text.getvalue()
    assert "export_to_c" in pydoc.plain(pydoc.render_doc(Function))


def test_texts(make: Maker) -> None:
    count = make.count()
    assert "define i32" in count.inspect_llvm()
    for inspect_stage, stage in [(count.inspect_ir, "ir"), (count.inspect_asm, "asm")]:
        with pytest.raises(StageError, match=f"there is no '{stage}' text.*available: llvm"):
            inspect_stage()


def test_attributes_copies_and_pickles(make: Maker) -> None:
    add = make.add()
    add.note = "mine"
    assert add.note == "mine"
    assert copy.copy(add) is copy.deepcopy(add) is add
    assert add == add and hash(add) == hash(add)
    assert add != make.add()
    assert len({add, add}) == 1
    assert pickle.loads(pickle.dumps(add))(3, 4) == 7
    with pytest.raises(AttributeError):
        add.signature = None


def test_a_function_without_code(make: Maker) -> None:
    empty = Function.__new__(Function)
    assert repr(empty) == "<ferrule.Function without code>"
    with pytest.raises((TypeError, RuntimeError)):
        empty()
    with pytest.raises(RuntimeError, match="has no code"):
        _ = empty.signature


def test_a_function_that_was_moved_away(make: Maker) -> None:
    add = make.add()
    thief = tvm_ffi.Function.__new__(tvm_ffi.Function)
    thief.__move_handle_from__(add)
    assert thief(1, 2) == 3
    del thief  # and with it the code
    with pytest.raises(RuntimeError, match="was moved away"):
        add(1, 2)


def test_call_survives_a_cleared_dict(make: Maker) -> None:
    add = make.add().prepare()
    add.__dict__.clear()
    gc.collect()
    assert add(1, 2) == 3
    assert add(1, b=2) == 3
    with pytest.raises(RuntimeError, match="has no code"):
        add(1, b="2")


def test_subclasses() -> None:
    class Loud(Function):  # type: ignore[misc]
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return ("loud", super().__call__(*args, **kwargs))

    class Quiet(Function):  # type: ignore[misc]
        pass

    engine = Engine.load(compile_text(COUNT.format(name="count"), "count"))
    address = engine.address("__tvm_ffi_count")
    signature = specs.Signature("count", (int32("a"), int32("b", 1)))

    def made(kind: Any) -> Any:
        return make_function(address, signature, TextOrigin(COUNT), owner=engine, kind=kind)

    assert made(Loud)(1, 2) == made(Loud)(1, b=2) == made(Loud)(1) == ("loud", 2)
    assert made(Quiet)(1, 2) == made(Quiet)(1, b=2) == made(Quiet)(a=1) == 2
    assert isinstance(made(Quiet), tvm_ffi.Function)
    assert repr(made(Quiet)).startswith("<ferrule.Function count(")


def test_weak_references(make: Maker) -> None:
    add = make.add()
    seen: list[str] = []
    reference = weakref.ref(add, lambda _: seen.append("gone"))
    assert reference() is add
    del add
    assert reference() is None
    assert seen == ["gone"]


def _make_with_engine() -> tuple[Function, weakref.ref[Engine]]:
    engine = Engine.load(compile_text(COUNT.format(name="count"), "count"))
    function = make_function(
        engine.address("__tvm_ffi_count"),
        specs.Signature("count", (int32("a"),)),
        TextOrigin(COUNT),
        owner=engine,
    )
    return function, weakref.ref(engine)


def test_engine_lives_as_long_as_the_function_object() -> None:
    function, engine = _make_with_engine()
    holder = tvm_ffi.convert([function])  # C++ holds the function object, Python may let go
    del function
    gc.collect()
    assert engine() is not None
    assert holder[0](1) == 1
    del holder
    gc.collect()
    assert engine() is None


def test_a_cycle_through_the_function_is_collected() -> None:
    function, engine = _make_with_engine()
    function.me = function
    del function
    gc.collect()
    assert engine() is None


def test_references_stay_flat(make: Maker) -> None:
    add, echo = make.add(), make.echo(_tensor("x"))
    array, big = np.zeros(4, np.float32), 1 << 40
    echo(array), echo(x=array), add(big, b=np.int32(1))
    gc.collect()

    def counts() -> list[int]:
        return [sys.getrefcount(value) for value in (add, echo, array, big, np.ndarray, None)]

    before = counts()[:-2]
    for _ in range(50_000):
        add(big, 1)
        echo(array)
    for _ in range(5_000):
        echo(x=array)
        add(big, b=big)
    for _ in range(1_000):
        for bad in (lambda: add(big), lambda: add(big, 1, 2), lambda: add(big, c=1)):
            with pytest.raises(TypeError):
                bad()
    gc.collect()
    assert counts()[:-2] == before


def test_objects_stay_flat(make: Maker) -> None:
    for _ in range(3):
        make.add()(1, b=2)
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(20):
        make.add()(1, b=2)
    gc.collect()
    assert len(gc.get_objects()) - before < 20


def test_threads(make: Maker) -> None:
    add, wrong = make.add(), []

    def work(base: int) -> None:
        for i in range(2000):
            if add(base, i) != base + i or add(base, b=i) != base + i:
                wrong.append((base, i))

    threads = [threading.Thread(target=work, args=(n * 10_000,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_functions_are_made_by_many_threads(make: Maker) -> None:
    results: list[int] = []
    threads = [threading.Thread(target=lambda: results.append(make.add()(1, 2))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [3] * 8


@pytest.mark.skipif(HEAP is None, reason="this interpreter has no slot for a call")
def test_an_accepted_call_runs_no_python(make: Maker) -> None:
    add, calls = make.add(), []
    add.prepare()

    def profile(frame: types.FrameType, event: str, argument: object) -> None:
        if event == "call":
            calls.append(frame.f_code.co_name)

    sys.setprofile(profile)
    try:
        add(1, 2)
        add(1, True)
    finally:
        sys.setprofile(None)
    assert calls == []


def test_many_arguments(make: Maker) -> None:
    count = make.count(*(int32(f"a{i}") for i in range(60)))
    assert count(*range(60)) == 60
    assert count(*range(59), a59=1) == 60
    with pytest.raises(TypeError, match="missing 58 required positional arguments: 'a2', 'a3', "):
        count(1, 2)


def _run(source: str) -> str:
    """What a program prints; it has no PyTorch, which tvm_ffi would import for two seconds."""
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.modules['torch'] = None\n{source}"],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": ":".join(p for p in sys.path if p), "PATH": ""},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_needs_no_llvm() -> None:
    _run(
        "import sys, ferrule.runtime as rt\n"
        "rt.Function, rt.LaunchError, rt.make_fake_tensor\n"
        "assert 'llvmlite' not in sys.modules\n"
        "assert 'Function' in dir(rt)\n"
    )


def test_without_llvm_calls_go_the_ordinary_way() -> None:
    """A loaded library runs where LLVM is not installed."""
    printed = _run(
        "import sys, ctypes, weakref\n"
        "sys.modules['llvmlite'] = None\n"
        "import ferrule.runtime as rt\n"
        "from ferrule import specs\n"
        "from ferrule.runtime.calls.function import HEAP\n"
        "assert HEAP is None\n"
        "def body(handle, args, n, result):\n"
        "    ctypes.c_int64.from_address(result).value = 1\n"
        "    ctypes.c_int64.from_address(result + 8).value = n\n"
        "    return 0\n"
        "p = ctypes.c_void_p\n"
        "safe_call = ctypes.CFUNCTYPE(ctypes.c_int, p, p, ctypes.c_int, p)(body)\n"
        "address = ctypes.cast(safe_call, p).value\n"
        "params = (specs.Scalar('a', specs.Int32), specs.Scalar('b', specs.Int32, 2))\n"
        "f = rt.make_function(address, specs.Signature('f', params), None, owner=safe_call)\n"
        "print(f(1), f(1, 2), f(1, b=3), f(a=1), f)\n"
        "weakref.ref(f)\n"
    )
    assert printed == "2 2 2 2 <ferrule.Function f(a: int32, b: int32 = 2)>\n"
