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

# Fault: kernel, text, its replacement, m - mr (not 0: edge tiles), layouts of A and B.
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
    "dropped remainder": ("f32_outer_4x4", "int left = (int)(p.k % U)", "int left = 0", 0, FAST),
    "one iteration too few": ("f32_outer_4x4", "if (k == 2) update", "if (k == 3) update", 0, FAST),
    "load past the end": ("f32_inner_4x4", "(int)(p.k % U); left > 0", "(int)(p.k % U); left >= 0", 0, ANY),
    "row past the edge": ("f32_outer_4x4", "if (EDGE && i >= t.rows) break", "if (EDGE && i > t.rows) break", -1, ANY),
    "element past the edge": ("f32_outer_4x4", "!EDGE || r < count ?", "!EDGE || r <= count ?", -1, ANY),
    "no guard of the batch": ("f32_outer_4x4", "if (!t.inside) return", "", 0, FAST),
    "column as row": ("f32_outer_4x4", "t.j * p.c_cs", "t.j * p.c_rs", 5, ANY),
    "C0 forgotten": ("f32_outer_8x8", "x = Y::add(c0[i", "x += 0 * Y::add(c0[i", 0, FAST),
    "C0 of another row": ("f32_outer_8x8", "Y::add(c0[i * p.c0_rs", "Y::add(c0[(i ^ 1) * p.c0_rs", 0, FAST),
    "wrong op_sel": ("f16_outer_8x8", "broadcast(word(r, u), index(r, u) % 2)", "broadcast(word(r, u), 0)", 0, FAST),
    "wrong f16 of a register": ("f16f32_outer_4x4", "w[e / 2] >> e % 2 * 16", "w[e / 2] >> (1 - e % 2) * 16", 0, FAST),
    "unsigned int8": ("i8i32_outer_4x4", "sudot4(true, a, true", "sudot4(false, a, true", 0, FAST),
    "saturated sum": ("i8i32_outer_4x4", "true, b, c, false)", "true, b, c, true)", 0, FAST),
    "bytes transposed wrongly": ("i8i32_outer_8x8", "0x7362", "0x7632", 0, FAST),
}
TARGET = "gfx1100"

MATRIX_FAULTS = {
    "wrong row of an accumulator": ("f32_mfma_16x16", "gfx942", "+ 4 * group + r % 4", "+ 4 * (3 - group) + r % 4"),
    "k of A and B differ": (
        "f16f32_mfma_32x32",
        "gfx90a",
        "p.b_cs + group * U * p.b_rs",
        "p.b_cs + (1 - group) * U * p.b_rs",
    ),
    "remainder not zeroed": ("f32_mfma_16x16", "gfx942", "u < left ? ", "u <= left ? "),
    "rows of another generation": (
        "f16f32_wmma_16x16",
        "gfx1200",
        "2 * r + group : 8 * group + r",
        "8 * group + r : 2 * r + group",
    ),
    "half of a fragment": ("f16f32_wmma_16x16", "gfx1100", "v[u] = x[0][u]", "v[u] = x[0][u % 8]"),
}


def replacing(old, new):
    """A change of a source, in which the old text must stand."""

    def change(text):
        assert old in text
        return text.replace(old, new)

    return change


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
        result = product(row, a, b, c, target, change)[0]
    except simulator.CompileError:
        raise
    except simulator.SimulationError:
        return True
    try:
        check(result, row.types, a, b, c)
    except AssertionError:
        return True
    return False


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_caught(fault, rng):
    name, old, new, m_more, layouts = FAULTS[fault]
    row = table.BY_NAME[f"hip_{name}"]
    assert refused(row, TARGET, replacing(old, new), rng, m_more, layouts)


@pytest.mark.parametrize("fault", MATRIX_FAULTS)
def test_fault_of_the_matrix_units_is_caught(fault, rng):
    name, target, old, new = MATRIX_FAULTS[fault]
    assert refused(table.BY_NAME[f"hip_{name}"], target, replacing(old, new), rng)


BARRIERS = {
    "before operands are read": ("wait_copies();\n        __syncthreads();", "wait_copies();"),
    "before results are copied": ("__syncthreads();\n    Out* c = (Out*)p.c + first", "Out* c = (Out*)p.c + first"),
}


@pytest.mark.parametrize("target", ["gfx906", "gfx1200"])
@pytest.mark.parametrize("barrier", BARRIERS)
def test_missing_barrier_is_caught(target, barrier, rng):
    """Between the waves of a block: what one wrote into LDS another reads."""
    a, b = (moderate(rng, np.dtype(np.float32), (70, 5, 5)) for _ in range(2))
    check(batched_product("f32", a, b, target)[0], "f32", a, b)
    with pytest.raises(simulator.RaceError):
        batched_product("f32", a, b, target, replacing(*BARRIERS[barrier]))


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
            replacing("at.a += here * p.a_batch[d]", "at.a += (int)here * (int)p.a_batch[d]"),
        )


def test_an_unchanged_kernel_is_accepted(rng):
    """``refused`` does not refuse every kernel."""
    for name in {x[0] for x in (*FAULTS.values(), *MATRIX_FAULTS.values())}:
        row = table.BY_NAME[f"hip_{name}"]
        for layouts in {x[4] for x in FAULTS.values() if x[0] == name} or {None}:
            for m_more in {x[3] for x in FAULTS.values() if x[0] == name} or {0}:
                assert not refused(row, hip_simulated.targets(row)[-1], lambda text: text + "\n", rng, m_more, layouts)
