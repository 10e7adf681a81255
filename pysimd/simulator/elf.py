"""AMD code objects: the ELF file, its kernel descriptors, and the metadata that the compiler wrote."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from pysimd.simulator.errors import SimulationError

_EM_AMDGPU = 0xE0
_SHT_SYMTAB, _SHT_NOTE, _SHT_DYNSYM = 2, 7, 11
_NT_AMDGPU_METADATA = 32


@dataclass(frozen=True)
class Argument:
    """One kernel argument: its place in the argument segment, and what it is (``by_value``, ``hidden_...``)."""

    kind: str
    offset: int
    size: int


@dataclass(frozen=True)
class Kernel:
    """What a code object says of one kernel. Sizes are bytes; ``scratch`` is per lane, ``lds`` per block."""

    name: str
    wave_size: int
    vgprs: int
    agprs: int
    sgprs: int
    vgpr_spills: int
    sgpr_spills: int
    lds: int
    scratch: int
    kernarg_size: int
    max_block: int
    arguments: tuple[Argument, ...]
    denormals_f32: bool
    """Whether the kernel asks the hardware to keep float32 denormals (else: flush them)."""
    denormals_f16: bool
    """The same for float16, which shares the switch with float64."""
    properties: int
    """Which SGPRs are set up before the first instruction, as the kernel descriptor says."""
    resources: int
    """COMPUTE_PGM_RSRC2: number of user SGPRs, and which block indices follow them."""

    @property
    def explicit_arguments(self) -> tuple[Argument, ...]:
        """The arguments in the source; the hidden ones that follow are filled in by the launch."""
        return tuple(x for x in self.arguments if not x.kind.startswith("hidden_"))


def read_kernels(elf: bytes) -> dict[str, Kernel]:
    """The kernels of a code object by name. Raises SimulationError if it is none."""
    if elf[:4] != b"\x7fELF" or elf[4] != 2 or struct.unpack_from("<H", elf, 18)[0] != _EM_AMDGPU:
        raise SimulationError("not an AMD code object: expected a 64-bit ELF file for AMDGPU")
    sections = _sections(elf)
    symbols = _symbols(elf, sections)
    metadata = _metadata(elf, sections)
    found = {}
    for entry in metadata["amdhsa.kernels"]:
        address = symbols[entry[".symbol"]]
        descriptor = _at_address(elf, sections, address, 64)
        found[entry[".name"]] = _kernel(entry, descriptor)
    return found


def _kernel(entry: dict, descriptor: bytes) -> Kernel:
    _rsrc3, rsrc1, rsrc2 = struct.unpack_from("<III", descriptor, 44)
    properties, preload = struct.unpack_from("<HH", descriptor, 56)
    if preload:
        raise SimulationError(f"{entry['.name']}: kernel arguments preloaded into SGPRs are not modelled")
    arguments = tuple(Argument(x[".value_kind"], x[".offset"], x[".size"]) for x in entry.get(".args", ()))
    return Kernel(
        name=entry[".name"],
        wave_size=entry[".wavefront_size"],
        vgprs=entry[".vgpr_count"],
        agprs=entry.get(".agpr_count", 0),
        sgprs=entry[".sgpr_count"],
        vgpr_spills=entry.get(".vgpr_spill_count", 0),
        sgpr_spills=entry.get(".sgpr_spill_count", 0),
        lds=entry[".group_segment_fixed_size"],
        scratch=entry[".private_segment_fixed_size"],
        kernarg_size=entry[".kernarg_segment_size"],
        max_block=entry[".max_flat_workgroup_size"],
        arguments=arguments,
        denormals_f32=bool(rsrc1 >> 16 & 3),
        denormals_f16=bool(rsrc1 >> 18 & 3),
        properties=properties,
        resources=rsrc2,
    )


def _sections(elf: bytes) -> list[dict]:
    (start,) = struct.unpack_from("<Q", elf, 40)
    size, count = struct.unpack_from("<HH", elf, 58)
    names = ("name", "type", "flags", "address", "offset", "size", "link", "info", "align", "entry_size")
    return [
        dict(zip(names, struct.unpack_from("<IIQQQQIIQQ", elf, start + i * size), strict=True)) for i in range(count)
    ]


def _symbols(elf: bytes, sections: list[dict]) -> dict[str, int]:
    found = {}
    for section in sections:
        if section["type"] in (_SHT_SYMTAB, _SHT_DYNSYM):
            strings = sections[section["link"]]["offset"]
            for at in range(section["offset"], section["offset"] + section["size"], 24):
                name, _, _, _, value, _ = struct.unpack_from("<IBBHQQ", elf, at)
                start = strings + name
                found[elf[start : elf.index(b"\0", start)].decode()] = value
    return found


def _at_address(elf: bytes, sections: list[dict], address: int, size: int) -> bytes:
    for x in sections:
        if x["address"] and x["address"] <= address and address + size <= x["address"] + x["size"]:
            start = x["offset"] + address - x["address"]
            return elf[start : start + size]
    raise SimulationError(f"the code object has no section at {address:#x}")


def _metadata(elf: bytes, sections: list[dict]) -> dict:
    for section in sections:
        if section["type"] == _SHT_NOTE:
            at = section["offset"]
            while at < section["offset"] + section["size"]:
                name_size, size, kind = struct.unpack_from("<III", elf, at)
                start = at + 12 + (name_size + 3 & ~3)
                if kind == _NT_AMDGPU_METADATA:
                    return _MessagePack(elf[start : start + size]).value()
                at = start + (size + 3 & ~3)
    raise SimulationError("the code object has no metadata note: expected code object version 3 or later")


class _MessagePack:
    """Reads the part of MessagePack that code objects use: maps, arrays, strings, integers, booleans."""

    def __init__(self, data: bytes):
        self.data = data
        self.at = 0

    def take(self, layout: str):
        (found,) = struct.unpack_from(">" + layout, self.data, self.at)
        self.at += struct.calcsize(layout)
        return found

    def text(self, size: int) -> str:
        self.at += size
        return self.data[self.at - size : self.at].decode()

    def value(self):
        code = self.take("B")
        if code < 0x80:
            return code
        if code < 0x90:
            return self.map(code & 15)
        if code < 0xA0:
            return self.array(code & 15)
        if code < 0xC0:
            return self.text(code & 31)
        if code >= 0xE0:
            return code - 256
        if code in (0xC2, 0xC3):
            return code == 0xC3
        if code in _NUMBERS:
            return self.take(_NUMBERS[code])
        kind, layout = _SIZED.get(code, (None, None))
        if kind is None:
            raise SimulationError(f"metadata of the code object: MessagePack code {code:#x} is not expected there")
        return getattr(self, kind)(self.take(layout))

    def map(self, size: int) -> dict:
        return {self.value(): self.value() for _ in range(size)}

    def array(self, size: int) -> list:
        return [self.value() for _ in range(size)]


_NUMBERS = {0xCC: "B", 0xCD: "H", 0xCE: "I", 0xCF: "Q", 0xD0: "b", 0xD1: "h", 0xD2: "i", 0xD3: "q"}
_SIZED = {0xD9: ("text", "B"), 0xDA: ("text", "H"), 0xDC: ("array", "H"), 0xDE: ("map", "H")}
