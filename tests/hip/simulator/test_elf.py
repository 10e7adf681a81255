"""Code objects that are cut off or corrupt: SimulationError, whatever byte is wrong, and no memory for what is not
there."""

import struct

import amd_waves
import pytest
from hip_machine_code import missing

from pysimd import simulator
from pysimd.simulator import SimulationError, elf

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "nothing")

HEADER = {"section headers": 40, "size of a header": 58, "number of headers": 60}


@pytest.fixture(scope="module")
def good():
    return simulator.assemble(amd_waves.source("  s_nop 0", "gfx906"), "gfx906").elf


def sections(data):
    start, each, count = (int.from_bytes(data[i:j], "little") for i, j in ((40, 48), (58, 60), (60, 62)))
    return [(start + i * each, struct.unpack_from("<IIQQQQIIQQ", data, start + i * each)) for i in range(count)]


def with_bytes(data, at, new):
    return data[:at] + new + data[at + len(new) :]


def packed(value):
    """An element of MessagePack: maps, lists, texts and integers below 2**63."""
    if isinstance(value, dict):
        return struct.pack(">BH", 0xDE, len(value)) + b"".join(packed(x) for pair in value.items() for x in pair)
    if isinstance(value, list):
        return struct.pack(">BH", 0xDC, len(value)) + b"".join(map(packed, value))
    if isinstance(value, str):
        return struct.pack(">BH", 0xDA, len(value)) + value.encode()
    return struct.pack(">Bq", 0xD3, value)


def test_the_unchanged_file(good):
    (kernel,) = elf.read_kernels(good).values()
    assert (kernel.name, kernel.wave_size, kernel.kernarg_size, kernel.max_block) == ("probe", 64, 24, 1024)


def test_cut_off_anywhere(good):
    """The section headers come last, so that every file that is shorter lacks some of them."""
    for length in range(0, len(good) - 1):
        with pytest.raises(SimulationError):
            elf.read_kernels(good[:length])


@pytest.mark.parametrize("field", HEADER)
def test_a_wrong_header(good, field):
    at, size = HEADER[field], 8 if field == "section headers" else 2
    with pytest.raises(SimulationError):
        elf.read_kernels(with_bytes(good, at, b"\xff" * size))


@pytest.mark.parametrize(("field", "at", "size"), [("offset", 24, 8), ("size", 32, 8), ("link", 40, 4)])
def test_a_section_outside_of_the_file(good, field, at, size):
    """Each section in turn: those that are read are refused, no other matters."""
    refused = []
    for start, (_, kind, *_) in sections(good):
        changed = with_bytes(good, start + at, b"\xf0" + b"\xff" * (size - 2) + b"\x7f")
        try:
            assert elf.read_kernels(changed) == elf.read_kernels(good)
        except SimulationError:
            refused.append(kind)
    assert {elf._SHT_SYMTAB, elf._SHT_DYNSYM} & set(refused)
    assert field == "link" or elf._SHT_NOTE in refused


@pytest.mark.parametrize("kept", [8, 40, 63])
def test_a_section_that_is_cut_off_in_a_descriptor(good, kept):
    """The descriptor has 64 bytes, and its section ends within them."""
    address = next(
        value
        for name, value in elf._symbols(elf._File(good), elf._sections(elf._File(good))).items()
        if name == "probe.kd"
    )
    for start, found in sections(good):
        if found[3] and found[3] <= address < found[3] + found[5]:
            changed = with_bytes(good, start + 32, struct.pack("<Q", address - found[3] + kept))
            with pytest.raises(SimulationError, match="no section at"):
                elf.read_kernels(changed)
            return
    raise AssertionError("the descriptor is in no section")


def note(good, metadata: bytes):
    """The file with other metadata: its note is moved to the end."""
    start, _ = next((at, x) for at, x in sections(good) if x[1] == elf._SHT_NOTE)
    text = struct.pack("<III", 7, len(metadata), 32) + b"AMDGPU\0\0" + metadata + b"\0" * 3
    changed = with_bytes(good, start + 24, struct.pack("<QQ", len(good), len(text)))
    return changed + text


KERNEL = {
    ".name": "probe", ".symbol": "probe.kd", ".wavefront_size": 64, ".vgpr_count": 8, ".sgpr_count": 8,
    ".group_segment_fixed_size": 0, ".private_segment_fixed_size": 0, ".kernarg_segment_size": 24,
    ".max_flat_workgroup_size": 1024, ".args": [{".offset": 0, ".size": 24, ".value_kind": "by_value"}],
}  # fmt: skip

WRONG = {
    "no kernels": {},
    "kernels that are no list": {"amdhsa.kernels": 3},
    "a kernel that is no map": {"amdhsa.kernels": [3]},
    "a name that is no text": {"amdhsa.kernels": [{**KERNEL, ".name": 3}]},
    "a symbol that is not there": {"amdhsa.kernels": [{**KERNEL, ".symbol": "other.kd"}]},
    "waves of 33": {"amdhsa.kernels": [{**KERNEL, ".wavefront_size": 33}]},
    "negative LDS": {"amdhsa.kernels": [{**KERNEL, ".group_segment_fixed_size": -1}]},
    "a terabyte of arguments": {"amdhsa.kernels": [{**KERNEL, ".kernarg_segment_size": 1 << 40, ".args": []}]},
    "too many registers": {"amdhsa.kernels": [{**KERNEL, ".vgpr_count": 1 << 30}]},
    "an argument past the end": {
        "amdhsa.kernels": [{**KERNEL, ".args": [{".offset": 20, ".size": 8, ".value_kind": "by_value"}]}]
    },
    "a number as text": {"amdhsa.kernels": [{**KERNEL, ".sgpr_count": "8"}]},
}


def test_metadata_made_here_is_read(good):
    (kernel,) = elf.read_kernels(note(good, packed({"amdhsa.kernels": [KERNEL]}))).values()
    assert kernel.arguments == (elf.Argument("by_value", 0, 24),)


@pytest.mark.parametrize("case", WRONG)
def test_wrong_metadata(good, case):
    with pytest.raises(SimulationError, match=r"metadata of the code object|probe|no symbol"):
        elf.read_kernels(note(good, packed(WRONG[case])))


def test_metadata_cut_off_anywhere(good):
    whole = packed({"amdhsa.kernels": [KERNEL]})
    for length in range(len(whole)):
        with pytest.raises(SimulationError):
            elf.read_kernels(note(good, whole[:length]))


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\x91" * 100_000, id="arrays in each other"),
        pytest.param(b"\xde\xff\xff" * 5, id="maps of 65535"),
        pytest.param(b"\x81\x80\x01", id="a map as key"),
        pytest.param(b"\x81\xa1\xff\x01", id="no UTF-8"),
        pytest.param(b"\xc1", id="no code of MessagePack"),
        pytest.param(b"\xdb\xff\xff\xff\xff", id="a text of 4 GiB"),
    ],
)
def test_data_that_is_no_metadata(good, data):
    with pytest.raises(SimulationError):
        elf.read_kernels(note(good, data))


def test_the_time_is_proportional_to_the_length(good):
    """A thousand sections that are all of the file: refused, not read a thousand times."""
    count = 1000
    header = struct.pack("<IIQQQQIIQQ", 0, elf._SHT_SYMTAB, 0, 0, 0, len(good), 0, 0, 0, 24)
    changed = with_bytes(good, 40, struct.pack("<Q", len(good)))
    changed = with_bytes(changed, 58, struct.pack("<HH", 64, count)) + header * count
    with pytest.raises(SimulationError, match="overlap"):
        elf.read_kernels(changed)
