"""Numbers that are others in each call are not compiled in: random ones, seeds, addresses."""

from __future__ import annotations

import random
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from cuda_device import FakeCuda
from triton_launcher import tensor

import ferrule as fe
from ferrule.frontends import triton as frontend

pytestmark = [pytest.mark.needs_cc, pytest.mark.needs_torch]


@pytest.fixture
def hosts() -> ModuleType:
    """Kernels."""
    pytest.importorskip("torch")
    return pytest.importorskip("emulated_recordings")


def torch() -> Any:
    """PyTorch."""
    return pytest.importorskip("torch")


def written(x: Any) -> Any:
    """Memory that a function without a result wrote."""
    made = torch().zeros(3)
    torch()._foreach_copy_([made], [x[0, :3]])
    return made


def filled(x: Any) -> Any:
    made = torch().zeros(3)
    made.fill_(x[0, 0])
    return made


def into_values(tensor: Any) -> float:
    return float(tensor.numpy()[0])


def own_generator() -> Any:
    return torch().Generator().manual_seed(1)


NUMBERS: dict[str, Callable[[Any], float]] = {
    "randint": lambda x: torch().randint(0, 1000, (1,)).item(),
    "int": lambda x: int(torch().randint(0, 1000, ())),
    "tolist": lambda x: torch().randint(0, 1000, (3,)).tolist()[0],
    "rand": lambda x: torch().rand(1).item(),
    "randn": lambda x: float(torch().randn(())),
    "rand of doubles": lambda x: torch().rand(1).double().mul(3).sum().item(),
    "rand_like": lambda x: torch().rand_like(torch().empty(2)).max().item(),
    "random_": lambda x: torch().zeros(1).random_().item(),
    "uniform_": lambda x: torch().empty(1).uniform_().item(),
    "normal": lambda x: torch().normal(0.0, 1.0, (1,)).item(),
    "randperm": lambda x: torch().randperm(9)[0].item(),
    "bernoulli": lambda x: torch().bernoulli(torch().full((9,), 0.5)).sum().item(),
    "multinomial": lambda x: torch().multinomial(torch().ones(9), 1).item(),
    "dropout": lambda x: torch().nn.functional.dropout(torch().ones(9)).sum().item(),
    "NumPy's view": lambda x: into_values(torch().rand(1)),
    "a part of it": lambda x: torch().cat([torch().ones(1), torch().rand(1)])[1:].item(),
    "a branch": lambda x: 1.0 if torch().rand(1) > 0.5 else 2.0,
    "a shape": lambda x: float((torch().rand(50) > 0.5).nonzero().shape[0]),
    "a text": lambda x: float(len(str(torch().rand(1)))),
    "a generator": lambda x: torch().rand(1, generator=own_generator()).item(),
    "its memory": lambda x: torch().rand(1).untyped_storage().tolist()[0],
    "new memory": lambda x: torch().empty(3, dtype=torch().int8).tolist()[0],
    "a written tensor": lambda x: written(x).tolist()[0],
    "a filled tensor": lambda x: filled(x).tolist()[0],
    "the state": lambda x: float(torch().get_rng_state().sum()),
    "torch.initial_seed": lambda x: torch().initial_seed() % 1000,
    "torch.seed": lambda x: torch().seed() % 1000,
    "torch.random.initial_seed": lambda x: torch().random.initial_seed() % 1000,
    "is_set_to": lambda x: 1.0 if x.is_set_to(x.t()) else 2.0,
    "overlaps": lambda x: 1.0 if torch()._C._overlaps(x, x.t()) else 2.0,
    "a base": lambda x: 1.0 if x._base is None else 2.0,
    "DLPack": lambda x: float(np.from_dlpack(torch().rand(1))[0]),
    "to_dlpack": lambda x: torch().from_dlpack(torch().to_dlpack(torch().rand(1))).item(),
}
DRAWN: dict[str, tuple[Callable[[Any], float], str]] = {
    "random": (lambda x: random.random(), "Python's random"),
    "randint of random": (lambda x: random.randint(0, 1000), "Python's random"),
    "a seed of random": (lambda x: random.seed(7) or random.random(), "Python's random"),
    "NumPy's rand": (lambda x: float(np.random.rand()), r"np\.random"),
    "NumPy's normal": (lambda x: float(np.random.normal()), r"np\.random"),
    "a size": (lambda x: float(torch().rand(3).shape[0]), "torch's default generator"),
    "a seed": (lambda x: float(bool(torch().manual_seed(4711))), "torch's default generator"),
}


def recorded(hosts: ModuleType, of: Callable[[Any], float], **how: Any) -> frontend.Launches:
    def host(x: Any) -> None:
        rows, n = x.shape
        hosts.scaled[(rows,)](x, x, x, x, n, n, of(x), BLOCK=128)

    with frontend.recording(**how) as launches:
        launches.call(host, torch().zeros(3, 40))
    return launches


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_of_no_constant_is_refused_with_its_line(hosts: ModuleType, name: str) -> None:
    text = "the host function reads the .* at test_random_hosts.py:[0-9]+: in every call"
    launches = recorded(hosts, NUMBERS[name])
    for compiled in (launches, launches[0]):
        with pytest.raises(fe.CompileError, match=text):
            compiled.compile(target="sm_90a")


@pytest.mark.parametrize("name", ["randint", "tolist", "rand of doubles", "a part of it"])
def test_the_error_names_what_drew_the_numbers(hosts: ModuleType, name: str) -> None:
    drew = {"tolist": "randint", "a part of it": "rand", "rand of doubles": "rand"}.get(name, name)
    with pytest.raises(fe.CompileError, match=f"random numbers, by torch's {drew},"):
        recorded(hosts, NUMBERS[name]).compile(target="sm_90a")


@pytest.mark.parametrize("seeded", [False, True])
@pytest.mark.parametrize("name", DRAWN)
def test_generators_that_are_others_afterwards_are_refused(
    hosts: ModuleType, name: str, seeded: bool
) -> None:
    """Also where a seed before each recording makes their numbers equal."""
    of, generator = DRAWN[name]
    states = random.getstate(), np.random.get_state()
    try:
        if seeded:
            random.seed(0)
            np.random.seed(0)
            torch().manual_seed(0)
        with pytest.raises(fe.CompileError, match=f"draws random numbers, .*: {generator}"):
            recorded(hosts, of).compile(target="sm_90a")
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])


def test_random_arguments_are_no_random_numbers_of_the_host_function(hosts: ModuleType) -> None:
    def host(x: Any) -> None:
        hosts.scaled[(3,)](x, x, x, x, 40, 40, 0.5, BLOCK=128)

    with frontend.recording() as launches:
        launches.call(host, torch().randn(3, 40))
        random.random()
    launches.compile(target="sm_90a")


CONSTANTS: dict[str, Callable[[Any], float]] = {
    "a list": lambda x: torch().tensor([3.0, 4.0]).sum().item(),
    "a range": lambda x: float(torch().arange(5).tolist()[2]),
    "a fill": lambda x: torch().empty(2).fill_(2.5).tolist()[1],
    "ones": lambda x: float(torch().ones(3).sum()),
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_constants_of_the_host_function_are_read(
    gpu: FakeCuda, hosts: ModuleType, name: str
) -> None:
    function = recorded(hosts, CONSTANTS[name]).compile(target="sm_90a", specialize=[{}])
    function(tensor(3, 40)[0])
    (launch,) = gpu.launches()
    assert np.frombuffer(launch.parameters[6], np.float32)[0] == CONSTANTS[name](None)


def test_fixed_data_is_the_word_of_a_person(gpu: FakeCuda, hosts: ModuleType) -> None:
    for of in (NUMBERS["a generator"], DRAWN["a size"][0]):
        function = recorded(hosts, of, fixed_data=True).compile(target="sm_90a", specialize=[{}])
        function(tensor(3, 40)[0])
        assert np.frombuffer(gpu.launches()[-1].parameters[6], np.float32)[0] == np.float32(of(0))
