"""Gradients of operators: by compiled and by Python functions, and the refusals without one."""

from __future__ import annotations

from typing import Any

import pytest
from operator_kernels import CPU, N, compiled, fresh_name

import ferrule as fe

torch = pytest.importorskip("torch")

from torch.autograd.gradcheck import GradcheckError  # noqa: E402

DOUBLES = fe.make_fake_compact_tensor(fe.Float64, (N,))


@fe.jit
def cubed(x: fe.Tensor, y: fe.Tensor):
    for i in range(x.shape[0]):
        y[i] = x[i] * x[i] * x[i]


@fe.jit
def cubed_backward(x: fe.Tensor, grad: fe.Tensor, grad_x: fe.Tensor):
    for i in range(x.shape[0]):
        grad_x[i] = grad[i] * 3.0 * x[i] * x[i]


@fe.jit
def cubed_wrongly(x: fe.Tensor, grad: fe.Tensor, grad_x: fe.Tensor):
    for i in range(x.shape[0]):
        grad_x[i] = grad[i] * 2.0 * x[i] * x[i]


def norm() -> Any:
    return fe.torch_op(
        compiled("rms_norm"),
        fresh_name(),
        out=["y"],
        backward=compiled("rms_norm_backward"),
        save=["x", "weight", "eps"],
    )


def cube(backward: Any) -> Any:
    function = fe.compile(cubed, DOUBLES, DOUBLES, options=CPU)
    second = fe.compile(backward, DOUBLES, DOUBLES, DOUBLES, options=CPU)
    return fe.torch_op(function, fresh_name(), out=["y"], backward=second, save=["x"])


def test_a_compiled_backward_gives_the_gradients():
    x, weight = torch.randn(3, 5, requires_grad=True), torch.randn(5, requires_grad=True)
    grad = torch.randn(3, 5)
    wanted = torch.nn.functional.rms_norm(x, (5,), weight, 1e-6)
    for found, known in zip(
        torch.autograd.grad(norm()(x, weight, 1e-6), (x, weight), grad),
        torch.autograd.grad(wanted, (x, weight), grad),
        strict=True,
    ):
        torch.testing.assert_close(found, known)


def test_a_gradient_that_is_not_contiguous():
    operator, x = cube(cubed_backward), torch.arange(3.0, dtype=torch.float64, requires_grad=True)
    operator(x).sum().backward()
    assert x.grad.tolist() == [0.0, 3.0, 12.0]


def test_gradcheck():
    x = torch.randn(5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(cube(cubed_backward), (x,))
    with pytest.raises(GradcheckError):
        torch.autograd.gradcheck(cube(cubed_wrongly), (x,))


def test_opcheck_with_gradients():
    x, weight = torch.randn(3, 5, requires_grad=True), torch.randn(5, requires_grad=True)
    torch.library.opcheck(norm(), (x, weight, 1e-6))
    torch.library.opcheck(norm(), (x.detach(), weight, 1e-6))


def test_a_python_backward_has_what_was_saved():
    seen: list[Any] = []

    def backward(ctx: Any, grad: Any) -> Any:
        x, y = ctx.saved_tensors
        seen.append((ctx.times, x.tolist(), y.tolist()))
        return grad * ctx.times, None

    operator = fe.torch_op(
        compiled("scaled"), fresh_name(), out=["y"], backward=backward, save=["x", "times", "y"]
    )
    x = torch.ones(2, requires_grad=True)
    operator(x, 3.0).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    assert seen == [(3.0, [1.0, 1.0], [3.0, 3.0])]


def test_results_of_the_function_are_saved_by_their_names():
    operator = fe.torch_op(
        compiled("doubled"), fresh_name(), backward=lambda ctx, grad: grad * 2, save=["result"]
    )
    x = torch.ones(2, requires_grad=True)
    operator(x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_a_compiled_graph_has_the_gradients():
    operator = norm()

    def loss(x: Any, weight: Any) -> Any:
        return (operator(x * 2, weight, 1e-6) ** 2).sum()

    traced = torch.compile(loss, fullgraph=True, backend="aot_eager", dynamic=True)
    x, weight = torch.randn(3, 5, requires_grad=True), torch.randn(5, requires_grad=True)
    for found, known in zip(
        torch.autograd.grad(traced(x, weight), (x, weight)),
        torch.autograd.grad(loss(x, weight), (x, weight)),
        strict=True,
    ):
        torch.testing.assert_close(found, known)


def test_checkpoints_run_the_operator_again():
    operator, x = cube(cubed_backward), torch.ones(3, dtype=torch.float64, requires_grad=True)
    y = torch.utils.checkpoint.checkpoint(lambda x: operator(x).sin(), x, use_reentrant=False)
    y.sum().backward()
    torch.testing.assert_close(x.grad, 3 * torch.cos(torch.ones(3, dtype=torch.float64)))


def test_functional_gradients_are_an_error_of_torch():
    """torch.library has no gradients of operators under torch.func, and says so."""
    operator, x = cube(cubed_backward), torch.arange(3.0, dtype=torch.float64)
    with pytest.raises(RuntimeError, match="functorch transforms"):
        torch.func.grad(lambda x: operator(x).sum())(x)


def test_a_second_gradient_is_refused():
    operator, x = cube(cubed_backward), torch.ones(3, dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad(operator(x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="derivative for .* is not implemented"):
        first.sum().backward()


def test_without_a_backward_there_is_no_gradient():
    x = torch.ones(3, requires_grad=True)
    y = fe.torch_op(compiled("doubled"), fresh_name())(x)
    assert y.requires_grad
    with pytest.raises(RuntimeError, match="derivative for .* is not implemented"):
        y.sum().backward()


def test_a_tensor_that_was_overwritten_is_found():
    operator, kept = fe.torch_op(compiled("scaled"), fresh_name()), torch.ones(3)
    loss = (torch.ones(3, requires_grad=True) * kept).sum()
    operator(torch.ones(3), kept, 2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


WRITES = {
    "a leaf that is written": lambda x: (torch.ones(3), x, 1.0),
    "what is read": lambda x: (x, torch.zeros(3), 1.0),
    "what was computed": lambda x: (torch.ones(3), x * 2, 1.0),
}


@pytest.mark.parametrize("case", list(WRITES))
@pytest.mark.parametrize("traced", [False, True])
def test_an_operator_that_writes_refuses_what_requires_a_gradient(case: str, traced: bool):
    operator, x = fe.torch_op(compiled("scaled"), fresh_name()), torch.ones(3, requires_grad=True)
    arguments = WRITES[case](x)
    run = torch.compile(operator, fullgraph=True, backend="aot_eager") if traced else operator
    with pytest.raises(Exception, match="writes to y"):
        run(*arguments)
    with torch.no_grad():
        run(*arguments)


def test_what_a_backward_function_takes_is_known_by_name():
    with pytest.raises(ValueError, match="nothing says what weight: .* is"):
        fe.torch_op(
            compiled("rms_norm"),
            fresh_name(),
            out=["y"],
            backward=compiled("rms_norm_backward"),
            save=["x"],
        )


def test_torch_differentiates_what_writes_nothing():
    with pytest.raises(ValueError, match=r"out=\['y'\]"):
        fe.torch_op(compiled("scaled"), fresh_name(), backward=lambda ctx, grad: grad)
