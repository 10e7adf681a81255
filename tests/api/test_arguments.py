"""Every parameter of every public function, given arguments of wrong types: the project's own errors, nothing else."""

import inspect

import numpy as np
import pytest

import pysimd

WRONG = {"None": None, "3": 3, "a string": "x", "a list": [], "an object": object()}

KERNEL = pysimd.kernel("generic_f32_outer_4x4")
HIP = pysimd.kernel("hip_f32_outer_4x4")
A = np.ones((4, 4), np.float32)
REPORT = pysimd.Report((), {})

# name: (function, arguments that it takes, what else it takes by parameter)
FUNCTIONS = {
    "backends": (pysimd.backends, {}, {}),
    "compare": (
        pysimd.compare,
        {"kernels": [KERNEL], "count": False, "measure": False, "seconds": 0.001, "targets": (), "fresh": False,
         "say": None},
        {"say": ("None",), "kernels": ("None", "a list"), "seconds": ("3",), "targets": ("a list",)},
    ),
    "gemm": (
        pysimd.gemm,
        {"a": A, "b": A, "c": A, "alpha": 1.0, "beta": 1.0, "trans_a": False, "trans_b": False, "out": A.copy(),
         "kernel": KERNEL, "threads": 1},
        {"alpha": ("3",), "beta": ("3",), "out": ("None",), "kernel": ("None",), "threads": ("None", "3")},
    ),
    "get_include": (pysimd.get_include, {"backend": "cuda"}, {}),
    "inspect": (pysimd.inspect, {"kernel": KERNEL, "target": None}, {"target": ("None",)}),
    "kernel": (pysimd.kernel, {"name": KERNEL.name}, {}),
    "kernels": (
        pysimd.kernels,
        {"backend": "cpu", "target": None, "types": None, "form": None, "available": None},
        {"backend": ("None", "a string"), "target": ("None", "a string"), "types": ("None", "a string"),
         "form": ("None", "a string"), "available": ("None",)},
    ),
    "matmul": (
        pysimd.matmul,
        {"a": A, "b": A, "out": A.copy(), "kernel": KERNEL, "threads": 1},
        {"out": ("None",), "kernel": ("None",), "threads": ("None", "3")},
    ),
    "rung": (pysimd.rung, {"name": "naive"}, {}),
    "rungs": (pysimd.rungs, {"backend": "cuda"}, {}),
    "MicroKernel.__call__": (
        KERNEL.__call__, {"a": A, "b": A, "c": A, "out": A.copy()}, {"c": ("None",), "out": ("None",)}
    ),
    "MicroKernel.bind": (KERNEL.bind, {"a": A, "b": A, "c": A.copy()}, {}),
    "MicroKernel.simulate": (
        HIP.simulate, {"a": A, "b": A, "c": A, "target": "gfx942"}, {"c": ("None",)}
    ),
    "Report.from_dict": (pysimd.Report.from_dict, {"data": REPORT.to_dict()}, {}),
    "Report.html": (REPORT.html, {}, {}),
    "Report.plot": (REPORT.plot, {"path": "/nowhere/x.png"}, {}),
    "Report.plot_rooflines": (REPORT.plot_rooflines, {"path": "/nowhere/x.png"}, {}),
    "Report.to_dict": (REPORT.to_dict, {}, {}),
    "Report.to_json": (REPORT.to_json, {"indent": 2}, {"indent": ("None", "3")}),
}  # fmt: skip

CASES = [(name, parameter, wrong) for name, row in FUNCTIONS.items() for parameter in row[1] for wrong in WRONG]


def test_every_public_function_is_here():
    public = {name for name in pysimd.__all__ if inspect.isroutine(getattr(pysimd, name))}
    for owner in (pysimd.MicroKernel, pysimd.Report):
        methods = [name for name, x in vars(owner).items() if inspect.isfunction(x) or isinstance(x, classmethod)]
        public |= {f"{owner.__name__}.{name}" for name in methods if not name.startswith("_") or name == "__call__"}
    assert public == set(FUNCTIONS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_parameter_is_here(name):
    function, arguments, _ = FUNCTIONS[name]
    assert list(inspect.signature(function).parameters) == list(arguments)


@pytest.mark.parametrize(("name", "parameter", "wrong"), CASES)
def test_wrong_types(name, parameter, wrong):
    function, arguments, allowed = FUNCTIONS[name]
    try:
        function(**(arguments | {parameter: WRONG[wrong]}))
    except pysimd.UnavailableError:
        pass  # a compiler or another package is missing
    except pysimd.PysimdError:
        assert wrong not in allowed.get(parameter, ())
    else:
        assert wrong in allowed.get(parameter, ())


@pytest.mark.parametrize("wrong", ["N", "T", 2, -1, None, np.array([True, False]), np.zeros((4, 4))])
@pytest.mark.parametrize("parameter", ["trans_a", "trans_b"])
def test_only_true_and_false_transpose(parameter, wrong):
    with pytest.raises(pysimd.OptionError, match=f"{parameter} must be True or False, got"):
        pysimd.gemm(A, A, **{parameter: wrong})


@pytest.mark.parametrize("flag", [True, np.True_, 1, np.int64(1)])
def test_what_means_true(flag):
    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    np.testing.assert_array_equal(pysimd.gemm(x, A, trans_a=flag), x.T @ A)
