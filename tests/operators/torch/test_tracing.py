"""Operators of PyTorch under what traces them: fake tensors, torch.compile, export, torch.func."""

from __future__ import annotations

from typing import Any

import pytest
from operator_kernels import bounded, compiled, fresh_name

import ferrule as fe

torch = pytest.importorskip("torch")

from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402


def operator_of(name: str, **options: Any) -> Any:
    return fe.torch_op(compiled(name), fresh_name(), **options)


def test_fake_tensors_have_the_sizes_of_the_call():
    operator = operator_of("rms_norm", out=["y"])
    with FakeTensorMode():
        y = operator(torch.empty(3, 5), torch.empty(5), 1e-6)
        doubled = operator_of("doubled")(torch.empty(7))
    assert (tuple(y.shape), y.stride(), y.dtype) == ((3, 5), (5, 1), torch.float32)
    assert tuple(doubled.shape) == (7,)


@pytest.mark.parametrize("sizes", [(1, 2), (9, 9), (3, 3), (4, 2)])
def test_bounds_and_requirements_are_those_of_the_call(sizes: tuple[int, int]):
    operator = fe.torch_op(bounded(), fresh_name(), out=["y"])

    def refusal() -> str:
        with pytest.raises(RuntimeError) as refused:
            operator(torch.empty(sizes[0]), torch.empty(sizes[1]), 2)
        return str(refused.value)

    wanted = refusal()
    with FakeTensorMode():
        assert refusal() == wanted
        assert tuple(operator(torch.empty(4), torch.empty(3), 2).shape) == (4,)
    assert tuple(operator(torch.empty(4), torch.empty(3), 2).shape) == (4,)


def test_bounds_and_requirements_are_guards_of_what_is_traced():
    module = _Module(fe.torch_op(bounded(), fresh_name(), out=["y"]))

    def traced(most: int, step: int) -> Any:
        size = step * torch.export.Dim("part", min=1, max=most)
        given = (torch.ones(4), torch.ones(4))
        return torch.export.export(module, given, dynamic_shapes=({0: size}, {0: size}))

    assert traced(4, 2).module()(torch.ones(2), torch.ones(2)).shape == (2,)
    with pytest.raises(Exception, match=r"(?s)Constraints violated.*% 2"):
        traced(64, 1)
    with pytest.raises((AssertionError, RuntimeError), match="Guard failed: .* <= 8|at most 8"):
        traced(8, 2).module()(torch.ones(16), torch.ones(16))


class _Module(torch.nn.Module):
    def __init__(self, operator: Any) -> None:
        super().__init__()
        self.operator = operator

    def forward(self, x: Any, w: Any) -> Any:
        return self.operator(x, w, 2)


def test_meta_tensors_have_the_sizes_too():
    operator = operator_of("twice", out=["y"])
    with FakeTensorMode() as mode:
        fake = mode.from_tensor(torch.ones(3, dtype=torch.int32))
        assert (tuple(operator(fake).shape), operator(fake).dtype) == ((3,), torch.int32)


ODD = {
    "sizes": lambda: (torch.empty(3, 5), torch.empty(4), 1e-6),
    "dtype": lambda: (torch.empty(3, 5).double(), torch.empty(5), 1e-6),
    "dims": lambda: (torch.empty(5), torch.empty(5), 1e-6),
    "strides": lambda: (torch.empty(5, 3).t(), torch.empty(5), 1e-6),
    "empty": lambda: (torch.empty(0, 5), torch.empty(4), 1e-6),
}


@pytest.mark.parametrize("odd", list(ODD))
@pytest.mark.parametrize("out", [(), ("y",)])
def test_fake_tensors_are_refused_as_the_call_refuses(odd: str, out: tuple[str, ...]):
    operator = operator_of("rms_norm", out=out)

    def refusal() -> str:
        x, weight, eps = ODD[odd]()
        arguments = (x, weight, eps) if out else (x, weight, torch.empty(3, 5), eps)
        with pytest.raises(RuntimeError) as refused:
            operator(*arguments)
        return str(refused.value)

    wanted = refusal()
    with FakeTensorMode():
        assert refusal() == wanted


def test_candidates_are_refused_as_the_call_refuses():
    operator = operator_of("twice", out=["y"])
    with pytest.raises(RuntimeError) as real:
        operator(torch.ones(3).half())
    with FakeTensorMode():
        assert operator(torch.ones(3, dtype=torch.int32)).dtype is torch.int32
        with pytest.raises(RuntimeError) as fake:
            operator(torch.ones(3).half())
    assert str(fake.value) == str(real.value)


CHECKED = {
    "mutating": ("rms_norm", (), lambda: (torch.ones(3, 5), torch.ones(5), torch.zeros(3, 5), 0.1)),
    "made": ("rms_norm", ("y",), lambda: (torch.ones(3, 5), torch.ones(5), 0.1)),
    "returned": ("doubled", (), lambda: (torch.ones(4),)),
    "absent": ("options", ("y",), lambda: (torch.ones(4), None)),
    "present": ("options", (), lambda: (torch.ones(4), torch.ones(4), torch.zeros(4), 2)),
    "lists": ("added", (), lambda: ([torch.ones(4), torch.ones(4)], torch.zeros(4))),
    "candidates": ("twice", ("y",), lambda: (torch.ones(4).double(),)),
}


@pytest.mark.parametrize("case", list(CHECKED))
def test_opcheck(case: str):
    name, out, arguments = CHECKED[case]
    torch.library.opcheck(operator_of(name, out=out), arguments())


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_whole_graph_with_operators(dynamic: bool):
    made, written = operator_of("rms_norm", out=["y"]), operator_of("scaled")

    def model(x: Any, weight: Any) -> Any:
        y = made(x * 2, weight, 1e-6)
        row = torch.empty_like(weight)
        written(y[0], row, 3.0)
        return y + row

    wanted = torch.compile(model, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    for rows in (3, 5):
        x, weight = torch.randn(rows, 4), torch.randn(4)
        torch.testing.assert_close(wanted(x, weight), model(x, weight))


def test_the_sizes_of_a_graph_are_checked_as_symbols():
    operator = operator_of("rms_norm", out=["y"])
    model = torch.compile(
        lambda x, w: operator(x, w, 1e-6), fullgraph=True, backend="aot_eager", dynamic=True
    )
    model(torch.ones(3, 5), torch.ones(5))
    with pytest.raises(Exception, match="expected to match x.shape"):
        model(torch.ones(3, 5), torch.ones(4))


def test_an_exported_program_has_the_operator():
    operator = operator_of("rms_norm", out=["y"])

    class Model(torch.nn.Module):
        def forward(self, x: Any, weight: Any) -> Any:
            return operator(x, weight, 1e-6) + 1

    rows = torch.export.Dim("rows", min=2, max=64)
    arguments = (torch.randn(3, 4), torch.randn(4))
    program = torch.export.export(Model(), arguments, dynamic_shapes=({0: rows}, None))
    assert operator.default in [node.target for node in program.graph.nodes]
    more = (torch.randn(9, 4), torch.randn(4))
    torch.testing.assert_close(program.module()(*more), Model()(*more))


def test_a_number_that_only_the_call_knows_ends_the_graph():
    operator = operator_of("doubled_and_sum")
    x = torch.ones(3)
    broken = torch.compile(lambda x: operator(x)[0] * operator(x)[1], backend="aot_eager")
    assert broken(x).tolist() == [6.0] * 3
    with pytest.raises(Exception, match="[Dd]ata.dependent"):
        torch.compile(lambda x: operator(x)[1], fullgraph=True, backend="aot_eager")(x)


def test_vmap_is_a_loop_or_the_user_s():
    rows = torch.arange(6.0).reshape(2, 3)
    torch._C._functorch._set_vmap_fallback_warning_enabled(False)
    wanted = (rows * 2).tolist()
    assert torch.vmap(operator_of("doubled"))(rows).tolist() == wanted

    def batched(info: Any, in_dims: Any, x: Any) -> Any:
        return (x * 2, in_dims[0])

    assert torch.vmap(operator_of("doubled", vmap=batched))(rows).tolist() == wanted
    with pytest.raises(RuntimeError):
        torch.vmap(operator_of("scaled"), in_dims=(0, 0, None))(rows, torch.zeros(2, 3), 2.0)


def test_a_gpu_s_operator_is_traced_without_a_gpu():
    @fe.kernel
    def body(x: fe.Tensor, y: fe.Tensor):
        i = fe.arch.thread_idx()[0]
        y[i] = x[i] * 2.0

    @fe.jit
    def launch(x: fe.Tensor, y: fe.Tensor):
        body(x, y).launch(grid=(1, 1, 1), block=(x.shape[0], 1, 1))

    n = fe.sym_int()
    vector = fe.make_fake_compact_tensor(fe.Float32, (n,))
    function = fe.compile(launch, vector, vector, options="--target cuda --gpu-arch sm_80")
    operator = fe.torch_op(function, fresh_name(), out=["y"])
    with FakeTensorMode(allow_non_fake_inputs=True):
        y = operator(torch.empty(5, device="cuda"))
        assert (y.device.type, tuple(y.shape)) == ("cuda", (5,))
        with pytest.raises((RuntimeError, NotImplementedError)):
            operator(torch.empty(5))
