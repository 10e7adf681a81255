"""Faults planted in machine code: each is refused, or gives a wrong result that a comparison sees."""

import re
import struct

import numpy as np
import pytest
from amd_waves import probes
from hip_machine_code import missing

from pysimd import simulator
from pysimd.simulator import AccessError, CodeObject, RaceError, UndefinedRead

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "nothing")

TARGETS = ("gfx906", "gfx942", "gfx1100", "gfx1200")


def planted(code: CodeObject, kernel: str, old: str, new: str, number: int | None = 0) -> CodeObject:
    """The code object with an instruction of a kernel changed: the one that matches as that number; None: all."""
    lines = code.assembly.splitlines()
    start = next(i for i, x in enumerate(lines) if re.match(rf"([0-9a-f]+ <)?{kernel}>?:", x))
    end = next(i for i in range(start, len(lines)) if "s_endpgm" in lines[i])
    matching = [i for i in range(start, end) if re.search(old, lines[i])]
    for i in matching if number is None else [matching[number]]:
        lines[i] = re.sub(old, new, lines[i], count=1)
    return CodeObject(code.elf, code.target, "\n".join(lines))


class Tile:
    """The probe ``tile`` on fixed operands, and its right result."""

    def __init__(self, target: str):
        rng = np.random.default_rng(5)
        self.code = probes(target)
        self.a, self.b = rng.standard_normal((2, 64, 7, 4)).astype(np.float16)
        self.want = np.zeros((64, 4, 4), np.float16)
        for i in range(7):
            exact = self.want + self.a[:, i, :, None].astype(np.float64) * self.b[:, i, None, :]
            self.want = exact.astype(np.float16)

    def run(self, code: CodeObject) -> np.ndarray:
        memory = simulator.Memory()
        c = np.zeros((64, 4, 4), np.float16)
        pointers = (memory.add(x, name) for x, name in ((self.a, "a"), (self.b, "b"), (c, "c")))
        simulator.launch(code, "tile", (1,), (64,), struct.pack("<QQQi", *pointers, 7), memory)
        return c


@pytest.fixture(scope="module", params=TARGETS)
def tile(request):
    return Tile(request.param)


def test_nothing_planted(tile):
    np.testing.assert_array_equal(tile.run(planted(tile.code, "tile", r"$", "")), tile.want)


WRONG = [
    ("another accumulator", r"(v_pk_fma_f16 v\d+, v\d+, v\d+, )v\d+", r"\1v0"),
    ("the wrong half", r"op_sel_hi:\[0,1,1\]", "op_sel_hi:[1,1,1]"),
    ("the wrong half broadcast", r"op_sel:\[1,0,0\]", "op_sel:[0,0,0]"),
    ("negated", r"(v_pk_fma_f16 .*\])", r"\1 neg_lo:[1,0,0]"),
    (
        "a product instead of a sum of products",
        r"v_pk_fma_f16 (v\d+, v\d+, v\d+), v\d+( op_sel.*)?",
        r"v_pk_mul_f16 \1",
    ),
    ("another operand", r"(v_pk_fma_f16 v\d+, v\d+, )v\d+", r"\1v0"),
]


@pytest.mark.parametrize(("old", "new"), [x[1:] for x in WRONG], ids=[x[0] for x in WRONG])
def test_a_wrong_result_is_seen(tile, old, new):
    try:
        got = tile.run(planted(tile.code, "tile", old, new))
    except UndefinedRead:
        return
    assert not np.array_equal(got, tile.want)


REFUSED = [
    ("past the end of a", r"(global_load\S+ .*?off)( offset:-?\d+)?", r"\1 offset:4000", AccessError, "of (a|b)"),
    ("before the start", r"(global_load\S+ .*?off)( offset:-?\d+)?", r"\1 offset:-2048", AccessError, "of (a|b)"),
    ("a store past the end", r"(global_store\S+ .*?off)( offset:-?\d+)?", r"\1 offset:2040", AccessError, "of c"),
    ("an address of two halves", r"(global_load\S+ .*?off)( offset:-?\d+)?", r"\1 offset:2", AccessError, "aligned"),
]


@pytest.mark.parametrize(("old", "new", "error", "why"), [x[1:] for x in REFUSED], ids=[x[0] for x in REFUSED])
def test_a_wrong_address_is_refused(tile, old, new, error, why):
    with pytest.raises(error, match=why) as caught:
        tile.run(planted(tile.code, "tile", old, new, number=None))
    assert re.match(r"tile, instruction \d+ `global_", str(caught.value))


def block_sum(code: CodeObject) -> tuple[np.ndarray, np.ndarray]:
    x = np.arange(512, dtype=np.int32).reshape(2, 256)
    out, memory = np.zeros(2, np.int32), simulator.Memory()
    packed = struct.pack("<QQ", memory.add(x), memory.add(out))
    simulator.launch(code, "block_sum", (2,), (256,), packed, memory)
    return out, x.sum(axis=1)


@pytest.mark.parametrize("target", TARGETS)
def test_a_missing_barrier_is_a_race(target):
    """Whichever of them is missing, and in whatever order the waves run."""
    code = probes(target)
    got, want = block_sum(code)
    np.testing.assert_array_equal(got, want)
    name = "s_barrier_(signal|wait)" if target == "gfx1200" else "s_barrier"
    found = [x.mnemonic for x in code.instructions["block_sum"] if re.match(name, x.mnemonic)]
    assert found
    barriers = len(found) // 2 if target == "gfx1200" else len(found)
    for number in range(min(barriers, 2)):  # the last of an unrolled tree part no waves
        broken = code
        for _ in range(len(found) // barriers):
            broken = planted(broken, "block_sum", rf"{name}\b.*", "s_nop 0", number)
        with pytest.raises(RaceError, match=r"of LDS, which another wave (wrote|read|writes)"):
            block_sum(broken)


def test_a_wait_that_nobody_ends():
    code = probes("gfx1200")
    with pytest.raises(simulator.LaunchError, match="s_barrier_wait without s_barrier_signal"):
        block_sum(planted(code, "block_sum", r"s_barrier_signal\b.*", "s_nop 0"))


@pytest.mark.parametrize("target", TARGETS)
def test_a_register_that_is_not_set(target):
    code = probes(target)
    with pytest.raises(UndefinedRead, match="depends on v111"):
        block_sum(planted(code, "block_sum", r"ds_(write|store)_b32 v\d+, v\d+", r"ds_\1_b32 v0, v111"))


def test_a_dropped_tail_is_seen():
    """The loop ends one step early."""
    tile = Tile("gfx906")
    short = planted(tile.code, "tile", r"v_pk_fma_f16 .*", "s_nop 0", number=-1)
    assert not np.array_equal(tile.run(short), tile.want)


def test_the_wrong_way_at_a_branch():
    """The loop is left after its first iteration."""
    tile = Tile("gfx906")
    number = [x.target < i for i, x in enumerate(tile.code.instructions["tile"]) if x.target is not None].index(True)
    opposite = {"scc0": "scc1", "scc1": "scc0"}
    back = [x.mnemonic for x in tile.code.instructions["tile"] if x.target is not None][number]
    code = planted(tile.code, "tile", back, back[:-4] + opposite[back[-4:]])
    assert not np.array_equal(tile.run(code), tile.want)
