"""Producers of DLPack that are asked for a version, and what they say of their memory."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule.runtime.values import capsules

pytestmark = pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.1.0", reason="this NumPy gives no versioned capsules"
)


class Versioned:
    """A producer that gives versioned capsules alone."""

    def __init__(self, array: np.ndarray[Any, Any], **options: Any) -> None:
        self.array = array
        self.options = options

    def __dlpack__(self, *, max_version: tuple[int, int] | None = None, **_: Any) -> Any:
        if max_version is None:
            raise BufferError("there is no capsule without max_version")
        return self.array.__dlpack__(max_version=max_version, **self.options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


class Changed(Versioned):
    """One whose struct has other values at some offsets of bytes."""

    def __init__(self, array: np.ndarray[Any, Any], values: dict[int, int]) -> None:
        super().__init__(array)
        self.values = values

    def __dlpack__(self, *, max_version: tuple[int, int] | None = None, **_: Any) -> Any:
        capsule = super().__dlpack__(max_version=max_version)
        address = capsules._pointer_of(capsule, b"dltensor_versioned")
        for offset, value in self.values.items():
            ctypes.c_uint8.from_address(address + offset).value = value
        return capsule


class Old(Versioned):
    """One from before DLPack had versions."""

    def __dlpack__(self) -> Any:  # type: ignore[override]
        return self.array.__dlpack__()


FLAGS = capsules._Versioned.flags.offset
MAJOR = capsules._Versioned.major.offset


@fe.jit
def total(a: fe.Tensor):
    return a[0] + a[1]


@fe.jit
def write(a: fe.Tensor):
    a[0] = 7.0


def compiled(function: Any) -> fe.Function:
    vector = fe.make_fake_compact_tensor(fe.Float32, (fe.sym_int(),))
    return fe.compile(function, vector, options="--target cpu")


def array() -> np.ndarray[Any, Any]:
    return np.array([1, 2], np.float32)


def test_a_producer_of_versioned_capsules_alone() -> None:
    given = array()
    assert compiled(total)(Versioned(given)) == 3
    compiled(write)(Versioned(given))
    assert given[0] == 7
    assert fe.from_dlpack(Versioned(given)).shape == (2,)
    assert compiled(total).bind(Versioned(given))() == 9


def test_a_producer_without_versions() -> None:
    assert compiled(total)(Old(array())) == 3
    assert fe.from_dlpack(Old(array())).shape == (2,)


def test_what_is_read_only_is_read_and_not_written() -> None:
    given = array()
    given.flags.writeable = False
    assert compiled(total)(Versioned(given)) == 3
    with pytest.raises(BufferError, match=r"array that can be written, but got a read-only one$"):
        compiled(write)(Versioned(given))
    assert given[0] == 1
    assert fe.from_dlpack(Versioned(given)).view.read_only


def test_a_copy_is_read_and_not_written() -> None:
    assert compiled(total)(Versioned(array(), copy=True)) == 3
    with pytest.raises(BufferError, match="but got a copy, whose changes nobody sees$"):
        compiled(write)(Versioned(array(), copy=True))


def test_another_major_version_is_refused() -> None:
    with pytest.raises(TypeError, match=r"a tensor of version 2\.\d of DLPack, of which 1\.x is"):
        compiled(total)(Changed(array(), {MAJOR: 2}))
    with pytest.raises(TypeError, match=r"of version 2\.\d"):
        fe.from_dlpack(Changed(array(), {MAJOR: 2}))


def test_padded_elements_of_less_than_a_byte_are_refused() -> None:
    with pytest.raises(TypeError, match="elements of less than a byte, each in a byte of its own"):
        compiled(total)(Changed(array(), {FLAGS: 4}))
