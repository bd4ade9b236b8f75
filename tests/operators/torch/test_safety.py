"""What would give wrong numbers without an error: gradients, replaced operators, traced writes."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from operator_kernels import CPU, compiled, fresh_name

import ferrule as fe
from ferrule.compiler.operators.torch import registration

torch = pytest.importorskip("torch")

N = fe.sym_int(symbol="n")
ANY = fe.make_fake_tensor(fe.Float64, (N,), (fe.sym_int64(symbol="s"),))
VECTOR = fe.make_fake_compact_tensor(fe.Float64, (N,))
OTHER = fe.make_fake_compact_tensor(fe.Float64, (fe.sym_int(symbol="m"),))
D = torch.float64


@fe.jit
def scale(x: fe.Tensor, k: fe.Float64):
    for i in range(x.shape[0]):
        x[i] = x[i] * k


@fe.jit
def product(x: fe.Tensor, w: fe.Tensor, y: fe.Tensor):
    for i in range(x.shape[0]):
        y[i] = x[i] * w[i]


@fe.jit
def half_of_it(grad: fe.Tensor, w: fe.Tensor, grad_x: fe.Tensor):
    for i in range(grad.shape[0]):
        grad_x[i] = grad[i] * w[i]


@fe.jit
def writes_grad(grad: fe.Tensor, w: fe.Tensor, grad_x: fe.Tensor):
    for i in range(grad.shape[0]):
        grad[i] = grad[i] * w[i]
        grad_x[i] = grad[i]


@fe.jit
def writes_saved(grad: fe.Tensor, w: fe.Tensor, grad_x: fe.Tensor):
    for i in range(grad.shape[0]):
        w[i] = grad[i] * w[i]
        grad_x[i] = w[i]


@fe.jit
def no_gradient(w: fe.Tensor, grad_x: fe.Tensor):
    for i in range(w.shape[0]):
        grad_x[i] = w[i]


@fe.jit
def two(x: fe.Tensor, y: fe.Tensor, z: fe.Tensor):
    for i in range(x.shape[0]):
        y[i] = x[i] * 2.0
        z[i] = x[i] * 3.0


@fe.jit
def of_the_first(grad_y: fe.Tensor, grad_x: fe.Tensor):
    for i in range(grad_y.shape[0]):
        grad_x[i] = 2.0 * grad_y[i]


@fe.jit
def named_grad(grad: fe.Tensor, x: fe.Tensor, y: fe.Tensor):
    for i in range(x.shape[0]):
        y[i] = grad[i] * x[i]


@fe.jit
def named_grad_backward(grad_y: fe.Tensor, grad: fe.Tensor, grad_x: fe.Tensor):
    for i in range(grad.shape[0]):
        grad_x[i] = grad_y[i] * grad[i]


@fe.jit
def biased(x: fe.Tensor, b: Any, y: fe.Tensor):
    for i in range(x.shape[0]):
        y[i] = x[i] * 2.0
        if b is not None:
            y[i] = y[i] + b[i]


@fe.jit
def biased_backward(grad: fe.Tensor, grad_x: fe.Tensor, grad_b: fe.Tensor):
    for i in range(grad.shape[0]):
        grad_x[i] = grad[i] * 2.0
        grad_b[i] = grad[i]


@fe.jit
def times_two(x: fe.Tensor, y: fe.Tensor):
    for i in range(x.shape[0]):
        y[i] = x[i] * 2.0


@fe.jit
def times_two_backward(grad: fe.Tensor, grad_x: fe.Tensor):
    for i in range(grad.shape[0]):
        grad_x[i] = grad[i] * 2.0


@fe.jit
def times_three(x: fe.Tensor, y: fe.Tensor):
    for i in range(x.shape[0]):
        y[i] = x[i] * 3.0


@fe.jit
def times_three_backward(grad: fe.Tensor, grad_x: fe.Tensor):
    for i in range(grad.shape[0]):
        grad_x[i] = grad[i] * 3.0


@fe.jit
def copied(x: fe.Tensor, y: fe.Tensor):
    for i in range(x.shape[0]):
        y[i] = x[i]


@fe.jit
def transposed_sum(x: fe.Tensor, y: fe.Tensor):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * 2.0


@fe.jit
def transposed_backward(grad: fe.Tensor, grad_x: fe.Tensor):
    for i in range(grad.shape[0]):
        for j in range(grad.shape[1]):
            grad_x[i, j] = grad[i, j] * 2.0


@cache
def build(function: Any, *examples: Any) -> Any:
    return fe.compile(function, *examples, options=CPU)


def ones(count: int = 3, *, grad: bool = True) -> Any:
    return torch.ones(count, dtype=D, requires_grad=grad)


def make(function: Any, backward: Any, count: int, back: int, **options: Any) -> Any:
    forward = build(function, *[VECTOR] * count)
    return fe.torch_op(forward, fresh_name(), backward=build(backward, *[VECTOR] * back), **options)


# ---- writes that a trace sees ----


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("how", ["detach", "no_grad"])
def test_a_traced_write_to_a_saved_tensor_is_found(how: str, backend: str):
    operator = fe.torch_op(build(scale, ANY, 2.0), fresh_name())

    def program(x: Any) -> Any:
        y = x * x
        z = y.sin()
        if how == "detach":
            operator(y.detach(), 2.0)
        else:
            with torch.no_grad():
                operator(y, 2.0)
        return z.sum()

    torch._dynamo.reset()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.compile(program, fullgraph=True, backend=backend)(ones()).backward()


def test_a_write_of_a_fake_tensor_is_counted():
    from torch._subclasses.fake_tensor import FakeTensorMode

    operator = fe.torch_op(build(scale, ANY, 2.0), fresh_name())
    with FakeTensorMode() as mode:
        x = mode.from_tensor(torch.ones(3, dtype=D))
        before = x._version
        operator(x, 2.0)
        assert x._version == before + 1


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_dynamo_calls_a_compiled_function_and_does_not_trace_it(backend: str):
    function = fe.compile(copied, ANY, ANY, options=CPU)  # calls of it begin in Python

    def negated(x: Any, y: Any) -> Any:
        function(x, y)
        return y + 0

    def overwritten(x: Any, kept: Any, w: Any) -> Any:
        loss = (w * kept).sum()
        function(x, kept)
        return loss

    torch._dynamo.reset()
    values = torch.tensor([1 + 2j, 3 - 1j], dtype=torch.complex128).conj().imag
    with pytest.raises(TypeError, match="negates lazily"):
        torch.compile(negated, backend=backend)(values, torch.zeros(2, dtype=D))
    loss = torch.compile(overwritten, backend=backend)(
        torch.full((2,), 5.0, dtype=D), torch.ones(2, dtype=D), ones(2)
    )
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_dynamo_is_told_when_it_comes_after_ferrule():
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "import ferrule.runtime.calls.function; del sys.modules['torch']\n"
        "import torch, torch._dynamo\n"
        "import ferrule.runtime.calls.callpath as ours\n"
        "rules = sys.modules['torch._dynamo.trace_rules']\n"
        "assert rules.check(ours.prepare_call), rules.SKIP_DIRS\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


# ---- backward functions ----


def test_a_gradient_that_the_backward_forgot_is_missed():
    operator = make(product, half_of_it, 3, 3, out=["y"], save=["w"])
    x, w = ones(), ones()
    operator(x, w.detach()).sum().backward()
    assert x.grad.tolist() == [1.0] * 3
    with pytest.raises(RuntimeError, match="w requires a gradient, and .* writes no grad_w"):
        operator(ones(), w).sum().backward()


def test_a_result_without_a_gradient_requires_none():
    operator = make(two, of_the_first, 3, 2, out=["y", "z"])
    x = ones()
    y, z = operator(x)
    assert y.requires_grad
    assert not z.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [2.0] * 3


@pytest.mark.parametrize(
    ("function", "backward", "save", "text"),
    [
        (product, writes_grad, ["w"], "writes to grad: .* are only read"),
        (product, writes_saved, ["w"], "writes to w: .* are only read"),
        (product, no_gradient, ["w"], "takes no gradient of a result"),
        (named_grad, named_grad_backward, ["grad"], "'grad' is both a saved value and"),
    ],
)
def test_a_backward_that_means_two_things_or_writes_is_refused(
    function: Any, backward: Any, save: list[str], text: str
):
    count = len(build(backward, *[VECTOR] * (2 if backward is no_gradient else 3)).signature.params)
    with pytest.raises(ValueError, match=text):
        make(function, backward, 3, count, out=["y"], save=save)


def test_an_argument_that_is_none_has_no_gradient():
    from ferrule import specs

    bias = specs.Optional("b", VECTOR.__ferrule_spec__("b"))
    function = build(biased, VECTOR, bias, VECTOR)
    backward = build(biased_backward, VECTOR, VECTOR, VECTOR)
    operator = fe.torch_op(function, fresh_name(), out=["y"], backward=backward)
    x, b = ones(), ones()
    operator(x, None).sum().backward()
    assert x.grad.tolist() == [2.0] * 3
    operator(x, b).sum().backward()
    assert b.grad.tolist() == [1.0] * 3


def test_a_gradient_gets_the_layout_that_the_backward_takes():
    rows, columns = fe.sym_int(symbol="r"), fe.sym_int(symbol="c")
    matrix = fe.make_fake_compact_tensor(fe.Float64, (rows, columns))  # the first dim is innermost
    operator = fe.torch_op(
        build(transposed_sum, matrix, matrix),
        fresh_name(),
        out=["y"],
        backward=build(transposed_backward, matrix, matrix),
    )
    x = torch.randn(4, 2, dtype=D).t().requires_grad_()
    grad = torch.randn(2, 4, dtype=D)
    for given in (grad, grad.t().contiguous().t(), grad[:, :1].expand(2, 4)):
        (found,) = torch.autograd.grad(operator(x), x, given)
        torch.testing.assert_close(found, given * 2.0)


def test_a_name_of_torch_s_context_cannot_be_saved():
    with pytest.raises(ValueError, match="'needs_input_grad', which is a name of torch's context"):
        make_named("needs_input_grad")


def make_named(name: str) -> Any:
    from ferrule.compiler.operators.torch.autograd import saved_of
    from ferrule.compiler.operators.torch.plans import plan_of

    function = build(scale, VECTOR, 2.0)
    params = (function.signature.params[0], fe.specs.Scalar(name, fe.Float64))
    return saved_of(plan_of("a::b", fe.specs.Signature("f", params)), [name])


# ---- operators that are replaced ----


def doubling(name: str, **options: Any) -> Any:
    backward = build(times_two_backward, VECTOR, VECTOR)
    return fe.torch_op(
        build(times_two, VECTOR, VECTOR), name, out=["y"], backward=backward, **options
    )


def tripling(name: str, **options: Any) -> Any:
    backward = build(times_three_backward, VECTOR, VECTOR)
    return fe.torch_op(
        build(times_three, VECTOR, VECTOR), name, out=["y"], backward=backward, **options
    )


def test_graphs_and_handles_of_a_replaced_operator_go_on():
    name, x = fresh_name(), ones()
    old = doubling(name)
    loss, overload = old(x).sum(), old.default
    traced = torch.compile(lambda x: old(x), fullgraph=True, backend="aot_eager")
    assert traced(x.detach()).tolist() == [2.0] * 3
    new = tripling(name, replace=True)
    loss.backward()
    assert x.grad.tolist() == [2.0] * 3
    for each in (new, old, overload, traced):
        assert each(x.detach()).tolist() == [3.0] * 3
    x.grad = None
    new(x).sum().backward()
    assert x.grad.tolist() == [3.0] * 3


def test_a_replaced_operator_leaves_others_alone():
    name = fresh_name()
    neighbour = tripling(f"{name}_backward")
    doubling(name)
    doubling(name, replace=True)
    assert neighbour(ones(grad=False)).tolist() == [3.0] * 3


def test_what_cannot_replace_leaves_the_operator():
    name = fresh_name()
    operator = doubling(name)
    infinite = fe.compile(with_infinity, VECTOR, VECTOR, options=CPU)
    with pytest.raises(ValueError, match="default inf of k has no form in torch's schemas"):
        fe.torch_op(infinite, name, out=["y"], replace=True)
    with pytest.raises(TypeError, match="vmap must be a function"):
        doubling(name, replace=True, vmap=3)
    assert operator(ones(grad=False)).tolist() == [2.0] * 3


@fe.jit
def with_infinity(x: fe.Tensor, y: fe.Tensor, k: fe.Float64 = float("inf")):
    for i in range(x.shape[0]):
        y[i] = min(x[i], k)


@pytest.mark.parametrize("short", ["__init__", "name", "def", "None"])
def test_names_that_torch_has_for_other_things(short: str):
    with pytest.raises(ValueError, match=f"attributes with the name of 'ferrule_tests::{short}'"):
        doubling(f"ferrule_tests::{short}")


@pytest.mark.needs_cc
def test_a_second_library_with_the_same_operator_ends_the_process(tmp_path: Path):
    name = fresh_name()
    for function, file in ((times_two, "a.so"), (times_three, "b.so")):
        made = build(function, VECTOR, VECTOR)
        made.export_library(tmp_path / file, torch_op=name, out=["y"])
    program = (
        "import sys, torch, tvm_ffi\n"
        "for path in sys.argv[1:]: torch.ops.load_library(path)\n"
        "print('went on')\n"
    )
    paths = [str(tmp_path / file) for file in ("a.so", "b.so")]
    done = subprocess.run(
        [sys.executable, "-c", program, *paths], capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "went on" not in done.stdout
    assert f"{name}: torch does not take this operator" in done.stderr


def test_out_is_for_an_operator(tmp_path: Path):
    with pytest.raises(ValueError, match="out= is for the operator of torch_op="):
        build(times_two, VECTOR, VECTOR).export_library(tmp_path / "a.so", out=["y"])


# ---- tensors that cannot be written, and those without memory ----


@pytest.mark.parametrize("traced", [False, True])
def test_an_expanded_tensor_is_not_written(traced: bool):
    operator = fe.torch_op(build(copied, VECTOR, ANY), fresh_name())
    call = torch.compile(operator, backend="eager") if traced else operator
    with pytest.raises(Exception, match=r"y is written, and several of its elements"):
        call(torch.ones(3, dtype=D), torch.zeros(1, dtype=D).expand(3))
    operator(torch.ones(1, dtype=D), torch.zeros(1, dtype=D).expand(1))


@pytest.mark.parametrize("way", ["boxed", "python"])
def test_an_empty_tensor_shares_no_places(way: str, monkeypatch: pytest.MonkeyPatch):
    operator = _operator(build(doubled_rows, ROWS), way, monkeypatch)
    operator(torch.zeros(5, dtype=D).as_strided((0, 3), (0, 0)))
    with pytest.raises(RuntimeError, match=r"x is written, and several of its elements"):
        operator(torch.zeros(5, dtype=D).as_strided((1, 3), (0, 0)))


@fe.jit
def doubled_rows(x: fe.Tensor):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            x[i, j] = x[i, j] * 2


ROWS = fe.make_fake_tensor(fe.Float64, (N, fe.sym_int()), (fe.sym_int64(), fe.sym_int64()))


def _operator(function: Any, way: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    if way == "python":
        monkeypatch.setattr(registration, "why_not_boxed", lambda plan: "a test wants it so")
    return fe.torch_op(function, fresh_name())


# ---- numbers that torch has no room for ----


@fe.jit
def twice_of_it(x: fe.Tensor, u: fe.Uint64):
    return u * 2


@fe.jit
def with_it(x: fe.Tensor, u: fe.Uint64):
    return x.shape[0], u * 2


@pytest.mark.parametrize("function", [twice_of_it, with_it], ids=["alone", "one of two"])
@pytest.mark.parametrize("way", ["boxed", "python"])
def test_a_result_above_torch_s_ints_is_an_error(
    function: Any, way: str, monkeypatch: pytest.MonkeyPatch
):
    operator = _operator(build(function, VECTOR, 1), way, monkeypatch)
    x = torch.zeros(3, dtype=D)
    most = 2**63 - 2
    wanted = most if function is twice_of_it else (3, most)
    assert operator(x, most // 2) == wanted
    for _ in range(3):
        with pytest.raises(RuntimeError, match="above 9223372036854775807, the largest int"):
            operator(x, 2**62)


def test_out_has_each_element_in_a_place_of_its_own():
    shared = fe.make_fake_tensor(fe.Float64, (N,), (0,))
    with pytest.raises(ValueError, match="several elements in one place"):
        fe.torch_op(fe.compile(copied, VECTOR, shared, options=CPU), fresh_name(), out=["y"])


def test_none_for_a_tensor_and_meta_tensors():
    both = fe.torch_op(build(product, VECTOR, VECTOR, VECTOR), fresh_name(), out=["y"])
    with pytest.raises(RuntimeError, match="w is None, or a tensor without memory"):
        both(torch.ones(3, dtype=D), None)
    operator = doubling(fresh_name())
    made = operator(torch.ones(3, dtype=D, device="meta"))
    assert (made.device.type, made.shape) == ("meta", (3,))
    with pytest.raises(RuntimeError, match="expected dtype=float64, but got dtype=float32"):
        operator(torch.ones(3, device="meta"))


def test_a_fake_size_beyond_32_bits_is_refused():
    operator = doubling(fresh_name())
    with pytest.raises(RuntimeError):
        operator(torch.empty((1 << 31) + 5, dtype=D, device="meta"))
    assert operator(torch.empty((1 << 31) - 1, dtype=D, device="meta")).shape == ((1 << 31) - 1,)


def test_the_python_kernel_raises_runtime_errors(monkeypatch: pytest.MonkeyPatch):
    from ferrule.compiler.operators.torch import registration

    monkeypatch.setattr(registration, "why_not_boxed", lambda plan: "asked for")
    operator = fe.torch_op(compiled("refuses"), fresh_name(), out=["y"])
    with pytest.raises(RuntimeError, match="three are too many"):
        operator(torch.ones(3))
