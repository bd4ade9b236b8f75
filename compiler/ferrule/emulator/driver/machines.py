"""What the driver asks of a machine that executes kernels: `ferrule.emulator.machine` has it.

A machine is the memory and the processors of all emulated devices of a process. Addresses of its
memory are addresses of the process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

Sizes = tuple[int, int, int]


class Parameter(Protocol):
    """Where a parameter of a kernel lies in the bytes of all."""

    @property
    def offset(self) -> int: ...
    @property
    def size(self) -> int: ...


class Kernel(Protocol):
    """A kernel that can be launched."""

    @property
    def name(self) -> str: ...
    @property
    def parameters(self) -> tuple[Any, ...]: ...
    @property
    def static_shared(self) -> int: ...
    @property
    def local_bytes(self) -> int: ...
    @property
    def registers(self) -> int: ...
    @property
    def max_threads(self) -> int: ...
    @property
    def required_block(self) -> Sizes | None: ...
    @property
    def required_cluster(self) -> Sizes | None: ...

    def launch(
        self,
        grid: Sizes,
        block: Sizes,
        *,
        smem: int,
        cluster: Sizes,
        parameters: bytes,
        stack: int,
        cooperative: bool,
    ) -> None:
        """Run it to its end; raises an error with `kind` and `text` where a thread fails."""


class Loaded(Protocol):
    """A module of PTX, loaded."""

    @property
    def kernels(self) -> Mapping[str, Any]: ...
    @property
    def variables(self) -> Mapping[str, tuple[int, int]]: ...

    def unload(self) -> None: ...


class Memory(Protocol):
    """The memory of a machine."""

    def allocate(self, size: int) -> int: ...
    def free(self, address: int) -> None: ...


class Machine(Protocol):
    """The memory and the processors of the emulated devices."""

    @property
    def memory(self) -> Any: ...

    def load(self, ptx: str) -> Any:
        """Raises an error with `line` where the text is no PTX that can be executed."""


MakeMachine = Callable[[], Machine]
