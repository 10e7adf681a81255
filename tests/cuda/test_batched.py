"""batched.cu above 32 x 32, and batched_mma.cu: every shape and layout by the instance that is compiled for it. Needs a
GPU, but for the choice."""

import cuda_arrays
import layouts
import numpy as np
import pytest
from cases import SEED
from cuda_arrays import on_gpu, on_host
from pysimd.gpu_kernels import table
from reference import check, moderate

import pysimd
from pysimd import dtypes
from pysimd.backends.cuda import device, dispatch
from pysimd.backends.cuda.dispatch import Way
from pysimd.backends.cuda.implementation import INSTANCES
from pysimd.backends.gpu import batched

needs_gpu = pytest.mark.skipif(bool(cuda_arrays.WHY_NOT), reason=cuda_arrays.WHY_NOT or "nothing")

F32 = (
    (33, 33, 33),
    (64, 64, 64),
    (65, 65, 65),
    (96, 96, 96),
    (97, 97, 97),
    (112, 112, 112),
    (33, 64, 48),
    (8, 33, 128),
)
F32 += ((112, 2, 112), (128, 0, 9), (47, 127, 53), (127, 31, 98), (64, 16, 64), (34, 50, 38))
F64 = ((33, 33, 33), (36, 36, 36), (48, 48, 48), (47, 41, 33), (37, 0, 40), (40, 3, 48))
HALF = ((16, 24, 16), (32, 32, 32), (33, 33, 33), (64, 64, 64), (65, 66, 67), (128, 128, 128), (127, 127, 127))
HALF += ((40, 0, 9), (7, 112, 96), (36, 18, 50))
BF16 = ((24, 24, 24), (33, 34, 64), (96, 96, 96), (113, 8, 128))
INT8 = (
    (32, 32, 32),
    (16, 36, 33),
    (33, 33, 33),
    (64, 64, 64),
    (48, 80, 48),
    (128, 128, 128),
    (97, 20, 126),
    (9, 0, 40),
)
SHAPES = [("f32", *shape) for shape in F32] + [("f64", *shape) for shape in F64]  # m, k, n
SHAPES += [(types, *x) for types, shapes in (("f16", HALF), ("bf16f32", BF16), ("i8i32", INT8)) for x in shapes]
every_shape = pytest.mark.parametrize(("types", "m", "k", "n"), SHAPES)
SOME = [("f32", 33, 37, 35), ("f32", 96, 96, 96), ("f64", 34, 36, 39)]
SOME += [
    ("f16", 33, 37, 35),
    ("f16", 32, 64, 48),
    ("bf16f32", 48, 40, 34),
    ("i8i32", 33, 37, 35),
    ("i8i32", 32, 64, 48),
]
some_shapes = pytest.mark.parametrize(("types", "m", "k", "n"), SOME)


@pytest.fixture
def compiled(monkeypatch):
    """Each shape is computed by its own instance, at once."""
    monkeypatch.setattr(INSTANCES, "get", INSTANCES.now)


def operands(types, m, k, n, rng, batch):
    dtype = dtypes.dtype_of(dtypes.FAMILIES[types].a)
    return moderate(rng, dtype, (*batch, m, k)), moderate(rng, dtype, (*batch, k, n))


def result_dtype(types):
    return dtypes.dtype_of(dtypes.FAMILIES[types].c)


@needs_gpu
@pytest.mark.usefixtures("compiled")
class TestProducts:
    @every_shape
    def test_batches(self, types, m, k, n, rng):
        for batch in (1, 2, 131):
            a, b = operands(types, m, k, n, rng, (batch,))
            check(on_host(pysimd.matmul(on_gpu(a), on_gpu(b))), types, a, b)

    @some_shapes
    @pytest.mark.parametrize("layout", layouts.OPERANDS, ids=lambda f: f.__name__)
    def test_layouts(self, types, m, k, n, layout, rng):
        a, b = operands(types, m, k, n, rng, (7,))
        for x, y in ((layout(a), layout(b)), (layout(a), b), (a, layout(b))):
            check(on_host(pysimd.matmul(on_gpu(x), on_gpu(y))), types, x, y)

    @some_shapes
    @pytest.mark.parametrize("layout", layouts.RESULTS, ids=lambda f: f.__name__)
    def test_out(self, types, m, k, n, layout, rng):
        a, b = operands(types, m, k, n, rng, (7,))
        out = on_gpu(layout(np.full((7, m, n), 77, result_dtype(types))))
        assert pysimd.matmul(on_gpu(a), on_gpu(b), out=out) is out
        check(on_host(out), types, a, b)

    @some_shapes
    def test_shared_operands(self, types, m, k, n, rng):
        a, b = operands(types, m, k, n, rng, (9,))
        for x, y in ((a[:1], b), (a, b[:1]), (a[0], b), (a[:3, None], b[None, :3])):
            check(on_host(pysimd.matmul(on_gpu(x), on_gpu(y))), types, x, y)

    @every_shape
    def test_nothing_is_written_outside(self, types, m, k, n, rng):
        """At any alignment, with a last block that is not full."""
        import cupy

        a, b = operands(types, m, k, n, rng, (5,))
        x, y, size = on_gpu(a), on_gpu(b), 5 * m * n
        for before in (64, 65):
            room = cupy.full(size + 128, 77, result_dtype(types))
            out = room[before : before + size].reshape(5, m, n)
            pysimd.matmul(x, y, out=out)
            check(on_host(out), types, a, b)
            assert (room[:before] == 77).all()
            assert (room[before + size :] == 77).all()

    @pytest.mark.parametrize(("types", "m", "k", "n"), [x for x in SOME if x[0] != "i8i32"])
    def test_nan_and_infinity(self, types, m, k, n, rng):
        a, b = operands(types, m, k, n, rng, (6,))
        a[0, 1, 2], b[1, 3, 4], a[2, 0, 0], a[5, m - 1, k - 1] = np.nan, np.inf, -np.inf, np.nan
        check(on_host(pysimd.matmul(on_gpu(a), on_gpu(b))), types, a, b)

    def test_in_a_graph(self, rng):
        """Also above 48 KiB of shared memory, and on a second capture."""
        import cupy

        a, b = operands("f32", 96, 96, 96, rng, (9,))
        x, y, out = on_gpu(a), on_gpu(b), cupy.zeros((9, 96, 96), np.float32)
        stream = cupy.cuda.Stream(non_blocking=True)
        with stream:
            for _ in range(2):
                out.fill(0)
                stream.begin_capture()
                pysimd.matmul(x, y, out=out)
                stream.end_capture().launch()
                stream.synchronize()
                check(on_host(out), "f32", a, b)


@needs_gpu
@pytest.mark.parametrize(
    ("m", "k", "n"), [(4, 5, 3), (16, 16, 16), (24, 24, 24), (33, 34, 64), (96, 96, 96), (113, 8, 128), (40, 0, 33)]
)
def test_bfloat16_results_are_rounded_once(m, k, n, rng):
    """By the instance, by what computes a shape before it is compiled, and up to 32 with alpha, beta and C: the float32
    result in its nearest bfloat16."""
    import cupy

    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    a, b, c = (on_gpu(rng.standard_normal(shape).astype(bfloat16)) for shape in ((21, m, k), (21, k, n), (21, m, n)))
    if k:
        a[3, 0, 0] = np.nan
    for _ in range(2):
        for out in (cupy.empty((21, m, n), bfloat16), cupy.empty((21, n, m), bfloat16).swapaxes(1, 2)):
            assert pysimd.matmul(a, b, out=out) is out
            assert same_bits(out, on_host(pysimd.matmul(a, b)).astype(bfloat16))
        INSTANCES.wait()
        if max(m, n) > 32:
            continue
        pysimd.gemm(a, b, c, alpha=1.5, beta=-2, out=out)
        assert same_bits(out, on_host(pysimd.gemm(a, b, c.astype(np.float32), alpha=1.5, beta=-2)).astype(bfloat16))


def same_bits(found, expected) -> bool:
    """Whichever NaN."""
    found = on_host(found)
    nan = np.isnan(expected.astype(np.float32))
    same = found.view(np.uint16) == expected.view(np.uint16)
    return bool((np.isnan(found.astype(np.float32)) == nan).all() and (same | nan).all())


@needs_gpu
@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize(("types", "strided"), [("f16", False), ("f16", True), ("i8i32", False)])
def test_more_than_2_31_elements(types, strided):
    """Of each array: the bits are those of two halves of the batch; products of the last elements are right."""
    import cupy

    count, dtype = (1 << 21) + 5, np.dtype(dtypes.FAMILIES[types].a)
    needed = 3 * count * 32 * 32 * (dtype.itemsize + 4)
    if cupy.cuda.runtime.memGetInfo()[0] < needed:
        pytest.skip(f"the device has less than {needed >> 30} GiB of free memory")
    values = cupy.random.default_rng(SEED).integers(-4, 5, 1_000_003, dtype=np.int8).astype(dtype)
    try:
        a = cupy.resize(values, (count, 32, 40))[..., :32] if strided else cupy.resize(values, (count, 32, 32))
        b = cupy.resize(values[::-1], (count, 32, 32))
        out, half = pysimd.matmul(a, b), count // 2
        for part in (slice(half), slice(half, None)):
            assert (out[part] == pysimd.matmul(a[part], b[part])).all()
        for at in (0, half, count - 3):
            expected = on_host(a[at : at + 3]).astype(np.int64) @ on_host(b[at : at + 3]).astype(np.int64)
            assert (on_host(out[at : at + 3]) == expected).all()
    finally:
        del a, b, out
        cupy.get_default_memory_pool().free_all_blocks()


@needs_gpu
@every_shape
def test_the_same_bits_before_the_instance_is_there(types, m, k, n, rng):
    """By what computes a shape until then, in the instance, and in the same place of another batch."""
    a, b = operands(types, m, k, n, rng, (21,))
    x, y = on_gpu(a), on_gpu(b)
    first = on_host(pysimd.matmul(x, y))
    check(first, types, a, b)
    pysimd.matmul(x, y)
    INSTANCES.wait()
    for result in (pysimd.matmul(x, y), pysimd.matmul(x[3:], y[3:])):
        found = on_host(result)
        assert (found.view(np.uint8) == first[-len(found) :].view(np.uint8)).all()


def choice(types, m, n, k, **options):
    return dispatch.choose(types, m, n, k, 1000, **options).way


@pytest.mark.parametrize(("m", "n", "k"), [(96, 96, 64), (72, 120, 64), (64, 64, 96), (95, 97, 64), (64, 63, 96)])
def test_static_shared_memory_is_enough_for_all_kernels(m, n, k):
    """batched_any.cu gives A and B an odd number of elements each: of 12288 together it needs 8 bytes more than it
    has, and a launch failed."""
    needed = 4 * ((m * k | 1) + (k * n | 1))
    assert batched.fits_static("f32", m, n, k) == (needed <= 48 << 10)
    if not cuda_arrays.WHY_NOT:
        a, b = (np.ones((3000, *shape), np.float32) for shape in ((k, m), (k, n)))
        assert (on_host(pysimd.matmul(on_gpu(a).swapaxes(-1, -2), on_gpu(b))) == k).all()


class TestChoice:
    @pytest.fixture(autouse=True, params=[90, 75])
    def capability(self, request, monkeypatch):
        """A device with the shared memory of sm_90, without what only sm_90a has, and an old one."""

        def why_not(row, where=None):
            return "" if request.param == 90 and row.requires != "sm_90a" else "it has not what the row needs"

        monkeypatch.setattr(device, "why_not", why_not)
        return request.param

    @pytest.mark.parametrize("size", [*range(8, 65, 7), 33, 64])
    def test_no_gap_after_32(self, size):
        assert choice("f32", size, size, size) is Way.BATCHED
        assert choice("f32", 64, size, 33) is Way.BATCHED

    def test_operands_that_need_dynamic_shared_memory(self, capability):
        expected = Way.BATCHED if capability == 90 else Way.LIBRARY
        for size in (80, 96, 112):
            assert choice("f32", size, size, size) is expected

    def test_full_tiles_take_the_best_rung(self, capability):
        expected = Way.RUNG if capability == 90 else Way.LIBRARY
        for m, n, k in ((128, 128, 128), (256, 256, 256), (128, 384, 40)):
            assert choice("f32", m, n, k) is expected
            assert choice("f32", m, n, k, plain=False) is expected
            assert dispatch.choose("f32", m, n, k, 1).way is Way.LIBRARY

    def test_what_stays_with_cublas(self):
        for m, n, k in (
            (113, 113, 113),
            (120, 124, 32),
            (129, 16, 16),
            (3, 64, 64),
            (128, 128, 31),
            (192, 192, 192),
            (127, 127, 127),
        ):
            assert choice("f32", m, n, k) is Way.LIBRARY
        assert choice("f64", 49, 49, 49) is Way.LIBRARY
        assert choice("f64", 32, 40, 40) is Way.LIBRARY
        assert choice("f64", 32, 32, 32) is Way.LIBRARY
        assert choice("f16", 33, 33, 33, plain=False) is Way.LIBRARY
        assert choice("f16", 33, 33, 129) is Way.LIBRARY
        assert choice("f32", 64, 64, 64, plain=False) is Way.LIBRARY

    @pytest.mark.parametrize("types", ["f16", "bf16f32", "i8i32"])
    def test_tensor_cores(self, types, capability):
        """Up to 128, where the device has their instructions."""
        others = {"f16": Way.LIBRARY, "bf16f32": Way.LIBRARY, "i8i32": Way.TILES}[types]
        for m, n, k in ((31, 31, 31), (32, 32, 32), (33, 33, 33), (128, 128, 128), (1, 128, 64), (9, 128, 0)):
            other = Way.BATCHED if max(m, n) <= 32 else others
            assert choice(types, m, n, k) is (Way.BATCHED_MMA if capability == 90 else other)
        for m, n, k in ((16, 16, 16), (8, 32, 64), (32, 8, 64)):
            assert choice(types, m, n, k) is Way.BATCHED

    def test_alpha_and_beta_take_the_kernel_for_all_shapes_up_to_32(self):
        assert choice("f32", 32, 32, 64, plain=False) is Way.BATCHED
        assert choice("f64", 32, 32, 32, plain=False) is Way.LIBRARY
        assert choice("f64", 32, 32, 32, plain=False, captured=True) is Way.BATCHED
        assert choice("f64", 25, 25, 25, plain=False) is Way.BATCHED


def test_the_table_names_types_that_the_kernel_has():
    assert set(table.BATCHED_LARGER) <= set(table.BATCHED_TYPES)
