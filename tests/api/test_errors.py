"""Invalid input: an error of its own class says what was given and what to do, and no byte of ``out`` is written."""

import numpy as np
import pytest

import pysimd
from pysimd import DTypeError, ShapeError

F32 = np.float32
KERNEL = "generic_f32_outer_4x4"


def full(*shape, dtype=F32):
    return np.full(shape, 3, dtype)


class OnGpu:
    """What a GPU array shows to a library that does not import CuPy."""

    def __dlpack_device__(self):
        return 2, 0


def frozen(x):
    x.flags.writeable = False
    return x


def masked(x):
    return np.ma.array(x, mask=np.eye(*x.shape))


def repeated(x):
    """Two writable matrices in the memory of one."""
    return np.lib.stride_tricks.as_strided(x, (2, *x.shape), (0, *x.strides))


# name: (a, b, out, error, words of the message); out None: a new array.
MATMUL = {
    "inner dimensions": (
        full(4, 5), full(6, 4), full(4, 4), ShapeError,
        r"shapes \(4, 5\) and \(6, 4\) not aligned: 5 \(dim 1 of a\) != 6 \(dim 0 of b\)",
    ),
    "vector against matrix": (full(4), full(5, 4), None, ShapeError, r"not aligned: 4 .* != 5"),
    "batch dimensions": (full(2, 4, 4), full(3, 4, 4), None, ShapeError, r"do not broadcast: a \(2,\).* b \(3,\)"),
    "0-d a": (full(), full(4, 4), None, ShapeError, r"a must have at least 1 dimensions .* got shape \(\)"),
    "0-d b": (full(4, 4), full(), None, ShapeError, r"b must have at least 1 dimensions .* got shape \(\)"),
    "mixed dtypes": (
        full(4, 4), full(4, 4, dtype=np.float64), full(4, 4), DTypeError,
        r"no kernel multiplies float32 by float64; there are float32 @ float32 -> float32.*astype",
    ),
    "unknown dtype": (full(4, 4, dtype=int), full(4, 4, dtype=int), None, DTypeError, "int64 by int64"),
    "int8 by uint8": (full(4, 4, dtype=np.int8), full(4, 4, dtype=np.uint8), None, DTypeError, "int8 by uint8"),
    "complex": (full(4, 4, dtype=np.complex64), full(4, 4), None, DTypeError, "complex64 by float32"),
    "bfloat16 bits": (
        full(4, 4, dtype=np.uint16), full(4, 4, dtype=np.uint16), None, DTypeError, "uint16 by uint16.*name a kernel"
    ),
    "object arrays": (full(4, 4, dtype=object), full(4, 4, dtype=object), None, DTypeError, "object by object"),
    "byte order": (
        full(4, 4, dtype=">f4"), full(4, 4, dtype=">f4"), None, DTypeError, "byte-swapped float32 by byte-swapped"
    ),
    "a list": ([[1.0]], full(1, 1), None, DTypeError, r"a must be an array .* got list: convert with numpy\.asarray"),
    "None": (full(1, 1), None, None, DTypeError, "b must be an array"),
    "a number": (full(1, 1), 2.0, None, DTypeError, "b must be an array .* got float"),
    "out shape": (full(4, 4), full(4, 4), full(4, 5), ShapeError, r"out must have shape \(4, 4\).* got \(4, 5\)"),
    "out dimensions": (full(4, 4), full(4, 4), full(1, 4, 4), ShapeError, r"out must have shape \(4, 4\)"),
    "out of a vector": (full(4), full(4, 3), full(1, 3), ShapeError, r"out must have shape \(3,\), .* got \(1, 3\)"),
    "out dtype": (
        full(4, 4), full(4, 4), full(4, 4, dtype=np.float64), DTypeError, "out must be float32, .* got float64"
    ),
    "out byte order": (
        full(4, 4), full(4, 4), full(4, 4, dtype=">f4"), DTypeError, "out must be float32, .* got byte-swapped float32"
    ),
    "out read-only": (full(4, 4), full(4, 4), frozen(full(4, 4)), ShapeError, "out is read-only: pass"),
    "out a list": (full(1, 1), full(1, 1), [[0.0]], DTypeError, "out must be an array .* got list"),
    "masked a": (
        masked(full(4, 4)), full(4, 4), full(4, 4), DTypeError, r"a is a masked array.*a\.filled\(0\).*a\.data"
    ),
    "masked b": (full(4, 4), masked(full(4, 4)), None, DTypeError, "b is a masked array"),
    "masked out": (full(4, 4), full(4, 4), masked(full(4, 4)), DTypeError, "out is a masked array"),
    "nothing masked": (np.ma.array(full(4, 4)), full(4, 4), None, DTypeError, "a is a masked array"),
    "elements of no bytes": (full(4, 4, dtype="V0"), full(4, 4, dtype="V0"), None, DTypeError, "void by void"),
    "mixed devices": (
        full(4, 4), OnGpu(), full(4, 4), DTypeError, "a is on cpu, b is on cuda.*Nothing is copied"
    ),
    "out on another device": (full(4, 4), full(4, 4), OnGpu(), DTypeError, "a is on cpu, b is on cpu, out is on cuda"),
}  # fmt: skip

# name: (a, b, c, out, error, words)
CALLS = {
    "rows of a": (
        full(5, 3), full(3, 4), None, full(4, 4), ShapeError,
        r"takes a \(..., 4, K\) and b \(..., K, 4\), got \(5, 3\) and \(3, 4\): pysimd.matmul takes any shape",
    ),
    "columns of b": (full(4, 3), full(3, 5), None, None, ShapeError, r"got \(4, 3\) and \(3, 5\)"),
    "inner dimensions": (full(4, 3), full(2, 4), None, full(4, 4), ShapeError, r"not aligned: 3 .* != 2"),
    "batch dimensions": (full(2, 4, 3), full(3, 3, 4), None, None, ShapeError, "do not broadcast"),
    "batch of c": (full(2, 4, 3), full(3, 4), full(3, 4, 4), None, ShapeError, r"do not broadcast: .* c \(3,\)"),
    "0-d": (full(), full(3, 4), None, full(4, 4), ShapeError, r"a must have at least 2 dimensions \(..., 4, K\)"),
    "1-d a": (full(4), full(4, 4), None, full(4, 4), ShapeError, r"a must have at least 2 dimensions .* \(4,\)"),
    "1-d b": (full(4, 4), full(4), None, full(4, 4), ShapeError, r"b must have at least 2 dimensions .* \(4,\)"),
    "1-d c": (full(4, 4), full(4, 4), full(4), None, ShapeError, r"c must have at least 2 dimensions"),
    "shape of c": (full(4, 3), full(3, 4), full(4, 5), None, ShapeError, r"c must be \(..., 4, 4\), got \(4, 5\)"),
    "dtype of c": (
        full(4, 3), full(3, 4), full(4, 4, dtype=np.float64), None, DTypeError, "c must be float32, got float64"
    ),
    "dtype of a": (
        full(4, 3, dtype=np.float64), full(3, 4), None, full(4, 4), DTypeError,
        r"f32 kernels take a of float32 and b of float32, got float64 and float32: convert with .astype\(\)",
    ),
    "object arrays": (full(4, 3, dtype=object), full(3, 4), None, None, DTypeError, "got object and float32"),
    "a list": ([[0.0] * 3] * 4, full(3, 4), None, full(4, 4), DTypeError, "a must be an array .* got list"),
    "masked a": (masked(full(4, 3)), full(3, 4), None, full(4, 4), DTypeError, "a is a masked array"),
    "masked c": (full(4, 3), full(3, 4), masked(full(4, 4)), full(4, 4), DTypeError, "c is a masked array"),
    "c a list": (full(4, 3), full(3, 4), [[0.0] * 4] * 4, None, DTypeError, "c must be an array .* got list"),
    "out shape": (full(4, 3), full(3, 4), None, full(2, 4, 4), ShapeError, r"out must have shape \(4, 4\)"),
    "out dtype": (full(4, 3), full(3, 4), None, full(4, 4, dtype=np.int32), DTypeError, "out must be float32"),
    "out read-only": (full(4, 3), full(3, 4), None, frozen(full(4, 4)), ShapeError, "out is read-only"),
    "mixed devices": (full(4, 3), OnGpu(), None, None, DTypeError, "a is on cpu, b is on cuda"),
    "a GPU": (OnGpu(), OnGpu(), None, None, DTypeError, "is a CPU kernel, the arrays are on cuda"),
}  # fmt: skip

BIND = {
    "masked c": (full(4, 3), full(3, 4), masked(full(4, 4)), DTypeError, "c is a masked array"),
    "wrong c": (full(4, 3), full(3, 4), full(4, 5), ShapeError, r"c must have shape \(4, 4\)"),
    "c of another dtype": (full(4, 3), full(3, 4), full(4, 4, dtype=np.int32), DTypeError, "c must be float32"),
    "no c": (full(4, 3), full(3, 4), None, DTypeError, "bind needs an array c to add to"),
    "read-only c": (full(4, 3), full(3, 4), frozen(full(4, 4)), ShapeError, "c is read-only"),
    "c with gaps": (full(4, 3), full(3, 4), full(4, 8)[:, ::2], ShapeError, r"bind needs a c with adjacent columns"),
    "repeated c": (
        full(2, 4, 3), full(3, 4), repeated(full(4, 4)), ShapeError, "no repeated element",
    ),
    "odd strides": (
        np.zeros((4, 3), "u1, f4")["f1"], full(3, 4), full(4, 4), ShapeError, "an a whose strides are whole elements"
    ),
}  # fmt: skip


def bytes_of(x):
    return x.tobytes() if isinstance(x, np.ndarray) else None


@pytest.mark.parametrize("case", MATMUL)
@pytest.mark.parametrize("options", [{}, {"threads": 1}], ids=["plain", "threads"])
def test_matmul(case, options):
    a, b, out, error, words = MATMUL[case]
    before = bytes_of(out)
    with pytest.raises(error, match=words) as caught:
        pysimd.matmul(a, b, out=out, **options)
    assert isinstance(caught.value, pysimd.PysimdError)
    assert bytes_of(out) == before


@pytest.mark.parametrize("case", MATMUL)
def test_matmul_after_the_fast_path_is_open(case):
    """The first valid call installs the fast path into C, which must leave every one of these cases to the checks."""
    pysimd.matmul(full(4, 4), full(4, 4))
    test_matmul(case, {})


@pytest.mark.parametrize("case", CALLS)
def test_call(case):
    a, b, c, out, error, words = CALLS[case]
    before = bytes_of(out)
    with pytest.raises(error, match=words):
        pysimd.kernel(KERNEL)(a, b, c, out=out)
    assert bytes_of(out) == before


@pytest.mark.parametrize("case", BIND)
def test_bind(case):
    a, b, c, error, words = BIND[case]
    before = bytes_of(c)
    with pytest.raises(error, match=words):
        pysimd.kernel(KERNEL).bind(a, b, c)
    assert bytes_of(c) == before


def test_bind_with_overlap():
    x = full(8, 4)
    with pytest.raises(pysimd.ShapeError, match="a c apart from a: their memory overlaps"):
        pysimd.kernel(KERNEL).bind(x[:4], full(4, 4), x[2:6])


def test_classes_are_also_the_builtin_ones():
    pairs = {
        pysimd.ShapeError: ValueError,
        pysimd.DTypeError: TypeError,
        pysimd.OptionError: ValueError,
        pysimd.UnknownKernelError: LookupError,
        pysimd.UnavailableError: RuntimeError,
    }
    for own, builtin in pairs.items():
        assert issubclass(own, builtin)
        assert issubclass(own, pysimd.PysimdError)


@pytest.mark.parametrize("threads", [0, -1, 1.5, "2", [1]])
def test_bad_threads(threads):
    out = full(4, 4)
    with pytest.raises(pysimd.OptionError, match=r"threads must be a positive integer"):
        pysimd.matmul(full(4, 4), full(4, 4), out=out, threads=threads)
    assert (out == 3).all()


@pytest.mark.parametrize("threads", [1, 2, np.int64(2), 10**12])
def test_good_threads(threads):
    np.testing.assert_array_equal(pysimd.matmul(full(4, 4), full(4, 4), threads=threads), full(4, 4) * 12)


def test_unknown_kernel_names_the_closest():
    with pytest.raises(
        pysimd.UnknownKernelError, match=r"no kernel 'avx_f32_outer_8x9': did you mean avx_f32_outer_8x8"
    ):
        pysimd.kernel("avx_f32_outer_8x9")
    with pytest.raises(pysimd.UnknownKernelError, match=r"pysimd.kernels\(\) lists them all"):
        pysimd.kernel("?")
    with pytest.raises(pysimd.UnknownKernelError, match="did you mean"):
        pysimd.matmul(full(4, 4), full(4, 4), kernel="avx_f32_outer_8x9")


def test_a_kernel_of_another_type():
    out = full(4, 4)
    with pytest.raises(pysimd.DTypeError, match=r"f64 kernels take a of float64 .* got float32"):
        pysimd.matmul(full(4, 4), full(4, 4), out=out, kernel="generic_f64_outer_4x4")
    assert (out == 3).all()


def test_arrays_of_an_unavailable_backend():
    cuda = next(b for b in pysimd.backends() if b.name == "cuda")
    if cuda.available:
        pytest.skip("this machine has CUDA")
    with pytest.raises(pysimd.UnavailableError) as caught:
        pysimd.matmul(OnGpu(), OnGpu())
    assert cuda.reason in str(caught.value)


def test_gemm_on_arrays_of_an_unavailable_backend():
    """As matmul: what is missing is said before shapes and factors are looked at."""
    for backend, device in (("cuda", 2), ("hip", 10)):
        here = next(b for b in pysimd.backends() if b.name == backend)
        if here.available:
            continue
        there = type("There", (), {"__dlpack_device__": lambda self, device=device: (device, 0)})
        for options in ({}, {"alpha": 2.0}, {"c": there(), "beta": 1.0}, {"trans_a": True}, {"out": there()}):
            with pytest.raises(pysimd.UnavailableError) as caught:
                pysimd.gemm(there(), there(), **options)
            assert here.reason in str(caught.value)


@pytest.mark.parametrize("kernel", ["cuda_f32_outer_4x4", "hip_f32_outer_4x4", "naive", "warptile"])
def test_gemm_by_a_kernel_of_another_backend(kernel):
    """On arrays of the CPU; ``out`` is not written."""
    out = full(4, 4)
    for call in (pysimd.gemm, pysimd.matmul):
        if call is pysimd.matmul and "_" not in kernel:
            continue  # rungs are for gemm
        with pytest.raises((pysimd.UnavailableError, pysimd.DTypeError)) as caught:
            call(full(4, 4), full(4, 4), out=out, kernel=kernel)
        assert kernel in str(caught.value)
        assert (out == 3).all()


def test_an_unknown_device():
    class Elsewhere:
        def __dlpack_device__(self):
            return 14, 0

    with pytest.raises(pysimd.DTypeError, match="a is on DLPack device 14"):
        pysimd.matmul(Elsewhere(), full(4, 4))
