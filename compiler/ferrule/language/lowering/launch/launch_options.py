"""The options of a launch besides grid, block, shared memory and stream, under CuTe's names.

They apply to GPUs.  On the CPU, where launches run one after the other, all are ignored except
`cooperative`: blocks that wait for each other would wait forever.
"""

from __future__ import annotations

import ast
from math import prod
from typing import Any, Final, NoReturn

from ferrule.compiler.cuda.limits import BLOCK_LIMITS, MAX_THREADS
from ferrule.language.ir import ops
from ferrule.language.ir.values import LaunchOptions
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.launch.launch_sizes import Sizes, check_cluster, three_sizes
from ferrule.language.lowering.numbers import coercion
from ferrule.language.values import Handle
from ferrule.specs import Int32, params

ASKED: Final = (
    "cluster",
    "cooperative",
    "use_pdl",
    "priority",
    "max_number_threads",
    "min_blocks_per_mp",
    "preferred_smem_carveout",
    "launch_completion_event",
    "launch_completion_event_flags",
    "programmatic_event",
    "programmatic_event_flags",
    "programmatic_event_trigger_at_block_start",
)
_FLAGS: Final = (0, 2**31 - 1)
_BLOCKS: Final = (0, 32)
"""The number of blocks that fit on an SM (CUDA C++ Programming Guide, technical specifications)."""


def launch_options(low: Lowering, given: dict[str, Any], node: ast.Call) -> LaunchOptions:
    """The compile-time options.  A CompileError for one that is not constant, or out of range."""
    carveout = given.get("preferred_smem_carveout")
    cooperative = _flag(low, "cooperative", given, node)
    if cooperative and low.state.target == "cpu":
        low.fail(
            node,
            "a cooperative launch runs all blocks at the same time, which the target cpu does not",
            expected="a launch whose blocks do not wait for each other",
            hint='compile for a GPU, options="--target cuda"',
        )
    return LaunchOptions(
        cooperative=cooperative,
        programmatic=_flag(low, "use_pdl", given, node),
        carveout=None
        if carveout is None
        else _number(low, "preferred_smem_carveout", carveout, (0, 100), node),
        completion_flags=_said(low, "launch_completion_event_flags", given, _FLAGS, node),
        programmatic_flags=_said(low, "programmatic_event_flags", given, _FLAGS, node),
        at_block_start=_flag(low, "programmatic_event_trigger_at_block_start", given, node),
        max_threads=_max_threads(low, given.get("max_number_threads"), node),
        min_blocks=_said(low, "min_blocks_per_mp", given, _BLOCKS, node),
    )


def most_threads(options: LaunchOptions) -> int:
    """The largest number of threads in a block."""
    return prod(options.max_threads) or MAX_THREADS


def asked_values(
    low: Lowering, given: dict[str, Any], grid: Sizes, kernel: str, node: ast.Call
) -> dict[str, Any]:
    """The fields of a Launch for options that may be run-time values."""
    asked: dict[str, Any] = {
        "completion_event": _event(low, "launch_completion_event", given, node),
        "programmatic_event": _event(low, "programmatic_event", given, node),
    }
    if given.get("cluster") is not None:
        cluster = three_sizes(low, "cluster", given["cluster"], kernel, node)
        check_cluster(low, cluster, grid, kernel, node)
        asked["cluster"] = tuple(size.value for size in cluster)
    if given.get("priority") is not None:
        priority = coercion.as_number(low, given["priority"], node, Int32)
        if not priority.dtype.is_integer:
            _wrong(low, "priority", given["priority"], "an integer, the lower the sooner", node)
        asked["priority"] = coercion.convert(low, priority, Int32).value
    return asked


def _flag(low: Lowering, name: str, given: dict[str, Any], node: ast.Call) -> bool:
    value = coercion.plain(given.get(name))
    if value is None or value in (0, 1) and isinstance(value, int):
        return bool(value)
    _wrong(low, name, value, "True or False, known while compiling", node)


def _said(
    low: Lowering, name: str, given: dict[str, Any], limits: tuple[int, int], node: ast.Call
) -> int:
    """A number with the default 0."""
    value = given.get(name)
    return 0 if value is None else _number(low, name, value, limits, node)


def _number(low: Lowering, name: str, value: Any, limits: tuple[int, int], node: ast.Call) -> int:
    value, (least, most) = coercion.plain(value), limits
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
        return value
    _wrong(low, name, value, f"a number from {least} to {most}, known while compiling", node)


def _max_threads(low: Lowering, value: Any, node: ast.Call) -> tuple[int, int, int]:
    """Three numbers, padded with 1; all 0 if unspecified."""
    if value is None or (isinstance(value, (tuple, list)) and not any(value)):
        return (0, 0, 0)
    given = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    name = "max_number_threads"
    if len(given) > 3:
        _wrong(low, name, value, "1 to 3 numbers", node)
    padded = (*given, *(1,) * (3 - len(given)))
    x, y, z = (
        _number(low, name, each, (1, most), node)
        for each, most in zip(padded, BLOCK_LIMITS, strict=True)
    )
    if x * y * z > MAX_THREADS:
        _wrong(low, name, value, f"at most {MAX_THREADS} threads", node)
    return x, y, z


def _event(low: Lowering, name: str, given: dict[str, Any], node: ast.Call) -> ops.Value | None:
    """The handle of an event, a CUevent."""
    value = given.get(name)
    if value is None:
        return None
    if isinstance(value, Handle) and isinstance(value.param, params.Pointer):
        return value.leaves[0]
    _wrong(low, name, value, "a parameter that is a pointer without a dtype, a CUevent", node)


def _wrong(low: Lowering, name: str, value: Any, expected: str, node: ast.Call) -> NoReturn:
    low.fail(node, f"launch: {name} is {describe(value)}", expected=expected)
