"""The tile registers of AMX: who may use them, when they are in use, and which products do."""

import ctypes
import itertools
import mmap
import platform
import threading

import numpy as np
import pytest
from process import output_of
from reference import check, pair

import pysimd
from pysimd.backends.cpu import table as cpu_table
from pysimd.backends.cpu.implementation import CPU

NAMES = tuple(f"amx_{types}_outer_32x32" for types in ("bf16f32", "f16f32", "i8i32", "u8i8i32"))
KERNEL = pysimd.kernel("amx_i8i32_outer_32x32")
needs_amx = pytest.mark.skipif(not KERNEL.available, reason=KERNEL.unavailable_reason)

REFUSED = """
import ctypes
class Stack(ctypes.Structure):
    _fields_ = [("sp", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t)]
memory = ctypes.create_string_buffer(8192)
if {small}:
    assert ctypes.CDLL(None).sigaltstack(ctypes.byref(Stack(ctypes.addressof(memory), 0, 4096)), None) == 0
import numpy as np, pysimd
for name in {names}:
    print(pysimd.kernel(name).unavailable_reason)
a = np.full((64, 300), 3, np.int8)
assert (pysimd.matmul(a, a.T) == 2700).all()
"""


@needs_amx
@pytest.mark.parametrize("small", [True, False])
def test_a_process_without_permission_does_without(small):
    """Linux refuses tiles to a process whose alternate signal stack has no room for them."""
    lines = output_of("-c", REFUSED.format(small=small, names=NAMES)).splitlines()
    reason = "the operating system does not permit this process to use the tile registers of AMX" if small else ""
    assert lines == [reason] * len(NAMES)


def operands(rng, m, n, k):
    return rng.integers(-128, 128, (m, k), np.int8), rng.integers(-128, 128, (k, n), np.int8)


@needs_amx
def test_threads_that_were_there_before(rng):
    """Permission is the process's, tiles are the thread's: they multiply at the same time, by shapes of their own."""
    wrong, barrier = [], threading.Barrier(4)

    def multiply(m, n, k):
        a, b = operands(np.random.default_rng(m), m, n, k)
        right = a.astype(np.int64) @ b.astype(np.int64)
        barrier.wait()
        wrong.extend((m, n, k) for _ in range(200) if (pysimd.matmul(a, b, kernel=KERNEL, threads=1) != right).any())

    shapes = [(32, 32, 64), (17, 40, 100), (5, 3, 70), (100, 70, 333)]
    threads = [threading.Thread(target=multiply, args=shape) for shape in shapes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def tiles_in_use() -> bool:
    """Whether a tile of this thread is not in its initial state: XGETBV with ECX = 1, bit 18 (XTILEDATA)."""
    code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(bytes.fromhex("b9010000000f01d0c3"))  # mov ecx, 1; xgetbv; ret
    address = ctypes.addressof(ctypes.c_char.from_buffer(code))
    return bool(ctypes.CFUNCTYPE(ctypes.c_uint32)(address)() >> 18 & 1)


@needs_amx
@pytest.mark.parametrize("shape", [(32, 32, 64), (5, 70, 300), (100, 100, 1000), (64, 64, 30), (40, 300, 5000)])
@pytest.mark.parametrize("batch", [1, 7])
def test_tiles_are_released(shape, batch, rng):
    """Also where the calls of a product leave their configuration to the next."""
    m, n, k = shape
    a = rng.integers(-128, 128, (batch, m, k), np.int8)
    b = rng.integers(-128, 128, (batch, k, n), np.int8)
    right = a.astype(np.int64) @ b.astype(np.int64)
    np.testing.assert_array_equal(pysimd.matmul(a, b, kernel=KERNEL, threads=1), right)
    assert not tiles_in_use()


@needs_amx
@pytest.mark.parametrize("a_dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("shape", [(40, 40, 60), (17, 33, 64), (32, 32, 32), (48, 30, 62), (5, 16, 64), (17, 2, 16)])
@pytest.mark.parametrize("threads", [1, 2])
def test_batches_of_bytes(a_dtype, shape, threads, rng):
    """Large batches go to tile registers where they have one B, whose panels are made once, or two columns."""
    m, n, k = shape
    kind = np.iinfo(a_dtype)
    a, b = rng.integers(kind.min, kind.max + 1, (40, m, k), a_dtype), rng.integers(-128, 128, (40, k, n), np.int8)
    transposed = a.swapaxes(1, 2).copy().swapaxes(1, 2)
    for x, y in itertools.product((a, transposed), (b, b[0], np.asfortranarray(b[0]))):
        right = x.astype(np.int64) @ y.astype(np.int64)
        np.testing.assert_array_equal(pysimd.matmul(x, y, threads=threads), right)
        if y.ndim == 2:
            np.testing.assert_array_equal(pysimd.matmul(x[:15], y, threads=threads), right[:15])
        assert not tiles_in_use()


@needs_amx
@pytest.mark.parametrize("types", ["f16f32", "bf16f32", "i8i32", "u8i8i32"])
def test_an_epilogue_of_a_batch_from_beyond_l2(types, rng):
    """More products are prefetched than fit in the memory of the sums: tile registers stay configured in between."""
    batch, m, k, n = 6000, 32, 12, 32
    a, b = pair(rng, types, (batch, m, k), (batch, k, n))
    name = pysimd.kernel(f"amx_{types}_outer_32x32")
    product = pysimd.matmul(a, b, kernel=name, threads=1)
    for step in (2, 4):  # with more than one element between two, the target is not prefetched
        out = np.zeros((batch, m, step * n), product.dtype)[..., ::step]
        for kernel, threads in ((name, 1), (name, 3), (None, 2)):
            out[...] = 77
            pysimd.matmul(a, b, out=out, kernel=kernel, threads=threads)
            assert not tiles_in_use()
            if kernel:
                np.testing.assert_array_equal(out, product)
            else:
                check(out, types, a, b)


@needs_amx
@pytest.mark.parametrize("types", ["f32", "f16f32", "bf16f32", "i8i32", "u8i8i32"])
@pytest.mark.parametrize("shape", [(700, 33, 34, 33), (1501, 16, 40, 24), (300, 70, 33, 65)], ids=str)
def test_a_batch_from_beyond_l2_with_one_b(types, shape, rng):
    """B stays as it was packed, and tile registers as they are configured, while the next products are prefetched."""
    batch, m, k, n = shape
    a, b = pair(rng, types, (batch, m, k), (k, n))
    for y in (b, np.asfortranarray(b)):
        name = pysimd.kernel(f"amx_{types}_outer_32x32") if types != "f32" else None
        found = pysimd.matmul(a, y, kernel=name, threads=1)
        assert not tiles_in_use()
        for i in (0, 1, batch // 2, batch - 2, batch - 1):
            assert found[i].tobytes() == pysimd.matmul(a[i : i + 1], y, kernel=name, threads=1)[0].tobytes(), i
        check(found, types, a, b)


@needs_amx
@pytest.mark.parametrize("first", [0, 1, 4, 15])
def test_whole_lines_of_a_row_of_tiles(first, rng):
    """C that starts anywhere in a cache line, whose rows are whole lines apart: stores reach into the next tile's."""
    m, n, k = 70, 160, 2100
    a, b = operands(rng, m, n, k)
    memory = np.full(m * 192 + 16 + first, 7, np.int32)
    start = -memory.ctypes.data % 64 // 4 + first
    rows = memory[start : start + (m - 1) * 192 + n]
    out = np.lib.stride_tricks.as_strided(rows, (m, n), (192 * 4, 4))
    pysimd.matmul(a, b, out=out, kernel=KERNEL, threads=1)
    np.testing.assert_array_equal(out, a.astype(np.int64) @ b.astype(np.int64))
    out[...] = 7
    assert (memory == 7).all()


@needs_amx
@pytest.mark.parametrize("threads", [2, 3, 4, 8, 16])
@pytest.mark.parametrize("shape", [(64, 96, 70), (256, 512, 64), (192, 128, 300), (33, 64, 2000), (128, 128, 1100)])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("name", NAMES[:2])
def test_parts_of_a_product(threads, shape, transposed, name, rng):
    """Threads that take rectangles of C, where its sizes allow it: the bits of one thread."""
    m, n, k = shape
    a, b = (rng.standard_normal(x).astype(np.float32) for x in ((m, k), (k, n)))
    if "bf16" in name:
        a, b = ((x.view(np.uint32) >> 16).astype(np.uint16) for x in (a, b))
    else:
        a, b = a.astype(np.float16), b.astype(np.float16)
    b = np.asfortranarray(b) if transposed else b
    one = pysimd.matmul(a, b, kernel=name, threads=1)
    np.testing.assert_array_equal(pysimd.matmul(a, b, kernel=name, threads=threads), one)
    c = rng.standard_normal((m, n)).astype(np.float32)
    scaled = [pysimd.gemm(a, b, c, alpha=-1.0, beta=0.5, kernel=name, threads=t) for t in (1, threads)]
    np.testing.assert_array_equal(*scaled)


@needs_amx
@pytest.mark.parametrize("k", [1, 2, 3, 31, 32, 33, 64, 70, 300])
@pytest.mark.parametrize("layout", ["rows", "columns", "every other"])
def test_products_of_parts_of_any_float16(k, layout, rng):
    """Every bit pattern, a fourth of them zero. Behind the operands' last values there are NaN, which are not read."""
    m, n = 45, 40
    a, b = (rng.integers(0, 1 << 16, shape).astype(np.uint16).view(np.float16) for shape in ((m, k), (k, n)))
    a[rng.random(a.shape) < 0.25] = 0
    b[rng.random(b.shape) < 0.25] = -0.0
    if k > 30:  # else no element of C is finite
        a[5:], b[:, 5:] = np.where(np.isfinite(a[5:]), a[5:], 1), np.where(np.isfinite(b[:, 5:]), b[:, 5:], -2)
    found = pysimd.matmul(laid_out(a, layout), laid_out(b, layout), kernel=NAMES[1])
    assert np.isfinite(found).any()
    check(found, "f16f32", a, b, roundings=0)


def laid_out(x, layout):
    """The values of ``x`` in an array with NaN around them."""
    rows, columns = x.shape
    memory = np.full((rows + 2, 2 * columns + 3), np.nan, np.float16)
    if layout == "columns":
        memory = np.full((columns + 3, rows + 2), np.nan, np.float16).T
    view = (
        memory[1 : rows + 1, 1 : 2 * columns : 2] if layout == "every other" else memory[1 : rows + 1, 1 : columns + 1]
    )
    view[...] = x
    return view


@needs_amx
@pytest.mark.parametrize("k", [33, 46, 63, 95, 130])
@pytest.mark.parametrize("m", [5, 32, 47])
def test_a_last_step_that_k_does_not_fill(k, m, rng):
    """Its groups and zeros behind them are a step of their own: the bits of any layout, and no value beyond them."""
    a, b = (rng.standard_normal(x).astype(np.float32) for x in ((10, m, k), (10, k, 34)))
    a, b = ((x.view(np.uint32) >> 16).astype(np.uint16) for x in (a, b))
    right = pysimd.matmul(a, b, kernel=NAMES[0])
    exact = (a.astype(np.uint32) << 16).view(np.float32).astype(float) @ (b.astype(np.uint32) << 16).view(np.float32)
    np.testing.assert_allclose(right, exact, rtol=1e-4, atol=1e-4)
    wide = np.full((10, m, k + 5), 0x7FC0, np.uint16)  # NaN behind each row
    wide[:, :, :k] = a
    by_columns = np.ascontiguousarray(a.swapaxes(1, 2)).swapaxes(1, 2)
    for other in (wide[:, :, :k], by_columns, np.repeat(a, 2, axis=2)[:, :, ::2]):
        np.testing.assert_array_equal(pysimd.matmul(other, b, kernel=NAMES[0]), right)


@needs_amx
@pytest.mark.parametrize("types", ["bf16f32", "i8i32", "u8i8i32"])
def test_small_products_take_no_tiles(types):
    row = cpu_table.row(f"amx_{types}_outer_32x32")
    fewest = max(row.dispatch_rows, 5)  # up to four rows with a long k are for the kernels of a vector
    limits = {
        fewest: row.dispatch_macs_otherwise or row.dispatch_macs,
        max(fewest, row.dispatch_some_rows): row.dispatch_macs,
    }
    for m, macs in limits.items():
        k = max(-(-macs // (64 * m)), row.dispatch_k)
        assert CPU.chosen(types, 64, m, k).target == "amx"
        assert CPU.chosen(types, 64, m, k - 1).target != "amx"
    assert CPU.chosen(types, 64, row.dispatch_rows - 1, 1 << 20).target != "amx"
    wide, k, macs = row.dispatch_wide, row.dispatch_wide_k, row.dispatch_wide_macs  # a shorter k is enough
    many = -(-macs // (wide * k))
    assert CPU.chosen(types, wide, many, k).target == "amx"
    assert CPU.chosen(types, wide, many - 1, k).target != "amx"
    assert CPU.chosen(types, wide, 2 * many, k - 1).target != "amx"
    assert CPU.chosen(types, wide - 1, 2 * many, k).target != "amx"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="x86-64 kernels")
def test_a_bound_below_amx_asks_for_no_permission():
    """arch_prctl would change the process: smaller signal stacks are refused after it."""
    show = "import pysimd; print(*{k.available for k in pysimd.kernels('cpu', target='amx')})"
    assert output_of("-c", show, PYSIMD_ISA="avx2").strip() == "False"
    show = "import ctypes, pysimd; pysimd.kernels(); x = ctypes.c_uint64(); "
    show += "print(ctypes.CDLL(None).syscall(158, 0x1022, ctypes.byref(x)), x.value >> 18 & 1)"  # ARCH_GET_XCOMP_PERM
    if KERNEL.available:
        assert output_of("-c", show, PYSIMD_ISA="avx512bf16").split() == ["0", "0"]
        assert output_of("-c", show).split() == ["0", "1"]
