"""The peers of a CPU benchmark: NumPy always; PyTorch, Numba, Eigen and LIBXSMM where they are installed.

A peer is a function of C-contiguous float32 batches ``(a, b, out)`` that gives a ``timing.Run`` of ``out = a @ b``. The
compiled peers repeat the product in C, the others are called from Python, as they would be used.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from cffi import FFI

from pysimd.bench.timing import Run, repeated

Peer = Callable[[np.ndarray, np.ndarray, np.ndarray], Run]

EIGEN = next((p for p in ("/usr/include/eigen3", "/usr/local/include/eigen3") if Path(p).is_dir()), None)
LIBXSMM = os.environ.get("LIBXSMM_ROOT")  # holds include/ and lib/


def peers() -> dict[str, Peer]:
    """Peers by name with version; NumPy first."""
    return {f"numpy {np.__version__}": _numpy, **_torch(), **_numba(), **_compiled()}


def _numpy(a, b, out) -> Run:
    return repeated(partial(np.matmul, a, b, out=out))


def _torch() -> dict[str, Peer]:
    try:
        import torch
    except ImportError:
        return {}
    torch.set_num_threads(1)

    def bmm(a, b, out):
        torch.bmm(torch.from_numpy(a), torch.from_numpy(b), out=torch.from_numpy(out))

    return {f"torch.bmm {torch.__version__}": lambda a, b, out: repeated(partial(bmm, a, b, out))}


def _numba() -> dict[str, Peer]:
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

    return {f"numba {numba.__version__}": lambda a, b, out: repeated(partial(loops, a, b, out))}


def _compiled() -> dict[str, Peer]:
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

    def peer(name: str) -> Peer:
        function = getattr(lib, name)

        def with_operands(a, b, out) -> Run:
            pointers = [ffi.cast("float *", ffi.from_buffer(x)) for x in (a, b, out)]

            def run(calls: int) -> None:
                if not function(a.shape[-1], *pointers, len(a), calls):
                    raise ValueError(f"{name} was not compiled for {a.shape[-1]}x{a.shape[-1]}")

            return run

        return with_operands

    return {name.removesuffix("_f32"): peer(name) for name in names}
