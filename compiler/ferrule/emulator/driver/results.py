"""The results of the driver's functions: `CUresult`, their names and what they say."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final


class Result(IntEnum):
    """`CUresult`: without `CUDA_` and `ERROR_`, which `name_of` says."""

    SUCCESS = 0
    INVALID_VALUE = 1
    OUT_OF_MEMORY = 2
    NOT_INITIALIZED = 3
    DEINITIALIZED = 4
    PROFILER_DISABLED = 5
    PROFILER_NOT_INITIALIZED = 6
    PROFILER_ALREADY_STARTED = 7
    PROFILER_ALREADY_STOPPED = 8
    STUB_LIBRARY = 34
    CALL_REQUIRES_NEWER_DRIVER = 36
    DEVICE_UNAVAILABLE = 46
    NO_DEVICE = 100
    INVALID_DEVICE = 101
    DEVICE_NOT_LICENSED = 102
    INVALID_IMAGE = 200
    INVALID_CONTEXT = 201
    CONTEXT_ALREADY_CURRENT = 202
    MAP_FAILED = 205
    UNMAP_FAILED = 206
    ARRAY_IS_MAPPED = 207
    ALREADY_MAPPED = 208
    NO_BINARY_FOR_GPU = 209
    ALREADY_ACQUIRED = 210
    NOT_MAPPED = 211
    NOT_MAPPED_AS_ARRAY = 212
    NOT_MAPPED_AS_POINTER = 213
    ECC_UNCORRECTABLE = 214
    UNSUPPORTED_LIMIT = 215
    CONTEXT_ALREADY_IN_USE = 216
    PEER_ACCESS_UNSUPPORTED = 217
    INVALID_PTX = 218
    INVALID_GRAPHICS_CONTEXT = 219
    NVLINK_UNCORRECTABLE = 220
    JIT_COMPILER_NOT_FOUND = 221
    UNSUPPORTED_PTX_VERSION = 222
    JIT_COMPILATION_DISABLED = 223
    UNSUPPORTED_EXEC_AFFINITY = 224
    UNSUPPORTED_DEVSIDE_SYNC = 225
    CONTAINED = 226
    INVALID_SOURCE = 300
    FILE_NOT_FOUND = 301
    SHARED_OBJECT_SYMBOL_NOT_FOUND = 302
    SHARED_OBJECT_INIT_FAILED = 303
    OPERATING_SYSTEM = 304
    INVALID_HANDLE = 400
    ILLEGAL_STATE = 401
    LOSSY_QUERY = 402
    NOT_FOUND = 500
    NOT_READY = 600
    ILLEGAL_ADDRESS = 700
    LAUNCH_OUT_OF_RESOURCES = 701
    LAUNCH_TIMEOUT = 702
    LAUNCH_INCOMPATIBLE_TEXTURING = 703
    PEER_ACCESS_ALREADY_ENABLED = 704
    PEER_ACCESS_NOT_ENABLED = 705
    PRIMARY_CONTEXT_ACTIVE = 708
    CONTEXT_IS_DESTROYED = 709
    ASSERT = 710
    TOO_MANY_PEERS = 711
    HOST_MEMORY_ALREADY_REGISTERED = 712
    HOST_MEMORY_NOT_REGISTERED = 713
    HARDWARE_STACK_ERROR = 714
    ILLEGAL_INSTRUCTION = 715
    MISALIGNED_ADDRESS = 716
    INVALID_ADDRESS_SPACE = 717
    INVALID_PC = 718
    LAUNCH_FAILED = 719
    COOPERATIVE_LAUNCH_TOO_LARGE = 720
    TENSOR_MEMORY_LEAK = 721
    NOT_PERMITTED = 800
    NOT_SUPPORTED = 801
    SYSTEM_NOT_READY = 802
    SYSTEM_DRIVER_MISMATCH = 803
    COMPAT_NOT_SUPPORTED_ON_DEVICE = 804
    MPS_CONNECTION_FAILED = 805
    MPS_RPC_FAILURE = 806
    MPS_SERVER_NOT_READY = 807
    MPS_MAX_CLIENTS_REACHED = 808
    MPS_MAX_CONNECTIONS_REACHED = 809
    MPS_CLIENT_TERMINATED = 810
    CDP_NOT_SUPPORTED = 811
    CDP_VERSION_MISMATCH = 812
    STREAM_CAPTURE_UNSUPPORTED = 900
    STREAM_CAPTURE_INVALIDATED = 901
    STREAM_CAPTURE_MERGE = 902
    STREAM_CAPTURE_UNMATCHED = 903
    STREAM_CAPTURE_UNJOINED = 904
    STREAM_CAPTURE_ISOLATION = 905
    STREAM_CAPTURE_IMPLICIT = 906
    CAPTURED_EVENT = 907
    STREAM_CAPTURE_WRONG_THREAD = 908
    TIMEOUT = 909
    GRAPH_EXEC_UPDATE_FAILURE = 910
    EXTERNAL_DEVICE = 911
    INVALID_CLUSTER_SIZE = 912
    FUNCTION_NOT_LOADED = 913
    INVALID_RESOURCE_TYPE = 914
    INVALID_RESOURCE_CONFIGURATION = 915
    KEY_ROTATION = 916
    UNKNOWN = 999


_WORDS: Final[Mapping[int, str]] = MappingProxyType(
    {
        0: "no error",
        1: "invalid argument",
        2: "out of memory",
        3: "initialization error",
        4: "driver shutting down",
        34: "CUDA driver is a stub library",
        46: "CUDA-capable device(s) is/are busy or unavailable",
        100: "no CUDA-capable device is detected",
        101: "invalid device ordinal",
        200: "device kernel image is invalid",
        201: "invalid device context",
        205: "mapping of buffer object failed",
        206: "unmapping of buffer object failed",
        209: "no kernel image is available for execution on the device",
        214: "uncorrectable ECC error encountered",
        215: "limit is not supported on this architecture",
        216: "exclusive-thread device already in use by a different thread",
        217: "peer access is not supported between these two devices",
        218: "a PTX JIT compilation failed",
        221: "PTX JIT compiler library not found",
        222: "the provided PTX was compiled with an unsupported toolchain.",
        300: "device kernel image is invalid",
        301: "file not found",
        302: "shared object symbol not found",
        303: "shared object initialization failed",
        304: "OS call failed or operation not supported on this OS",
        400: "invalid resource handle",
        401: "the operation cannot be performed in the present state",
        500: "named symbol not found",
        600: "device not ready",
        700: "an illegal memory access was encountered",
        701: "too many resources requested for launch",
        702: "the launch timed out and was terminated",
        704: "peer access is already enabled",
        705: "peer access has not been enabled",
        708: "cannot set while device is active in this process",
        709: "context is destroyed",
        710: "device-side assert triggered",
        712: "part or all of the requested memory range is already mapped",
        713: "pointer does not correspond to a registered memory region",
        714: "hardware stack error",
        715: "an illegal instruction was encountered",
        716: "misaligned address",
        717: "operation not supported on global/shared address space",
        718: "invalid program counter",
        719: "unspecified launch failure",
        720: "too many blocks in cooperative launch",
        800: "operation not permitted",
        801: "operation not supported",
        900: "operation not permitted when stream is capturing",
        901: "operation failed due to a previous error during capture",
        902: "operation would result in a merge of separate capture sequences",
        903: "capture was not ended in the same stream as it began",
        904: "capturing stream has unjoined work",
        905: "dependency created on uncaptured work in another stream",
        906: "operation would make the legacy stream depend on a capturing blocking stream",
        907: "operation not permitted on an event last recorded in a capturing stream",
        908: "attempt to terminate a thread-local capture sequence from another thread",
        909: "wait operation timed out",
        910: "the graph update was not performed",
        912: "cluster misconfiguration",
        913: "function not loaded",
        914: "invalid resource type",
        915: "invalid resource configuration",
        999: "unknown error",
    }
)


class DriverError(Exception):
    """A call is refused: with which result, and a sentence that says what of it is wrong."""

    def __init__(self, result: Result, sentence: str = "") -> None:
        super().__init__(sentence or name_of(result))
        self.result, self.sentence = result, sentence


def name_of(result: int) -> str | None:
    """`CUDA_ERROR_INVALID_VALUE` for 1; None for what is no result."""
    if result not in _VALUES:
        return None
    return "CUDA_SUCCESS" if result == 0 else f"CUDA_ERROR_{Result(result).name}"


def words_of(result: int) -> str | None:
    """The driver's text for a result; None for a number that is no result."""
    name = name_of(result)
    return name and _WORDS.get(result, name.removeprefix("CUDA_ERROR_").replace("_", " ").lower())


_VALUES: Final = frozenset(Result)
