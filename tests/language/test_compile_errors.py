"""Wrong programs: each message is pinned, with its source line and caret."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lowered import lower, matrix, vector

import ferrule as fe

CONSTANT = 3


@fe.kernel
def kernel(a, b):
    b[fe.arch.thread_idx()[0]] = a[0]


@fe.kernel
def whole_in_kernel(a):
    a[:] = 0.0


@fe.kernel
def returning(a):
    return a[0]


@fe.kernel
def nested_launch(a):
    kernel(a, a).launch(grid=1, block=1)


def helper(x):
    return x.nothing


def unknown_name(a):
    a[0] = CONSTNAT  # noqa: F821


def wrong_rank(a):
    a[0, 0] = 1.0


def negative_index(a):
    a[-1] = 1.0


def float_index(a):
    a[a[0]] = 1.0


def past_the_end(a, b):
    b[7] = 1.0


def float_to_int(a, b):
    b[0] = a[0]


def constant_out_of_range(a, b):
    b[0] = b[1] + 300


def changes_type_in_branch(a):
    x = a[0]
    y = 1
    if x > 0:
        y = x
    z = fe.Int64(1)
    if x > 1:
        z = fe.Float64(2)
    a[0] = y + z


def string_in_branch(a):
    name = "small"
    if a[0] > 1:
        name = b"large"
    a[0] = len(name)


def changes_type_in_loop(a, n: fe.Int32):
    x = n
    for i in range(3):
        x = x + a[i]
    a[0] = x


def undefined_after_branch(a):
    if a[0] > 1:
        y = 1.0
    a[0] = y


def undefined_after_loop(a):
    for i in range(3):
        last = a[i]
    a[0] = last


def endless(a):
    while True:
        a[0] = 1.0


def python_int(a):
    a[0] = int(a[1])


def numpy_function(a):
    a[0] = np.exp(a[1])


def compares_shown_text(a):
    a[0] = str(a[0]) == "1"


def in_helper(a):
    a[0] = helper(a[1])


def missing_attribute(a):
    a[0] = a.shap[0]


def tensor_arithmetic(a, b):
    b[:] = a + 1.0


def not_launched(a):
    kernel(a, a)


def launch_without_block(a):
    kernel(a, a).launch(grid=1)


def launch_with_floats(a):
    kernel(a, a).launch(grid=a.shape[0] / 128, block=128)


def kernel_arguments(a):
    kernel(a).launch(grid=1, block=1)


def kernel_of_whole(a):
    kernel(a[:], a).launch(grid=1, block=1)


def launches_whole_in_kernel(a):
    whole_in_kernel(a).launch(grid=1, block=1)


def launches_returning(a):
    returning(a).launch(grid=1, block=1)


def launches_nested(a):
    nested_launch(a).launch(grid=1, block=1)


def coordinate_in_host(a):
    a[fe.arch.thread_idx()[0]] = 1.0


def ranks_differ(a, b):
    b[:] = a[:]


def shapes_differ(a, b):
    b[:] = a[:] + b[:]


def no_common_type(a, b):
    b[0] = a[0] + b[0]


def power(a, b):
    b[0] = b[1] ** b[2]


def bit_operation(a):
    a[0] = a[1] & 3


def run_time_list_index(a):
    values = [a[0], 2.0]
    a[0] = values[fe.Int32(a[1])]


def changes_a_list(a):
    values = []
    if a[0] > 0:
        values.append(1.0)
    a[0] = len(values)


def compile_time_error(a):
    a[0] = [1, 2][5]


def static_assertion(a):
    assert CONSTANT == 4, "the constant is wrong"


def zero_step(a):
    for i in range(0, 3, 0):
        a[i] = 1.0


def iterates_a_tensor(a):
    for x in a:
        a[0] = x


def endless_recursion(a):
    endless_recursion(a)


def returns_a_part(a):
    return a[None, 0]


def imports(a):
    import math

    a[0] = math.pi


def truth_of_tensor(a):
    if a:
        a[0] = 1.0


def complex_to_float(a, b):
    b[0] = a[0]


def complex_literal(a):
    a[0] = 1j


def int_vector() -> Any:
    return vector(fe.Int8, "k")


def fixed(size: int) -> Any:
    return fe.make_fake_compact_tensor(fe.Float32, (size,))


def typed_constant_out_of_range(a, b):
    b[0] = fe.Uint32(-2)


ONE: Callable[[], list[Any]] = lambda: [vector()]  # noqa: E731
WRONG: list[tuple[Callable[..., Any], Callable[[], list[Any]]]] = [
    (unknown_name, ONE),
    (wrong_rank, ONE),
    (negative_index, ONE),
    (float_index, ONE),
    (past_the_end, lambda: [vector(), fixed(4)]),
    (float_to_int, lambda: [vector(), int_vector()]),
    (constant_out_of_range, lambda: [vector(), int_vector()]),
    (typed_constant_out_of_range, lambda: [vector(), int_vector()]),
    (changes_type_in_branch, ONE),
    (string_in_branch, ONE),
    (changes_type_in_loop, lambda: [vector(), 3]),
    (undefined_after_branch, ONE),
    (undefined_after_loop, ONE),
    (endless, ONE),
    (python_int, ONE),
    (numpy_function, ONE),
    (compares_shown_text, ONE),
    (in_helper, ONE),
    (missing_attribute, ONE),
    (tensor_arithmetic, lambda: [vector(), vector()]),
    (not_launched, ONE),
    (launch_without_block, ONE),
    (launch_with_floats, ONE),
    (kernel_arguments, ONE),
    (kernel_of_whole, ONE),
    (launches_whole_in_kernel, ONE),
    (launches_returning, ONE),
    (launches_nested, ONE),
    (coordinate_in_host, ONE),
    (ranks_differ, lambda: [matrix(), vector()]),
    (shapes_differ, lambda: [fixed(4), fixed(5)]),
    (no_common_type, lambda: [vector(fe.Uint64), vector(fe.Int64)]),
    (power, lambda: [vector(), int_vector()]),
    (bit_operation, ONE),
    (run_time_list_index, ONE),
    (changes_a_list, ONE),
    (compile_time_error, ONE),
    (static_assertion, ONE),
    (zero_step, ONE),
    (iterates_a_tensor, ONE),
    (endless_recursion, ONE),
    (returns_a_part, lambda: [matrix()]),
    (imports, ONE),
    (truth_of_tensor, ONE),
    (complex_to_float, lambda: [vector(fe.Complex64), vector()]),
    (complex_literal, ONE),
]


def message(error: fe.CompileError) -> str:
    """The message, with this file's name alone, on whatever machine."""
    span = error.diagnostic.span
    text = str(error)
    return text.replace(span.file, Path(span.file).name) if span else text


@pytest.mark.parametrize(
    ("function", "examples"), WRONG, ids=[function.__name__ for function, _ in WRONG]
)
def test_wrong_program(
    function: Callable[..., Any], examples: Callable[[], list[Any]], golden: Any
) -> None:
    with pytest.raises(fe.CompileError) as caught:
        lower(function, *examples())
    assert caught.value.diagnostic.span is not None
    golden(f"errors/{function.__name__}.txt", message(caught.value))


def test_wrong_examples() -> None:
    def takes_tensor(a: fe.Tensor):
        a[0] = 1.0

    def takes_number(x: fe.Int8):
        pass

    with pytest.raises(fe.CompileError, match="missing a required argument: 'a'"):
        fe.compile(takes_tensor)
    with pytest.raises(fe.CompileError, match="'a' is annotated as Tensor, but its example is 3"):
        fe.compile(takes_tensor, 3)
    with pytest.raises(fe.CompileError, match="300 is out of the range of int8"):
        fe.compile(takes_number, 300)
    with pytest.raises(fe.CompileError, match=r"<object object at .*\(object\)"):
        fe.compile(lambda_free, object())


def lambda_free(x):
    pass


@pytest.mark.parametrize("what", ["shape", "stride"])
@pytest.mark.parametrize(
    ("sizes", "index", "said"),
    [
        (
            (),
            0,
            r"has 0 items, but item 0 is asked for(.|\n)*a tensor of 0 dims has one element",
        ),
        ((3,), 1, r"has 1 item, but item 1 is asked for(.|\n)*expected: an index from -1 to 0"),
        ((3, 4), -3, r"has 2 items, but item -3 is asked for(.|\n)*an index from -2 to 1"),
    ],
)
def test_dims_that_a_tensor_does_not_have(
    what: str, sizes: tuple[int, ...], index: int, said: str
) -> None:
    def reads(a, index: fe.Constexpr):
        x = a.shape[index] if what == "shape" else a.stride[index]
        a[()] = x

    with pytest.raises(fe.CompileError, match=rf"a\.{what} {said}"):
        fe.compile(reads, np.zeros(sizes, np.float32), index, options="--target cpu")


twice, plus = lambda x: x * 2, lambda x, y=3: x + y


def test_lambdas_of_a_module_are_helpers() -> None:
    def function(a):
        a[0] = twice(plus(a[0], y=1))
        a[1] = plus(a[1])

    a = np.ones(2, np.float32)
    fe.compile(function, a, options="--target cpu")(a)
    assert a.tolist() == [4, 4]


def test_numbers_of_numpy_are_computed_by_numpy_and_weak() -> None:
    single, half = np.float32(0.1), np.float16(0.1)

    def function(out):
        out[0] = single * np.float32(3)
        out[1] = (single * 3) * out[2]
        out[3] = half * half + 1

    out = np.ones(4)
    fe.compile(function, out, options="--target cpu")(out)
    assert out[0] == float(np.float32(0.1) * np.float32(3)) != 0.1 * 3
    assert out[1] == float(np.float32(0.1) * 3)
    assert out[3] == float(np.float16(0.1) * np.float16(0.1) + 1)


def test_what_cannot_be_compiled() -> None:
    with pytest.raises(fe.CompileError, match="kernel is a kernel; what is compiled is a host"):
        fe.compile(kernel, vector(), vector())
    with pytest.raises(fe.CompileError, match="a lambda cannot be compiled by itself"):
        fe.compile(lambda a: None, vector())
    with pytest.raises(fe.CompileError, match="takes a @ferrule.jit function, but got 3"):
        fe.compile(3, vector())
    with pytest.raises(fe.CompileError, match="marks a function, but got 3"):
        fe.jit(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="the kernel kernel can be called only in a @ferrule.jit"):
        kernel(1, 2)
    names: dict[str, Any] = {}
    exec("def sourceless(a):\n    a[0] = 1.0\n", names)
    with pytest.raises(fe.CompileError, match="the source of 'sourceless' cannot be found"):
        fe.compile(names["sourceless"], vector())
    text = "@fe.jit\ndef f(x: fe.Tensor):\n    x[0] = 1\n"
    said = r"but got \{.*\}\n  hint: the namespace of a text has .* by name, \['f'\]"
    with pytest.raises(fe.CompileError, match=said):
        fe.compile(fe.from_source(text), 1)


def generator(a):
    yield a[0]


def test_a_generator_cannot_be_compiled() -> None:
    with pytest.raises(fe.CompileError, match="is a generator or a coroutine"):
        fe.compile(generator, vector())


def test_options() -> None:
    def nothing(a):
        pass

    a = vector()
    with pytest.raises(fe.CompileError, match="unknown option '--tarhet'") as caught:
        fe.compile(nothing, a, options="--tarhet cpu")
    assert caught.value.diagnostic.hint == "did you mean --target?"
    with pytest.raises(fe.CompileError, match="--target is 'gpu'"):
        fe.compile(nothing, a, options="--target=gpu")
    with pytest.raises(fe.CompileError, match="--target needs a value"):
        fe.compile(nothing, a, options="--target")
    with pytest.raises(fe.CompileError, match="--opt-level must be 0, 1, 2 or 3, but got '9'"):
        fe.compile(nothing, a, options="--opt-level 9")
    with pytest.raises(fe.CompileError, match="--enable-tvm-ffi takes no value, but got '1'"):
        fe.compile(nothing, a, options="--enable-tvm-ffi=1")
    with pytest.raises(fe.CompileError, match="--gpu-arch is 'sm_91', but LLVM"):
        fe.compile(nothing, a, options="--target cuda --gpu-arch sm_91")
    with pytest.raises(
        fe.CompileError, match="gpu_arch must be a str such as 'sm_90a', but got 90"
    ):
        fe.Options(gpu_arch=90)  # type: ignore[arg-type]
    with pytest.raises(fe.CompileError, match="lives on the device 'metal', which no target"):
        fe.compile(nothing, fe.make_fake_compact_tensor(fe.Float32, (4,), device="metal"))
    with pytest.raises(fe.CompileError, match="'a' lives on cuda, but the target is cpu"):
        device = fe.make_fake_compact_tensor(fe.Float32, (4,), device="cuda")
        fe.compile(nothing, device, options=fe.Options(target="cpu"))
    with pytest.raises(fe.CompileError, match="must be a string or an Options object, but got 3"):
        fe.compile(nothing, a, options=3)  # type: ignore[arg-type]
    with pytest.raises(fe.CompileError, match="cannot be read: No closing quotation"):
        fe.compile(nothing, a, options="--target 'cpu")


def test_the_environment_names_the_target(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(a):
        pass

    monkeypatch.setenv("FERRULE_TARGET", "gpu")
    with pytest.raises(fe.CompileError, match="environment variable FERRULE_TARGET is 'gpu'"):
        fe.compile(nothing, vector())
    monkeypatch.setenv("FERRULE_TARGET", "cuda")
    monkeypatch.setenv("FERRULE_GPU_ARCH", "sm_1")
    with pytest.raises(fe.CompileError, match="environment variable FERRULE_GPU_ARCH is 'sm_1'"):
        fe.compile(nothing, vector())


def test_a_compile_error_can_be_pickled() -> None:
    with pytest.raises(fe.CompileError) as caught:
        lower(unknown_name, vector())
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert again.diagnostic == caught.value.diagnostic


@pytest.mark.parametrize(
    "make",
    [
        lambda n: dict([*{1: 2}.items(), (n, 2)]),
        lambda n: dict(zip([n, n], [1, 2], strict=True)),
        lambda n: {1: 2} | dict([*{3: 4}.items(), (n, 1)]),
    ],
)
def test_run_time_values_are_no_keys(make: Callable[[Any], Any]) -> None:
    """Nobody knows while compiling which of them are equal."""

    @fe.jit
    def program(n: fe.Int32):
        return len(make(n))

    with pytest.raises(fe.CompileError, match="a key of a dict"):
        fe.compile(program, fe.Int32)

    @fe.jit
    def updated(n: fe.Int32):
        found = {1}
        found.update([n])
        return len(found)

    with pytest.raises(fe.CompileError, match="cannot be in a set"):
        fe.compile(updated, fe.Int32)


@pytest.mark.parametrize("ask", [globals, locals, vars, dir, eval], ids=lambda each: each.__name__)
def test_frames_are_not_asked(ask: Callable[..., Any]) -> None:
    """The one that would answer is the compiler's."""

    @fe.jit
    def program(n: fe.Int32):
        return n if len(ask()) else 0

    @fe.jit
    def evaluated(n: fe.Int32):
        return n + eval("1")

    chosen = evaluated if ask is eval else program
    with pytest.raises(
        fe.CompileError, match=rf"{ask.__name__}\(\) reads the names of the function"
    ):
        fe.compile(chosen, fe.Int32)
