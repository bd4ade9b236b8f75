"""`jax_call`: a compiled function as an operation of JAX.

It can stand in what JAX traces: `jit`, `vmap`, `shard_map`, `custom_vjp`, `export`. XLA calls the
function's code without Python.

The way: `plans` says what a call takes and gives; `handler` generates the function that XLA calls,
with the parts in `helpers` and the structs in `frames`; `registration` gives it to XLA; `calls`
makes the operation while JAX traces, with `sizes` for outputs and comparisons, and `gradients`;
`exporting` puts a handler into a library.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

from ferrule.compiler.operators.jax.calls import JaxCall
from ferrule.runtime import Function


def jax_call(
    function: Function,
    out: Any = None,
    *,
    name: str | None = None,
    backward: Function | Callable[..., Any] | None = None,
    save: Sequence[str] = (),
    vmap_method: str | None = "sequential",
    has_side_effect: bool = False,
) -> Callable[..., Any]:
    """Make an operation of JAX of a compiled function: a callable for arrays, traced or not.

    A call gives what a call of the function gives, without the outputs: arrays where the signature
    has tensors, and numbers, which are static: Python's or NumPy's, no traced ones. XLA's stream is
    given by itself. The outputs are new arrays: the function's results, then what it writes, in the
    order of the parameters; one array, or a tuple.

    `out` says which outputs the call makes, and their sizes:

    * None: all of them; the sizes follow from the signature.
    * `jax.ShapeDtypeStruct`, or a list: the first outputs, in order.
    * A list of names, `["y"]`, or a dict by name, `{"y": jax.ShapeDtypeStruct(...)}`, in which None
      is the size of the signature. The names of results are `result`, or `result0` ….
    * A function of the call's arguments that returns one of these, for all outputs.

    What the function writes and `out` leaves out is given as an array, in whose memory it writes:
    XLA copies the array first if it is used again. An output that the call makes has no elements
    before: a function that adds to it needs the array.

    `backward` gives the gradients of a call that makes all its outputs. It is either a compiled
    function, whose parameters are, by their names, gradients of outputs (`grad`, or `grad_y` of the
    output `y`), values in `save`, and the gradients of arguments that it writes (`grad_x`); or a
    Python function of the values in `save`, then the gradients of the outputs, that returns a
    gradient or None for each array of a call. Without it JAX says that there are none. `save` names
    arguments and outputs.

    `name` is the handler's name in XLA, for programs that are exported; `vmap_method` and
    `has_side_effect` are those of `jax.ffi.ffi_call`. A handler stays until the process ends.

    A function without a result that writes nothing needs `has_side_effect=True`, and gives None.

    Raises TypeError or ValueError for what cannot be in a program of JAX, and ImportError without
    JAX. A call raises the errors of the function while it is traced, as far as shapes, dtypes and
    numbers tell; what the call alone tells, and what the function raises, is JAX's error with its
    message.
    """
    if not isinstance(function, Function):
        raise TypeError(
            f"jax_call takes a compiled function, but got {function!r}; compile it first: "
            f"fe.compile(f, ...)"
        )
    load_jax("fe.jax_call")
    return JaxCall.of(
        function,
        out,
        name,
        vmap_method,
        has_side_effect=has_side_effect,
        backward=backward,
        save=save,
    )


def load_jax(what: str) -> Any:
    """jax, imported.  Raises an ImportError that says which function of ours needs it."""
    try:
        importlib.import_module("jax.ffi")
        return importlib.import_module("jax")
    except ImportError as error:
        raise ImportError(
            f"{what} needs jax with jax.ffi, which cannot be imported here ({error}): "
            f"pip install 'ferrule[jax]'",
            name="jax",
        ) from error
