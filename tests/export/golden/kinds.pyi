# Made by …
from collections.abc import Callable, Sequence
from typing import Any

def f(a: Any, b: Any, k: int = 3, *, s: str, u: int, p: Any, c: int, yes: bool, d: Any, dev: Any, n: None, h: float, flag: bool, double: int, t: tuple[int, float], größe: int, result: float) -> int:
    """f(a: Tensor([n0, 8], float32), b: Optional[Tensor([n0], int8)], k: int32 = 3, s: str, u: uint64, p: Pointer(float32), c: Literal[3], yes: Literal[True], d: dtype, dev: Device, n: None, h: float16, flag: bool, double: int8, t: Tuple[int32, float32], größe: int16, result: float64) -> int32

    Says */ and /* and more.

    Backslash \\ and '\"\"\"'.
    """

def g() -> str:
    """g() -> str"""

def double(g: int) -> float:
    """double(g: uint8) -> float64

    A word of C.
    """

def flags(a: bool) -> bool:
    """flags(a: bool) -> bool"""

def sizes(x: Sequence[int], o: int | None) -> Any:
    """sizes(x: Shape([n0, 2]), o: Optional[int32]) -> Tensor([n0], int8)"""
