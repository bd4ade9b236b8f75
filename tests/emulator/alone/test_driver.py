"""The driver's functions, each by ctypes: devices, contexts, memory, code, launches."""

from __future__ import annotations

import ctypes
import struct
import threading
from typing import Any

import pytest
from emulated_cuda import KERNELS

from ferrule.emulator.driver.library.names import FUNCTIONS
from ferrule.emulator.driver.results import Result

INT, P, U = ctypes.c_int, ctypes.c_void_p, ctypes.c_uint
Z = ctypes.c_size_t


def word(value: int) -> Any:
    return ctypes.c_uint64(value)


# ---- the library and its devices ----


def test_versions_and_devices(emulated: Any) -> None:
    assert emulated.number("cuDriverGetVersion") == 13000
    assert emulated.number("cuDeviceGetCount") == 2
    assert emulated.number("cuDeviceGet", 1) == 1
    name = ctypes.create_string_buffer(64)
    emulated.cuDeviceGetName(name, 64, 0)
    assert name.value == b"Emulated H100"
    assert emulated.made("cuDeviceTotalMem_v2", 0) == 80 << 30
    ids = [ctypes.create_string_buffer(16) for _ in range(2)]
    for i, each in enumerate(ids):
        emulated.cuDeviceGetUuid_v2(each, i)
    assert ids[0].raw != ids[1].raw


def test_attributes_are_those_of_the_architecture(emulated: Any) -> None:
    wanted = {1: 1024, 5: 0x7FFFFFFF, 8: 49152, 10: 32, 16: 132, 75: 9, 76: 0, 81: 228 << 10}
    wanted |= {97: 227 << 10, 106: 32, 120: 1, 39: 2048, 12: 65536}
    for attribute, value in wanted.items():
        assert emulated.number("cuDeviceGetAttribute", attribute, 0) == value
    for attribute in range(1, 148):
        emulated.number("cuDeviceGetAttribute", attribute, 1)
    assert emulated.result("cuDeviceGetAttribute", ctypes.byref(INT()), 999, 0) == 1
    assert emulated.result("cuDeviceGetAttribute", ctypes.byref(INT()), 1, 2) == 101


def test_errors_have_names_and_words(emulated: Any) -> None:
    place = ctypes.c_char_p()
    for result in Result:
        emulated.cuGetErrorName(int(result), ctypes.byref(place))
        assert place.value and place.value.startswith(b"CUDA_")
        assert emulated.text(int(result))
    assert emulated.result("cuGetErrorName", 12345, ctypes.byref(place)) == 1
    assert place.value is None


def test_a_refused_call_says_why(cuda: Any) -> None:
    assert cuda.result("cuMemAlloc_v2", ctypes.byref(P()), Z(0)) == 1
    assert cuda.text(1) == "invalid argument (cuMemAlloc_v2: no memory has 0 bytes)"
    assert cuda.result("cuMemAlloc_v2", None, Z(8)) == 1
    assert cuda.text(1) == "invalid argument (cuMemAlloc_v2: argument 1 is null)"
    assert cuda.result("cuArrayCreate_v2", None, None) == 801
    said = "operation not supported (cuArrayCreate_v2: the emulated GPU has no cuArrayCreate_v2)"
    assert cuda.text(801) == said


def test_nothing_goes_before_init() -> None:
    import ferrule as fe

    with fe.emulated_gpu("sm_80"):
        library = ctypes.CDLL("libcuda.so.1")
        assert library.cuDeviceGetCount(ctypes.byref(INT())) == 3
        assert library.cuInit(1) == 1
        assert library.cuInit(0) == 0
        assert library.cuDeviceGetCount(ctypes.byref(INT())) == 0
    assert library.cuInit(0) == 4
    assert library.cuDeviceGetCount(ctypes.byref(INT())) == 4


def test_every_function_of_cuda_h_is_there(emulated: Any) -> None:
    for forms in FUNCTIONS.values():
        for form in forms:
            assert getattr(emulated.library, form.symbol)
            if form.per_thread:
                assert getattr(emulated.library, form.per_thread)


@pytest.mark.parametrize(
    ("name", "version", "symbol"),
    [
        ("cuMemAlloc", 12000, "cuMemAlloc_v2"),
        ("cuMemAlloc", 3020, "cuMemAlloc_v2"),
        ("cuMemAlloc", 2000, "cuMemAlloc"),
        ("cuCtxCreate", 12050, "cuCtxCreate_v4"),
        ("cuCtxCreate", 12000, "cuCtxCreate_v3"),
        ("cuLaunchKernelEx", 13000, "cuLaunchKernelEx"),
        ("cuGetProcAddress", 12000, "cuGetProcAddress_v2"),
    ],
)
def test_functions_are_found_by_version(
    emulated: Any, name: str, version: int, symbol: str
) -> None:
    place, status = ctypes.c_uint64(), INT()
    emulated.cuGetProcAddress_v2(
        name.encode(), ctypes.byref(place), version, word(0), ctypes.byref(status)
    )
    wanted = ctypes.cast(getattr(emulated.library, symbol), P).value
    assert (place.value, status.value) == (wanted, 0)


def test_functions_that_are_not_found(emulated: Any) -> None:
    place, status = ctypes.c_uint64(), INT()
    for name, version, how in ((b"cuNothing", 12000, 1), (b"cuLaunchKernelEx", 11000, 2)):
        arguments = ctypes.byref(place), version, word(0), ctypes.byref(status)
        assert emulated.result("cuGetProcAddress_v2", name, *arguments) == 500
        assert (place.value, status.value) == (0, how)


# ---- contexts ----


def test_primary_contexts_are_counted(emulated: Any) -> None:
    first = emulated.made("cuDevicePrimaryCtxRetain", 0)
    assert emulated.made("cuDevicePrimaryCtxRetain", 0) == first
    emulated.cuDevicePrimaryCtxRelease_v2(0)
    flags, active = U(), INT()
    emulated.cuDevicePrimaryCtxGetState(0, ctypes.byref(flags), ctypes.byref(active))
    assert active.value == 1
    emulated.cuDevicePrimaryCtxRelease_v2(0)
    emulated.cuDevicePrimaryCtxGetState(0, ctypes.byref(flags), ctypes.byref(active))
    assert active.value == 0
    assert emulated.result("cuDevicePrimaryCtxRelease_v2", 0) == 201
    assert emulated.result("cuCtxPushCurrent_v2", word(first)) == 709
    assert emulated.made("cuDevicePrimaryCtxRetain", 0) != first


def test_each_thread_has_a_stack(emulated: Any) -> None:
    contexts = [emulated.handle("cuDevicePrimaryCtxRetain", i) for i in range(2)]
    for each in contexts:
        emulated.cuCtxPushCurrent_v2(each)
    assert emulated.number("cuCtxGetDevice") == 1
    seen: list[Any] = []

    def other() -> None:
        place = P(1)
        emulated.cuCtxGetCurrent(ctypes.byref(place))
        seen.append(place.value)
        emulated.cuCtxSetCurrent(contexts[0])
        seen.append(emulated.number("cuCtxGetDevice"))

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert seen == [None, 0]
    assert emulated.made("cuCtxPopCurrent_v2") == contexts[1].value
    assert emulated.number("cuCtxGetDevice") == 0
    emulated.cuCtxPopCurrent_v2(None)
    assert emulated.result("cuCtxPopCurrent_v2", None) == 201
    assert emulated.result("cuCtxGetDevice", ctypes.byref(INT())) == 201
    assert emulated.text(201).endswith("(cuCtxGetDevice: no context is current on this thread)")


def test_contexts_of_programs(emulated: Any) -> None:
    made = emulated.handle("cuCtxCreate_v2", 0, 1)
    assert emulated.number("cuCtxGetDevice") == 1
    address = emulated.allocate(64)
    emulated.cuCtxDestroy_v2(made)
    assert emulated.result("cuCtxDestroy_v2", made) == 709
    assert emulated.machine.memory.held == {}, address
    assert emulated.result("cuCtxGetDevice", ctypes.byref(INT())) == 201


def test_what_is_in_a_context_goes_with_it(emulated: Any) -> None:
    context = emulated.handle("cuDevicePrimaryCtxRetain", 0)
    emulated.cuCtxPushCurrent_v2(context)
    stream = emulated.handle("cuStreamCreate", 0)
    emulated.cuDevicePrimaryCtxReset_v2(0)
    assert emulated.result("cuCtxSynchronize") == 709
    other = emulated.handle("cuDevicePrimaryCtxRetain", 0)
    emulated.cuCtxSetCurrent(other)
    assert emulated.result("cuStreamSynchronize", stream) == 400
    assert emulated.text(400).endswith("was destroyed)")


def test_limits_caches_and_flags(cuda: Any) -> None:
    cuda.cuCtxSetLimit(1, Z(1 << 22))
    assert cuda.made("cuCtxGetLimit", 1) == 1 << 22
    assert cuda.result("cuCtxSetLimit", 99, Z(1)) == 215
    cuda.cuCtxSetCacheConfig(2)
    assert cuda.number("cuCtxGetCacheConfig") == 2
    assert cuda.result("cuCtxSetCacheConfig", 9) == 1
    least, greatest = INT(), INT()
    cuda.cuCtxGetStreamPriorityRange(ctypes.byref(least), ctypes.byref(greatest))
    assert (least.value, greatest.value) == (0, -5)


def test_peers(emulated: Any) -> None:
    contexts = [emulated.handle("cuDevicePrimaryCtxRetain", i) for i in range(2)]
    emulated.cuCtxPushCurrent_v2(contexts[0])
    assert emulated.number("cuDeviceCanAccessPeer", 0, 1) == 1
    assert emulated.number("cuDeviceCanAccessPeer", 0, 0) == 0
    emulated.cuCtxEnablePeerAccess(contexts[1], 0)
    assert emulated.result("cuCtxEnablePeerAccess", contexts[1], 0) == 704
    emulated.cuCtxDisablePeerAccess(contexts[1])
    assert emulated.result("cuCtxDisablePeerAccess", contexts[1]) == 705


# ---- memory ----


def test_memory_is_given_out_and_taken_back(cuda: Any) -> None:
    address = cuda.allocate(1000)
    assert address.value % 256 == 0
    assert cuda.read(address.value, 4) == b"\xcd" * 4
    cuda.cuMemFree_v2(address)
    assert cuda.result("cuMemFree_v2", address) == 1
    assert "it was freed before, or never given out" in cuda.text(1)
    cuda.cuMemFree_v2(word(0))
    free, total = Z(), Z()
    cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
    assert free.value == total.value == 80 << 30
    assert cuda.result("cuMemAlloc_v2", ctypes.byref(P()), Z(81 << 30)) == 2


def test_copies_stay_inside(cuda: Any) -> None:
    address = cuda.allocate(100).value
    cuda.write(address + 40, b"x" * 60)
    assert cuda.read(address + 36, 8) == b"\xcd" * 4 + b"x" * 4
    assert cuda.result("cuMemcpyHtoD_v2", word(address + 40), b"x" * 61, Z(61)) == 1
    assert "ends 1 bytes behind its allocation of 100 bytes" in cuda.text(1)
    assert cuda.result("cuMemcpyDtoH_v2", ctypes.create_string_buffer(4), word(8), Z(4)) == 1
    assert "is in no memory of the GPU" in cuda.text(1)


def test_copies_of_every_direction(cuda: Any) -> None:
    one, other = (cuda.allocate(64) for _ in range(2))
    stream = cuda.handle("cuStreamCreate", 1)
    cuda.cuMemcpyHtoDAsync_v2(one, bytes(range(64)), Z(64), stream)
    cuda.cuMemcpyDtoDAsync_v2(other, one, Z(64), stream)
    to = ctypes.create_string_buffer(64)
    cuda.cuMemcpyDtoHAsync_v2(to, other, Z(64), stream)
    assert to.raw == bytes(range(64))
    cuda.cuMemcpy(one, word(other.value + 32), Z(32))
    assert cuda.read(one.value, 32) == bytes(range(32, 64))
    cuda.cuMemcpy(word(ctypes.addressof(to)), one, Z(16))
    assert to.raw[:16] == bytes(range(32, 48))
    second = cuda.handle("cuDevicePrimaryCtxRetain", 1)
    cuda.cuMemcpyPeer(other, second, one, second, Z(8))
    assert cuda.read(other.value, 8) == bytes(range(32, 40))


def test_rectangles_and_boxes(cuda: Any) -> None:
    pitch = ctypes.c_uint64()
    place = ctypes.c_uint64()
    arguments = ctypes.byref(pitch), Z(6), Z(3), 4
    cuda.cuMemAllocPitch_v2(ctypes.byref(place), *arguments)
    assert pitch.value == 512
    data = ctypes.create_string_buffer(bytes(range(18)), 18)
    source = struct.pack("<QQI4xQQQQ", 0, 0, 1, ctypes.addressof(data), 0, 0, 6)
    to = struct.pack("<QQI4xQQQQ", 0, 0, 2, 0, place.value, 0, pitch.value)
    cuda.cuMemcpy2D_v2(source + to + struct.pack("<QQ", 6, 3))
    assert cuda.read(place.value + 512, 6) == bytes(range(6, 12))
    back = ctypes.create_string_buffer(6)
    ends = [
        struct.pack("<QQQQI4xQQQQQQ", 1, 1, 0, 0, 2, 0, place.value, 0, 0, 512, 3),
        struct.pack("<QQQQI4xQQQQQQ", 0, 0, 0, 0, 1, ctypes.addressof(back), 0, 0, 0, 3, 2),
    ]
    cuda.cuMemcpy3D_v2(b"".join(ends) + struct.pack("<QQQ", 3, 2, 1))
    assert back.raw == bytes((7, 8, 9, 13, 14, 15))
    far = struct.pack("<QQI4xQQQQ", 0, 0, 2, 0, place.value, 0, 512)
    assert cuda.result("cuMemcpy2D_v2", source + far + struct.pack("<QQ", 6, 4)) == 1
    image = struct.pack("<QQI4xQQQQ", 0, 0, 3, 0, 0, 1, 0)
    assert cuda.result("cuMemcpy2D_v2", source + image + struct.pack("<QQ", 6, 3)) == 801


def test_filling(cuda: Any) -> None:
    address = cuda.allocate(64)
    cuda.cuMemsetD8_v2(address, ctypes.c_ubyte(7), Z(64))
    cuda.cuMemsetD16_v2(address, ctypes.c_ushort(0x1234), Z(2))
    cuda.cuMemsetD32Async(word(address.value + 8), U(0xDEADBEEF), Z(1), None)
    assert cuda.read(address.value, 12) == bytes.fromhex("3412 3412 07070707 efbeadde")
    cuda.cuMemsetD2D8_v2(word(address.value + 16), Z(16), ctypes.c_ubyte(1), Z(2), Z(3))
    assert cuda.read(address.value + 16, 18) == b"\1\1" + b"\7" * 14 + b"\1\1"
    assert cuda.result("cuMemsetD32_v2", word(address.value + 1), U(0), Z(1)) == 1
    assert cuda.result("cuMemsetD8_v2", address, ctypes.c_ubyte(0), Z(65)) == 1


def test_the_machine_is_told_of_writes(cuda: Any) -> None:
    address = cuda.allocate(64).value
    cuda.write(address, b"1234")
    cuda.cuMemsetD8_v2(word(address + 8), ctypes.c_ubyte(1), Z(3))
    assert cuda.machine.memory.writes == [(address, 4), (address + 8, 3)]


def test_memory_of_the_host_and_managed(cuda: Any) -> None:
    host = cuda.handle("cuMemHostAlloc", Z(32), 0)
    assert cuda.made("cuMemHostGetDevicePointer_v2", host, 0) == host.value
    ctypes.memmove(host.value, b"abcd", 4)
    assert cuda.read(host.value, 4) == b"abcd"
    managed = cuda.handle("cuMemAllocManaged", Z(32), 1)
    kinds = {each.value: cuda.number("cuPointerGetAttribute", 2, each) for each in (host, managed)}
    assert kinds == {host.value: 1, managed.value: 2}
    assert cuda.result("cuMemFree_v2", host) == 1
    cuda.cuMemFreeHost(host)
    cuda.cuMemFree_v2(managed)
    assert not cuda.machine.memory.held


def test_what_an_address_is(cuda: Any) -> None:
    address = cuda.allocate(100)
    inside = word(address.value + 60)
    assert cuda.number("cuPointerGetAttribute", 9, inside) == 0
    assert cuda.made("cuPointerGetAttribute", 11, inside) == address.value
    assert cuda.made("cuPointerGetAttribute", 12, inside) == 100
    assert cuda.made("cuPointerGetAttribute", 3, inside) == inside.value
    base, size = ctypes.c_uint64(), Z()
    cuda.cuMemGetAddressRange_v2(ctypes.byref(base), ctypes.byref(size), inside)
    assert (base.value, size.value) == (address.value, 100)
    assert cuda.result("cuPointerGetAttribute", ctypes.byref(INT()), 2, word(4096)) == 1
    kind, ordinal = INT(7), INT(7)
    attributes = (INT * 2)(2, 9)
    places = (P * 2)(ctypes.addressof(kind), ctypes.addressof(ordinal))
    cuda.cuPointerGetAttributes(2, attributes, places, word(4096))
    assert (kind.value, ordinal.value) == (0, -2)
    cuda.cuPointerGetAttributes(2, attributes, places, inside)
    assert (kind.value, ordinal.value) == (2, 0)


def test_pools(cuda: Any) -> None:
    pool = cuda.handle("cuDeviceGetDefaultMemPool", 0)
    assert cuda.made("cuDeviceGetMemPool", 0) == pool.value
    stream = cuda.handle("cuStreamCreate", 1)
    address = cuda.handle("cuMemAllocAsync", Z(100), stream)
    used = ctypes.c_uint64()
    cuda.cuMemPoolGetAttribute(pool, 7, ctypes.byref(used))
    assert used.value == 100
    cuda.cuMemFreeAsync(address, stream)
    cuda.cuMemPoolGetAttribute(pool, 7, ctypes.byref(used))
    assert used.value == 0
    cuda.cuMemPoolGetAttribute(pool, 8, ctypes.byref(used))
    assert used.value == 100
    own = cuda.handle("cuMemPoolCreate", struct.pack("<iiii", 1, 0, 1, 0) + bytes(72))
    assert cuda.handle("cuMemAllocFromPoolAsync", Z(8), own, stream)
    cuda.cuDeviceSetMemPool(0, own)
    assert cuda.made("cuDeviceGetMemPool", 0) == own.value
    cuda.cuMemPoolDestroy(own)
    assert cuda.made("cuDeviceGetMemPool", 0) == pool.value
    assert cuda.result("cuMemPoolDestroy", pool) == 800


# ---- code ----


def test_modules_and_their_functions(cuda: Any, module: Any) -> None:
    function = cuda.handle("cuModuleGetFunction", module, b"scale")
    assert cuda.number("cuFuncGetAttribute", 0, function) == 1024
    name = ctypes.c_char_p()
    cuda.cuFuncGetName(ctypes.byref(name), function)
    assert name.value == b"scale"
    offset, size = Z(), Z()
    arguments = ctypes.byref(offset), ctypes.byref(size)
    cuda.cuFuncGetParamInfo(function, Z(2), *arguments)
    assert (offset.value, size.value) == (12, 4)
    assert cuda.result("cuFuncGetParamInfo", function, Z(3), *arguments) == 1
    assert cuda.result("cuModuleGetFunction", ctypes.byref(P()), module, b"none") == 500
    assert "there are scale, nothing, fails" in cuda.text(500)
    cuda.cuModuleUnload(module)
    assert cuda.result("cuFuncGetAttribute", ctypes.byref(INT()), 0, function) == 400
    assert cuda.result("cuModuleUnload", module) == 400


def test_variables(cuda: Any, module: Any) -> None:
    place, size = ctypes.c_uint64(), Z()
    arguments = ctypes.byref(place), ctypes.byref(size)
    cuda.cuModuleGetGlobal_v2(*arguments, module, b"table")
    assert size.value == 16
    cuda.write(place.value, b"0123456789abcdef")
    assert cuda.read(place.value + 8, 8) == b"89abcdef"
    assert cuda.result("cuModuleGetGlobal_v2", *arguments, module, b"other") == 500
    cuda.cuModuleUnload(module)
    assert cuda.result("cuMemcpyHtoD_v2", place, b"x", Z(1)) == 1


def test_libraries_serve_every_device(emulated: Any) -> None:
    none = (None, None, 0, None, None, 0)
    library = emulated.handle("cuLibraryLoadData", KERNELS.encode(), *none)
    kernel = emulated.handle("cuLibraryGetKernel", library, b"nothing")
    assert emulated.made("cuLibraryGetKernel", library, b"nothing") == kernel.value
    for device in range(2):
        context = emulated.handle("cuDevicePrimaryCtxRetain", device)
        emulated.cuCtxSetCurrent(context)
        assert emulated.number("cuKernelGetAttribute", 0, kernel, device) == 1024
        emulated.cuKernelSetAttribute(8, 100_000, kernel, device)
        function = emulated.handle("cuKernelGetFunction", kernel)
        assert emulated.number("cuFuncGetAttribute", 8, function) == 100_000
        emulated.cuLaunchKernel(kernel, *[1] * 6, 100_000, None, None, None)
    assert len(emulated.machine.launches) == 2
    emulated.cuLibraryUnload(library)
    assert emulated.result("cuKernelGetFunction", ctypes.byref(P()), kernel) == 400


@pytest.mark.parametrize(
    ("image", "result", "said"),
    [
        (b"\x7fELF" + bytes(60), 209, "cannot execute a cubin, only PTX"),
        (b"\x50\xed\x55\xba" + bytes(60), 209, "cannot execute a fat binary"),
        (b"hello", 200, "the image is no PTX"),
        (b".version 8.0\n.target sm_100\n", 218, "is for sm_100, and the emulated GPU is sm_90a"),
        (b".version 8.0\n.target sm_80a\n", 218, "is for sm_80a"),
        (b".version 8.0\n.target sm_80\nWRONG\n", 218, "line 3: the instruction WRONG"),
    ],
)
def test_images_that_cannot_run(cuda: Any, image: bytes, result: int, said: str) -> None:
    assert cuda.result("cuModuleLoadData", ctypes.byref(P()), image) == result
    assert said in cuda.text(result)
    log = ctypes.create_string_buffer(200)
    options = (INT * 2)(5, 6)
    values = (P * 2)(ctypes.addressof(log), 200)
    arguments = ctypes.byref(P()), image, 2, options, values
    assert cuda.result("cuModuleLoadDataEx", *arguments) == result
    assert said.encode()[:50] in log.value


# ---- launches ----


def launched(cuda: Any, function: Any, grid: Any, block: Any, shared: int, *values: Any) -> int:
    places = (P * max(1, len(values)))(*(ctypes.addressof(each) for each in values))
    sizes = *grid, *block, shared
    return int(cuda.result("cuLaunchKernel", function, *sizes, None, places, None))


def test_a_kernel_runs(cuda: Any, module: Any) -> None:
    function = cuda.handle("cuModuleGetFunction", module, b"scale")
    address = cuda.allocate(16)
    cuda.write(address.value, struct.pack("<4f", 1, 2, 3, 4))
    given = address, ctypes.c_float(2), U(4)
    assert launched(cuda, function, (1, 1, 1), (32, 1, 1), 0, *given) == 0
    assert struct.unpack("<4f", cuda.read(address.value, 16)) == (2, 4, 6, 8)
    data = struct.pack("<QfI", address.value, 0.5, 2)
    size = Z(len(data))
    buffer = ctypes.create_string_buffer(data, len(data))
    extra = (P * 5)(1, ctypes.addressof(buffer), 2, ctypes.addressof(size), 0)
    cuda.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, None, None, extra)
    assert struct.unpack("<4f", cuda.read(address.value, 16)) == (1, 2, 6, 8)


@pytest.mark.parametrize(
    ("name", "grid", "block", "shared", "result", "said"),
    [
        (b"nothing", (0, 1, 1), (1, 1, 1), 0, 1, "a grid of (0, 1, 1) blocks"),
        (b"nothing", (1, 65536, 1), (1, 1, 1), 0, 1, "a grid of (1, 65536, 1)"),
        (b"nothing", (1, 1, 1), (1025, 1, 1), 0, 1, "blocks of (1025, 1, 1) threads"),
        (b"nothing", (1, 1, 1), (1, 1, 65), 0, 1, "blocks of (1, 1, 65) threads"),
        (b"nothing", (1, 1, 1), (1, 1, 1), 49153, 1, "nothing is allowed 49152"),
        (b"small", (1, 1, 1), (65, 1, 1), 0, 701, "small takes 64"),
        (b"exact", (1, 1, 1), (64, 1, 1), 0, 1, "exact takes blocks of (32, 2, 1)"),
        (b"scale", (1, 1, 1), (1, 1, 1), 0, 1, "scale has 3 parameters"),
        (b"fails", (1, 1, 1), (32, 1, 1), 0, 700, "thread (3, 0, 0): line 7 of the PTX"),
    ],
)
def test_launches_that_are_refused(
    cuda: Any, module: Any, name: bytes, grid: Any, block: Any, shared: int, result: int, said: str
) -> None:
    function = cuda.handle("cuModuleGetFunction", module, name)
    arguments = *grid, *block, shared, None, None, None
    assert cuda.result("cuLaunchKernel", function, *arguments) == result
    assert said in cuda.text(result)
    ok = cuda.handle("cuModuleGetFunction", module, b"nothing")
    cuda.cuLaunchKernel(ok, *[1] * 6, 0, None, None, None)


def test_more_shared_memory_is_allowed(cuda: Any, module: Any) -> None:
    function = cuda.handle("cuModuleGetFunction", module, b"nothing")
    cuda.cuFuncSetAttribute(function, 8, 227 << 10)
    assert launched(cuda, function, (1, 1, 1), (1, 1, 1), 227 << 10) == 0
    assert cuda.result("cuFuncSetAttribute", function, 8, (227 << 10) + 1) == 1


def config(grid: Any, block: Any, shared: int, attributes: bytes, stream: int = 0) -> Any:
    data = ctypes.create_string_buffer(attributes, max(1, len(attributes)))
    sizes = *grid, *block, shared
    address = ctypes.addressof(data)
    made = struct.pack("<7I4xQQI", *sizes, stream, address, len(attributes) // 72)
    return ctypes.create_string_buffer(made, len(made)), data


def attribute(number: int, value: bytes) -> bytes:
    return struct.pack("<I4x64s", number, value)


def test_launches_with_attributes(cuda: Any, module: Any) -> None:
    function = cuda.handle("cuModuleGetFunction", module, b"nothing")

    def run(*attributes: bytes, grid: Any = (16, 1, 1)) -> int:
        made, held = config(grid, (32, 1, 1), 0, b"".join(attributes))
        return int(cuda.result("cuLaunchKernelEx", made, function, None, None)) + 0 * len(held)

    clusters = attribute(4, struct.pack("<III", 4, 1, 1))
    assert run(clusters, attribute(6, b"\1")) == 0
    assert cuda.machine.launches[-1][4] == (4, 1, 1)
    assert run(clusters, grid=(6, 1, 1)) == 1
    large = attribute(4, struct.pack("<III", 16, 1, 1))
    assert run(large) == 912
    cuda.cuFuncSetAttribute(function, 14, 1)
    assert run(large) == 0
    assert run(attribute(2, b"\1")) == 0
    assert run(attribute(2, b"\1"), grid=(132 * 64, 1, 1)) == 720
    assert run(attribute(99, b"\1")) == 801
    assert "the launch attribute 99" in cuda.text(801)


def test_new_parameters_of_a_node_leave_its_attributes(cuda: Any, module: Any) -> None:
    function = cuda.handle("cuModuleGetFunction", module, b"nothing")
    stream = cuda.handle("cuStreamCreate", 1)
    cuda.cuStreamBeginCapture_v2(stream, 0)
    attributes = attribute(4, struct.pack("<III", 4, 1, 1)), attribute(2, b"\1")
    made, held = config((16, 1, 1), (32, 1, 1), 0, b"".join(attributes), stream.value)
    assert cuda.result("cuLaunchKernelEx", made, function, None, None) == 0, held
    graph, node = ctypes.c_uint64(), ctypes.c_uint64()
    cuda.cuStreamEndCapture(stream, ctypes.byref(graph))
    cuda.cuGraphGetNodes(graph, ctypes.byref(node), ctypes.byref(Z(1)))

    def changed(blocks: int) -> int:
        sizes = blocks, 1, 1, 64, 1, 1, 0
        given = struct.pack("<Q7I4xQQQQ", function.value, *sizes, 0, 0, 0, 0)
        return int(cuda.result("cuGraphKernelNodeSetParams_v2", node, given))

    assert changed(6) == 1  # no multiple of the cluster
    assert changed(132 * 64) == 720  # cooperative blocks that do not fit at once
    assert changed(8) == 0
    ready = cuda.handle("cuGraphInstantiateWithFlags", graph, ctypes.c_uint64(0))
    cuda.cuGraphLaunch(ready, stream)
    assert cuda.machine.launches[-1][1:5:3] == ((8, 1, 1), (4, 1, 1))


def test_occupancy(cuda: Any, module: Any) -> None:
    function = cuda.handle("cuModuleGetFunction", module, b"nothing")
    name = "cuOccupancyMaxActiveBlocksPerMultiprocessor"
    blocks = {
        threads: cuda.number(name, function, threads, Z(0)) for threads in (32, 64, 256, 1024)
    }
    assert blocks == {32: 32, 64: 32, 256: 8, 1024: 2}
    assert cuda.number(name, function, 32, Z(100 << 10)) == 2
    made, held = config((4, 1, 1), (1024, 1, 1), 0, attribute(4, struct.pack("<III", 4, 1, 1)))
    assert cuda.number("cuOccupancyMaxActiveClusters", function, made) == 66, held
    grid, block = INT(), INT()
    places = ctypes.byref(grid), ctypes.byref(block)
    cuda.cuOccupancyMaxPotentialBlockSize(*places, function, None, Z(0), 0)
    assert (grid.value, block.value) == (264, 1024)


def test_handles_of_another_emulated_gpu_are_refused() -> None:
    import ferrule as fe

    library = ctypes.CDLL("libcuda.so.1")
    with fe.emulated_gpu("sm_80"):
        library.cuInit(0)
        context = P()
        assert library.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    with fe.emulated_gpu("sm_80"):
        library.cuInit(0)
        assert library.cuCtxPushCurrent_v2(context) == 201
