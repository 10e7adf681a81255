"""Every function that is really in the built extension, by ELF symbol: what ``pysimd.inspect`` does not look at."""

import re
import struct
from functools import cache
from importlib.resources import files
from pathlib import Path

from pysimd import _cpu
from pysimd.inspection import x86

SMALL = {
    "small_avx2.c": "avx2",
    "small_bytes_avx2.c": "avx2",
    "small_bytes_avx512vnni.c": "avx512vnni",
    "small_avx512.c": "avx512",
    "small_avx512vnni.c": "avx512vnni",
    "small_avx512bf16.c": "avx512bf16",
    "columns_avx512.c": "avx512",
    "direct_avx512.c": "avx512",
    "direct_avx512vnni.c": "avx512vnni",
    "planes_avx512.c": "avx512",
}
"""Files with functions for products that are read from the arrays, and their targets."""


@cache
def functions() -> dict[str, tuple[int, bytes]]:
    """Address and code of every function of the extension that has a symbol; a static one is ``file.c:name``."""
    elf = Path(_cpu.__file__).read_bytes()
    assert elf[:5] == b"\x7fELF\x02", "not a 64-bit ELF file"
    offset, size, count = struct.unpack_from("<Q10xHH", elf, 0x28)
    fields = ("name", "type", "flags", "address", "offset", "size", "link")
    sections = [
        dict(zip(fields, struct.unpack_from("<IIQQQQI", elf, offset + i * size), strict=True)) for i in range(count)
    ]
    found = {}
    for table in (s for s in sections if s["type"] == 2):  # SHT_SYMTAB
        names = sections[table["link"]]["offset"]
        file = ""
        for at in range(table["offset"], table["offset"] + table["size"], 24):
            name, info, _, section, address, length = struct.unpack_from("<IBBHQQ", elf, at)
            text = elf[names + name : elf.index(b"\0", names + name)].decode()
            if info & 15 == 4:  # STT_FILE: the static functions of this file follow, at last (no name) the others
                file = text and f"{text}:"
            elif info & 15 == 2 and length and section < count:  # STT_FUNC
                start = address - sections[section]["address"] + sections[section]["offset"]
                found[file + text] = (address, elf[start : start + length])
    return found


@cache
def code_of(kernel: str) -> str:
    """The kernel whose functions this one has: itself, or the one that its line of kernels.inc names."""
    table = files("pysimd.cpu_kernels").joinpath("kernels.inc").read_text()
    match = re.search(rf"^KERNEL_OF\((\w+), {kernel},", table, re.MULTILINE)
    return match[1] if match else kernel


@cache
def instructions(name: str) -> list:
    return x86.decode(*functions()[name])


def features(name: str) -> set[str]:
    """The CPUID features that the function's instructions need, in iced-x86's names."""
    return x86.features(instructions(name))


def masked_stores_that_fault(name: str) -> list[str]:
    """Stores of an extracted part under a mask: these fault on masked-off bytes too (exception class E6NF)."""
    return [
        str(i)
        for i in instructions(name)
        if x86.mnemonic(i).startswith("VEXTRACT") and i.op0_kind == x86.iced.OpKind.MEMORY and i.has_op_mask
    ]
