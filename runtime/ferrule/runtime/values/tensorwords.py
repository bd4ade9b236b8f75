"""The fields of torch's tensors: where memory, sizes, strides and dtype are.

torch's exchange function for DLPack takes fifty nanoseconds a tensor, the loads of the fields two.
This module finds them by a search in live tensors with odd sizes and strides, without assumptions.
Each field must have exactly one place that fits all of them, and then all fields together are
compared with torch's methods on views of many kinds. If the search fails, calls use the exchange
function.

Which tensors may be read so, their dispatch keys say: one word, which is the same for all tensors
on the CPU with elements in memory. With a pending negation or conjugation, sparse, quantized,
fake, batched or of another device, a tensor has other keys, and is left to the exchange function.
So is a tensor whose memory torch copies before it is written, which a byte of its storage tells.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, Final

from ferrule.specs.deferred import dataclass
from ferrule.specs.dtypes import BY_NAME

INLINE_DIMS: Final = 5
"""The dims whose sizes and strides are in the tensor itself."""

DTYPES: Final = 64
"""The size of the table of dtypes, which is indexed by torch's numbers."""

# torch publishes no layout, and versions differ: what lies where is found in live tensors.
_OBJECT: Final = range(16, 64, 8)
_IMPL: Final = range(8, 192, 8)
_STORAGE: Final = range(8, 64, 8)
"""Offsets to search, in a Python tensor, in torch's C++ tensor, and in its storage."""

_NUMBERED: Final = "uint8 int8 int16 int32 int64 float16 float32 float64".split()
"""The dtypes that torch numbers from 0 on, by which the place of the number is found."""

_OTHERS: Final = (
    "bool complex64 complex128 bfloat16 uint16 uint32 uint64 "
    "float8_e5m2 float8_e4m3fn float8_e5m2fnuz float8_e4m3fnuz float8_e8m0fnu"
).split()


@dataclass(frozen=True, slots=True)
class TensorWords:
    """Offsets of fields: `impl` in a Python tensor; `data` (an address) and `lazy` (a byte that is
    not 0 if the memory is copied before a write) in a storage; all others in the C++ tensor, each
    a word but for `dtype`, a 16-bit number. `sizes` and `strides` have `INLINE_DIMS` words,
    `start` counts elements. `keys` are the dispatch keys of tensors that can be read so, and
    `dtypes` are DLDataTypes by torch's number, 0 for a dtype that cannot.
    """

    impl: int
    storage: int
    ndim: int
    sizes: int
    strides: int
    start: int
    numel: int
    dtype: int
    key: int
    data: int
    lazy: int
    keys: tuple[int, ...]
    dtypes: tuple[int, ...]

    def read(self, tensor: Any) -> tuple[int, tuple[int, ...], tuple[int, ...], int] | None:
        """Address, sizes, strides and dtype of a tensor, as a call reads them; None if a call does
        not read its fields."""
        impl = _word(id(tensor) + self.impl)
        storage, ndim = _word(impl + self.storage), _word(impl + self.ndim)
        number = _number(impl + self.dtype)
        dtype = self.dtypes[number] if number < DTYPES else 0
        if _word(impl + self.key) not in self.keys or ndim > INLINE_DIMS or dtype == 0:
            return None
        if _byte(storage + self.lazy):
            return None
        sizes, strides = (_row(impl + at, ndim) for at in (self.sizes, self.strides))
        itemsize = (dtype >> 8 & 0xFF) // 8
        address = _word(storage + self.data) + _word(impl + self.start) * itemsize
        return address if _word(impl + self.numel) else 0, sizes, strides, dtype


def tensor_words() -> TensorWords | None:
    """The fields in this process; None without torch, and if the search failed."""
    torch = sys.modules.get("torch")
    return None if not hasattr(torch, "Tensor") else _found(torch)


@cache
def _found(torch: Any) -> TensorWords | None:
    try:
        found = _search(torch)
        return found if all(_agrees(found, torch, each) for each in _checks(torch)) else None
    except Exception:  # another torch, without these functions or with a mode that is on
        return None


def _search(torch: Any) -> TensorWords:
    """The fields.  Raises ValueError where there is not exactly one place for each."""
    base = torch.zeros(9000, dtype=torch.float32, device="cpu")
    three = base.as_strided((3, 5, 7), (1009, 101, 11), 1234)
    samples = [three, base.as_strided((4, 6), (13, 17), 99), base.as_strided((), (), 77)]
    samples.append(base.as_strided((2, 1, 3, 1, 2, 2), (1, 2, 3, 4, 5, 6), 5))
    words = {
        "impl": _place(_OBJECT, samples, lambda t, at: _word(id(t) + at) == t._cdata),
        "storage": _place(_IMPL, samples, lambda t, at: _field(t, at) == _storage(t)._cdata),
        "ndim": _place(_IMPL, samples, lambda t, at: _field(t, at) == t.dim()),
        "sizes": _place(_IMPL, samples[:2], lambda t, at: _fields(t, at) == tuple(t.shape)),
        "strides": _place(_IMPL, samples[:2], lambda t, at: _fields(t, at) == t.stride()),
        "start": _place(_IMPL, samples, lambda t, at: _field(t, at) == t.storage_offset()),
        "numel": _place(_IMPL, samples, lambda t, at: _field(t, at) == t.numel()),
        "key": _place(_IMPL, samples, lambda t, at: _field(t, at) == _keys(torch, t)),
        "dtype": _dtype_place(torch),
        "data": _place(
            _STORAGE,
            # Foreign memory has another owner than itself, whose address is beside it.
            [torch.frombuffer(bytearray(n), dtype=torch.uint8) for n in (3, 400, 5000)],
            lambda t, at: _word(_storage(t)._cdata + at) == _storage(t).data_ptr(),
        ),
        "lazy": _lazy_place(torch),
    }
    if words["strides"] != words["sizes"] + 8 * INLINE_DIMS:
        raise ValueError("another number of sizes is in the tensor itself")
    keys = tuple(dict.fromkeys(_keys(torch, each) for each in _plain(torch)))
    return TensorWords(**words, keys=keys, dtypes=_dtypes(torch, words["dtype"]))


def _place(offsets: Iterable[int], samples: Sequence[Any], fits: Callable[[Any, int], bool]) -> int:
    (found,) = (at for at in offsets if all(fits(each, at) for each in samples))
    return found


def _storage(tensor: Any) -> Any:
    return tensor.untyped_storage()


def _keys(torch: Any, tensor: Any) -> int:
    return int(torch._C._dispatch_keys(tensor).raw_repr())


def _plain(torch: Any) -> list[Any]:
    """Tensors on the CPU whose elements are in memory: an ordinary one, and one of inference."""
    with torch.inference_mode():
        inferred = torch.zeros(1, device="cpu")
    return [torch.zeros(1, device="cpu"), inferred]


def _dtype_place(torch: Any) -> int:
    tensors = [torch.zeros(2, dtype=getattr(torch, name), device="cpu") for name in _NUMBERED]
    numbered = list(enumerate(tensors))
    return _place(range(8, 192, 2), numbered, lambda t, at: _number(t[1]._cdata + at) == t[0])


def _lazy_place(torch: Any) -> int:
    """The byte that is 1 in a storage that is copied before a write, and 0 in all others."""
    plain = [torch.zeros(n, device="cpu") for n in (3, 70, 600)]
    lazy = [torch._lazy_clone(each) for each in plain]
    copied = [torch._lazy_clone(each).add_(0) for each in [torch.zeros(9, device="cpu")] * 2]
    fresh = [torch.zeros(n, device="cpu") for n in (4, 90)]

    def fits(case: tuple[Any, int], at: int) -> bool:
        return _byte(_storage(case[0])._cdata + at) == case[1]

    cases = [(each, 1) for each in (*plain, *lazy)] + [(each, 0) for each in (*copied, *fresh)]
    return _place(range(8, 80), cases, fits)


def _dtypes(torch: Any, place: int) -> tuple[int, ...]:
    table = [0] * DTYPES
    for name in (*_NUMBERED, *_OTHERS):
        if (dtype := getattr(torch, name, None)) is not None:
            number = _number(torch.zeros(2, dtype=torch.uint8).to(dtype)._cdata + place)
            if table[number]:
                raise ValueError("two dtypes have one number")
            table[number] = BY_NAME[name].dlpack
    return tuple(table)


def _checks(torch: Any) -> list[Any]:
    """Tensors that are made in many ways."""
    x = torch.zeros((3, 4, 5), device="cpu")
    y = torch.zeros((6, 2), dtype=torch.complex64, device="cpu")
    made = [x, x[1:, ::2], x.t() if x.dim() == 2 else x.transpose(0, 2), x.expand(2, 3, 4, 5)]
    made += [x[0, 0, 0], x[:0], x.reshape(1, 3, 1, 4, 5), x.half()[2:], y[1::2].T, y.real]
    made += [torch.nn.Parameter(x.clone()), x.clone().requires_grad_()[1:], x.bool()[:, 3]]
    made += [torch.zeros(0, device="cpu"), torch.frombuffer(bytearray(24), dtype=torch.int16)[3:]]
    return made


def _agrees(words: TensorWords, torch: Any, tensor: Any) -> bool:
    """Whether the fields say of a tensor what its methods say."""
    read = words.read(tensor)
    name = str(tensor.dtype).removeprefix("torch.")
    wanted = (tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), BY_NAME[name].dlpack)
    return read == wanted


def _field(tensor: Any, at: int) -> int:
    return _word(tensor._cdata + at)


def _fields(tensor: Any, at: int) -> tuple[int, ...]:
    return _row(tensor._cdata + at, tensor.dim())


def _row(address: int, count: int) -> tuple[int, ...]:
    return tuple((ctypes.c_int64 * count).from_address(address))


def _word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


def _number(address: int) -> int:
    return ctypes.c_uint16.from_address(address).value


def _byte(address: int) -> int:
    return ctypes.c_uint8.from_address(address).value
