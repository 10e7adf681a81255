"""Memory: what is read and written, and what is refused and why."""

import amd_waves
import numpy as np
import pytest
from amd_waves import WAVES, Registers, new_gang, step
from hip_machine_code import missing

from pysimd import simulator
from pysimd.simulator import AccessError, Memory, RaceError, UndefinedRead
from pysimd.simulator.memory import LocalMemory

LOADS = [  # (instruction on gfx9, on gfx11, dtype of an element, elements)
    ("global_load_dword", "global_load_b32", np.uint32, 1),
    ("global_load_dwordx2", "global_load_b64", np.uint32, 2),
    ("global_load_dwordx3", "global_load_b96", np.uint32, 3),
    ("global_load_dwordx4", "global_load_b128", np.uint32, 4),
    ("global_load_ubyte", "global_load_u8", np.uint8, 1),
    ("global_load_sbyte", "global_load_i8", np.int8, 1),
    ("global_load_ushort", "global_load_u16", np.uint16, 1),
    ("global_load_sshort", "global_load_i16", np.int16, 1),
]
BOTH = [("gfx906", 0), ("gfx1100", 1)]


def registers(first: int, count: int) -> str:
    return f"v{first}" if count == 1 else f"v[{first}:{first + count - 1}]"


def pointers(gang, first: int, addresses: np.ndarray) -> None:
    """64-bit addresses in v[first:first+1]."""
    addresses = np.asarray(addresses).astype(np.uint64)
    gang.write_v(first, addresses.astype(np.uint32))
    gang.write_v(first + 1, (addresses >> np.uint64(32)).astype(np.uint32))


def base(gang, first: int, address: int) -> None:
    """A 64-bit address in s[first:first+1]."""
    gang.write_s(first, np.uint32(address & 0xFFFFFFFF))
    gang.write_s(first + 1, np.uint32(address >> 32))


@pytest.mark.parametrize(("target", "which"), BOTH)
@pytest.mark.parametrize("load", LOADS, ids=lambda x: x[0])
def test_global_loads(target, which, load, rng):
    name, dtype, count = load[which], load[2], load[3]
    gang = new_gang(target)
    lanes = WAVES * gang.lanes
    data = rng.integers(0, 256, 4 * count * lanes + 64, dtype=np.uint8)
    address = gang.shared.memory.add(data)
    index = rng.permutation(lanes).reshape(WAVES, -1)
    size = np.dtype(dtype).itemsize * count
    pointers(gang, 8, address + index * size)
    step(gang, target, f"{name} {registers(0, max(1, size // 4))}, v[8:9], off offset:16")
    elements = data[16 : 16 + lanes * size].view(dtype).reshape(lanes, count)[index]
    for i in range(count):
        np.testing.assert_array_equal(gang.v[i], elements[..., i].astype(np.int64).astype(np.uint32))
    assert gang.shared.traffic.load_bytes == {"global": lanes * size}


@pytest.mark.parametrize(("target", "which"), BOTH)
def test_halves_are_loaded_and_stored(target, which, rng):
    gang = new_gang(target)
    data = rng.integers(0, 2**16, WAVES * gang.lanes, dtype=np.uint16)
    address = gang.shared.memory.add(data)
    at = np.arange(data.size).reshape(WAVES, -1)
    gang.write_v(0, np.uint32(0xAAAABBBB))
    gang.write_v(1, np.uint32(0xAAAABBBB))
    gang.write_v(2, (2 * at).astype(np.uint32))
    base(gang, 4, address)
    step(gang, target, f"{('global_load_short_d16', 'global_load_d16_b16')[which]} v0, v2, s[4:5]")
    step(gang, target, f"{('global_load_short_d16_hi', 'global_load_d16_hi_b16')[which]} v1, v2, s[4:5]")
    np.testing.assert_array_equal(gang.v[0], data[at] | np.uint32(0xAAAA0000))
    np.testing.assert_array_equal(gang.v[1], data[at].astype(np.uint32) << 16 | np.uint32(0xBBBB))
    data[:] = 0
    step(gang, target, f"{('global_store_short_d16_hi', 'global_store_d16_hi_b16')[which]} v2, v1, s[4:5]")
    np.testing.assert_array_equal(data, gang.v[1].reshape(-1) >> np.uint32(16))
    step(gang, target, f"{('global_store_byte', 'global_store_b8')[which]} v2, v1, s[4:5] offset:1")
    np.testing.assert_array_equal(data >> 8, np.full(data.size, 0xBB))


@pytest.mark.parametrize(("target", "which"), BOTH)
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_global_stores_of_active_lanes(target, which, count, rng):
    gang = new_gang(target)
    lanes = WAVES * gang.lanes
    data = np.zeros((lanes, count), np.uint32)
    address = gang.shared.memory.add(data)
    values = rng.integers(1, 2**32, (count, WAVES, gang.lanes), dtype=np.uint32)
    for i in range(count):
        gang.write_v(i, values[i])
    pointers(gang, 8, address + 4 * count * np.arange(lanes).reshape(WAVES, -1))
    step(gang, target, "s_mov_b32 exec_lo, 0x00ff00f0")
    name = (f"global_store_dword{f'x{count}' if count > 1 else ''}", f"global_store_b{32 * count}")[which]
    step(gang, target, f"{name} v[8:9], {registers(0, count)}, off")
    want = np.where(gang.exec[..., None], np.moveaxis(values, 0, 2), 0).reshape(lanes, count)
    np.testing.assert_array_equal(data, want)
    assert gang.shared.traffic.store_bytes == {"global": 4 * count * gang.active}


@pytest.mark.parametrize(("target", "name"), [("gfx906", "s_load_dwordx4"), ("gfx1200", "s_load_b128")])
def test_scalar_load(target, name):
    gang = new_gang(target)
    data = np.arange(100, dtype=np.uint32)
    base(gang, 4, gang.shared.memory.add(data))
    step(gang, target, f"{name} s[8:11], s[4:5], 0x20")
    np.testing.assert_array_equal(gang.s[:, 8:12], [[8, 9, 10, 11]] * WAVES)
    assert gang.shared.traffic.load_bytes == {"scalar": 16 * WAVES}


def test_scalar_load_with_an_offset_register():
    gang = new_gang("gfx1200")
    base(gang, 4, gang.shared.memory.add(np.arange(100, dtype=np.int16)))
    gang.write_s(6, np.uint32(20))
    step(gang, "gfx1200", "s_load_b32 s8, s[4:5], s6 offset:0x4")
    assert (gang.s[:, 8] == 12 | 13 << 16).all()
    step(gang, "gfx1200", "s_load_i16 s8, s[4:5], 0x6")
    assert (gang.s[:, 8] == 3).all()


class TestArrays:
    """What the kernel sees of arrays of the host."""

    def load(self, address, size=4):
        return self.memory.load(np.atleast_1d(np.int64(address)), size, np.zeros(1, int))[0].tobytes()

    @pytest.fixture(autouse=True)
    def _memory(self):
        self.memory = Memory()

    def test_any_strides(self):
        whole = np.arange(60, dtype=np.float32).reshape(6, 10)
        bytes_ = np.arange(6, dtype=np.int8)
        views = whole[::2, ::3], whole[::-1, ::-1], whole.T, whole[5:0:-2, 1:9:4], whole[2], whole[:1, :1], bytes_[::-1]
        for view in views:
            address = self.memory.add(view)
            for at in np.ndindex(view.shape):
                where = address + sum(i * s for i, s in zip(at, view.strides, strict=True))
                assert self.load(where, view.itemsize) == view[at].tobytes()

    def test_bytes_between_elements_are_no_part_of_an_array(self):
        whole = np.zeros((4, 8), np.float32)
        address = self.memory.add(whole[:, :6], "a")
        self.load(address + 20)
        with pytest.raises(AccessError, match="at byte 24 of a: between its elements"):
            self.load(address + 24)
        with pytest.raises(AccessError, match="at byte 20 of a: between its elements"):
            self.load(address + 20, 8)
        with pytest.raises(AccessError, match="at byte 120 of a"):
            self.load(address + 120)

    def test_past_either_end(self):
        address = self.memory.add(np.zeros(5, np.float32), "x")
        with pytest.raises(AccessError, match="byte 20 of x, which has 20 bytes"):
            self.load(address + 20)
        with pytest.raises(AccessError, match="load of 8 bytes at byte 16 of x, which has 20 bytes"):
            self.load(address + 16, 8)
        with pytest.raises(AccessError, match="byte -4 of x"):
            self.load(address - 4)

    def test_no_buffer_at_all(self):
        self.memory.add(np.zeros(5, np.float32))
        with pytest.raises(AccessError, match="address 0x0, which is in no buffer"):
            self.load(0)

    def test_an_empty_array_has_no_bytes(self):
        address = self.memory.add(np.zeros((0, 3), np.float32), "empty")
        with pytest.raises(AccessError, match="empty"):
            self.load(address)

    def test_misaligned(self):
        address = self.memory.add(np.zeros(8, np.float16), "h")
        self.load(address + 2, 2)
        self.load(address + 4, 8)
        with pytest.raises(AccessError, match="load of 4 bytes at byte 2 of h: not aligned to 4"):
            self.load(address + 2, 4)

    def test_lanes_that_hit_two_arrays(self):
        a, b = np.arange(4, dtype=np.uint32), np.arange(10, 14, dtype=np.uint32)
        addresses = np.array([self.memory.add(a), self.memory.add(b) + 4])
        data, _ = self.memory.load(addresses, 4, np.zeros(2, int))
        assert list(data.view(np.uint32)[:, 0]) == [0, 11]
        self.memory.store(addresses, data[::-1], np.zeros(2, int))
        assert a[0] == 11
        assert b[1] == 0

    @pytest.mark.parametrize("frozen", [True, False])
    def test_read_only(self, frozen):
        array = np.zeros(4, np.uint32)
        if frozen:
            array.flags.writeable = False
        address = np.array([self.memory.add(array, "r", writable=frozen)])
        with pytest.raises(AccessError, match="store of 4 bytes at byte 0 of r, which is read-only"):
            self.memory.store(address, np.zeros((1, 4), np.uint8), np.zeros(1, int))

    def test_two_waves_write_one_byte(self):
        address = np.array([self.memory.add(np.zeros(4, np.uint32), "c")])
        value = np.zeros((1, 4), np.uint8)
        self.memory.store(address, value, np.array([0]))
        self.memory.store(address, value, np.array([0]))
        with pytest.raises(RaceError, match="wave 1 stores to byte 0 of c, which another wave wrote"):
            self.memory.store(address, value, np.array([1]))
        with pytest.raises(RaceError, match="wave 2 loads byte 0 of c"):
            self.memory.load(address, 4, np.array([2]))
        self.memory.new_launch()
        self.memory.load(address, 4, np.array([2]))

    def test_two_waves_at_once(self):
        address = np.array([self.memory.add(np.zeros(4, np.uint32), "c")] * 2)
        with pytest.raises(RaceError, match="stores to byte 0 of c"):
            self.memory.store(address, np.zeros((2, 4), np.uint8), np.array([0, 1]))


class TestLds:
    BLOCK = np.zeros(1, int)

    def store(self, lds, at, wave, size=4, block=0):
        lds.store(self.BLOCK + block, np.array([at]), np.full((1, size), 7, np.uint8), np.array([wave]))

    def load(self, lds, at, wave, size=4, block=0):
        return lds.load(self.BLOCK + block, np.array([at]), size, np.array([wave]))

    def test_write_then_read_by_another_wave(self):
        lds = LocalMemory(1, 64)
        self.store(lds, 8, 1)
        assert (self.load(lds, 8, 1) == 7).all()
        with pytest.raises(RaceError, match="wave 1 of a block loads byte 8 of LDS, which another wave wrote"):
            self.load(lds, 8, 2)
        lds.barrier()
        assert (self.load(lds, 8, 2) == 7).all()

    def test_read_then_write_by_another_wave(self):
        lds = LocalMemory(1, 64)
        self.store(lds, 8, 1)
        lds.barrier()
        self.load(lds, 8, 1)
        self.load(lds, 8, 2)
        with pytest.raises(RaceError, match="wave 0 of a block stores to byte 8 of LDS, which another wave read"):
            self.store(lds, 8, 1)
        lds.barrier()
        self.store(lds, 8, 1)

    def test_two_waves_in_one_instruction(self):
        lds = LocalMemory(1, 64)
        with pytest.raises(RaceError, match="another wave writes"):
            lds.store(np.zeros(2, int), np.array([4, 4]), np.zeros((2, 4), np.uint8), np.array([1, 2]))
        lds = LocalMemory(1, 64)
        self.store(lds, 4, 1)
        lds.barrier()
        lds.load(np.zeros(2, int), np.array([4, 4]), 4, np.array([1, 2]))
        with pytest.raises(RaceError, match="another wave read"):
            self.store(lds, 4, 2)

    def test_neighbouring_bytes_are_no_race(self):
        lds = LocalMemory(1, 64)
        self.store(lds, 4, 1, size=1)
        self.store(lds, 5, 2, size=1)

    def test_blocks_do_not_share(self):
        lds = LocalMemory(2, 64)
        self.store(lds, 8, 1, block=0)
        self.store(lds, 8, 2, block=1)
        with pytest.raises(AccessError, match="byte 64 of LDS, of which the block has 64 bytes"):
            self.load(lds, 64, 1, block=0)

    @pytest.mark.parametrize(("at", "size"), [(61, 4), (63, 2), (57, 8), (64, 1), (-1, 1), (-4, 4)])
    def test_accesses_that_end_or_begin_outside(self, at, size):
        """Also where another block's LDS lies next to it."""
        for block in (0, 1):
            lds = LocalMemory(2, 64)
            for other in (0, 1):
                self.store(lds, 0, 1, size=64, block=other)
            with pytest.raises(
                AccessError, match=f"load of {size} bytes at byte {at} of LDS, of which the block has 64"
            ):
                self.load(lds, at, 1, size, block)
            with pytest.raises(AccessError, match=f"store of {size} bytes at byte {at} of LDS"):
                self.store(lds, at, 1, size, block)
            self.store(lds, 64 - size, 1, size, block)
            assert (self.load(lds, 64 - size, 1, size, block) == 7).all()

    def test_nothing_written(self):
        lds = LocalMemory(1, 64)
        self.store(lds, 8, 1)
        with pytest.raises(UndefinedRead, match="load of 8 bytes at byte 8 of LDS, which nothing has written"):
            self.load(lds, 8, 1, size=8)

    def test_any_alignment(self):
        lds = LocalMemory(1, 64)
        self.store(lds, 2, 1)
        assert (self.load(lds, 2, 1) == 7).all()


LDS_CASES = [  # (store, load on gfx9, store, load on gfx11, registers)
    ("ds_write_b32 v8, v0", "ds_read_b32 v4, v8", "ds_store_b32 v8, v0", "ds_load_b32 v4, v8", 1),
    ("ds_write_b64 v8, v[0:1]", "ds_read_b64 v[4:5], v8", "ds_store_b64 v8, v[0:1]", "ds_load_b64 v[4:5], v8", 2),
    (
        "ds_write_b128 v8, v[0:3] offset:16",
        "ds_read_b128 v[4:7], v8 offset:16",
        "ds_store_b128 v8, v[0:3]",
        "ds_load_b128 v[4:7], v8",
        4,
    ),
    (
        "ds_write2_b32 v8, v0, v1 offset0:1 offset1:3",
        "ds_read2_b32 v[4:5], v8 offset0:1 offset1:3",
        "ds_store_2addr_b32 v8, v0, v1 offset1:1",
        "ds_load_2addr_b32 v[4:5], v8 offset1:1",
        2,
    ),
    (
        "ds_write2st64_b64 v8, v[0:1], v[2:3] offset1:4",
        "ds_read2st64_b64 v[4:7], v8 offset1:4",
        "ds_store_2addr_stride64_b64 v8, v[0:1], v[2:3] offset1:4",
        "ds_load_2addr_stride64_b64 v[4:7], v8 offset1:4",
        4,
    ),
]


@pytest.mark.parametrize(("target", "which"), BOTH)
@pytest.mark.parametrize("case", LDS_CASES, ids=lambda x: x[0])
def test_lds_instructions(target, which, case, rng):
    gang = new_gang(target, lds=8192)
    lanes = WAVES * gang.lanes
    gang.write_v(8, (16 * np.arange(lanes).reshape(WAVES, -1)).astype(np.uint32))
    for i in range(4):
        gang.write_v(i, rng.integers(0, 2**32, gang.exec.shape, dtype=np.uint32))
    before = Registers(gang)
    step(gang, target, case[2 * which])
    step(gang, target, case[2 * which + 1])
    for i in range(case[4]):
        np.testing.assert_array_equal(gang.v[4 + i], before.u32(i))
    size = {"lds": 4 * case[4] * lanes}
    assert gang.shared.traffic.load_bytes == gang.shared.traffic.store_bytes == size


def test_where_two_places_of_lds_lie():
    """offset0 and offset1 count elements, 64 of them in the st64 form."""
    gang = new_gang("gfx906", lds=4096)
    step(gang, "gfx906", "s_mov_b64 exec, 1")
    for i, value in enumerate((0, 1, 2)):
        gang.write_v(i, np.uint32(value))
    gang = gang.part(np.array([True, False]))
    step(gang, "gfx906", "ds_write2_b32 v0, v1, v2 offset0:3 offset1:5")
    step(gang, "gfx906", "ds_write2st64_b32 v0, v1, v2 offset0:2 offset1:3")
    words = gang.shared.lds.data.view(np.uint32)
    assert list(np.nonzero(words)[0]) == [3, 5, 128, 192]
    assert list(words[[3, 5, 128, 192]]) == [1, 2, 1, 2]


UNDEFINED = [
    ("global_load_dword v0, v[2:3], off", "the address depends on v2"),
    ("global_store_dword v[0:1], v2, off", "the address or the value depends on v2"),
    ("ds_write_b32 v0, v2", "the value depends on v2"),
    ("s_load_dword s0, s[8:9], 0x0", "the address depends on s8"),
    ("s_mov_b64 exec, s[8:9]", "EXEC depends on s8"),
    ("s_cbranch_scc1 0", "the way it goes depends on SCC"),
    ("s_cbranch_vccz 0", "the way it goes depends on vcc_lo"),
    ("v_readfirstlane_b32 s0, v2", "a value for all lanes depends on v2"),
    ("ds_bpermute_b32 v0, v1, v2", "a value for other lanes depends on v2"),
]


class TestUndefined:
    """Registers that nothing has written may be computed with; they may decide nothing."""

    def gang(self):
        gang = new_gang("gfx906", lds=256)
        pointers(gang, 0, np.full((WAVES, 64), gang.shared.memory.add(np.zeros(64, np.uint32))))
        return gang

    @pytest.mark.parametrize(("line", "why"), UNDEFINED)
    def test_refused_where_it_decides(self, line, why):
        with pytest.raises(UndefinedRead, match=why):
            step(self.gang(), "gfx906", line)

    def test_it_spreads(self):
        gang = self.gang()
        step(gang, "gfx906", "v_add_f32_e32 v3, v0, v2")
        step(gang, "gfx906", "v_mov_b32_e32 v4, v3")
        step(gang, "gfx906", "v_cmp_eq_u32_e32 vcc, v4, v0")
        with pytest.raises(UndefinedRead, match="depends on vcc_lo"):
            step(gang, "gfx906", "s_cbranch_vccnz 0")

    def test_only_in_the_lanes_it_is_in(self):
        gang = self.gang()
        step(gang, "gfx906", "s_mov_b64 exec, 0xff")
        step(gang, "gfx906", "v_mov_b32_e32 v2, 0")
        step(gang, "gfx906", "v_readfirstlane_b32 s0, v2")
        step(gang, "gfx906", "s_mov_b64 exec, 0x1ff")
        with pytest.raises(UndefinedRead, match="v2"):
            step(gang, "gfx906", "v_readfirstlane_b32 s0, v2")

    def test_a_choice_that_leaves_it(self):
        gang = self.gang()
        step(gang, "gfx906", "s_mov_b64 vcc, 0")
        step(gang, "gfx906", "v_cndmask_b32_e32 v3, v0, v2, vcc")
        step(gang, "gfx906", "v_readfirstlane_b32 s0, v3")
        step(gang, "gfx906", "s_cmp_eq_u32 s0, s0")
        step(gang, "gfx906", "s_cselect_b32 s1, s0, s9")
        step(gang, "gfx906", "s_mov_b32 exec_lo, s1")

    def test_the_lower_half_of_a_sum(self):
        gang = self.gang()
        gang.write_v(4, np.uint32(3))
        step(gang, "gfx906", "v_mad_u64_u32 v[6:7], vcc, v0, v0, v[4:5]")
        step(gang, "gfx906", "v_readfirstlane_b32 s0, v6")
        with pytest.raises(UndefinedRead, match="v7"):
            step(gang, "gfx906", "v_readfirstlane_b32 s0, v7")


@pytest.mark.skipif(bool(missing()), reason=missing() or "nothing")
@pytest.mark.parametrize(("target", "which"), BOTH)
def test_the_assembler_knows_what_is_tested_here(target, which):
    lines = [f"{x[which]} v[0:3], v[8:9], off".replace("v[0:3]", registers(0, x[3])) for x in LOADS]
    lines += [x[2 * which + i] for x in LDS_CASES for i in (0, 1)]
    simulator.assemble(amd_waves.source("\n".join(lines), target), target)
