"""Device functions executed on the host, each in a kernel of its own: those whose rungs need TMA or WGMMA, and the loop
of a register tile alone. Needs neither a GPU nor NVRTC."""

import host_kernels
import numpy as np
import pytest

from pysimd.backends.gpu.gemm_launches import FIELDS, pair

pytestmark = pytest.mark.skipif(host_kernels.COMPILER is None, reason="no g++")


class Words:
    """An argument of a kernel."""

    def __init__(self, *fields):
        self._fields = np.array(fields, np.int64)
        self.ptr = self._fields.ctypes.data


def gemm(m, n, c, c0=None, **fields):
    """A Gemm with ``c = 2 x - c0``, or 2 x."""
    found = dict.fromkeys(FIELDS, 0)
    found |= {"m": m, "n": n, "c": c.ctypes.data, "ldc": c.shape[1], "factors": pair("f32", 2.0, -1.0)}
    if c0 is not None:
        rows, columns = (step // 4 for step in c0.strides)
        found |= {"c0": c0.ctypes.data, "c0_rs": rows, "c0_cs": columns}
    return Words(*(found | fields).values())


STORE = """
template <int WAY>
void store(const Gemm p) {
    float d[64];
    for (int x = 0; x < 64; ++x) {
        int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4 + x % 4 / 2 * 8;
        d[x] = row * 128 + x / 4 * 8 + threadIdx.x % 4 * 2 + x % 2;
    }
    if (WAY == 0) store_warpgroup_tile<ToF32, 128>(p, 0, 0, 0, d);
    else store_warpgroup_tile_rows<ToF32, 128>(p, shared_address(host::dynamic_shared), 0, 0, 0, d);
}
"""

MULTIPLY = """
/* A (64 x 16), B (128 x 16) and their product. */
void multiply(const float* a, const float* b, const Gemm p) {
    for (int x = threadIdx.x; x < (64 + 128) * 16; x += 128) {
        int row = x / 16, k = x % 16;
        float from = row < 64 ? a[x] : b[x - 64 * 16];
        memcpy(host::dynamic_shared + row * 128 + (k * 4 ^ row % 8 * 16), &from, 4);
    }
    __syncthreads();
    u64 tile_a = matrix_descriptor(shared_address(host::dynamic_shared)), tile_b = tile_a + (64 * 128 >> 4);
    float d[64];
    for (int x = 0; x < 64; ++x) d[x] = NAN;
    wgmma_tf32(d, tile_a, tile_b, 0);
    wgmma_tf32(d, tile_a + 2, tile_b + 2, 1);
    store_warpgroup_tile<ToF32, 128>(p, 0, 0, 0, d);
}
"""


@pytest.fixture(scope="module")
def wgmma(tmp_path_factory):
    entries = ["store<0>", "store<1>", "multiply"]
    folder = tmp_path_factory.mktemp("host")
    return host_kernels.Library("ladder/wgmma.cuh", entries, folder, lambda text: text + STORE + MULTIPLY)


@pytest.mark.parametrize("way", [0, 1])
@pytest.mark.parametrize(("m", "n"), [(64, 128), (50, 100), (7, 3)])
@pytest.mark.parametrize("adds", [None, "rows", "columns"])
def test_accumulators_of_a_warpgroup_are_stored_once(wgmma, way, m, n, adds):
    """Edge tiles, and a C0 whose rows or columns are adjacent; nothing beside C is written."""
    found = np.full((66, 132), 0.5, np.float32)
    c0 = None if adds is None else np.arange(m * n, dtype=np.float32).reshape(m, n, order="CF"[adds == "columns"])
    wgmma.function(f"store<{way}>")((1,), (128,), (gemm(m, n, found, c0, c_vector=int(adds is None)),))
    expected = np.full_like(found, 0.5)
    expected[:m, :n] = 2 * np.arange(64 * 128).reshape(64, 128)[:m, :n]
    if c0 is not None:
        expected[:m, :n] -= c0
    assert np.array_equal(found, expected)


def test_tf32_products_of_swizzled_tiles(wgmma, rng):
    """The first step starts the accumulators, the second adds to them."""
    a, b = (rng.integers(-8, 9, (rows, 16)).astype(np.float32) for rows in (64, 128))
    found = np.zeros((64, 128), np.float32)
    wgmma.function("multiply")((1,), (128,), (Words(a.ctypes.data), Words(b.ctypes.data), gemm(64, 128, found)))
    assert np.array_equal(found, 2 * a @ b.T)


@pytest.mark.parametrize(("word", "of_a_word"), [("F32", 1), ("I8", 4)])
def test_register_tiles_add_every_k_of_their_panels(tmp_path, rng, word, of_a_word):
    """The sum of a block's accumulators, twice eight words of k."""
    entry = f"tile_rate<{word}, 8, 4, 2, 4, 4, 8>"
    rows, columns, iterations = 2 * 4 * 8, 4 * 8 * 4, 2
    values = rng.integers(-3, 4, (8, rows + columns, of_a_word))
    words = values.astype(np.float32 if of_a_word == 1 else np.int8)
    panels = np.concatenate([words[:, :rows].ravel(), words[:, rows:].ravel()])
    out = np.zeros(256, np.float32 if of_a_word == 1 else np.int32)
    launch = host_kernels.Library("tile_rate.cu", [entry], tmp_path).function(entry)
    launch((1,), (256,), (Words(panels.ctypes.data), Words(out.ctypes.data), Words(iterations)))
    of_a, of_b = values[:, :rows].sum(1), values[:, rows:].sum(1)
    assert out.sum() == iterations * (of_a * of_b).sum()
    assert np.unique(out).size > 1
