"""pysimd's HIP backend through the real CuPy, in a process whose ROCm is the stub: launches run in the simulator.

Started by hip/test_end_to_end.py, which sets the environment. Prints one line for everything that held.
"""

import ctypes
import os
import sys

import numpy as np
import pytest
import reference

from pysimd import simulator

TARGET = os.environ["PYSIMD_STUB_TARGET"]
LAUNCHED = []


def serve() -> None:
    """Let the stub's launches run in the simulator, on all memory that CuPy has allocated."""
    stub = ctypes.CDLL(os.environ["PYSIMD_STUB"])
    stub.stub_room.restype = ctypes.c_size_t
    numbers = ctypes.POINTER(ctypes.c_uint)
    pointers = ctypes.POINTER(ctypes.c_void_p)
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, numbers, numbers, ctypes.c_uint, pointers)
    codes = {}

    def launch(image, name, grid, block, lds, arguments):
        try:
            if image not in codes:
                codes[image] = simulator.CodeObject.from_bytes(_elf(image), TARGET)
            code, name = codes[image], name.decode()
            packed = bytearray()
            for i, argument in enumerate(code.kernels[name].explicit_arguments):
                packed += bytes(argument.offset - len(packed)) + ctypes.string_at(arguments[i], argument.size)
            memory = _Rooms(stub)
            simulator.launch(code, name, grid[:3], block[:3], bytes(packed), memory, lds)
        except Exception as error:
            print(f"launch of {name}: {type(error).__name__}: {error}", file=sys.stderr)
            return 719  # hipErrorLaunchFailure
        LAUNCHED.append(name)
        return 0

    serve.keep = kind(launch)
    stub.stub_on_launch(serve.keep)


class _Rooms(simulator.Memory):
    """Every allocation at its own address; what the launch adds, where this process has nothing."""

    def __init__(self, stub):
        super().__init__()
        at = ctypes.c_void_p()
        for i in range(stub.stub_rooms()):
            size = stub.stub_room(i, ctypes.byref(at))
            if size:
                self._next = at.value
                self.add(np.frombuffer((ctypes.c_ubyte * size).from_address(at.value), np.uint8), f"allocation {i}")
        self._next = 1 << 46


def _elf(address: int) -> bytes:
    header = ctypes.string_at(address, 64)
    sections, entry, count = (int.from_bytes(header[i:j], "little") for i, j in ((40, 48), (58, 60), (60, 62)))
    return ctypes.string_at(address, sections + entry * count)


def main() -> None:
    import cupy

    import pysimd
    from pysimd.backends.gpu import replay

    assert cupy.cuda.runtime.is_hip
    serve()
    backend = pysimd.backends()[2]
    assert backend.available, backend.reason
    assert backend.features[0] == TARGET, backend
    print("backend", backend.device, *backend.features)
    rng = np.random.default_rng(7)
    for kernel in pysimd.kernels("hip"):
        if not kernel.available:
            assert f"{TARGET} not" in kernel.unavailable_reason, kernel.unavailable_reason
            continue
        a = reference.moderate(rng, kernel.a_dtype, (5, kernel.mr, 32))
        b = reference.moderate(rng, kernel.b_dtype, (5, 32, kernel.nr))
        c = reference.random_result(rng, kernel.c_dtype, (5, kernel.mr, kernel.nr))
        x, y, z = cupy.asarray(a), cupy.asarray(b), cupy.asarray(c)
        result = kernel(x, y, z)
        assert type(result) is cupy.ndarray
        reference.check(cupy.asnumpy(result), kernel.types, a, b, c)
        out = cupy.empty_like(z)
        assert kernel(x, y, out=out) is out
        reference.check(cupy.asnumpy(out), kernel.types, a, b)
        run = kernel.bind(x, y, z)
        run()
        reference.check(cupy.asnumpy(z), kernel.types, a, b, c)
        print("kernel", kernel.name)
    for types, dtype, size in (("f32", np.float32, 4), ("i8i32", np.int8, 5), ("f16", np.float16, 8)):
        a, b = (reference.moderate(rng, np.dtype(dtype), (70, size, size)) for _ in range(2))
        x, y = cupy.asarray(a), cupy.asarray(b)
        reference.check(cupy.asnumpy(pysimd.matmul(x, y)), types, a, b)
        before = len(LAUNCHED)
        reference.check(cupy.asnumpy(pysimd.matmul(x, y)), types, a, b)  # the launch is replayed
        assert len(LAUNCHED) == before + 1
        print("matmul", types)
    a, b = (reference.moderate(rng, np.dtype(np.int8), shape) for shape in ((2, 40, 48), (2, 48, 40)))
    x, y = cupy.asarray(a), cupy.asarray(b)
    reference.check(cupy.asnumpy(pysimd.matmul(x, y)), "i8i32", a, b)
    print("matmul of int8, too large for the batched kernel: tiles")
    without_rocblas(pysimd, cupy, rng)
    refused(pysimd, cupy)
    assert replay.KNOWN[cupy.ndarray]._kept
    print("launches", len(LAUNCHED))


def without_rocblas(pysimd, cupy, rng) -> None:
    """The stub has no rocBLAS: a rung multiplies float32, strided and with factors; other types say what is missing."""
    a, b, c = (rng.standard_normal(shape, dtype=np.float32) for shape in ((40, 70), (36, 70), (36,)))
    x, y, z = (cupy.asarray(v) for v in (a, b, c))
    result = pysimd.gemm(x, y, z, alpha=2, beta=-1, trans_b=True)
    assert "reg4x4_At" in LAUNCHED[-1], LAUNCHED[-1]
    exact, magnitude = 2 * (a.astype(np.float64) @ b.T) - c, 2 * (abs(a) @ abs(b).T) + abs(c)
    assert (abs(cupy.asnumpy(result) - exact) <= 73 * 2.0**-24 * magnitude).all()
    rung = pysimd.rung("hip_smem_dbuf")
    assert rung.available
    assert (abs(cupy.asnumpy(rung(x[:5], y[:3].T)) - a[:5] @ b[:3].T) < 1e-4).all()
    assert "smem_dbuf" in LAUNCHED[-1], LAUNCHED[-1]
    with pytest.raises(pysimd.UnavailableError, match="rocBLAS does not start here"):
        pysimd.matmul(cupy.asarray(a.astype(np.float64)), cupy.asarray(b.T.astype(np.float64)))
    print("gemm without rocBLAS")


def refused(pysimd, cupy) -> None:
    """Errors of calls, and the compiler's own."""
    x, y = cupy.zeros((4, 4), np.float32), cupy.zeros((4, 4), np.float64)
    kernel = pysimd.kernel("hip_f32_outer_4x4")
    for call, error, words in (
        (lambda: kernel(x, y), pysimd.DTypeError, "float32"),
        (lambda: kernel(x, np.zeros((4, 4), np.float32)), pysimd.DTypeError, "a is on hip, b is on cpu"),
        (lambda: kernel(x, x[:3]), pysimd.ShapeError, "not aligned"),
        (lambda: pysimd.matmul(x, x, threads=2), pysimd.OptionError, "threads"),
        (lambda: pysimd.kernel("hip_f32_outer_4x4").bind(x, x, x), pysimd.ShapeError, "overlaps"),
    ):
        with pytest.raises(error, match=words):
            call()
    print("errors")


if __name__ == "__main__":
    main()
