"""A call of a compiled host function means what the same call of the host function means, or is
refused: its parameters keep their places, names and defaults."""

from __future__ import annotations

import struct
from types import ModuleType
from typing import Any

import pytest
from cuda_device import FakeCuda
from triton_launcher import tensor

import ferrule as fe
from ferrule.frontends import triton as frontend

pytestmark = [pytest.mark.needs_cc, pytest.mark.needs_torch]

HOW: Any = {"target": "sm_90a", "specialize": [{}]}


@pytest.fixture
def hosts() -> ModuleType:
    """Kernels."""
    pytest.importorskip("torch")
    return pytest.importorskip("emulated_recordings")


def recorded(host: Any, *arguments: Any, **named: Any) -> frontend.Launches:
    with frontend.recording() as launches:
        launches.call(host, *arguments, **named)
    return launches


def zeros(*shape: int) -> Any:
    import torch

    return torch.zeros(shape)


def scaled(hosts: ModuleType, x: Any, eps: float) -> None:
    rows, columns = x.shape
    hosts.scaled[(rows,)](x, x, x, x, columns, columns, eps, BLOCK=64)


def two(host: Any, *several: tuple[tuple[Any, ...], dict[str, Any]]) -> Any:
    sizes = ((3, 40), (5, 60))
    calls = [
        recorded(host, zeros(*size), *more, **named)
        for size, (more, named) in zip(sizes, several, strict=True)
    ]
    return calls[0].compile(calls[1], **HOW)


def names(function: Any) -> list[str]:
    return [each.name for each in function.signature.params]


def test_a_parameter_that_was_none_keeps_its_place(gpu: FakeCuda, hosts: ModuleType) -> None:
    def host(x: Any, weight: Any = None, bias: Any = None) -> None:
        hosts.squares[(x.shape[0],)](x, bias, x.stride(0), x.shape[1], BLOCK=64)

    one = recorded(host, zeros(3, 40), bias=zeros(3))
    function = one.compile(recorded(host, zeros(5, 60), bias=zeros(5)), **HOW)
    x, bias = tensor(4, 50)[0], tensor(4)[0]
    assert names(function) == ["x", "weight", "bias"]
    function(x, bias=bias)
    function(x, None, bias)
    for wrong in ((x, bias), (x, bias, bias)):
        with pytest.raises(TypeError):
            function(*wrong)


def test_a_number_is_at_the_place_of_the_host_function(gpu: FakeCuda, hosts: ModuleType) -> None:
    """Not behind the tensors."""

    def host(eps: float, x: Any, total: Any = None) -> None:
        scaled(hosts, x, eps)

    one, other = recorded(host, 0.25, zeros(3, 40)), recorded(host, 0.5, zeros(5, 60))
    function = one.compile(other, **HOW)
    assert names(function) == ["eps", "x", "total"]
    function(0.125, tensor(4, 50)[0])


def test_a_value_that_was_the_same_is_checked(gpu: FakeCuda, hosts: ModuleType) -> None:
    def host(x: Any, eps: float = 2.0, mode: str = "sum", n: int = 7, flag: bool = False) -> None:
        scaled(hosts, x, eps)

    x = tensor(4, 50)[0]
    function = two(host, ((), {}), ((), {}))
    for right in ((), (2.0,), (2.0, "sum", 7, False)):
        function(x, *right)
    for wrong in ((3.0,), (2.0, "mean"), (2.0, "sum", 8), (2.0, "sum", 7, True)):
        with pytest.raises(ValueError, match="expected .*, but got "):
            function(x, *wrong)
    function = two(host, ((5.0,), {}), ((5.0,), {}))
    function(x, 5.0)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'eps'"):
        function(x)
    with pytest.raises(ValueError, match=r"expected 5\.0, but got 2"):
        function(x, 2.0)


def test_nan_and_the_sign_of_zero_are_values(gpu: FakeCuda, hosts: ModuleType) -> None:
    def host(x: Any, eps: float, y: float) -> None:
        scaled(hosts, x, 1.0)

    x, nan = tensor(4, 50)[0], float("nan")
    function = two(host, ((nan, 0.0), {}), ((nan, 0.0), {}))
    function(x, nan, 0.0)
    for wrong in ((0.0, 0.0), (nan, -0.0)):
        with pytest.raises(ValueError, match="Mismatched constant"):
            function(x, *wrong)


def test_a_default_of_a_number_stays(gpu: FakeCuda, hosts: ModuleType) -> None:
    def host(x: Any, eps: float = 1.0) -> None:
        scaled(hosts, x, eps)

    function = two(host, ((0.25,), {}), ((0.5,), {}))
    function(tensor(4, 50)[0])
    assert function.signature["eps"].default == 1.0


def test_an_integer_that_a_size_was_is_itself(gpu: FakeCuda, hosts: ModuleType) -> None:
    """In all recordings they were equal, by chance."""

    def host(x: Any, n: int | None = None) -> None:
        columns = x.shape[1] if n is None else n
        hosts.squares[(x.shape[0],)](x, x, x.stride(0), columns, BLOCK=64)

    function = two(host, ((40,), {}), ((60,), {}))
    x = tensor(4, 50)[0]
    for n in (50, 40):
        gpu.clear()
        function(x, n)
        (launch,) = gpu.launches()
        assert int.from_bytes(launch.parameters[3], "little") == n
    with pytest.raises(ValueError, match="n <= 60"):
        function(x, 61)
    with pytest.raises(TypeError, match="missing"):
        function(x)


@pytest.mark.parametrize("values", [(7, 5), (0.5, 0.25)])
def test_a_number_that_is_taken_is_a_recorded_one(
    gpu: FakeCuda, hosts: ModuleType, values: tuple[Any, Any]
) -> None:
    def host(x: Any, p: Any) -> None:
        scaled(hosts, x, 1.0 if hash(p) else 2.0)

    function = two(host, ((values[0],), {}), ((values[1],), {}))
    for shape in ((3, 40), (5, 60), (4, 50)):
        for value in values:
            function(tensor(*shape)[0], value)
        with pytest.raises(ValueError, match="the recordings have no call of this kind"):
            function(tensor(*shape)[0], type(values[0])(6))
    named = [recorded(host, zeros(3, 40), value) for value in values]
    function = named[0].compile(named[1], general=["p"], **HOW)
    function(tensor(3, 40)[0], type(values[0])(6))


def test_a_number_that_the_host_function_does_not_use_is_any(
    gpu: FakeCuda, hosts: ModuleType
) -> None:
    def host(x: Any, p: float, k: int) -> None:
        scaled(hosts, x, 1.0)

    one, other = [recorded(host, zeros(3, 40), *each) for each in ((0.5, 1), (0.25, 9))]
    function = one.compile(other, general=True, **HOW)
    for p, k in ((0.5, 1), (-7.0, 1 << 40)):
        function(tensor(3, 40)[0], p, k)


def test_a_truth_value_is_that_of_its_recording(gpu: FakeCuda, hosts: ModuleType) -> None:
    """Of a bool Python asks nobody: `if p`, `p is True`."""

    def host(x: Any, p: Any) -> None:
        scaled(hosts, x, 1.0)

    function = two(host, ((True,), {}), ((False,), {}))
    function(tensor(3, 40)[0], True)
    function(tensor(5, 60)[0], False)
    for shape, value in (((3, 40), False), ((4, 50), True)):
        with pytest.raises(
            ValueError, match="add one, or call with p and the sizes of one of them"
        ):
            function(tensor(*shape)[0], value)


def test_what_no_call_can_check_is_left_out(gpu: FakeCuda, hosts: ModuleType) -> None:
    """Then what stands behind it has no place, and one that is not the default is an error."""

    def host(x: Any, kind: Any = (), eps: float = 1.0) -> None:
        scaled(hosts, x, eps)

    function = two(host, (((), 0.25), {}), (((), 0.5), {}))
    x = tensor(4, 50)[0]
    function(x, eps=0.125)
    with pytest.raises(TypeError):
        function(x, 0.125)
    kinds = [recorded(host, zeros(*size), (1,)) for size in ((3, 40), (5, 60))]
    with pytest.raises(fe.CompileError, match=r"kind is \(1,\) .* its default is \(\).*\n.*fixed="):
        kinds[0].compile(kinds[1], **HOW)
    function = kinds[0].compile(kinds[1], fixed=["kind"], **HOW)
    function(x)
    with pytest.raises(TypeError):
        function(x, 1.0)
    function(x, eps=1.0)
    for wrong, said in (("x", "which a launch of host takes"), ("y", "no parameter of host")):
        with pytest.raises(fe.CompileError, match=said):
            kinds[0].compile(kinds[1], fixed=[wrong], **HOW)


def test_what_is_passed_on_has_an_unknown_default(hosts: ModuleType) -> None:
    def host(x: Any, *more: Any, **named: Any) -> None:
        scaled(hosts, x, 1.0)

    function = two(host, ((1.0,), {"p": 2}), ((1.0,), {"p": 2}))
    assert names(function) == ["x", "more_0", "p"]
    with pytest.raises(fe.CompileError, match="calls could not say which"):
        two(host, ((), {"p": ()}), ((), {"p": ()}))
    with pytest.raises(fe.CompileError, match="one recording gives x, p, another x"):
        two(host, ((), {"p": 1}), ((), {}))


def test_two_arguments_with_the_same_values_are_two_explanations(
    gpu: FakeCuda, hosts: ModuleType
) -> None:
    """Where nobody knows which of them a number was."""

    def known(x: Any, low: float = 0.0, high: float = 1.0) -> None:
        scaled(hosts, x, low)

    function = two(known, ((0.5, 0.5), {}), ((0.7, 0.7), {}))
    gpu.clear()
    function(tensor(4, 50)[0], 0.25, 0.75)
    (launch,) = gpu.launches()
    assert struct.unpack("f", launch.parameters[6]) == (0.25,)

    def host(x: Any, low: float = 0.0, high: float = 1.0) -> None:
        scaled(hosts, x, float(str(low)))

    with pytest.raises(fe.CompileError, match=r"eps of scaled was 0\.5, 0\.7.* low and also high"):
        two(host, ((0.5, 0.5), {}), ((0.7, 0.7), {}))


def test_nan_is_one_number(gpu: FakeCuda, hosts: ModuleType) -> None:
    """In what is filled and as a number of a kernel."""
    import torch

    def host(x: Any) -> None:
        total = torch.full_like(x, float("nan"))
        rows, columns = x.shape
        hosts.scaled[(rows,)](x, x, x, total, columns, columns, float("nan"), BLOCK=64)

    assert names(two(host, ((), {}), ((), {}))) == ["x"]
