"""``matmul`` and ``gemm`` are builtin functions (core/entry.c) that accept what their Python functions accept."""

import copy
import inspect
import pickle
import pydoc
import sys

import numpy as np
import pytest
from process import run_python

import pysimd
from pysimd import products

A = np.arange(12, dtype=np.float32).reshape(3, 4)
B = np.arange(20, dtype=np.float32).reshape(4, 5)
C = np.full((3, 5), 2, np.float32)


@pytest.mark.parametrize("function", [pysimd.matmul, pysimd.gemm])
def test_looks_like_a_function(function):
    assert inspect.isbuiltin(function)
    assert function.__module__ == "pysimd.products"
    assert function.__doc__.startswith(("Matrix product", "``alpha * a @ b"))
    assert f"{function.__name__}(a, b" in pydoc.plain(pydoc.render_doc(function))
    assert pickle.loads(pickle.dumps(function)) is copy.deepcopy(function) is function


def test_signatures():
    assert str(inspect.signature(pysimd.matmul)) == "(a, b, *, out=None, kernel=None, threads=None)"
    assert str(inspect.signature(pysimd.gemm)) == (
        "(a, b, c=None, *, alpha=1.0, beta=0.0, trans_a=False, trans_b=False, out=None, kernel=None, threads=None)"
    )


@pytest.mark.parametrize(
    ("given", "named"),
    [((A, B), {}), ((A,), {"b": B}), ((), {"a": A, "b": B}), ((), {"threads": 1, "b": B, "kernel": None, "a": A})],
)
def test_arguments_by_position_and_name(given, named):
    assert (pysimd.matmul(*given, **named) == A @ B).all()
    assert (pysimd.gemm(*given, **named, alpha=2) == 2 * (A @ B)).all()


def test_each_parameter_gets_its_argument():
    out = np.empty_like(C)
    assert pysimd.gemm(A.T, B.T, C, alpha=2, beta=3, trans_a=True, trans_b=True, out=out) is out
    assert (out == 2 * (A @ B) + 6).all()
    assert (pysimd.gemm(beta=1, c=C, b=B, a=A) == A @ B + 2).all()
    with pytest.raises(pysimd.UnknownKernelError):
        pysimd.matmul(A, B, kernel="unknown")
    with pytest.raises(pysimd.OptionError, match="threads"):
        pysimd.gemm(A, B, threads=0)


def test_c_has_the_arguments_where_they_belong(monkeypatch):
    """Arrays of one shape, each of which could stand for another; Python is not entered."""
    a, b, c, out = (np.full((4, 4), x, np.float32) for x in (1, 2, 3, 9))
    pysimd.matmul(a, b)
    monkeypatch.setattr(products.replay, "replayed", lambda *given: pytest.fail("Python was entered"))
    assert pysimd.matmul(a, b, out=out) is out
    assert (out == 8).all()
    assert pysimd.gemm(a, b, c=c, trans_b=True, out=out, beta=10, alpha=2) is out
    assert (out == 46).all()
    assert [x[0, 0] for x in (a, b, c)] == [1, 2, 3]


def test_names_that_are_not_interned():
    names = ["".join(["o", "ut"]), "".join(["thr", "eads"])]
    out = np.empty_like(C)
    assert pysimd.matmul(A, B, **dict(zip(names, (out, 1), strict=True))) is out
    assert (out == A @ B).all()


@pytest.mark.parametrize(
    ("given", "named", "message"),
    [
        ((), {}, "missing 2 required positional arguments: 'a' and 'b'"),
        ((A,), {}, "missing 1 required positional argument: 'b'"),
        ((A, B, None), {}, "takes 2 positional arguments but 3 were given"),
        ((A, B), {"a": A}, "multiple values for argument 'a'"),
        ((A, B), {"other": A}, "unexpected keyword argument 'other'"),
    ],
)
def test_errors_are_those_of_the_python_function(given, named, message):
    with pytest.raises(TypeError, match=f"matmul.*{message}"):
        pysimd.matmul(*given, **named)


def test_references_are_kept():
    arrays = [np.ones((2, 2), np.float32) for _ in range(3)] + ["no array"]
    before = [sys.getrefcount(x) for x in arrays]
    for _ in range(10):
        pysimd.matmul(arrays[0], arrays[1], out=arrays[2])
        with pytest.raises(pysimd.PysimdError):
            pysimd.matmul(arrays[0], arrays[3], out=arrays[2])
    assert [sys.getrefcount(x) for x in arrays] == before


def test_first_call_and_reload():
    code = (
        "import importlib, numpy as np, pysimd, pysimd.products\n"
        "x = np.ones((2, 2), np.float32)\n"
        "old = pysimd.matmul\n"
        "assert (pysimd.gemm(x, x) == 2).all() and (old(x, x) == 2).all()\n"
        "new = importlib.reload(pysimd.products).matmul\n"
        "assert (new(x, x) == 2).all() and (old(x, x, threads=1) == 2).all()\n"
        "try:\n"
        "    new(x, 'no array')\n"
        "except pysimd.DTypeError:\n"
        "    pass\n"
    )
    run_python("-c", code).check_returncode()
