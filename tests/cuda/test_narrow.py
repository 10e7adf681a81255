"""narrow.cu: what it takes, its results on the host and on a GPU, its machine code."""

import itertools
from functools import cache

import cuda_arrays
import cuda_machine_code as machine
import fake_cupy
import host_kernels
import layouts
import numpy as np
import pytest
from cases import SEED
from cuda_arrays import on_gpu, on_host
from pysimd.gpu_kernels import table
from reference import check, moderate

import pysimd
from pysimd import dtypes, operands
from pysimd.backends.cuda import device, dispatch, narrow, narrow_estimates
from pysimd.backends.cuda.dispatch import Way
from pysimd.operands import Product

LAYOUTS = (layouts.contiguous, layouts.transposed, layouts.padded_rows, layouts.negative, layouts.sliced)
WHY_NOT = cuda_arrays.WHY_NOT or device.why_not(table.Narrow("f32", "K_MAJOR", True, 4, 1))
needs_gpu = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "nothing")
needs_compiler = pytest.mark.skipif(host_kernels.COMPILER is None, reason="no g++")


@pytest.fixture(scope="module")
def host_function(tmp_path_factory):
    """An instance, compiled once for the host."""

    @cache
    def function(source, entry):
        folder = tmp_path_factory.mktemp("narrow")
        return host_kernels.Library(f"micro/{source}", [entry], folder).function(entry)

    return function


@pytest.fixture
def on_host_threads(monkeypatch, host_function):
    """Computes a product of host arrays with the kernel, executed on the host, or with narrow_any.cu. A tile is not
    split: clusters are the GPU's."""
    fake_cupy.install(monkeypatch, fake_cupy.module(memory=fake_cupy.HostMemory))
    monkeypatch.setattr(narrow, "current_device", lambda: 0)
    monkeypatch.setattr(narrow, "multiprocessors", lambda device: 132)
    monkeypatch.setattr(narrow, "DependentKernel", lambda function, cluster: function)
    monkeypatch.setattr(narrow.tiles, "function", lambda source, entry, device: host_function(source, entry))
    choose = narrow.choose

    def instance(source, entry, shared_bytes, device):
        return host_function(source, entry)

    def run(types, a, b, out, c=None, alpha=1, beta=0, wide=False, by_any=False):
        monkeypatch.setattr(narrow, "choose", lambda *shape: _unsplit(choose(*shape), wide, *shape[:4]))
        options = operands.GemmOptions(alpha=alpha, beta=beta)
        product = operands.check_gemm(None, a, b, c, out, options, (types,))._replace(out=out)
        narrow.work(product, (lambda *key: None) if by_any else instance).run()

    return run


def _unsplit(x, wide, types, m, n, k):
    across = table.narrow_across(types, x.short)[0 if wide else -1]
    made = table.Narrow(types, "K_MAJOR", True, x.short, across)
    return x._replace(across=across, split=1, tiles=-(-max(m, n) // made.rows))


def whole_numbers(rng, types, shape, transposed=False):
    """An operand of the family and its numbers."""
    values = rng.integers(-3, 4, shape)
    dtype = dtypes.dtype_of(dtypes.FAMILIES[types].a)
    x = fake_cupy.array(shape[::-1] if transposed else shape, dtype)
    x = x.T if transposed else x
    x[...] = values if dtype != np.uint16 else dtypes.bits_of_float32(values.astype(np.float32))
    return x, values


def result(types, shape):
    return fake_cupy.array(shape, dtypes.dtype_of(dtypes.FAMILIES[types].c))


EDGES = [(70, 3, 300), (3, 300, 67), (1, 1, 1), (33, 8, 257), (5, 140, 40), (130, 4, 16), (8, 64, 0)]
"""m, n, k: tiles that are not full, one element, a panel and a bit more, rows of 16 bytes and others, no k."""


@needs_compiler
@pytest.mark.parametrize("types", table.NARROW_TYPES)
@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True), (True, True)])
def test_executed_on_the_host(on_host_threads, rng, types, transposed, wide):
    for m, n, k in EDGES:
        (a, x), (b, y) = (
            whole_numbers(rng, types, shape, by) for shape, by in zip(((m, k), (k, n)), transposed, strict=True)
        )
        for by_any in (False, True):
            out = result(types, (m, n))
            on_host_threads(types, a, b, out, wide=wide, by_any=by_any)
            assert np.array_equal(np.array(out), (x @ y).astype(out.dtype)), (m, n, k, by_any)


@needs_compiler
@pytest.mark.parametrize("wide", [True, False])
def test_narrow_any_has_the_same_bits_on_the_host(on_host_threads, rng, wide):
    """Random floats: every sum is rounded, and in another order it would be rounded elsewhere."""
    for m, n, k in EDGES:
        found = []
        a, b = fake_cupy.array((m, k), np.float32), fake_cupy.array((k, n), np.float32)
        a[...], b[...] = rng.standard_normal(a.shape), rng.standard_normal(b.shape)
        for by_any in (False, True):
            out = result("f32", (m, n))
            on_host_threads("f32", a, b, out, wide=wide, by_any=by_any)
            found.append(np.array(out).tobytes())
        assert found[0] == found[1], (m, n, k)


@needs_compiler
def test_factors_on_the_host(on_host_threads, rng):
    """alpha, beta and a C0 in another layout; where beta is 0 C0 is not read."""
    (a, x), (b, y) = whole_numbers(rng, "f32", (70, 40)), whole_numbers(rng, "f32", (40, 3))
    c, z = whole_numbers(rng, "f32", (70, 3), True)
    out = result("f32", (70, 3))
    on_host_threads("f32", a, b, out, c, alpha=3, beta=2)
    assert np.array_equal(np.array(out), 3 * (x @ y) + 2 * z)
    c[...] = np.nan
    on_host_threads("f32", a, b, out, c, alpha=3, beta=0)
    assert np.array_equal(np.array(out), 3 * (x @ y))


@needs_compiler
def test_not_one_byte_beyond_on_the_host(on_host_threads, rng):
    """Rows of an operand and of C that are apart: what lies between them is NaN, and stays."""
    wide, tall = (fake_cupy.array(shape, np.float32) for shape in ((300, 45), (41, 5)))
    wide[...], tall[...] = np.nan, np.nan
    a, b = wide[:, 1:42], tall[:, :3]
    x, y = (rng.integers(-3, 4, z.shape) for z in (a, b))
    a[...], b[...] = x, y
    out = fake_cupy.array((300, 4), np.float32)
    on_host_threads("f32", a, b, out[:, :3])
    assert np.array_equal(np.array(out)[:, :3], x @ y)
    assert not np.array(out)[:, 3].any()


INSTANCES = [
    table.Narrow(types, layout, aligned, short, across)
    for types in ("f32", "bf16f32", "i8i32")
    for layout in ("K_MAJOR", "MN_MAJOR")
    for aligned in (True, False)
    for short in table.NARROW_SHORT[types]
    for across in table.narrow_across(types, short)
]


@pytest.fixture(scope="module")
def all_compiled():
    """Every instance, in parallel."""
    machine.compile_all((x.source, x.entry, "90") for x in INSTANCES)


@pytest.mark.skipif(bool(machine.missing()), reason=machine.missing() or "nothing")
@pytest.mark.parametrize("made", INSTANCES, ids=lambda x: x.entry)
def test_machine_code(all_compiled, made):
    """No local memory; aligned operands are loaded 16 bytes at a time; the registers let as many blocks be resident as
    the host counts on."""
    code = machine.compiled(made.source, made.entry, "90")
    assert not code.count("LDL", "STL")
    assert code.registers * made.threads * made.resident <= 65536
    assert made.resident * (made.dynamic_shared_bytes + 1024) <= 228 << 10
    vectors = 16 // made.element_bytes * (made.panel_bytes * made.across // 512)
    assert code.count("LDG.E.128") >= vectors * (1 if made.aligned else 2)


def test_every_product_has_a_tile():
    """Tiles cover the long side, and no part of a tile is without a panel where there are panels enough."""
    for types in table.NARROW_TYPES:
        for short, long, k in itertools.product((1, 7, 16), (16, 33, 700, 16384), (0, 1, 300, 100_000)):
            x = narrow.choose(types, short, long, k, 132)
            made = table.Narrow(types, "K_MAJOR", True, x.short, x.across)
            assert x.short >= short
            assert (x.tiles - 1) * made.rows < long <= x.tiles * made.rows
            assert x.split == 1 or x.split <= x.panels
            assert x == narrow.choose(types, long, short, k, 132)


def test_a_tile_has_as_many_blocks_as_the_device_runs():
    """Blocks of a cluster that would wait for others gain nothing, so that fewer multiprocessors split a tile less."""
    k = 100_000
    found = {processors: narrow.choose("f32", 4, 4096, k, processors) for processors in (1, 66, 132)}
    for processors, x in found.items():
        resident = table.Narrow("f32", "K_MAJOR", True, x.short, x.across).resident
        assert x.split == 1 or x.tiles * x.split <= resident * processors
    assert found[1].split == 1 < found[66].split < found[132].split


def test_what_matmul_takes(monkeypatch):
    """Tiny products with a long k, float32 with few rows; not what skinny tiles or cuBLAS are ahead at. Only one
    product, and only where the device has clusters."""
    monkeypatch.setattr(device, "why_not", lambda *_: "")
    for types, *shape in (
        ("bf16f32", 8, 2, 3142),
        ("f32", 203, 3, 6645),
        ("f32", 2000, 4, 500),
        ("i8i32", 8, 500, 900),
    ):
        assert dispatch.choose(types, *shape, 1).way is Way.NARROW
        assert dispatch.choose(types, *shape, 1, plain=False).way is Way.NARROW
        assert dispatch.choose(types, *shape, 2).way is not Way.NARROW
    assert dispatch.choose("bf16f32", 16, 4096, 4096, 1).name == "bf16_best"
    for shape in ((8, 8192, 16384), (1, 16384, 8192), (33, 5000, 301)):
        assert dispatch.choose("f16", *shape, 1).way is not Way.NARROW
    monkeypatch.setattr(device, "why_not", lambda row, *_: "not sm_90a" if row.requires == "sm_90a" else "")
    assert dispatch.choose("f32", 181, 4, 6061, 1).way is not Way.NARROW


@pytest.mark.parametrize(
    ("types", "m", "n", "k"),
    [
        ("bf16f32", 2, 4, 12554),
        ("f32", 48, 11, 11908),
        ("f32", 1, 3722, 39),
        ("f16", 7431, 8, 463),
        ("f32", 4, 13380, 6901),
    ],
)
def test_what_is_not_clearly_ahead_is_left_to_cublas(monkeypatch, types, m, n, k):
    """An H200 took 1.1 to 1.5 times as long as by cuBLAS for these."""
    monkeypatch.setattr(device, "why_not", lambda *_: "")
    assert dispatch.choose(types, m, n, k, 1).way is Way.LIBRARY


def test_few_neighbours_are_no_support():
    """The least time of the four nearest products; none where there are fewer, or where they are far."""
    near = [(16, 16, 16 << i, 10.0 - i) for i in range(4)]
    assert narrow_estimates.nearest((*near, (16, 16, 1 << 14, 1.0)), 16, 16, 16) == 7
    assert narrow_estimates.nearest(tuple(near[:3]), 16, 16, 16) is None
    assert narrow_estimates.nearest((*near[:3], (16, 16, 1 << 10, 1.0)), 16, 16, 16) is None
    assert narrow_estimates.cublas_us("f32", 16384, 2, 16384) is None


@pytest.mark.skipif(bool(machine.missing()), reason=machine.missing() or "nothing")
@pytest.mark.parametrize("types", table.NARROW_TYPES)
@pytest.mark.parametrize("out16", [False, True])
def test_machine_code_of_narrow_any(types, out16):
    """No local memory; the sums of 64 parts of k are static."""
    made = table.Narrow(types, "K_MAJOR", True, table.NARROW_SHORT[types][0], 4, out16)
    if out16 and not table.NARROW_TYPES[types][2]:
        return
    code = machine.compiled(made.any_source, made.any_entry, "90")
    assert not code.count("LDL", "STL")
    rows, columns = made.any_tile
    assert code.shared_bytes == 1024 + 4 * rows * columns * 64


SHAPES = [(3, 4, 8248), (317, 2, 59), (2, 300, 1000), (1, 5000, 333), (700, 8, 64), (40, 6, 100), (12, 900, 130)]


@needs_gpu
@pytest.mark.parametrize("types", table.NARROW_TYPES)
@pytest.mark.parametrize(("m", "n", "k"), SHAPES)
def test_same_bits_for_every_layout(types, m, n, k):
    """Operands and C by rows and by columns, rows that are apart and at any address, by narrow.cu and by narrow_any.cu;
    within the bound."""
    rng = np.random.default_rng(SEED)
    family = dtypes.FAMILIES[types]
    a, b = (moderate(rng, dtypes.dtype_of(family.a), shape) for shape in ((m, k), (k, n)))
    expected = None
    for left, right, by_columns in itertools.product(LAYOUTS, LAYOUTS, (False, True)):
        x, y = on_gpu(left(a)), on_gpu(right(b))
        shape = (n, m) if by_columns else (m, n)
        for instance in (narrow.compiled, lambda *key: None):  # narrow.cu, narrow_any.cu
            out = on_gpu(np.full(shape, 7, dtypes.dtype_of(family.c)))
            out = out.T if by_columns else out
            narrow.work(Product(types, x, y, None, out, out.shape, out.shape, out.dtype), instance).run()
            found = np.ascontiguousarray(on_host(out))
            if expected is None:
                check(found, types, a, b)
                expected = found
            assert found.tobytes() == expected.tobytes()


@needs_gpu
def test_matmul_takes_it():
    """A product that cuBLAS takes twice as long for; in a 16-bit C; with factors."""
    rng = np.random.default_rng(SEED)
    assert dispatch.choose("f32", 203, 3, 6645, 1).way is Way.NARROW
    a, b, c = (rng.standard_normal(shape, dtype=np.float32) for shape in ((203, 6645), (6645, 3), (203, 3)))
    x, y, z = (on_gpu(v) for v in (a, b, c))
    check(on_host(pysimd.matmul(x, y)), "f32", a, b)
    scaled = on_host(pysimd.gemm(x, y, z, alpha=2, beta=-1))
    assert np.allclose(scaled, 2 * (a.astype(np.float64) @ b) - c, rtol=0, atol=1e-2)
    half = on_host(pysimd.matmul(on_gpu(a.astype(np.float16)), on_gpu(b.astype(np.float16))))
    assert half.dtype == np.float16
    check(half, "f16", a.astype(np.float16), b.astype(np.float16))
