"""Operators of PyTorch: what their schemas say, and what calls of them give, write and refuse."""

from __future__ import annotations

import re
import threading
from typing import Any

import pytest
from operator_kernels import CPU, compiled, fresh_name

import ferrule as fe
from ferrule import specs
from ferrule.compiler import conventions
from ferrule.compiler.hostcode import HostCode
from ferrule.compiler.operators.torch import pythonic, registration, symbols
from ferrule.compiler.operators.torch.boxed import why_not_boxed
from ferrule.compiler.operators.torch.plans import plan_of
from ferrule.compiler.operators.torch.words import NAMES

torch = pytest.importorskip("torch")


def schema_of(operator: Any) -> str:
    return str(operator.default._schema).partition("::")[2].partition("(")[2]


def operator_of(name: str, **options: Any) -> Any:
    return fe.torch_op(compiled(name), fresh_name(), **options)


SCHEMAS = [
    ("scaled", (), "Tensor x, Tensor(a!) y, float times) -> ()"),
    ("scaled", ("y",), "Tensor x, float times) -> Tensor"),
    ("rms_norm", ("y",), "Tensor x, Tensor weight, float eps) -> Tensor"),
    (
        "rms_norm_backward",
        ("grad_x", "grad_weight"),
        "Tensor grad, Tensor x, Tensor weight, float eps) -> (Tensor, Tensor)",
    ),
    ("doubled", (), "Tensor x) -> Tensor"),
    ("doubled_and_sum", (), "Tensor x) -> (Tensor, float)"),
    (
        "options",
        (),
        "Tensor x, Tensor? bias, Tensor(a!) y, SymInt times=3, *, bool negate=False) -> ()",
    ),
    ("added", (), "Tensor[] both, Tensor(a!) y) -> ()"),
    ("twice", (), "Tensor x, Tensor(a!) y) -> ()"),
]


@pytest.mark.parametrize(("name", "out", "schema"), SCHEMAS)
def test_the_schema_follows_from_the_signature(name: str, out: tuple[str, ...], schema: str):
    assert schema_of(operator_of(name, out=out)) == schema


def test_an_operator_is_torch_s_own_object():
    name = fresh_name()
    operator = fe.torch_op(compiled("doubled"), name)
    assert operator is getattr(torch.ops.ferrule_tests, name.partition("::")[2])
    assert operator(torch.ones(3)).tolist() == [2.0, 2.0, 2.0]


def test_written_tensors_are_written_and_counted():
    operator, y = operator_of("scaled"), torch.zeros(4)
    operator(torch.arange(4.0), y, 3.0)
    assert y.tolist() == [0.0, 3.0, 6.0, 9.0]
    assert y._version == 1


def test_made_tensors_have_the_sizes_of_the_arguments():
    operator = operator_of("rms_norm", out=["y"])
    x, weight = torch.randn(3, 5), torch.randn(5)
    wanted = torch.nn.functional.rms_norm(x, (5,), weight, 1e-6)
    torch.testing.assert_close(operator(x, weight, 1e-6), wanted)
    assert operator(torch.empty(0, 5), weight, 1e-6).shape == (0, 5)


def test_returned_tensors_are_torch_s_own_memory():
    operator = operator_of("doubled")
    results = [operator(torch.full((1000,), float(i))) for i in range(20)]
    assert [float(each.sum()) for each in results] == [2000.0 * i for i in range(20)]
    assert all(each.untyped_storage().resizable() for each in results)


def test_several_results_come_as_a_tuple():
    y, total = operator_of("doubled_and_sum")(torch.arange(4.0))
    assert y.tolist() == [0.0, 2.0, 4.0, 6.0]
    assert total == 6.0


def test_optional_arguments_defaults_and_keywords():
    operator, x = operator_of("options", out=["y"]), torch.arange(3.0)
    assert operator(x, None).tolist() == [0.0, 3.0, 6.0]
    assert operator(x, torch.ones(3)).tolist() == [1.0, 4.0, 7.0]
    assert operator(x, None, 5).tolist() == [0.0, 5.0, 10.0]
    assert operator(x, torch.ones(3), times=2, negate=True).tolist() == [1.0, -1.0, -3.0]


def test_lists_of_tensors():
    x, y = torch.arange(3.0), torch.zeros(3)
    operator_of("added")([x, x], y)
    assert (y.tolist(), y._version) == ([0.0, 2.0, 4.0], 1)
    assert operator_of("added", out=["y"])([x, y]).tolist() == [0.0, 3.0, 6.0]
    with pytest.raises(RuntimeError, match="both"):
        operator_of("added")([x], y)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("out", [(), ("y",)])
def test_one_operator_for_several_dtypes(dtype: str, out: tuple[str, ...]):
    operator, x = operator_of("twice", out=out), torch.arange(3).to(getattr(torch, dtype))
    y = operator(x) if out else torch.zeros_like(x)
    if not out:
        operator(x, y)
    assert (y.tolist(), y.dtype) == ([0, 2, 4], x.dtype)


ODD_NAMES = {
    "complex32": "(code 5, bits 32, lanes 1)",
    "float4_e2m1fn_x2": "float4_e2m1fnx2",
}


@pytest.mark.parametrize("name", sorted({*NAMES.values()} - {"float32"}))
@pytest.mark.filterwarnings("ignore:ComplexHalf")
def test_torch_s_numbers_of_dtypes(name: str):
    """What a refusal says a tensor's dtype is, is what torch says."""
    if not hasattr(torch, name):
        pytest.skip(f"this torch has no {name}")
    said = re.escape(f"expected dtype=float32, but got dtype={ODD_NAMES.get(name, name)}")
    with pytest.raises(RuntimeError, match=said + "$"):
        operator_of("doubled")(torch.empty(4, dtype=getattr(torch, name)))


ODD = {
    "sizes": lambda x, y: (x, y[:2]),
    "dtype": lambda x, y: (x.double(), y),
    "dims": lambda x, y: (x.reshape(2, 2), y),
    "strides": lambda x, y: (torch.zeros(8)[::2], y),
}


@pytest.mark.parametrize("odd", list(ODD))
@pytest.mark.parametrize("way", ["boxed", "python"])
def test_refusals_are_those_of_the_call(odd: str, way: str, monkeypatch: pytest.MonkeyPatch):
    if way == "python":
        monkeypatch.setattr(registration, "_boxed", lambda *_: None)
    x, y = ODD[odd](torch.arange(4.0), torch.zeros(4))
    with pytest.raises((TypeError, ValueError)) as call:
        compiled("scaled")(x, y, 1.0)
    with pytest.raises(RuntimeError) as operation:
        operator_of("scaled")(x, y, 1.0)
    assert str(operation.value) == str(call.value)


def test_an_error_of_the_function_is_torch_s():
    operator, x = operator_of("refuses", out=["y"]), torch.ones(4)
    assert operator(x).tolist() == [1.0] * 4
    for _ in range(3):
        with pytest.raises(RuntimeError, match="three are too many"):
            operator(torch.ones(3))
    assert operator(x).tolist() == [1.0] * 4


def test_a_number_out_of_range_is_refused():
    with pytest.raises(RuntimeError, match="times"):
        operator_of("options", out=["y"])(torch.ones(2), None, 1 << 40)


def test_masks_and_views_are_what_torch_says():
    """Pending negations are torch's to resolve; it refuses them on what is written."""
    operator, x, y = operator_of("scaled"), torch._neg_view(torch.ones(3)), torch.zeros(3)
    operator(x, y, 2.0)
    assert y.tolist() == [-2.0] * 3
    with pytest.raises(RuntimeError):
        operator(x, torch._neg_view(y), 2.0)
    assert y.tolist() == [-2.0] * 3
    assert operator_of("doubled")(torch.arange(6.0)[3:]).tolist() == [6.0, 8.0, 10.0]


def test_a_copy_on_write_tensor_is_copied_before_it_is_written():
    source = torch.zeros(3)
    lazy = torch._lazy_clone(source)
    operator_of("scaled")(torch.ones(3), lazy, 2.0)
    assert (source.tolist(), lazy.tolist()) == ([0.0] * 3, [2.0] * 3)


def test_tensors_of_inference_mode():
    operator, x = operator_of("scaled"), torch.ones(3)
    with torch.inference_mode():
        y = torch.zeros(3)
        operator(x, y, 2.0)
    assert y.tolist() == [2.0] * 3
    with pytest.raises(RuntimeError, match="inference tensor"):
        operator(x, y, 3.0)
    assert y.tolist() == [2.0] * 3


def test_subclasses_and_parameters_are_tensors():
    parameter = torch.nn.Parameter(torch.ones(3), requires_grad=False)
    assert operator_of("doubled")(parameter).tolist() == [2.0] * 3


def test_threads_call_an_operator():
    operator, wrong = operator_of("rms_norm", out=["y"]), []

    def work(seed: int) -> None:
        x = torch.full((4, 8), float(seed + 1))
        for _ in range(200):
            if not torch.allclose(operator(x, torch.ones(8), 0.0), torch.ones(4, 8)):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_arguments_and_errors_leave_no_tensor_behind():
    x, other = torch.ones(4), torch.ones(4).double()
    operators = [(operator_of("scaled", out=["y"]), (1.0,)), (operator_of("doubled"), ())]
    for _ in range(50):
        for operator, more in operators:
            operator(x, *more)
            with pytest.raises(RuntimeError):
                operator(other, *more)
    for tensor in (x, other):
        storage = tensor.untyped_storage()
        assert torch._C._storage_Use_Count(storage._cdata) == 2  # the tensor's and `storage`


WRONG = {
    "no namespace": (lambda f: fe.torch_op(f, "doubled"), ValueError, "namespace::name"),
    "a name that is none": (lambda f: fe.torch_op(f, "a::b c"), ValueError, "namespace::name"),
    "torch's namespace": (lambda f: fe.torch_op(f, "aten::add"), ValueError, "torch's own"),
    "no text": (lambda f: fe.torch_op(f, 5), TypeError, "text"),
    "no function": (lambda f: fe.torch_op(f.signature, "a::b"), TypeError, "compile it first"),
    "out that is read": (
        lambda f: fe.torch_op(f, "a::b", out=["x"]), ValueError, "is only read"
    ),
    "out that is none": (
        lambda f: fe.torch_op(f, "a::b", out=["z"]), ValueError, "no parameter"
    ),
    "out as a text": (lambda f: fe.torch_op(f, "a::b", out="x"), TypeError, "list of names"),
    "save alone": (lambda f: fe.torch_op(f, "a::b", save=["x"]), ValueError, "needs a backward"),
    "a backward that is none": (
        lambda f: fe.torch_op(f, "a::b", backward=1), TypeError, "must be a compiled function"
    ),
    "an unknown save": (
        lambda f: fe.torch_op(f, "a::b", backward=lambda c, g: g, save=["q"]),
        ValueError,
        "these are x, result",
    ),
    "a backward without gradients": (
        lambda f: fe.torch_op(f, "a::b", backward=f, save=["x"]), ValueError, "grad_x"
    ),
}  # fmt: skip


@pytest.mark.parametrize("wrong", list(WRONG))
def test_wrong_use_is_refused_before_anything_is_registered(wrong: str):
    make, kind, says = WRONG[wrong]
    with pytest.raises(kind, match=says):
        make(compiled("doubled"))
    assert not torch._C._jit_get_schemas_for_operator("a::b")


def test_a_name_stands_for_one_operator():
    name = fresh_name()
    fe.torch_op(compiled("doubled"), name)
    with pytest.raises(ValueError, match="replace=True"):
        fe.torch_op(compiled("scaled"), name)
    operator = fe.torch_op(compiled("scaled"), name, out=["y"], replace=True)
    assert operator(torch.ones(2), 5.0).tolist() == [5.0, 5.0]
    space = fresh_name().partition("::")[2]
    library = torch.library.Library(space, "DEF")
    library.define("taken(Tensor x) -> Tensor")
    with pytest.raises(ValueError, match="choose another name"):
        fe.torch_op(compiled("doubled"), f"{space}::taken", replace=True)


def test_what_a_schema_cannot_say_is_refused():
    pair = specs.Signature("f", [specs.Tensor("x", (4,), "float32"), specs.Function("callback")])
    with pytest.raises(ValueError, match="callback: .*has no type in torch's schemas"):
        plan_of("a::b", pair)
    number = specs.Signature("f", [specs.Scalar("n", "int32")])
    with pytest.raises(ValueError, match="takes no tensor"):
        plan_of("a::b", number)
    result = specs.Signature("f", pair.params[:1], result=specs.Shape("result", (4,)))
    with pytest.raises(ValueError, match="returns"):
        plan_of("a::b", result)
    kept = specs.Tensor("x", (4,), "float32", owning=True)
    with pytest.raises(ValueError, match="may return its argument x, and an operator of torch ret"):
        plan_of("a::b", specs.Signature("f", [kept], result=specs.Tensor("r", (4,), "float32")))


def test_a_size_that_no_argument_tells_cannot_be_made():
    with pytest.raises(ValueError, match="no argument tells the size n of y"):
        fe.torch_op(_from_one_number(), "a::b", out=["y"])


def _from_one_number() -> fe.Function:
    n = specs.sym_int(symbol="n")
    params = [
        specs.Tensor("x", (4,), "float32", read_only=True),
        specs.Tensor("y", (n,), "float32"),
    ]
    code = HostCode.from_library("libc.so.6")
    signature = specs.Signature("f", params)
    return fe.compiler.build(signature, conventions.CFunction("getpid", [], code=code))


@fe.jit
def text_of(x: fe.Tensor, text: str = 'é "\\\n\t\x00 𝄞'):
    return text


def test_a_default_may_be_any_text():
    vector = fe.make_fake_compact_tensor(fe.Float32, (fe.sym_int(),))
    operator = fe.torch_op(fe.compile(text_of, vector, "", options=CPU), fresh_name())
    assert operator(torch.zeros(2)) == 'é "\\\n\t\x00 𝄞'


def test_text_numbers_and_lists_of_sizes_go_through_python():
    n = specs.sym_int(symbol="n")
    params = [
        specs.Tensor("x", (n,), "float32", read_only=True),
        specs.String("text"),
        specs.Shape("shape", (2, n)),
        specs.DataType("dtype"),
    ]
    signature = specs.Signature("f", params)
    plan = plan_of("a::b", signature)
    assert why_not_boxed(plan) == "text is a str"
    code = HostCode.from_library("libc.so.6")
    function = fe.compiler.build(signature, conventions.CFunction("getpid", [], code=code))
    operator = fe.torch_op(function, fresh_name())
    assert schema_of(operator) == "Tensor x, str text, SymInt[] shape, ScalarType dtype) -> ()"
    operator(torch.ones(3), "hello", [2, 3], torch.float16)
    with pytest.raises(RuntimeError, match="shape"):
        operator(torch.ones(3), "hello", [2, 4], torch.float16)


@pytest.mark.parametrize("name", ["scaled", "doubled", "options", "doubled_and_sum"])
def test_the_python_kernel_does_the_same(name: str, monkeypatch: pytest.MonkeyPatch):
    x = torch.arange(4.0)
    arguments = {"scaled": (x, 2.0), "options": (x, x)}.get(name, (x,))
    out = ("y",) if name in ("scaled", "options") else ()
    boxed = operator_of(name, out=out)(*arguments)
    monkeypatch.setattr(symbols, "addresses", lambda names: None)
    monkeypatch.setattr(registration, "addresses", lambda names: None)
    seen = []
    made = pythonic.python_kernel
    monkeypatch.setattr(
        registration, "python_kernel", lambda *given: seen.append(1) or made(*given)
    )
    torch.testing.assert_close(operator_of(name, out=out)(*arguments), boxed)
    assert seen
