"""`cutlass.torch` of CuTe DSL's programs: tensors of PyTorch for tests of kernels."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from ferrule.cutlass import names
from ferrule.specs import DType, Float4E2M1FN, TFloat32
from ferrule.specs.deferred import dataclass

if TYPE_CHECKING:
    import torch

_TORCH_NAMES: Final = {"tfloat32": "float32", "float4_e2m1fn": "float4_e2m1fn_x2"}


class TensorInitType(Enum):
    """What a new tensor has in it."""

    SKIP = "skip"
    SCALAR = "scalar"
    RANDOM = "random"
    GAUSSIAN = "gaussian"


@dataclass
class ScalarInitConfig:
    """One number everywhere."""

    value: float = 0.0


@dataclass
class RandomInitConfig:
    """Integers, each as likely as the others: from `min_val` on, below `max_val`."""

    min_val: int = -2
    max_val: int = 2


@dataclass
class GaussianInitConfig:
    """Normally distributed numbers, times `scale`."""

    mean: float = 0.0
    std: float = 1.0
    scale: float = 1.0


InitConfig = ScalarInitConfig | RandomInitConfig | GaussianInitConfig


def _torch() -> Any:
    """PyTorch, which the caller has: its tensors are asked for."""
    import torch

    return torch


def dtype(ty: DType) -> torch.dtype:
    """PyTorch's dtype of these elements.  Raises TypeError where it has none."""
    name = _TORCH_NAMES.get(ty.name, ty.name)
    found: Any = getattr(_torch(), name, None)
    if not isinstance(found, _torch().dtype):
        raise TypeError(f"PyTorch has no dtype for {ty.__name__}")
    return found  # type: ignore[no-any-return]


_torch_dtype = dtype


def as_tensor(pointer: Any, shape: Sequence[int], torch_type: torch.dtype) -> torch.Tensor:
    """A tensor of PyTorch over memory of the processor, row-major; the caller keeps the memory."""
    torch = _torch()
    address = pointer if isinstance(pointer, int) else getattr(pointer, "value", None)
    if not isinstance(address, int):
        raise TypeError(f"as_tensor takes an address, but got {pointer!r}")
    count = 1
    for size in shape:
        count *= size
    size = count * torch.empty((), dtype=torch_type).element_size()
    memory = (ctypes.c_byte * size).from_address(address)
    return torch.frombuffer(memory, dtype=torch_type).reshape(tuple(shape))  # type: ignore[no-any-return]


def create_and_permute_torch_tensor(
    shape: Sequence[int],
    dtype: torch.dtype,
    permute_order: Sequence[int] | None = None,
    init_type: TensorInitType = TensorInitType.RANDOM,
    init_config: InitConfig | None = None,
    device: Any = None,
) -> torch.Tensor:
    """A new tensor of this shape with its dims in another order.

    Raises TypeError for a configuration of another kind than `init_type`.
    """
    made = _filled(tuple(shape), dtype, init_type, init_config)
    made = made if permute_order is None else made.permute(tuple(permute_order))
    return made if device is None else made.to(device)  # type: ignore[no-any-return]


def _filled(
    shape: tuple[int, ...], kind: torch.dtype, init_type: TensorInitType, config: Any
) -> Any:
    torch = _torch()
    wanted: dict[TensorInitType, Any] = {
        TensorInitType.SKIP: type(None),
        TensorInitType.SCALAR: ScalarInitConfig,
        TensorInitType.RANDOM: RandomInitConfig,
        TensorInitType.GAUSSIAN: GaussianInitConfig,
    }
    given = wanted[init_type]() if config is None else config
    if not isinstance(given, wanted[init_type]):
        expected = wanted[init_type].__name__
        raise TypeError(f"init_type {init_type.name} takes {expected}, but got {config!r}")
    match given:
        case ScalarInitConfig():
            return torch.full(shape, given.value, dtype=torch.float32).to(kind)
        case RandomInitConfig():
            numbers = torch.randint(given.min_val, given.max_val, shape, dtype=torch.float32)
            return numbers.abs().to(kind) if _is_unsigned(kind) else numbers.to(kind)
        case GaussianInitConfig():
            normal = torch.empty(shape, dtype=torch.float32).normal_(given.mean, given.std)
            return (normal * given.scale).to(kind)
    return torch.empty(shape, dtype=kind)


def _is_unsigned(kind: torch.dtype) -> bool:
    return str(kind).startswith("torch.uint")


def matrix(
    l: int,  # noqa: E741
    mode0: int,
    mode1: int,
    is_mode0_major: bool,
    cutlass_dtype: DType,
    init_type: TensorInitType = TensorInitType.RANDOM,
    init_config: InitConfig | None = None,
    device: Any = None,
) -> torch.Tensor:
    """A tensor of the shape (mode0, mode1, l), of which mode0 or mode1 has stride 1.

    Elements of a dtype that PyTorch cannot fill are Float32: `cute_tensor_like` converts them.
    """
    shape = (l, mode1, mode0) if is_mode0_major else (l, mode0, mode1)
    order = (2, 1, 0) if is_mode0_major else (1, 2, 0)
    kind = _torch().float32 if cutlass_dtype.bits < 8 else dtype(cutlass_dtype)
    return create_and_permute_torch_tensor(shape, kind, order, init_type, init_config, device)


def get_leading_dim(torch_tensor: torch.Tensor) -> int:
    """The dim with stride 1, the first one of several."""
    for place, stride in enumerate(torch_tensor.stride()):
        if stride == 1:
            return place
    raise ValueError(f"no dim has stride 1: {tuple(torch_tensor.stride())}")


def cute_tensor_like(
    data_ref: torch.Tensor,
    cutlass_dtype: DType,
    is_dynamic_layout: bool,
    assumed_align: int | None = None,
) -> tuple[Any, torch.Tensor]:
    """A copy of a tensor in a dtype: as an argument of compiled functions, and PyTorch's.

    It is on the GPU if PyTorch has one.
    """
    from ferrule.cutlass.cute.runtime import from_dlpack

    if cutlass_dtype is Float4E2M1FN:
        raise TypeError("cute_tensor_like: PyTorch does not convert to Float4E2M1FN")
    device = "cuda" if _torch().cuda.is_available() else data_ref.device
    # With all strides: a tensor map cannot have the 1 that PyTorch gives to a dim of size 1.
    copy = _torch().empty_strided(
        data_ref.size(), data_ref.stride(), dtype=dtype(cutlass_dtype), device=device
    )
    copy.copy_(data_ref)
    adapted = from_dlpack(copy, assumed_align=assumed_align, force_tf32=cutlass_dtype is TFloat32)
    if is_dynamic_layout:
        adapted = adapted.mark_layout_dynamic(leading_dim=get_leading_dim(copy))
    return adapted, copy


def convert_cute_tensor(
    f32_torch_tensor: torch.Tensor,
    cute_tensor: Any,
    dtype: DType,
    is_dynamic_layout: bool = True,
) -> Any:
    """The tensor of `from_dlpack`, with the numbers of another one converted into its memory."""
    if cute_tensor.element_type is not dtype:
        raise TypeError(
            f"convert_cute_tensor: the tensor has elements of {cute_tensor.element_type.__name__}, "
            f"but dtype is {dtype.__name__}"
        )
    memory_of(cute_tensor).copy_(f32_torch_tensor)
    return cute_tensor


def memory_of(cute_tensor: Any) -> torch.Tensor:
    """PyTorch's tensor of the memory of one of `from_dlpack`, with its element type."""
    memory: torch.Tensor = cute_tensor.tensor
    if not isinstance(memory, _torch().Tensor):
        memory = _torch().from_dlpack(memory)
    dtype = cute_tensor.element_type
    if memory.dtype.itemsize == 1 and dtype.kind == "float":
        memory = memory.view(_torch_dtype(dtype))
    return memory


def default_stream() -> Any:
    """The default stream of the current GPU, whose handle is 0."""
    return 0


def current_stream() -> Any:
    """PyTorch's current stream; 0 without a GPU."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return 0
    return torch.cuda.current_stream().cuda_stream


__getattr__ = names.resolver("cutlass.torch")
