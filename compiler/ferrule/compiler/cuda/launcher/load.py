"""Loading: one thread finds libcuda, loads an image and looks up its kernels.

If all GPUs of the machine get the same image, the first call loads it.  If they differ, the first
call on a device loads the image for that device.  Either may be during a stream capture.
"""

from __future__ import annotations

from typing import Final

from llvmlite import ir

from ferrule.compiler.cuda.launcher.choice import (
    CAPABILITY,
    CAPABILITY_TYPE,
    COMMON,
    COMMON_TYPE,
    DIFFERENT,
    SERVING,
    SERVING_TYPE,
    image_at,
    ordinal,
)
from ferrule.compiler.cuda.launcher.cold import (
    CODE_SLOT,
    HINT_SLOT,
    attempt,
    call,
    cold,
    during_captures,
    end,
    entry,
    failed,
    put,
    unless,
)
from ferrule.compiler.cuda.launcher.driver import CALLS, Result
from ferrule.compiler.cuda.launcher.entries import OPEN, PROTOTYPES, REGISTER
from ferrule.compiler.cuda.launcher.images import IMAGE
from ferrule.compiler.cuda.launcher.libcuda import (
    FIND,
    FIND_TYPE,
    define_finding,
    each_name,
)
from ferrule.compiler.cuda.launcher.rows import (
    FIND_ROW,
    FIND_ROW_TYPE,
    LAUNCH,
    LAUNCH_HERE,
    chosen_at,
    each_kernel,
    handle_in,
    library_at,
    row_at,
)
from ferrule.compiler.cuda.launcher.state import (
    KERNEL,
    MAX_DEVICES,
    PROGRAM,
    ROW,
    STATE,
    Phase,
    Status,
    call_driver,
    status,
)
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I32, I64, PTR

_WAIT: Final = 50
"""Microseconds between two checks while another thread loads, which takes milliseconds."""

_OPTIONS: Final = ("options", "option_values")
_LOAD: Final = "ferrule_cuda_load"
_FIRST: Final = "ferrule_cuda_first"
_MORE: Final = "ferrule_cuda_more"
_IMAGE: Final = "ferrule_cuda_image"
_IMAGE_TYPE: Final = ir.FunctionType(I32, [PTR, PTR, I64, PTR])


def define_loading(emitter: Emitter) -> None:
    """`OPEN` and its helpers."""
    define_finding(emitter)
    _define_image(emitter)
    _define_more(emitter)
    _define_first(emitter)
    _define_load(emitter)
    _define_open(emitter)


def _define_image(emitter: Emitter) -> None:
    """`i32 ferrule_cuda_image(ptr state, ptr program, i64 image, ptr values)`: load an image and
    look up its kernels, and store both in its row."""
    with cold(emitter, _IMAGE, _IMAGE_TYPE) as (state, program, image, values):
        none, place = emitter.null(), emitter.alloca(PTR, name="library")
        jit = [emitter.load_field(program, PROGRAM, name) for name in _OPTIONS]
        count = emitter.builder.trunc(emitter.load_field(program, PROGRAM, "option_count"), I32)
        options = [*jit, count, none, none, emitter.const_i32(0)]
        _load_image(emitter, state, place, image_at(emitter, program, image), options, values)
        library, row = emitter.load(place, PTR), row_at(emitter, state, image)
        names = emitter.load_field(program, PROGRAM, "names")
        kernels = emitter.load_field(program, PROGRAM, "count")
        with each_name(emitter, names, kernels) as (number, name):
            asked = [handle_in(emitter, row, number), library, name]
            result = call_driver(emitter, state, "cuLibraryGetKernel", asked)
            with unless(emitter, result):
                failed(emitter, state, result, name, values)
                # Nothing knows the library yet, so nothing else would unload it.
                call_driver(emitter, state, "cuLibraryUnload", [library])
                emitter.ret(status(Status.NO_KERNEL))
        at = emitter.field_ptr(row, ROW, "library")
        # The library comes last: who sees it sees the handles of its kernels.
        emitter.builder.atomic_rmw("xchg", at, library, "release")
        emitter.ret(status(Status.DONE))


def _load_image(
    emitter: Emitter,
    state: ir.Value,
    library: ir.Value,
    image: ir.Value,
    options: list[ir.Value],
    values: ir.Value,
) -> None:
    """Load the image of a row; end the function on failure, with the version if PTX is too new."""
    data, name = emitter.load_field(image, IMAGE, "data"), "cuLibraryLoadData"
    result = call_driver(emitter, state, name, [library, data, *options])
    with unless(emitter, result):
        ended = failed(emitter, state, result, emitter.cstring(name), values)
        newer = emitter.load_field(image, IMAGE, "newer")
        is_newer = emitter.icmp("eq", result, emitter.const_i32(Result.UNSUPPORTED_PTX_VERSION))
        is_known = emitter.not_(emitter.is_null(newer))
        with emitter.if_then(emitter.binary("and", is_newer, is_known)):
            put(emitter, values, HINT_SLOT, newer)
        emitter.ret(ended)


def _define_load(emitter: Emitter) -> None:
    """`i32 ferrule_cuda_load(…)`, as `ferrule_cuda_open`, for the one thread that loads first."""
    with cold(emitter, _LOAD, PROTOTYPES[OPEN]) as arguments:
        state, _, _, values = arguments
        found = call(emitter, FIND, FIND_TYPE, state, values)
        with unless(emitter, found):
            emitter.ret(found)
        attempt(emitter, state, values, "cuInit", emitter.const_i32(0))
        with during_captures(emitter, state):
            loaded = call(emitter, _FIRST, PROTOTYPES[OPEN], *arguments)
        emitter.ret(loaded)


def _define_first(emitter: Emitter) -> None:
    """`i32 ferrule_cuda_first(…)`: the image that all GPUs get, or that of this device."""
    with cold(emitter, _FIRST, PROTOTYPES[OPEN]) as arguments:
        state, program, device, values = arguments
        emitter.store_field(state, STATE, "program", program)
        place = emitter.alloca(I64, name="common")
        common = call(emitter, COMMON, COMMON_TYPE, state, program, place, values)
        with unless(emitter, common):
            emitter.ret(common)
        image = emitter.load(place, I64)
        with emitter.if_then(emitter.icmp("eq", image, emitter.const_i64(DIFFERENT))):
            at = emitter.field_ptr(state, STATE, LAUNCH)
            emitter.store_field(state, STATE, "launch", emitter.load(at, PTR))
            emitter.store(emitter.symbol(LAUNCH_HERE, CALLS[LAUNCH]), at)
            emitter.store_field(state, STATE, "loaded", emitter.const_i32(Phase.MIXED))
            emitter.ret(call(emitter, _MORE, PROTOTYPES[OPEN], *arguments))
        _load_common(emitter, state, program, device, image, values)
        emitter.store_field(state, STATE, "loaded", emitter.const_i32(Phase.READY))
        emitter.ret(status(Status.DONE))


def _load_common(
    emitter: Emitter,
    state: ir.Value,
    program: ir.Value,
    device: ir.Value,
    image: ir.Value,
    values: ir.Value,
) -> None:
    """Load the image that all GPUs get; end the function on failure."""
    _refuse_none(emitter, state, program, device, image, values)
    loaded = call(emitter, _IMAGE, _IMAGE_TYPE, state, program, image, values)
    with unless(emitter, loaded):
        emitter.ret(loaded)
    row = row_at(emitter, state, image)
    with each_kernel(emitter, state) as (number, kernel):
        handle = emitter.load(handle_in(emitter, row, number), PTR, name="handle")
        _renew_kernel(emitter, state, kernel, handle)
    with emitter.loop(emitter.const_i32(MAX_DEVICES), name="device") as each:
        _choose(emitter, state, each, image)


def _define_more(emitter: Emitter) -> None:
    """`i32 ferrule_cuda_more(…)`, as `ferrule_cuda_open`, for the one thread that loads the image
    for a device if GPUs differ.

    An image is loaded when a device that gets it is first used.  If the driver loads images for all
    contexts at once, it may refuse one because of another device: then the next image that serves
    this device is tried.
    """
    with cold(emitter, _MORE, PROTOTYPES[OPEN]) as (state, program, device, values):
        wanted = ordinal(emitter, state, device)
        own = call(emitter, CAPABILITY, CAPABILITY_TYPE, state, wanted)
        # For an unknown device, the driver reports the error later.
        with emitter.if_then(emitter.icmp("eq", own, emitter.const_i32(0))):
            emitter.ret(status(Status.DONE))
        place = emitter.alloca(I64, name="image")
        emitter.store(emitter.const_i64(0), place)
        look = emitter.block("look")
        emitter.branch(look)
        emitter.at(look)
        start = emitter.load(place, I64)
        image = call(emitter, SERVING, SERVING_TYPE, program, own, start)
        _refuse_none(emitter, state, program, wanted, image, values)
        library = library_at(emitter, row_at(emitter, state, image))
        with emitter.if_then(emitter.is_null(library)):
            loaded = call(emitter, _IMAGE, _IMAGE_TYPE, state, program, image, values)
            with unless(emitter, loaded):
                behind = emitter.binary("add", image, emitter.const_i64(1))
                emitter.store(behind, place)
                again = _is_for_others(emitter, program, own, behind, loaded, values)
                with emitter.if_then(again):
                    emitter.branch(look)
                emitter.ret(loaded)
            with each_kernel(emitter, state) as (_, kernel):
                _renew_kernel(emitter, state, kernel, kernel)
        _choose(emitter, state, wanted, image)
        emitter.ret(status(Status.DONE))


def _is_for_others(
    emitter: Emitter,
    program: ir.Value,
    own: ir.Value,
    behind: ir.Value,
    loaded: ir.Value,
    values: ir.Value,
) -> ir.Value:
    """Whether a load failed because the image does not suit the device, and there is another one to
    try."""
    code = emitter.load(emitter.index(values, I64, CODE_SLOT), I64)
    other = emitter.icmp("eq", code, emitter.const_i64(Result.NO_BINARY_FOR_GPU))
    refused = emitter.icmp("eq", loaded, status(Status.CALL_FAILED))
    next_one = call(emitter, SERVING, SERVING_TYPE, program, own, behind)
    count = emitter.load_field(program, PROGRAM, "image_count")
    there_is = emitter.icmp("ne", next_one, count)
    return emitter.binary("and", emitter.binary("and", other, refused), there_is)


def _renew_kernel(emitter: Emitter, state: ir.Value, kernel: ir.Value, handle: ir.Value) -> None:
    """Initialise a kernel that was just loaded, without any attributes set."""
    for name in ("allowed", "clustered"):
        bits, size = emitter.field_ptr(kernel, KERNEL, name), emitter.const_i64(MAX_DEVICES // 8)
        emitter.call("memset", [bits, emitter.const_i32(0), size])
    emitter.store_field(kernel, KERNEL, "state", state)
    emitter.store_field(kernel, KERNEL, "handle", handle)


def _choose(emitter: Emitter, state: ir.Value, device: ir.Value, image: ir.Value) -> None:
    """Record the image of a device."""
    # The places are zero at first, which must mean that none is chosen.
    more = emitter.binary("add", emitter.builder.trunc(image, I32), emitter.const_i32(1))
    place = chosen_at(emitter, state, device)
    emitter.builder.atomic_rmw("xchg", place, more, "release")


def _refuse_none(
    emitter: Emitter,
    state: ir.Value,
    program: ir.Value,
    device: ir.Value,
    image: ir.Value,
    values: ir.Value,
) -> None:
    """End the function if no image serves a device."""
    count = emitter.load_field(program, PROGRAM, "image_count")
    with emitter.if_then(emitter.icmp("eq", image, count), likely=False):
        wanted, ten = ordinal(emitter, state, device), emitter.const_i32(10)
        own = call(emitter, CAPABILITY, CAPABILITY_TYPE, state, wanted)
        parts = emitter.builder.udiv(own, ten), emitter.builder.urem(own, ten)
        listed = emitter.load_field(program, PROGRAM, "listed")
        end(emitter, Status.NO_IMAGE, values, wanted, *parts, listed)


def _register_again(emitter: Emitter, state: ir.Value, went_well: ir.Value) -> None:
    """Register the exit handler again so that it runs before the driver's, see `closing`."""
    registered = emitter.load_field(state, STATE, "registered")
    told = emitter.icmp("ne", registered, emitter.const_i32(0))
    with emitter.if_then(emitter.binary("and", went_well, told)):
        call(emitter, REGISTER, PROTOTYPES[REGISTER], state)


def _define_open(emitter: Emitter) -> None:
    """One thread sets the phase to -pid: from UNLOADED, then back on failure or on to READY or
    MIXED; or from MIXED, and back to it."""
    unloaded, mixed = (ir.Constant(I32, int(each)) for each in (Phase.UNLOADED, Phase.MIXED))
    with entry(emitter, OPEN) as arguments:
        state, build = arguments[0], emitter.builder
        phase = emitter.field_ptr(state, STATE, "phase")
        pid = emitter.call("getpid", [], "pid")
        loading = build.neg(pid)
        look, other, wait = map(emitter.block, ("look", "other", "wait"))
        emitter.branch(look)
        emitter.at(look)
        taken = build.cmpxchg(phase, unloaded, loading, "acquire", "acquire")
        before = build.extract_value(taken, 0)
        with emitter.if_then(build.extract_value(taken, 1)):
            emitter.store_field(state, STATE, "pid", pid)
            loaded = call(emitter, _LOAD, PROTOTYPES[OPEN], *arguments)
            went_well = emitter.icmp("eq", loaded, status(Status.DONE))
            _register_again(emitter, state, went_well)
            on = emitter.load_field(state, STATE, "loaded")
            behind = emitter.select(went_well, on, unloaded)
            # If the process began to end meanwhile, the phase stays CLOSED.
            build.cmpxchg(phase, loading, behind, "release", "monotonic")
            emitter.ret(loaded)
        for found, ended in ((Phase.READY, Status.DONE), (Phase.CLOSED, Status.CLOSED)):
            with emitter.if_then(emitter.icmp("eq", before, emitter.const_i32(found))):
                emitter.ret(status(ended))
        with emitter.if_then(emitter.icmp("eq", before, mixed)):
            here = ordinal(emitter, state, arguments[2])
            row = call(emitter, FIND_ROW, FIND_ROW_TYPE, state, here)
            with emitter.if_then(emitter.not_(emitter.is_null(row))):
                emitter.ret(status(Status.DONE))
            taken = build.cmpxchg(phase, mixed, loading, "acquire", "acquire")
            with emitter.if_then(build.extract_value(taken, 1)):
                with during_captures(emitter, state):
                    loaded = call(emitter, _MORE, PROTOTYPES[OPEN], *arguments)
                build.cmpxchg(phase, loading, mixed, "release", "monotonic")
                emitter.ret(loaded)
            emitter.branch(look)
        emitter.branch(other)
        emitter.at(other)
        # In a child of a fork, the load of its parent never ends.
        with emitter.if_then(emitter.icmp("ne", before, loading), likely=False):
            emitter.ret(status(Status.FORKED))
        emitter.branch(wait)
        emitter.at(wait)
        emitter.call("usleep", [emitter.const_i32(_WAIT)])
        emitter.branch(look)
