"""AMD code objects: the ELF file, its kernel descriptors, and the metadata that the compiler wrote.

A file may come from anywhere. Every offset, size and count is checked before it is used, so a file that is cut off or
corrupt is a SimulationError; the time and the memory to read it are proportional to its length.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from pysimd.simulator.errors import SimulationError

_EM_AMDGPU = 0xE0
_SHT_SYMTAB, _SHT_NOTE, _SHT_DYNSYM = 2, 7, 11
_NT_AMDGPU_METADATA = 32
_SECTION_BYTES, _SYMBOL_BYTES, _DESCRIPTOR_BYTES = 64, 24, 64

_MOST_SECTIONS = 1024
_MOST_NAME = 1 << 14
"""Bytes of a symbol's name."""
_DEEPEST = 16
"""Maps and arrays of the metadata inside each other."""
_MOST_REGISTERS = 1024
_MOST_BYTES = 1 << 20
"""Of LDS, scratch memory or arguments: more than any target has."""


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
    """The kernels of a code object by name. Raises SimulationError if it is none, or cut off, or corrupt."""
    file = _File(elf)
    if elf[:4] != b"\x7fELF" or file.unpack("<B", 4) != (2,) or file.unpack("<H", 18) != (_EM_AMDGPU,):
        raise SimulationError("not an AMD code object: expected a 64-bit ELF file for AMDGPU")
    sections = _sections(file)
    symbols = _symbols(file, sections)
    found = {}
    for entry in _list(_metadata(file, sections), "amdhsa.kernels"):
        name, symbol = _text(entry, ".name"), _text(entry, ".symbol")
        if symbol not in symbols:
            raise SimulationError(f"the code object has no symbol {symbol!r}, which its metadata names")
        found[name] = _kernel(name, entry, _at_address(file, sections, symbols[symbol], _DESCRIPTOR_BYTES))
    return found


class _File:
    """The bytes of a file. Reading outside of them is a SimulationError."""

    def __init__(self, data: bytes):
        self.data = data

    def read(self, at: int, size: int) -> bytes:
        if at + size > len(self.data):
            raise SimulationError(
                f"the code object ends at byte {len(self.data)}: {size} bytes were expected at byte {at}"
            )
        return self.data[at : at + size]

    def unpack(self, layout: str, at: int) -> tuple[int, ...]:
        return struct.unpack(layout, self.read(at, struct.calcsize(layout)))

    def text(self, at: int) -> str:
        """A name that ends with a zero byte."""
        end = self.data.find(b"\0", at, at + _MOST_NAME)
        if end < 0:
            raise SimulationError(f"the code object has no name at byte {at}")
        return _decoded(self.data[at:end])


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise SimulationError(f"the code object has a name that is no UTF-8: {data[:40]!r}") from error


# --- metadata: what is expected of each entry ---


def _entry(entry: object, key: str, kind: type, default: object = None):
    if not isinstance(entry, dict):
        raise SimulationError(f"metadata of the code object: expected a map with {key}, found {type(entry).__name__}")
    value = entry.get(key, default)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise SimulationError(f"metadata of the code object: {key} is {value!r}, expected {kind.__name__}")
    return value


def _text(entry: object, key: str) -> str:
    return _entry(entry, key, str)


def _list(entry: object, key: str, default: object = None) -> list:
    return _entry(entry, key, list, default)


def _number(entry: object, key: str, most: int, default: object = None) -> int:
    value = _entry(entry, key, int, default)
    if not 0 <= value <= most:
        raise SimulationError(f"metadata of the code object: {key} is {value}, expected 0 to {most}")
    return value


def _kernel(name: str, entry: object, descriptor: bytes) -> Kernel:
    _rsrc3, rsrc1, rsrc2 = struct.unpack_from("<III", descriptor, 44)
    properties, preload = struct.unpack_from("<HH", descriptor, 56)
    if preload:
        raise SimulationError(f"{name}: kernel arguments preloaded into SGPRs are not modelled")
    wave_size = _number(entry, ".wavefront_size", 64)
    if wave_size not in (32, 64):
        raise SimulationError(f"{name}: waves of {wave_size} lanes, expected 32 or 64")
    kernarg_size = _number(entry, ".kernarg_segment_size", _MOST_BYTES)
    return Kernel(
        name=name,
        wave_size=wave_size,
        vgprs=_number(entry, ".vgpr_count", _MOST_REGISTERS),
        agprs=_number(entry, ".agpr_count", _MOST_REGISTERS, 0),
        sgprs=_number(entry, ".sgpr_count", _MOST_REGISTERS),
        vgpr_spills=_number(entry, ".vgpr_spill_count", _MOST_BYTES, 0),
        sgpr_spills=_number(entry, ".sgpr_spill_count", _MOST_BYTES, 0),
        lds=_number(entry, ".group_segment_fixed_size", _MOST_BYTES),
        scratch=_number(entry, ".private_segment_fixed_size", _MOST_BYTES),
        kernarg_size=kernarg_size,
        max_block=_number(entry, ".max_flat_workgroup_size", 1024),
        arguments=tuple(_argument(name, x, kernarg_size) for x in _list(entry, ".args", [])),
        denormals_f32=bool(rsrc1 >> 16 & 3),
        denormals_f16=bool(rsrc1 >> 18 & 3),
        properties=properties,
        resources=rsrc2,
    )


def _argument(name: str, entry: object, kernarg_size: int) -> Argument:
    offset, size = _number(entry, ".offset", _MOST_BYTES), _number(entry, ".size", _MOST_BYTES)
    if offset + size > kernarg_size:
        raise SimulationError(f"{name}: an argument ends at byte {offset + size} of {kernarg_size}")
    return Argument(_text(entry, ".value_kind"), offset, size)


# --- sections ---


@dataclass(frozen=True)
class _Section:
    type: int
    address: int
    offset: int
    size: int
    link: int


def _sections(file: _File) -> list[_Section]:
    (start,) = file.unpack("<Q", 40)
    each, count = file.unpack("<HH", 58)
    if count > _MOST_SECTIONS or (count and each != _SECTION_BYTES):
        raise SimulationError(
            f"the code object has {count} section headers of {each} bytes, expected at most {_MOST_SECTIONS} of "
            f"{_SECTION_BYTES}"
        )
    found = []
    for i in range(count):
        _, kind, _, address, offset, size, link, _, _, _ = file.unpack("<IIQQQQIIQQ", start + i * each)
        found.append(_Section(kind, address, offset, size, link))
    return found


def _of_type(file: _File, sections: list[_Section], *types: int) -> list[_Section]:
    """The sections of these types, which lie in the file and are together no longer than it."""
    found = [x for x in sections if x.type in types]
    for x in found:
        file.read(x.offset, x.size)
    if sum(x.size for x in found) > len(file.data):
        raise SimulationError("the code object has sections that overlap")
    return found


def _symbols(file: _File, sections: list[_Section]) -> dict[str, int]:
    found = {}
    for section in _of_type(file, sections, _SHT_SYMTAB, _SHT_DYNSYM):
        if section.link >= len(sections):
            raise SimulationError(f"the code object has no section {section.link}, which should hold names")
        strings = sections[section.link].offset
        for at in range(section.offset, section.offset + section.size - _SYMBOL_BYTES + 1, _SYMBOL_BYTES):
            name, _, _, _, value, _ = file.unpack("<IBBHQQ", at)
            found[file.text(strings + name)] = value
    return found


def _at_address(file: _File, sections: list[_Section], address: int, size: int) -> bytes:
    for x in sections:
        if x.address and x.address <= address and address + size <= x.address + x.size:
            return file.read(x.offset + address - x.address, size)
    raise SimulationError(f"the code object has no section at {address:#x}")


def _metadata(file: _File, sections: list[_Section]) -> object:
    for section in _of_type(file, sections, _SHT_NOTE):
        at = section.offset
        while at < section.offset + section.size:
            name_size, size, kind = file.unpack("<III", at)
            start = at + 12 + (name_size + 3 & ~3)
            if kind == _NT_AMDGPU_METADATA:
                return _MessagePack(file.read(start, size)).value()
            at = start + (size + 3 & ~3)
    raise SimulationError("the code object has no metadata note: expected code object version 3 or later")


class _MessagePack:
    """Reads the part of MessagePack that code objects use: maps, arrays, strings, integers, booleans."""

    def __init__(self, data: bytes):
        self.data = data
        self.at = 0
        self.depth = 0

    def bytes(self, size: int) -> bytes:
        self.at += size
        if self.at > len(self.data):
            raise SimulationError("metadata of the code object: it ends inside of a value")
        return self.data[self.at - size : self.at]

    def take(self, layout: str):
        return struct.unpack(">" + layout, self.bytes(struct.calcsize(layout)))[0]

    def text(self, size: int) -> str:
        return _decoded(self.bytes(size))

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
        pairs = self.array(2 * size)
        keys = pairs[::2]
        if not all(isinstance(key, str) for key in keys):
            raise SimulationError("metadata of the code object: a key is no text")
        return dict(zip(keys, pairs[1::2], strict=True))

    def array(self, size: int) -> list:
        if self.depth == _DEEPEST:
            raise SimulationError(f"metadata of the code object: more than {_DEEPEST} maps and arrays in each other")
        self.depth += 1
        found = [self.value() for _ in range(size)]
        self.depth -= 1
        return found


_NUMBERS = {0xCC: "B", 0xCD: "H", 0xCE: "I", 0xCF: "Q", 0xD0: "b", 0xD1: "h", 0xD2: "i", 0xD3: "q"}
_SIZED = {0xD9: ("text", "B"), 0xDA: ("text", "H"), 0xDC: ("array", "H"), 0xDE: ("map", "H")}
