"""Faults of HIP's runtime, one after the other, in calls of the HIP backend through the real CuPy on the stub of ROCm.

Started by hip/test_end_to_end.py, which sets the environment. Prints how many calls of each kind have failed.
"""

import ctypes
import os

import numpy as np
import reference
import rocm_end_to_end

KINDS = ("malloc", "launch", "compile", "module", "gone")


def stub():
    """The functions of rocm_stub.c for faults."""
    found = ctypes.CDLL(os.environ["PYSIMD_STUB"])
    found.stub_fail.argtypes, found.stub_fail.restype = [ctypes.c_int, ctypes.c_long], None
    found.stub_repair.restype = ctypes.c_long
    return found


def main() -> None:
    import cupy

    import pysimd

    rocm_end_to_end.serve()
    library = stub()
    pool = cupy.get_default_memory_pool()
    rng = np.random.default_rng(3)
    shapes = iter(range(3, 1000))

    def product(size: int):
        """A product of a size that was not there before, so that it is compiled; into an array, and into a new one."""
        a, b = (reference.moderate(rng, np.dtype(np.float32), (9, size, size)) for _ in range(2))
        x, y, out = cupy.asarray(a), cupy.asarray(b), cupy.asarray(np.full((9, size, size), 7, np.float32))
        pool.free_all_blocks()
        return lambda: (pysimd.matmul(x, y), pysimd.matmul(x, y, out=out)), a, b

    def right(call, a, b) -> None:
        new, out = call()
        reference.check(cupy.asnumpy(new), "f32", a, b)
        reference.check(cupy.asnumpy(out), "f32", a, b)

    for kind, name in enumerate(KINDS, 1):
        failed = 0
        for nth in range(1, 20):
            call, a, b = product(next(shapes))
            library.stub_fail(kind, nth)
            try:
                call()
                error = None
            except Exception as caught:
                error = caught
            calls = library.stub_repair()
            assert error is None or isinstance(error, pysimd.PysimdError | MemoryError | RuntimeError), repr(error)
            assert error is None or str(error), f"{name} {nth}: an error without words: {error!r}"
            if name == "malloc" and error is not None:
                assert isinstance(error, MemoryError | pysimd.PysimdError), repr(error)
            if name == "compile" and error is not None:
                assert isinstance(error, pysimd.UnavailableError), repr(error)
            failed += calls >= nth and error is not None
            right(call, a, b)
            if calls < nth:
                assert error is None, f"{name} {nth}: {error!r} without a fault"
                break
            assert error is not None, f"{name} {nth} has failed, and nothing says so"
        print(f"{name}: {failed}")

    os.environ["CUPY_CACHE_DIR"] = os.devnull + "/no folder"
    right(*product(next(shapes)))
    print("cache: 1")


if __name__ == "__main__":
    main()
