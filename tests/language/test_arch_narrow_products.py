"""`arch.mma` of floats of 8 bits: compiled, interpreted, and exact sums; its PTX and its errors."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import ptxas
import pytest
from agreement import run_all_ways

import ferrule as fe

pytest.importorskip("ml_dtypes", reason="arrays of these elements need ml_dtypes")
products = pytest.importorskip("narrow_products")
run = partial(run_all_ways, plain=False)
EACH = pytest.mark.parametrize("form", products.FORMS, ids=lambda f: "-".join(map(str, f)))


def multiplied(form: Any, a: Any, b: Any, c: Any) -> Any:
    """D, the same from machine code and the interpreter."""
    given = (a.view(np.uint8), b.view(np.uint8), c, np.zeros_like(c))
    result = run(products.host(form), given)
    assert result.error is None, result.error
    return result.arguments[-1]


@EACH
def test_sums_that_floats_have_are_exact(form: Any) -> None:
    one, two, total, depth = form
    rng = np.random.default_rng(depth)
    a, b = products.small(rng, one, (16, depth)), products.small(rng, two, (depth, 8))
    c = (rng.integers(-8, 9, (16, 8)) / 4).astype(products.NUMPY[total])
    np.testing.assert_array_equal(
        multiplied(form, a, b, c).astype(np.float64), products.exact(a, b, c)[0]
    )


@EACH
def test_finite_numbers_of_all_sizes(form: Any) -> None:
    one, two, total, depth = form
    rng = np.random.default_rng(3)
    a, b = products.finite(rng, one, (16, depth)), products.finite(rng, two, (depth, 8))
    c = (rng.standard_normal((16, 8)) * 100).astype(products.NUMPY[total])
    products.check_close(multiplied(form, a, b, c), a, b, c)


@pytest.mark.parametrize("form", [f for f in products.FORMS if f[2] is fe.Float32])
def test_numbers_that_are_special(form: Any) -> None:
    a, b, c, d = products.special(form[0], form[1], form[3])
    np.testing.assert_array_equal(multiplied(form, a, b, c), d)


# ---- PTX ----

SHORT = {products.E4M3: "e4m3", products.E5M2: "e5m2", fe.Float32: "f32", fe.Float16: "f16"}


@cache
def ptx(form: Any, gpu: str) -> str:
    total = form[2]
    matrices = [
        fe.make_fake_compact_tensor(dtype, shape, stride_order=(1, 0))
        for dtype, shape in (
            (fe.Uint8, (16, form[3])), (fe.Uint8, (form[3], 8)), (total, (16, 8)), (total, (16, 8))
        )
    ]  # fmt: skip
    options = f"--target cuda --gpu-arch {gpu}"
    return fe.compile(products.host(form), *matrices, options=options).inspect_ptx()


MIXED = [f for f in products.FORMS if f[:2] == (products.E4M3, products.E5M2)]
ON = [(f, "sm_89") for f in products.FORMS]
ON += [(f, gpu) for f in MIXED for gpu in ("sm_90a", "sm_100a", "sm_120")]


@pytest.mark.parametrize(("form", "gpu"), ON)
def test_a_product_is_one_instruction_of_a_version_that_has_it(form: Any, gpu: str) -> None:
    """CUDA 12.4 has those of 32 with sums of Float32; CUDA 12.8 all."""
    a, b, d = (SHORT[dtype] for dtype in form[:3])
    text = ptx(form, gpu)
    assert f"mma.sync.aligned.m16n8k{form[3]}.row.col.{d}.{a}.{b}.{d}\n" in text
    least = 84 if (d, form[3]) == ("f32", 32) else 87
    (version,) = (line for line in text.splitlines() if line.startswith(".version"))
    known = {"sm_100a": 86, "sm_120": 87}.get(gpu, 0)
    assert version == ".version {}.{}".format(*divmod(max(least, known), 10))


@pytest.mark.needs_ptxas
@pytest.mark.parametrize(("form", "gpu"), ON)
def test_the_assembler_takes_it(form: Any, gpu: str, tmp_path: Path) -> None:
    ptxas.assemble(ptx(form, gpu), gpu, tmp_path)


@pytest.mark.parametrize("gpu", ["sm_80", "sm_86", "sm_87"])
def test_older_gpus_have_none(gpu: str) -> None:
    said = r"arch\.mma of floats of 8 bits is known to GPUs from sm_89 on.*" + gpu
    with pytest.raises(fe.CompileError, match=said):
        ptx(products.FORMS[0], gpu)


@pytest.mark.parametrize(
    ("a", "b", "c", "message"),
    [
        (products.E4M3, fe.Int8, fe.Float32, "mma of float8_e4m3fn and int8"),
        (fe.Uint8, products.E5M2, fe.Int32, "mma of uint8 and float8_e5m2"),
        (products.E4M3, products.E4M3, fe.BFloat16, "float8_e4m3fn adds to c of bfloat16"),
        (fe.Float8E4M3, fe.Float8E4M3, fe.Float32, "mma of a matrix of float8_e4m3"),
    ],
)
def test_a_product_that_there_is_not(a: Any, b: Any, c: Any, message: str) -> None:
    @fe.kernel
    def kernel(out):
        one, two = fe.full(16, 1, a), fe.full(8, 1, b)
        fe.arch.mma(one, two, fe.full(4, 0, c))

    def host(out):
        kernel(out).launch(grid=1, block=32)

    example = fe.make_fake_compact_tensor(fe.Float32, (4,))
    with pytest.raises(fe.CompileError, match=message):
        fe.compile(host, example, options="--target cpu")
