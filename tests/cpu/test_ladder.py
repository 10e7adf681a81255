"""The rungs of the CPU ladder: the table and its files, products of every shape, and the machine code."""

import re
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from cases import QUICK
from process import SANITIZED, output_of
from pysimd._cpu import ffi, lib
from reference import check, random_operand

import pysimd
from pysimd import sources
from pysimd.backends.cpu import ladder, table
from pysimd.inspection import x86

RUNGS = pysimd.rungs("cpu")
KERNELS = Path(str(files("pysimd.cpu_kernels")))
TABLE = (KERNELS / "ladder.inc").read_text()
OF_TARGETS = re.findall(r"^RUNG\((\w+)", TABLE, re.MULTILINE)
LOOPS = re.findall(r"^LOOPS\((\w+)", TABLE, re.MULTILINE)

SHAPES = ((1, 1, 1), (7, 17, 5), (17, 33, 65), (33, 7, 1), (65, 65, 17), (3, 130, 2), (130, 3, 40), (5, 6, 0))
"""m, n, k: one; odd; past whole tiles of every target; one k; two of three large; no terms."""

FACTORS = ((1, 0), (1, 1), (0.5, -1), (-1, 0.5), (0, 1), (2, 0))


@pytest.fixture(params=RUNGS, ids=lambda rung: rung.name)
def rung(request):
    return request.param


def operands(rng, m, n, k, batch=()):
    return [random_operand(rng, np.dtype(np.float32), (*batch, *shape)) for shape in ((m, k), (k, n), (m, n))]


# --- the table and the files ---


def test_every_rung_has_its_file_and_every_file_its_rung():
    assert [rung.name for rung in RUNGS] == [*OF_TARGETS, *LOOPS, "gemm"]
    assert [rung.number for rung in RUNGS] == [f"C{i}" for i in range(len(RUNGS))]
    assert {path.stem for path in (KERNELS / "ladder").glob("*.c")} == {*OF_TARGETS, *LOOPS}
    assert all((KERNELS.parent / rung.source_path).name == f"{rung.name}.c" for rung in RUNGS)
    assert pysimd.rung("gemm").source == (KERNELS / "core" / "gemm.c").read_text()


@pytest.mark.parametrize("target", ["generic", "avx2", "avx512"])
def test_rungs_are_compiled_for_each_target(target):
    text = next(KERNELS.rglob(f"ladder_{target}.c")).read_text()
    assert re.findall(r'"../ladder/(\w+)\.c"', text) == OF_TARGETS


def test_header(rung):
    if rung.name == "gemm":
        pytest.skip("core/gemm.c is no file of the ladder")
    labels = sources.labels(rung.source)
    assert rung.source.startswith(f"/* {rung.name}, {rung.number}: ")
    assert [*labels] == ["step", "contract", "tile", "regs", "per k", "ratio", "rounding", "needs", "idea"]
    tile = f"{rung.tm} x 1 vectors" if rung.name == "simd" else f"{rung.tm} x {rung.tn}"
    if rung.name in OF_TARGETS:
        assert labels["tile"].startswith(tile)
    if rung.name != "simd" or rung.tn == 8:
        assert labels["ratio"].endswith(f"= {rung.ratio.value:.2f}") or rung.name in LOOPS


def test_page_has_every_rung():
    page = (Path(__file__).parents[2] / "docs" / "cpu_ladder.md").read_text()
    assert [rung.name for rung in RUNGS if f"\n## {rung.number} {rung.name}: " not in page] == []
    assert set(re.findall(r"<!-- rung:(\w+) -->", page)) == {rung.name for rung in RUNGS}


# --- products ---


@pytest.mark.parametrize("shape", SHAPES[::2] if QUICK else SHAPES, ids=lambda x: "x".join(map(str, x)))
def test_factors_and_strides(rung, shape, rng):
    """Also with NaN in a C that is not read, transposed, with every other element, and reversed."""
    m, n, k = shape
    a, b, c = operands(rng, m, n, k)
    wide_a, wide_b = (np.repeat(np.repeat(x, 2, 0), 2, 1) for x in (a, b))
    layouts = (
        (a, b, {}),
        (a.T.copy(), b.T.copy(), {"trans_a": True, "trans_b": True}),
        (wide_a[::2, ::2], wide_b[::2, ::2], {}),
        (a[::-1, ::-1].copy()[::-1, ::-1], b[::-1, ::-1].copy()[::-1, ::-1], {}),
    )
    for i, (alpha, beta) in enumerate(FACTORS):
        x, y, transposed = layouts[i % len(layouts)]
        before = np.full_like(c, np.nan) if beta == 0 else c
        result = rung(x, y, before, alpha=alpha, beta=beta, **transposed)
        check(result, "f32", np.float32(alpha) * a, b, np.float32(beta) * c if beta else None, roundings=3)
        out = before.copy()
        assert pysimd.gemm(x, y, out, alpha=alpha, beta=beta, out=out, kernel=rung, **transposed) is out
        assert np.array_equal(out, result)


@pytest.mark.parametrize("layout", range(4))
def test_blocks_of_every_dimension(rung, layout, rng, monkeypatch):
    """More than one block along k; C with rows at any distance, broadcast over rows."""
    m, n, k = (140, 35, 560) if layout % 2 else (9, 50, 530)
    a, b, _ = operands(rng, m, n, k)
    c = random_operand(rng, np.dtype(np.float32), (n,))
    out = np.zeros((m, 2 * n), np.float32)[:, :n]
    x, y = (a.T.copy().T if layout >= 2 else a), (b.T.copy().T if layout >= 2 else b)
    rung(x, y, c, beta=1, out=out)
    check(out, "f32", a, b, np.broadcast_to(c, (m, n)))
    assert not out.base[:, n:].any()


def test_batches(rung, rng):
    a, _, _ = operands(rng, 5, 9, 4, (2, 1))
    _, b, c = operands(rng, 5, 9, 4, (3,))
    check(rung(a, b, c, beta=1), "f32", a, b, c)
    assert rung(a[:0], b).shape == (0, 3, 5, 9)
    assert rung(a[..., :0, :], b).shape == (2, 3, 0, 9)


def test_any_alignment_and_overlap(rung, rng):
    a, b, c = operands(rng, 9, 9, 9)
    odd = [np.frombuffer(b"x" + x.tobytes(), np.uint8)[1:].view(np.float32).reshape(x.shape) for x in (a, b, c)]
    assert odd[0].ctypes.data % 4
    out = np.zeros(9 * 9 * 4 + 1, np.uint8)[1:].view(np.float32).reshape(9, 9)
    rung(*odd, beta=1, out=out)
    check(out, "f32", a, b, c)
    x = a.copy()
    check(rung(x, b, out=x), "f32", a, b)


def test_nan_and_infinity_stay_in_their_rows_and_columns(rung, rng):
    """The zeros that fill up a panel are multiplied with infinity too: what that gives is not stored."""
    a, b, _ = operands(rng, 8, 19, 3)
    a[7, 1], b[2, 18] = np.inf, np.nan
    result = rung(a, b)
    assert not np.isfinite(result[7]).any()
    assert not np.isfinite(result[:, 18]).any()
    assert np.isfinite(result[:7, :18]).all()


@pytest.mark.parametrize("name", [rung.name for rung in RUNGS if ladder.row(rung.name).threads])
def test_any_number_of_threads_gives_the_same_bits(name, rng):
    for m, n, k in ((100, 70, 50), (40, 200, 50), (1, 1, 1)):
        a, b, c = operands(rng, m, n, k)
        one = pysimd.gemm(a, b, c, beta=1, kernel=name, threads=1)
        check(one, "f32", a, b, c)
        for threads in (2, 3, 1000):
            assert np.array_equal(pysimd.gemm(a, b, c, beta=1, kernel=name, threads=threads), one)


def test_operands_that_do_not_fit(rung):
    a = np.ones((3, 4), np.float32)
    with pytest.raises(pysimd.ShapeError, match="must have the same k"):
        rung(a, a)
    with pytest.raises(pysimd.DTypeError, match="float64"):
        rung(a.astype(np.float64), a.T.astype(np.float64))


def test_lower_targets():
    """The code for each target that this CPU has; the highest is what the tests above run."""
    program = (
        "import numpy as np, pysimd; a = np.arange(63, dtype='f').reshape(7, 9); b = np.ones((9, 11), 'f')\n"
        "for r in pysimd.rungs('cpu'): assert np.array_equal(r(a, b, alpha=2), 2 * (a @ b)), r.name\n"
        "print(*sorted({r.requires for r in pysimd.rungs('cpu')[:4]}))"
    )
    seen = {output_of("-c", program, PYSIMD_ISA=target).strip() for target in ("generic", "avx2")}
    assert len(seen) == 1 + ("fma" in table.features() and "avx2" in table.features())


# --- the machine code ---


unread = x86.missing() or ("the checks of the sanitizers are in the machine code" if SANITIZED else "")
read = pytest.mark.skipif(bool(unread), reason=unread or "nothing")


def compiled():
    """Rung, target and address of every rung that has a loop along k of its own, whether or not this CPU can run it."""
    for rung in RUNGS:
        row = ladder.row(rung.name)
        for target in range(lib.TARGETS):
            if rung.name in OF_TARGETS and row.run[target] != ffi.NULL:
                yield pytest.param(rung, target, id=f"{rung.name}-{table.TARGETS[target]}")


@read
@pytest.mark.parametrize(("rung", "target"), list(compiled()))
def test_hot_loop(rung, target):
    """Loads and multiply-adds as the header says; nothing spilled, and nothing stored but by ikj."""
    name, row = table.TARGETS[target], ladder.row(rung.name)
    ratio = rung.ratio.value
    if row.vectors:
        ratio = rung.tm * ladder._LANES[name] / (rung.tm + ladder._LANES[name])
    seen = x86._counted(rung.name, name, int(ffi.cast("uintptr_t", row.run[target])), 4, ratio)
    per_k = re.match(r"(\d+) multiply-adds?, (\d+) loads(?:, (\d+) store)?$", sources.labels(rung.source)["per k"])
    assert seen.spills == 0, seen.listing
    assert seen.stores == int(per_k[3] or 0)
    assert seen.multiply_adds == int(per_k[1])
    if name != "generic":
        assert seen.agrees, f"{seen}\n{seen.listing}"
        assert sum(seen.load_instructions.values()) == int(per_k[2])
    assert bool({"FMA", "AVX512F"} & {*seen.features}) == (name != "generic")
    assert ("AVX512F" in seen.features) == (name == "avx512" and rung.name == "simd")


@read
def test_no_vectors_before_the_rung_that_adds_them():
    for rung in RUNGS[:3]:
        seen = pysimd.inspect(rung)
        assert seen.macs == seen.multiply_adds, seen.listing
