"""The numbers in the header of a rung, worked out again from its row and from the compiled machine code.

``expected`` writes the labels that hold numbers, word for word, and ``complaints`` compares the header with them: no
number in these labels goes unchecked.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from kernel_headers import labels_of
from pysimd.gpu_kernels import ladder_table

from pysimd import dtypes, sources
from pysimd.inspection import cuda_rungs, nvidia
from pysimd.inspection.counts import LOAD, MULTIPLY_ADD, Inspection

COMPILER = (13, 5)
"""The NVRTC whose register counts the headers give; another one may need others."""

TOGETHER = {1: "thread", 32: "warp", 128: "warpgroup"}
ELEMENTS = {"f32": "f32", "f16": "f16", "i8i32": "i8", "f16f32": "f16", "bf16f32": "bf16"}
PRODUCERS = 128
REGISTERS = 1 << 16
"""Of a multiprocessor, 32 bits each."""
RESERVED = 1024
"""Bytes of shared memory that the system takes from sm_90 on."""
COORDINATES = 12
"""Bytes of the tile's coordinates, where they are in shared memory (gemm.cuh)."""


@dataclass(frozen=True)
class Built:
    """The machine code of a rung: the instance for row-major operands, for sm_90 or sm_90a, and all that were compiled.

    ``same_arch`` are those of ``every`` that were compiled for the architecture of ``row_major``.
    """

    row_major: nvidia.Code
    every: Sequence[nvidia.Code]
    same_arch: Sequence[nvidia.Code]


def check(row: ladder_table.Rung, instances: Sequence[tuple[str, str, int | str]], arch: int | str) -> None:
    """Assert that the header of a rung is true, and that every number in it is checked.

    ``instances`` are (layout of A, layout of B, architecture) of its first block; the header describes the code for
    row-major operands and ``arch``.
    """
    codes = {x: nvidia.compiled(row.source, ladder_table.entry(row, *x[:2]), x[2], "ladder") for x in instances}
    row_major = codes[(*ladder_table.row_major(row), arch)]
    built = Built(row_major, list(codes.values()), [code for x, code in codes.items() if x[2] == arch])
    assert complaints(row, text_of(row), built) == []
    assert unseen_changes(row, text_of(row), built) == []


def compiler() -> tuple[int, int]:
    from cupy_backends.cuda.libs import nvrtc

    return nvrtc.getVersion()


def text_of(row: ladder_table.Rung) -> str:
    return sources.read(f"gpu_kernels/ladder/{row.source}")


def complaints(row: ladder_table.Rung, text: str, built: Built) -> list[str]:
    """What is false in a header: one line for each label."""
    labels = {label: said.strip() for label, said in labels_of(text).items()}
    found = [
        f"{label}: the header says {labels.get(label)!r}, the row and the machine code {value!r}"
        for label, value in expected(row, text, built).items()
        if labels.get(label) != value
    ]
    if any(code.count("LDL", "STL") for code in built.every):
        found.append("regs: local memory is used")
    counted, ratio = counted_ratio(row, built.row_major), Fraction(row.macs, row.loads)
    if counted != ratio:
        found.append(f"ratio: {float(counted):.2f} counted in the machine code, {float(ratio):.2f} from the row")
    return found


def expected(row: ladder_table.Rung, text: str, built: Built) -> dict[str, str]:
    """The labels of a header that hold numbers."""
    return {
        "tile": tile(row, text),
        "regs": registers(row, text, built),
        "per k": per_k(row, built.row_major),
        "ratio": ratio(row),
        "lanes": str(row.lanes),
        "launch": launch(row),
        "smem": shared_memory(row, built),
    }


def tile(row: ladder_table.Rung, text: str) -> str:
    block = f"{row.bm} x {row.bn}" + (f" x {row.bk}" if row.bk else "")
    said = f"{block}, {row.tm} x {row.tn} a {TOGETHER[row.lanes]}"
    warp = re.search(r"\bWM = (\d+), WN = (\d+)\b", text)
    if row.blocks:
        x = row.blocks[0]
        said += f", warp tile {x.mr * x.lanes_m} x {x.nr * x.lanes_n}"
    elif warp:
        said += f", warp tile {warp[1]} x {warp[2]}"
    several = row.bm * row.bn * row.lanes // (row.tm * row.tn * row.threads)
    return said + {1: "", 2: ", twice"}[several]


def registers(row: ladder_table.Rung, text: str, built: Built) -> str:
    """With setmaxnreg: at launch and then. Where two blocks are to be resident: what they leave a thread, which
    instances come near to; how near varies from compilation to compilation (cuda_machine_code.processes). Else the most
    of any instance."""
    two_blocks = f"__launch_bounds__({row.threads}, 2)" in text
    handed_over = [
        int(re.search(r"0x([0-9a-f]+)", x.operands)[1], 16)
        for x in built.row_major.instructions
        if x.name.startswith("USETMAXREG")
    ]
    if handed_over:
        producer, consumer = sorted(handed_over)
        said = f"{built.row_major.registers} at launch, {consumer} a consumer and {producer} a producer"
        said += "" if row.requires == "sm_90a" else " on sm_90a"
    else:
        most = max(code.registers for code in built.every)
        stated = re.match(r"\d+", labels_of(text)["regs"])
        if two_blocks:
            most = max(most, REGISTERS // (2 * row.threads))
        said = f"{most if compiler() == COMPILER or two_blocks or not stated else stated[0]} at most"
    accumulators = row.bm * row.bn // row.threads
    said += f": {accumulators} accumulator{'s' if accumulators > 1 else ''}"
    if row.splits_operands:
        said += f", 2 x {accumulators} for panels"
    elif re.search(r"\ba\[2\]\[(TM|MR)\b|\bfa\[2\]\[TM\]", sources.joined(f"gpu_kernels/ladder/{row.source}")):
        words = row.tm + row.tn if row.lanes == 1 else (row.tm + row.tn) * 16 // 2 // 32
        said += f", 2 x {words} for fragments"
    if two_blocks:
        said += ", two blocks a multiprocessor"
    return said + "; local memory 0"


def hot_loop(row: ladder_table.Rung, code: nvidia.Code) -> Inspection:
    return cuda_rungs.inspection(row, nvidia.DEFAULT, "", code, row.blocks[0] if row.blocks else None)


def counted_ratio(row: ladder_table.Rung, code: nvidia.Code) -> Fraction:
    """Multiply-adds per element that the hot loop loads from the tile's memory."""
    loop = hot_loop(row, code)
    return Fraction(sum(x.macs for x in loop.lines), elements(loop, row))


def elements(loop: Inspection, row: ladder_table.Rung) -> int:
    size = 1 if row.remainders else 4 if row.splits_operands else dtypes.dtype_of(dtypes.FAMILIES[row.types].a).itemsize
    return sum(x.load_bytes for x in loop.lines if LOAD in x.roles and x.memory == loop.tile_memory) // size


def per_k(row: ladder_table.Rung, code: nvidia.Code) -> str:
    """Multiply-adds, elements loaded and, where every load is one explicit instruction, loads of one step of k."""
    loop = hot_loop(row, code)
    multiplied = [x for x in loop.lines if MULTIPLY_ADD in x.roles]
    loads = [x for x in loop.lines if LOAD in x.roles and x.memory == loop.tile_memory and x not in multiplied]
    steps = Fraction(sum(x.macs for x in multiplied), row.macs * (3 if row.splits_operands else 1))
    (name,) = {re.search(r"[HI]GMMA\.\w+|[HI]MMA\.\d+|HFMA2|IDP\.4A|FFMA", x.text)[0] for x in multiplied}
    kind = "tf32" if row.splits_operands else "i8" if row.remainders else ELEMENTS[row.types]
    said = f"{len(multiplied) / steps} {name}, {elements(loop, row) / steps} {kind} from {loop.tile_memory} memory"
    if loads and (row.wide_c or row.lanes > 1):
        (load,) = {re.search(r"LDS\.128|LDSM|LDG", x.text)[0] for x in loads}
        said += f", {len(loads) / steps} {load}"
    return said


def products(row: ladder_table.Rung) -> int:
    return 3 if row.splits_operands else row.remainders or 1


def ratio(row: ladder_table.Rung) -> str:
    m, n = (1, 1) if row.inner else (row.tm, row.tn)
    said = f"{m}*{n} / ({m}+{n}) = {row.macs / row.loads:.2f}"
    if row.inner:
        said += f" for each of {row.tm} x {row.tn} elements"
    return said + (f" for each of {products(row)} products" if products(row) > 1 else "")


def launch(row: ladder_table.Rung) -> str:
    persistent = row.blocks or (row.tensor_blocks and row.tensor_blocks[0].persistent)
    if not persistent:
        return f"{row.threads} threads a block; grid batch * ceil(m/{row.bm}) * ceil(n/{row.bn})"
    sizes = sorted({x.cluster * x.split for x in row.tensor_blocks} or {1}, reverse=True)
    clusters = [str(size) for size in sizes if size > 1]
    grid = "clusters of " + ", ".join(clusters) if clusters else "one block a multiprocessor"
    grid += " or single blocks" if clusters and 1 in sizes else ""
    return f"{row.threads + PRODUCERS} threads a block, {PRODUCERS} of them producers; persistent grid, {grid}"


def shared_memory(row: ladder_table.Rung, built: Built) -> str:
    """That of row-major operands, and the most of other layouts where they need more."""
    static = [code.shared_bytes - RESERVED for code in (built.row_major, *built.same_arch)]
    layouts = ladder_table.layouts(row)
    dynamic = ladder_table.dynamic_shared_bytes(row, *ladder_table.row_major(row))
    if dynamic:
        most = max(ladder_table.dynamic_shared_bytes(row, a, b) for a in layouts for b in layouts)
        said = f"{kib(dynamic)} dynamic" + (f" and {static[0]} bytes static" if static[0] > 0 else "")
        return said + (f"; at most {kib(most)} dynamic for other layouts" if most > dynamic else "")
    panels, most = static[0] - COORDINATES, max(static) - COORDINATES
    said = f"{kib(panels)} and " * (panels > 0) + f"{COORDINATES} bytes of tile coordinates"
    return said + (f"; at most {kib(most)} for other layouts" if most > panels else "")


def kib(size: int) -> str:
    return f"{size / 1024:g} KiB"


def unseen_changes(row: ladder_table.Rung, text: str, built: Built) -> list[str]:
    """Numbers of the checked labels that may be one larger without a complaint: none, if the checks hold."""
    starts = {label: re.search(rf"^ \* {label} ", text, re.MULTILINE) for label in expected(row, text, built)}
    found = []
    for label, start in starts.items():
        stop = re.compile(r"^ (\* \w+( k)?  |\*/)", re.MULTILINE).search(text, start.end())
        for number in re.finditer(r"\d+", text[start.end() : stop.start()]):
            at = start.end() + number.start()
            changed = text[:at] + str(int(number[0]) + 1) + text[at + len(number[0]) :]
            if not any(x.startswith(f"{label}:") for x in complaints(row, changed, built)):
                found.append(f"{label}: {number[0]} at character {at}")
    return found
