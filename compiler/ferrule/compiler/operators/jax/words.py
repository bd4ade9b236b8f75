"""The dtypes of XLA and JAX, and the words of DLPack for them."""

from __future__ import annotations

from typing import Any, Final

from ferrule import specs

NAMES: Final[dict[int, str]] = {
    1: "bool",
    2: "int8",
    3: "int16",
    4: "int32",
    5: "int64",
    6: "uint8",
    7: "uint16",
    8: "uint32",
    9: "uint64",
    10: "float16",
    11: "float32",
    12: "float64",
    15: "complex64",
    16: "bfloat16",
    18: "complex128",
    19: "float8_e5m2",
    20: "float8_e4m3fn",
    23: "float8_e4m3b11fnuz",
    24: "float8_e5m2fnuz",
    25: "float8_e4m3fnuz",
    28: "float8_e4m3",
    29: "float8_e3m4",
    33: "float8_e8m0fnu",
}
"""The dtypes of XLA by number (`XLA_FFI_DataType`): those with elements of whole bytes."""

WORDS: Final[dict[int, int]] = {n: specs.as_dtype(name).dlpack for n, name in NAMES.items()}
"""The dtypes of XLA by number, as words of `DLDataType`."""

_OF_NAMES: Final = {name: specs.as_dtype(name) for name in NAMES.values()}


def number_of(dtype: specs.DType) -> int | None:
    """XLA's number of a dtype; None if it has none, or elements that share bytes."""
    return next((n for n, word in WORDS.items() if word == dtype.dlpack), None)


def dtype_of(dtype: Any) -> specs.DType | None:
    """The dtype of a JAX dtype; None for one that no tensor has."""
    return _OF_NAMES.get(str(getattr(dtype, "name", dtype)))


def jax_dtype(dtype: specs.DType) -> Any:
    """JAX's dtype.  Raises ValueError for one that this JAX does not have."""
    import jax

    number = number_of(dtype)
    name = NAMES.get(number or 0, "")
    found = getattr(jax.numpy, "bool_" if name == "bool" else name, None)
    if found is None:
        raise ValueError(f"jax has no dtype {dtype.name}, so it cannot make an array of it")
    return jax.numpy.dtype(found)
