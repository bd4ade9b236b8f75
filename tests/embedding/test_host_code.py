"""LLVM IR of a stranger: what would be called in another way than C does is refused."""

from __future__ import annotations

import numpy as np
import pytest

import ferrule as fe
from ferrule import compiler, specs
from ferrule.compiler.conventions import CFunction
from ferrule.compiler.hostcode import HostCode
from ferrule.specs import Signature, Tensor

N = specs.sym_int64(symbol="n")
X = Tensor("x", (N,), "float32")
TEXT = """
define internal fastcc void @helper(ptr %at) {
  store float 2.0, ptr %at
  ret void
}
define dso_local void @first(ptr noundef %x, i64 %n) {
  call fastcc void @helper(ptr %x)
  ret void
}
"""


def built(text: str) -> fe.Function:
    code = HostCode.from_llvm(text)
    return compiler.build(Signature("f", [X]), CFunction("first", [X.data, N], code=code))


def test_what_it_calls_inside_is_its_own_business() -> None:
    x = np.zeros(2, np.float32)
    built(TEXT)(x)
    assert x.tolist() == [2, 0]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("dso_local void", "fastcc void", "is called by fastcc"),
        ("dso_local void", "cc 18 void", "is called by"),
        ("dso_local void", "dso_local aarch64_vector_pcs void", "is called by aarch64_vector_pcs"),
        ("ptr noundef", "ptr noundef byval({ i64, i64, i64 })", "has a parameter with byval"),
        ("ptr noundef", "ptr sret({ i64, i64 })", "has a parameter with sret"),
    ],
)
def test_another_way_of_calling_is_refused(old: str, new: str, message: str) -> None:
    """LLVM takes a call of another convention for one that never happens, and says nothing."""
    with pytest.raises(fe.CompileError, match=f"f: the function first {message}"):
        built(TEXT.replace(old, new))


def test_no_text_is_no_path() -> None:
    with pytest.raises(fe.CompileError, match="what was given as LLVM IR is empty"):
        built("")
