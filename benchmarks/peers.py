"""The peers of a CPU benchmark: NumPy always; PyTorch, Numba, Eigen and LIBXSMM where they are installed.

A peer is a function ``f(a, b, out, calls)`` on C-contiguous float32 batches, which does the product ``calls`` times;
the compiled ones repeat it in C, the Python ones from Python, as they would be used.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from cffi import FFI

EIGEN = next((p for p in ("/usr/include/eigen3", "/usr/local/include/eigen3") if Path(p).is_dir()), None)
LIBXSMM = os.environ.get("LIBXSMM_ROOT")  # holds include/ and lib/


def peers() -> dict[str, object]:
    """Name with version, to function; NumPy first."""
    found = {f"numpy {np.__version__}": repeated(lambda a, b, out: np.matmul(a, b, out=out))}
    for make in (_torch, _numba, _compiled):
        found.update(make())
    return found


def repeated(function):
    """A peer that is called from Python, once for each product of the batch."""

    def call(a, b, out, calls):
        for _ in range(calls):
            function(a, b, out)

    return call


def _torch():
    try:
        import torch
    except ImportError:
        return {}
    torch.set_num_threads(1)

    def bmm(a, b, out):
        torch.bmm(torch.from_numpy(a), torch.from_numpy(b), out=torch.from_numpy(out))

    return {f"torch.bmm {torch.__version__}": repeated(bmm)}


def _numba():
    try:
        import numba
    except ImportError:
        return {}

    @numba.njit(fastmath=True)
    def loops(a, b, out):
        for i in range(a.shape[0]):
            for r in range(a.shape[1]):
                for s in range(b.shape[2]):
                    x = np.float32(0)
                    for p in range(a.shape[2]):
                        x += a[i, r, p] * b[i, p, s]
                    out[i, r, s] = x

    return {f"numba {numba.__version__}": repeated(loops)}


def _compiled():
    """Eigen and LIBXSMM, compiled with -O3 -march=native from peers.cpp."""
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None or not (EIGEN or LIBXSMM):
        return {}
    library = Path(tempfile.mkdtemp()) / "peers.so"
    command = [compiler, "-O3", "-march=native", "-shared", "-fPIC", str(Path(__file__).with_name("peers.cpp"))]
    if EIGEN:
        command += ["-DWITH_EIGEN", f"-I{EIGEN}"]
    if LIBXSMM:
        command += ["-DWITH_LIBXSMM", f"-I{LIBXSMM}/include", f"-L{LIBXSMM}/lib", "-lxsmm", "-ldl", "-lpthread", "-lrt"]
    subprocess.run([*command, "-o", str(library)], check=True)
    ffi = FFI()
    names = [name for name, there in (("eigen_f32", EIGEN), ("libxsmm_f32", LIBXSMM)) if there]
    for name in names:
        ffi.cdef(f"int {name}(int size, const float *a, const float *b, float *c, long n, long calls);")
    lib = ffi.dlopen(str(library))

    def wrap(name):
        function = getattr(lib, name)

        def call(a, b, out, calls):
            pointers = [ffi.cast("float *", ffi.from_buffer(x)) for x in (a, b, out)]
            if not function(a.shape[-1], *pointers, len(a), calls):
                raise ValueError(f"{name} was not compiled for {a.shape[-1]}x{a.shape[-1]}")

        return call

    return {name.removesuffix("_f32"): wrap(name) for name in names}
