"""Kernels broken on purpose: each fault is caught, by a wrong result or by the simulator's own checks.

What the tests accept as right is only worth something if they refuse what is wrong.
"""

import hip_simulated
import numpy as np
import pytest
from hip_machine_code import missing
from hip_simulated import batched_product, laid, product
from pysimd.hip_kernels import table
from reference import check, moderate

from pysimd import dtypes, simulator

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "nothing")

WRONG = AssertionError, simulator.SimulationError

# What: kernel, text, what it is replaced by, m - mr (tiles stick out), layouts of A and B.
FAST, ANY = ("K_MAJOR", "PACKED"), ("ANY", "ANY")
FAULTS = {
    "wrong operand": (
        "f32_outer_8x8",
        "multiply_add(x[i][u], y[j][u], acc",
        "multiply_add(x[i][u], y[i][u], acc",
        0,
        FAST,
    ),
    "swapped index": ("f32_outer_4x4", "acc[i][j] = multiply_add(x", "acc[j][i] = multiply_add(x", 0, FAST),
    "wrong step of k": ("f32_outer_4x4", "(x[i][u], y[j][u]", "(x[i][u], y[j][0]", 0, FAST),
    "dropped tail": ("f32_outer_4x4", "k = (int)(p.k % U)", "k = 0", 0, FAST),
    "one turn too few": ("f32_outer_4x4", "if (k == 2) update", "if (k == 3) update", 0, FAST),
    "load past the end": ("f32_inner_4x4", "for (k = (int)(p.k % U); k > 0", "for (k = (int)(p.k % U); k >= 0", 0, ANY),
    "row past the edge": ("f32_outer_4x4", "if (EDGE && i >= t.rows) break", "if (EDGE && i > t.rows) break", -1, ANY),
    "element past the edge": ("f32_outer_4x4", "!EDGE || r < count ?", "!EDGE || r <= count ?", -1, ANY),
    "no guard of the batch": ("f32_outer_4x4", "if (!t.inside) return", "", 0, FAST),
    "column as row": ("f32_outer_4x4", "t.j * p.c_cs", "t.j * p.c_rs", 5, ANY),
    "C0 forgotten": ("f32_outer_8x8", "x = Y::sum(c0[i", "x += 0 * Y::sum(c0[i", 0, FAST),
    "C0 of another row": ("f32_outer_8x8", "Y::sum(c0[i * p.c0_rs", "Y::sum(c0[(i ^ 1) * p.c0_rs", 0, FAST),
    "wrong op_sel": ("f16_outer_8x8", "both(word(r, u), place(r, u) % 2)", "both(word(r, u), 0)", 0, FAST),
    "wrong half": ("f16f32_outer_4x4", "w[e / 2] >> e % 2 * 16", "w[e / 2] >> (1 - e % 2) * 16", 0, FAST),
    "unsigned bytes": ("i8i32_outer_4x4", "sudot4(true, a, true", "sudot4(false, a, true", 0, FAST),
    "saturated sum": ("i8i32_outer_4x4", "true, b, c, false)", "true, b, c, true)", 0, FAST),
    "bytes turned wrongly": ("i8i32_outer_8x8", "0x7362", "0x7632", 0, FAST),
}
TARGET = "gfx1100"

MATRIX_FAULTS = {
    "wrong row of a sum": ("f32_mfma_16x16", "gfx942", "+ 4 * group + r % 4", "+ 4 * (3 - group) + r % 4"),
    "k of A and B differ": (
        "f16f32_mfma_32x32",
        "gfx90a",
        "p.b_cs + group * U * p.b_rs",
        "p.b_cs + (1 - group) * U * p.b_rs",
    ),
    "tail not zeroed": ("f32_mfma_16x16", "gfx942", "u < left ? ", "u <= left ? "),
    "rows of another generation": (
        "f16f32_wmma_16x16",
        "gfx1200",
        "2 * r + group : 8 * group + r",
        "8 * group + r : 2 * r + group",
    ),
    "half of a fragment": ("f16f32_wmma_16x16", "gfx1100", "v[u] = x[0][u]", "v[u] = x[0][u % 8]"),
}


def refused(row, target, change, rng, m_more=0, layouts=None) -> bool:
    """Whether the changed kernel is found to be wrong."""
    family = dtypes.FAMILIES[row.types]
    layouts = layouts or ("K_MAJOR", "K_MAJOR")
    m, n = row.mr + m_more, row.nr + m_more
    a = laid(moderate(rng, dtypes.dtype_of(family.a), (5, m, 45)), layouts[0], -1)
    b = laid(moderate(rng, dtypes.dtype_of(family.b), (5, 45, n)), layouts[1], -2)
    c = moderate(rng, np.dtype(np.float32), (5, m, n)).astype(dtypes.dtype_of(family.c))
    if row.types == "i8i32":
        c[...] = np.where(c > 0, np.iinfo(np.int32).max, np.iinfo(np.int32).min)
    try:
        check(product(row, a, b, c, target, change)[0], row.types, a, b, c)
    except simulator.CompileError:
        raise
    except WRONG:
        return True
    return False


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_caught(fault, rng):
    name, old, new, m_more, layouts = FAULTS[fault]
    row = table.BY_NAME[f"hip_{name}"]
    assert refused(row, TARGET, lambda text: text.replace(old, new), rng, m_more, layouts)


@pytest.mark.parametrize("fault", MATRIX_FAULTS)
def test_fault_of_the_matrix_units_is_caught(fault, rng):
    name, target, old, new = MATRIX_FAULTS[fault]
    assert refused(table.BY_NAME[f"hip_{name}"], target, lambda text: text.replace(old, new), rng)


@pytest.mark.parametrize("target", ["gfx906", "gfx1200"])
@pytest.mark.parametrize("which", [0, 2], ids=["before the sums", "before the copy"])
def test_missing_barrier_is_caught(target, which, rng):
    """Between the waves of a block: what one wrote into LDS another reads."""

    def without(text):
        before, after = text.split("batched(const __grid_constant__ Call p)", 1)
        parts = after.split("__syncthreads();")
        parts[which : which + 2] = [parts[which] + ";" + parts[which + 1]]
        return before + "batched(const __grid_constant__ Call p)" + "__syncthreads();".join(parts)

    a, b = (moderate(rng, np.dtype(np.float32), (70, 5, 5)) for _ in range(2))
    check(batched_product("f32", a, b, target)[0], "f32", a, b)
    with pytest.raises(simulator.RaceError):
        batched_product("f32", a, b, target, without)


def test_offsets_in_32_bits_are_caught(rng):
    """Two products further apart than 2**31 elements; memory that is never touched costs nothing."""
    step = (1 << 31) + 64
    room = np.empty(step + 128, np.int8)
    a = np.lib.stride_tricks.as_strided(room, (2, 4, 32), (step, 32, 1))
    a[...] = moderate(rng, a.dtype, a.shape)
    b = moderate(rng, a.dtype, (2, 32, 4))
    with pytest.raises(simulator.AccessError):
        product(
            table.BY_NAME["hip_i8i32_outer_4x4"],
            a,
            b,
            None,
            TARGET,
            lambda text: text.replace("at.a += here * p.a_batch[d]", "at.a += (int)here * (int)p.a_batch[d]"),
        )


def test_an_unchanged_kernel_is_accepted(rng):
    """The way that the faults are looked for does not refuse everything."""
    for name in {x[0] for x in (*FAULTS.values(), *MATRIX_FAULTS.values())}:
        row = table.BY_NAME[f"hip_{name}"]
        for layouts in {x[4] for x in FAULTS.values() if x[0] == name} or {None}:
            for m_more in {x[3] for x in FAULTS.values() if x[0] == name} or {0}:
                assert not refused(row, hip_simulated.targets(row)[-1], lambda text: text + "\n", rng, m_more, layouts)
