"""``import pysimd``: what it loads, how long it takes, and the reasons of backends that are missing."""

import json
import sys

import pytest
from cases import QUICK
from process import RUNNER, output_of

import pysimd

TIMES = """
import time
t0 = time.process_time()
import numpy, cffi, _cffi_backend, json, difflib, importlib.resources
t1 = time.process_time()
import pysimd
print(t1 - t0, time.process_time() - t1)
"""


def test_imports_no_gpu_library_and_nothing_heavy():
    code = "import sys, json, pysimd; print(json.dumps(sorted(sys.modules)))"
    loaded = {name.partition(".")[0] for name in json.loads(output_of("-c", code))}
    assert not loaded & {"cupy", "cupy_backends", "matplotlib", "torch", "dask", "jax", "numba", "ml_dtypes", "pytest"}


def test_listing_backends_and_kernels_imports_no_cupy_where_there_is_none():
    code = "import sys, pysimd; pysimd.backends(); pysimd.kernels(); print('cupy' in sys.modules)"
    blocked = f"import sys; sys.modules['cupy'] = None; {code.replace('import sys, ', 'import ')}"
    assert output_of("-c", blocked).strip() == "True"  # the entry that blocks it, and no error


@pytest.mark.skipif(QUICK or bool(RUNNER), reason="no times in an emulator")
def test_import_time():
    """Time of the processor, the best of several runs: at most 0.6 of what NumPy, cffi and the standard library
    take (0.45 to 0.52: Zen 5). Ratios bear a machine that is busy with other things; a bound in seconds does not."""
    pairs = [tuple(map(float, output_of("-c", TIMES).split())) for _ in range(7)]
    assert min(own for _, own in pairs) < 0.6 * min(others for others, _ in pairs), pairs


def test_backends():
    names = [b.name for b in pysimd.backends()]
    assert names == ["cpu", "cuda", "hip"]
    cpu = pysimd.backends()[0]
    assert cpu.available
    assert cpu.reason == ""
    assert cpu.device
    for backend in pysimd.backends():
        assert backend.available == (backend.reason == ""), backend


NO_CUPY = """
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "cupy" else find(name, *rest)
import pysimd
for b in pysimd.backends()[1:]:
    print(b.available, b.reason)
"""


def test_the_reason_without_cupy_says_what_to_install():
    lines = output_of("-c", NO_CUPY).splitlines()
    assert lines == [
        "False CuPy is not installed: pip install 'pysimd[cuda]'",
        "False CuPy is not installed: pip install 'pysimd[rocm]'",
    ]


def test_module_is_the_installed_one():
    assert sys.modules["pysimd"].__version__ == pysimd.__version__
