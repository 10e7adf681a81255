"""Every HIP kernel for every target, its machine code executed in the simulator, against the exact product.

The instances for the fastest layouts, any strides and edge tiles run for each target; each other layout runs for some
target.
"""

import itertools

import hip_simulated
import layouts
import numpy as np
import pytest
from cases import BATCHES, K_LENGTHS
from hip_machine_code import missing
from hip_simulated import batched_product, laid, product
from pysimd.hip_kernels import table
from reference import check, moderate, random_result

import pysimd
from pysimd import dtypes

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "nothing")

CASES = [
    pytest.param(row, target, id=f"{row.name}-{target}")
    for row in table.KERNELS
    for target in hip_simulated.targets(row)
]
every_case = pytest.mark.parametrize(("row", "target"), CASES)
every_row = pytest.mark.parametrize("row", table.KERNELS, ids=lambda row: row.name)


def fast(row):
    """The layouts that are read in the widest vectors."""
    return "K_MAJOR", "PACKED" if "PACKED" in row.layouts else "K_MAJOR"


def operands(row, m, k, n, rng, batch=(), layouts=("K_MAJOR", "K_MAJOR")):
    family = dtypes.FAMILIES[row.types]
    a = moderate(rng, dtypes.dtype_of(family.a), (*batch, m, k))
    b = moderate(rng, dtypes.dtype_of(family.b), (*batch, k, n))
    return laid(a, layouts[0], -1), laid(b, layouts[1], -2)


def result(row, shape, rng):
    return random_result(rng, dtypes.dtype_of(dtypes.FAMILIES[row.types].c), shape)


@every_case
def test_every_length(row, target, rng):
    """K from none to many iterations, each with another remainder; the batch does not fill a block."""
    layouts = fast(row)
    for k in K_LENGTHS:
        a, b = operands(row, row.mr, k, row.nr, rng, (5,), layouts)
        c = result(row, (5, row.mr, row.nr), rng) if k % 2 else None
        found, entry = product(row, a, b, c, target)
        if k > 1:  # else strides along k mean nothing
            assert entry == table.entry(row, *layouts, False)
        check(found, row.types, a, b, c)


@every_case
def test_any_strides(row, target, rng):
    a, b = operands(row, row.mr, 23, row.nr, rng, (3,), ("ANY", "ANY"))
    c = result(row, (3, row.nr, row.mr), rng).swapaxes(-1, -2)
    found, entry = product(row, a, b, c, target)
    assert entry == table.entry(row, "ANY", "ANY", False)
    check(found, row.types, a, b, c)


@every_case
def test_edge_tiles(row, target, rng):
    """Not one byte outside the arrays is touched: the simulator refuses it."""
    for m, n, k in ((1, 1, 5), (row.mr - 1, row.nr + 1, 17), (2 * row.mr + 1, row.nr, 64), (row.mr, 3, 0)):
        a, b = operands(row, m, k, n, rng, (2,))
        c = result(row, (2, m, n), rng) if k != 17 else None
        found, entry = product(row, a, b, c, target)
        assert entry == table.entry(row, "ANY", "ANY", True)
        check(found, row.types, a, b, c)


def other_layouts() -> list:
    """Each row and target with one of the layouts that no other test takes."""
    found = []
    for row in table.KERNELS:
        targets = hip_simulated.targets(row)
        pairs = [x for x in itertools.product(("ANY", *row.layouts), repeat=2) if x not in (fast(row), ("ANY", "ANY"))]
        for i in range(max(len(pairs), len(targets))):
            layouts, target = pairs[i % len(pairs)], targets[i % len(targets)]
            found.append(pytest.param(row, target, layouts, id=f"{row.name}-{target}-{'-'.join(layouts)}"))
    return found


@pytest.mark.parametrize(("row", "target", "layouts"), other_layouts())
def test_other_layouts(row, target, layouts, rng):
    a, b = operands(row, row.mr, 43, row.nr, rng, (3,), layouts)
    found, entry = product(row, a, b, None, target)
    assert entry == table.entry(row, *layouts, False)
    check(found, row.types, a, b)


@every_case
def test_ratio_counted_in_what_ran(row, target, rng):
    """Through the public call: multiply-adds executed and elements loaded are those of the tile."""
    kernel = pysimd.kernel(row.name)
    a, b = operands(row, row.mr, 64, row.nr, rng, (2,), fast(row))
    c = result(row, (2, row.mr, row.nr), rng)
    run = kernel.simulate(a, b, c, target=target)
    check(run.result, row.types, a, b, c)
    assert run.macs == 2 * row.mr * row.nr * 64
    twice = 2 if (row.form, target) == ("wmma", "gfx1100") else 1
    assert run.ratio * twice == kernel.ratio.value
    assert run.counts.store_bytes == {"global": run.result.nbytes}
    assert run.counts.barriers == 0


@every_row
def test_broadcasting(row, rng):
    target = hip_simulated.targets(row)[-1]
    kernel = pysimd.kernel(row.name)
    family = dtypes.FAMILIES[row.types]
    for batch in BATCHES:
        a = laid(moderate(rng, dtypes.dtype_of(family.a), (*batch.a, row.mr, 16)), "K_MAJOR", -1)
        b = laid(moderate(rng, dtypes.dtype_of(family.b), (*batch.b, 16, row.nr)), fast(row)[1], -2)
        found = kernel.simulate(a, b, target=target).result
        assert found.shape == (*batch.result, row.mr, row.nr), batch.why
        check(found, row.types, a, b)


@every_row
def test_same_bits_in_every_layout_and_place(row, rng):
    target = hip_simulated.targets(row)[0]
    a, b = operands(row, row.mr, 43, row.nr, rng)
    alone, _ = product(row, a, b, None, target)
    for pair in (fast(row), ("ANY", "ANY")):
        many, _ = product(row, laid(np.stack([a] * 7), pair[0], -1), laid(b, pair[1], -2), None, target)
        assert (many.view(np.uint8) == alone.view(np.uint8)).all()


@pytest.mark.parametrize("k", [3, 64])
def test_same_bits_for_every_target(k, rng):
    """One fma per term, k ascending: the same for all."""
    for name in ("hip_f32_outer_8x8", "hip_f32_inner_8x8", "hip_f16f32_outer_8x8", "hip_f16_outer_8x8"):
        row = table.BY_NAME[name]
        a, b = operands(row, row.mr, k, row.nr, rng, (), fast(row))
        found = {product(row, a, b, None, target)[0].tobytes() for target in hip_simulated.targets(row)}
        assert len(found) == 1, name


@pytest.mark.parametrize("target", table.TARGETS)
def test_integer_extremes_and_wrapping(target):
    row = table.BY_NAME["hip_i8i32_outer_4x4"]
    for x, y in itertools.product((-128, 127), repeat=2):
        a, b = laid(np.full((4, 300), x, np.int8), "K_MAJOR", -1), np.full((300, 4), y, np.int8)
        for limit in (np.iinfo(np.int32).min, np.iinfo(np.int32).max):
            c = np.full((4, 4), limit, np.int32)
            check(product(row, a, b, c, target)[0], row.types, a, b, c)


@every_row
def test_nan_and_infinity(row, rng):
    if row.types == "i8i32":
        pytest.skip("integers have none")
    for target, k in zip(hip_simulated.targets(row)[-2:], (17, 33), strict=True):
        a, b = operands(row, row.mr, k, row.nr, rng, (3,), fast(row))
        a[0, 1, k // 2], b[1, k - 1, 2], a[2, 0, 0] = np.nan, np.inf, -np.inf
        check(product(row, a, b, None, target)[0], row.types, a, b)


@pytest.mark.parametrize(("name", "target"), [("hip_i8i32_outer_4x4", "gfx942"), ("hip_f16f32_outer_4x4", "gfx1100")])
def test_offsets_beyond_32_bits(name, target, rng):
    """Products further apart than 2**31 elements: memory that is never touched costs nothing."""
    row = table.BY_NAME[name]
    dtype = dtypes.dtype_of(dtypes.FAMILIES[row.types].a)
    step = (1 << 31) + 64
    room = np.empty(step + 4 * 32, dtype)
    a = np.lib.stride_tricks.as_strided(room, (2, 4, 32), (step * dtype.itemsize, 32 * dtype.itemsize, dtype.itemsize))
    values, b = operands(row, 4, 32, 4, rng, (2,), ("K_MAJOR", "PACKED"))
    a[...] = values
    check(product(row, a, b, None, target)[0], row.types, a, b)


# --- matmul of small products; float64, which the simulator does not model, is in test_machine_code.py ---

SMALL = (
    ("f32", 4, 4, 4),
    ("f32", 3, 5, 7),
    ("f32", 16, 16, 16),
    ("f32", 6, 6, 6),
    ("f16", 8, 8, 8),
    ("i8i32", 5, 7, 6),
)
SMALL += (("bf16f32", 8, 16, 8), ("f16", 3, 3, 3), ("i8i32", 16, 16, 16))


@pytest.mark.parametrize(("index", "case"), list(enumerate(SMALL)), ids=lambda x: str(x))
def test_batches_of_small_products(index, case, rng):
    """Contiguous operands, and a broadcast B with a strided A; barriers and LDS between the waves of a block."""
    types, m, k, n = case
    family = dtypes.FAMILIES[types]
    for target in (table.TARGETS[index % 7], table.TARGETS[(index + 4) % 7]):
        a = moderate(rng, dtypes.dtype_of(family.a), (70, m, k))
        b = moderate(rng, dtypes.dtype_of(family.b), (70, k, n))
        found, entry = batched_product(types, a, b, target)
        assert "Operand<CONTIGUOUS, K_MAJOR>, Operand<CONTIGUOUS, MN_MAJOR>, true" in entry
        check(found, types, a, b)
        a, b = laid(a, "ANY", -1), b[0]
        found, entry = batched_product(types, a, b, target)
        assert "STRIDED" in entry
        assert "BROADCAST" in entry
        check(found, types, a, b)


@pytest.mark.parametrize(("types", "m", "k", "n"), [("f32", 33, 3, 35), ("f32", 65, 3, 67), ("f64", 45, 3, 47)])
def test_batches_beyond_32(types, m, k, n, rng):
    """The source that CUDA devices have for larger products: ranges that begin between two 16-byte boundaries, a last
    block that is not full, and strided operands product by product."""
    family = dtypes.FAMILIES[types]
    a, b = (moderate(rng, dtypes.dtype_of(family.a), shape) for shape in ((6, m, k), (6, k, n)))
    for layout, word in ((np.ascontiguousarray, "CONTIGUOUS"), (layouts.padded_rows, "STRIDED")):
        found, entry = batched_product(types, layout(a), layout(b), "gfx90a")
        assert f"Operand<{word}, K_MAJOR>, Operand<{word}, MN_MAJOR>" in entry
        check(found, types, a, b)
