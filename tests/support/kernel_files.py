"""Source files with kernels and a library, for tests that build them."""

KERNELS = '''
import ferrule as fe


@fe.kernel
def copy_kernel(x: fe.Tensor, y: fe.Tensor):
    i = fe.arch.block_idx()[0] * 128 + fe.arch.thread_idx()[0]
    if i < x.shape[0]:
        y[i] = x[i]


@fe.jit
def copied(x: fe.Tensor, y: fe.Tensor):
    """Copies x to y."""
    copy_kernel(x, y).launch(grid=(fe.ceil_div(x.shape[0], 128), 1, 1), block=(128, 1, 1))


@fe.jit
def doubled(value: fe.Int32 = 4) -> fe.Int32:
    return value + value


n = fe.sym_int()
vector = fe.make_fake_compact_tensor(fe.Float32, (n,))
library = fe.Library(
    "small",
    [
        fe.Job(copied, [vector, vector], options="--target cpu"),
        fe.Job(doubled, [fe.Int32(0)], options=fe.Options(target="cpu")),
    ],
)
'''
