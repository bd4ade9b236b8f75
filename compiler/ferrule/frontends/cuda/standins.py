"""Stand-ins for headers of C and C++, which NVRTC does not have.

Device code needs few things of them: `printf`, `malloc` and the functions of maths are in the
compiler itself.  The headers of the host's own functions are empty; a kernel that needs more of one
is refused by the compiler.  A header that is in a folder of the compilation is taken from there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_TYPES: Final = """\
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t;
typedef long intptr_t;
typedef unsigned long uintptr_t;
typedef long intmax_t;
typedef unsigned long uintmax_t;
#define INT8_MIN (-128)
#define INT8_MAX 127
#define UINT8_MAX 255
#define INT16_MIN (-32768)
#define INT16_MAX 32767
#define UINT16_MAX 65535
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define UINT32_MAX 4294967295u
#define INT64_MIN (-9223372036854775807l - 1)
#define INT64_MAX 9223372036854775807l
#define UINT64_MAX 18446744073709551615ul
#define INTPTR_MIN INT64_MIN
#define INTPTR_MAX INT64_MAX
#define UINTPTR_MAX UINT64_MAX
#define INTMAX_MIN INT64_MIN
#define INTMAX_MAX INT64_MAX
#define UINTMAX_MAX UINT64_MAX
#define PTRDIFF_MIN INT64_MIN
#define PTRDIFF_MAX INT64_MAX
#define SIZE_MAX UINT64_MAX
"""
_LIMITS: Final = """\
#define CHAR_BIT 8
#define SCHAR_MIN (-128)
#define SCHAR_MAX 127
#define UCHAR_MAX 255
#define CHAR_MIN SCHAR_MIN
#define CHAR_MAX SCHAR_MAX
#define SHRT_MIN (-32768)
#define SHRT_MAX 32767
#define USHRT_MAX 65535
#define INT_MIN (-2147483647 - 1)
#define INT_MAX 2147483647
#define UINT_MAX 4294967295u
#define LONG_MIN (-9223372036854775807l - 1)
#define LONG_MAX 9223372036854775807l
#define ULONG_MAX 18446744073709551615ul
#define LLONG_MIN (-9223372036854775807ll - 1)
#define LLONG_MAX 9223372036854775807ll
#define ULLONG_MAX 18446744073709551615ull
"""
_FLOATS: Final = """\
#define FLT_RADIX 2
#define FLT_MANT_DIG 24
#define FLT_DIG 6
#define FLT_MIN_EXP (-125)
#define FLT_MAX_EXP 128
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#define DBL_MANT_DIG 53
#define DBL_DIG 15
#define DBL_MIN_EXP (-1021)
#define DBL_MAX_EXP 1024
#define DBL_MAX 1.7976931348623157e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_EPSILON 2.2204460492503131e-16
"""
_MATHS: Final = """\
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#ifndef INFINITY
#define INFINITY (__int_as_float(0x7f800000))
#endif
#ifndef NAN
#define NAN (__int_as_float(0x7fffffff))
#endif
#ifndef HUGE_VALF
#define HUGE_VALF INFINITY
#endif
#ifndef HUGE_VAL
#define HUGE_VAL (__longlong_as_double(0x7ff0000000000000ll))
#endif
"""
_ASSERT: Final = """\
#undef assert
#ifdef NDEBUG
#define assert(holds) ((void)0)
#else
extern "C" __device__ void __assertfail(
    const char* said, const char* file, unsigned int line, const char* function,
    decltype(sizeof(0)) size);
#define assert(holds) \\
    ((holds) ? (void)0 : __assertfail(#holds, __FILE__, __LINE__, __PRETTY_FUNCTION__, 1))
#endif
"""


def _std(names: Iterable[str] = ()) -> str:
    """The namespace std with these names."""
    return f"namespace std {{ {' '.join(f'using ::{name};' for name in names)} }}\n"


_SIZES: Final = """\
#ifndef NULL
#define NULL 0
#endif
#ifndef offsetof
#define offsetof(kind, member) __builtin_offsetof(kind, member)
#endif
"""
_OF_C: Final = {
    "stdint.h": _TYPES,
    "inttypes.h": '#include "stdint.h"\n',
    "limits.h": _LIMITS,
    "float.h": _FLOATS,
    "math.h": _MATHS,
    "assert.h": _ASSERT,
    "stddef.h": _SIZES,
    "stdlib.h": '#include "stddef.h"\n',
    "stdio.h": '#include "stddef.h"\n',
    "string.h": '#include "stddef.h"\n',
    "stdbool.h": "",
}
_FUNCTIONS: Final = (
    *("abs", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil"),
    *("copysign", "cos", "cosh", "erf", "erfc", "exp", "exp2", "expm1", "fabs", "fdim", "floor"),
    *("fma", "fmax", "fmin", "fmod", "frexp", "hypot", "ilogb", "isfinite", "isinf", "isnan"),
    *("ldexp", "lgamma", "llrint", "llround", "log", "log10", "log1p", "log2", "logb", "lrint"),
    *("lround", "modf", "nearbyint", "nextafter", "pow", "remainder", "rint", "round", "scalbn"),
    *("signbit", "sin", "sinh", "sqrt", "tan", "tanh", "tgamma", "trunc"),
)
_INTEGERS: Final = tuple(re.findall(r"\w+(?=;)", _TYPES))
_IN_STD: Final = {"math.h": _FUNCTIONS, "stdint.h": _INTEGERS, "stddef.h": ("size_t",)}
_OF_CPP: Final = {
    f"c{name.removesuffix('.h')}": f'#include "{name}"\n{_std(_IN_STD.get(name, ()))}'
    for name in _OF_C
}
_EMPTY_C: Final = (
    *("ctype.h", "errno.h", "fcntl.h", "getopt.h", "locale.h", "malloc.h", "memory.h"),
    *("pthread.h", "setjmp.h", "signal.h", "stdarg.h", "strings.h", "time.h", "unistd.h"),
    *("sys/stat.h", "sys/time.h", "sys/types.h", "sys/mman.h", "omp.h", "windows.h"),
    *("cuda_profiler_api.h", "driver_functions.h", "nvToolsExt.h", "cublas_v2.h", "mpi.h"),
    *("helper_cuda.h", "helper_functions.h", "helper_string.h", "helper_timer.h"),
    *("exception.h", "helper_image.h"),
)
"""Headers of the host alone; those of CUDA's samples among them, whose functions are all macros and
functions of the host."""
_EMPTY_CPP: Final = (
    *("algorithm", "array", "atomic", "chrono", "condition_variable", "ctime", "exception"),
    *("fstream", "functional", "initializer_list", "iomanip", "ios", "iostream", "istream"),
    *("iterator", "list", "map", "memory", "mutex", "new", "numeric", "optional", "ostream"),
    *("queue", "random", "set", "sstream", "stdexcept", "string", "string_view", "thread"),
    *("tuple", "unordered_map", "unordered_set", "valarray", "vector", "complex"),
)

HEADERS: Final[dict[str, str]] = {
    name: f"#pragma once\n{text}" if name != "assert.h" else text
    for name, text in {
        **_OF_C,
        **_OF_CPP,
        **dict.fromkeys(_EMPTY_C, ""),
        **dict.fromkeys(_EMPTY_CPP, _std()),
    }.items()
}
"""The headers by their names."""


def standins(folders: Iterable[str | Path]) -> dict[str, str]:
    """The headers that are in none of these folders."""
    places = [Path(each) for each in folders]
    return {
        name: text
        for name, text in HEADERS.items()
        if not any((place / name).is_file() for place in places)
    }
