"""CUDA kernels executed on the host (cuda_threads.h): sources of gpu_kernels, compiled by the C++ compiler, called as
CuPy calls compiled ones. Shows what a kernel computes, nothing of its speed or its races."""

import ctypes
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from pysimd import sources

HERE = Path(__file__).parent
COMPILER = shutil.which("g++")
# Some systems' compilers check the bounds of memcpy by default: here those of all do.
_FLAGS = ("-std=c++17", "-O1", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=3", "-w", "-fPIC", "-pthread")
_FLAGS += ("-ffp-contract=off",)
_INCLUDE = '#include "cuda_threads.h"\n'

_WMMA = """
template <class Space, class Type, class Which, class Major, class From>
void load(Fragment<Type, Which, Major>& f, From from, unsigned ld) {
    constexpr bool K_ADJACENT = (Which::NAME[0] == 'a') == (Major::NAME[0] == 'r');
    auto at = Space::address(from);
    const void* memory = sizeof at == 4 ? (const void*)host::pointer((u32)at) : (const void*)(u64)at;
    if constexpr (Type::REGISTERS == 2) ptx::wmma_load<K_ADJACENT>(f.x, (const signed char*)memory, ld);
    else ptx::wmma_load<K_ADJACENT>(f.x, (const u16*)memory, ld);
}
template <class Type, class MajorA, class MajorB>
void multiply(Accumulator<Type>& c, const Fragment<Type, A, MajorA>& a, const Fragment<Type, B, MajorB>& b) {
    if constexpr (Type::REGISTERS == 2)
        ptx::wmma_multiply<signed char, int>(c.x, a.x, b.x, [](signed char x) { return (double)x; });
    else if constexpr (Type::REGISTERS == 4)
        ptx::wmma_multiply<u16, float>(c.x, a.x, b.x, [](u16 x) { return (double)__uint_as_float((u32)x << 16); });
    else ptx::wmma_multiply<u16, float>(c.x, a.x, b.x, [](u16 x) { return (double)host::from_half(x); });
}
template <class Type>
void store(void* to, const Accumulator<Type>& c, unsigned ld) {
    memcpy((u32*)to + ptx::wmma_row() * ld + ptx::wmma_column(), c.x, sizeof c.x);
}
"""


def _end(text, start):
    """The index behind the parenthesis that closes the one at ``start``, which strings may hold too."""
    depth, i = 0, start
    while True:
        if text[i] == '"':
            i = re.compile(r'"(?:\\.|[^"\\])*"').match(text, i).end()
            continue
        depth += (text[i] == "(") - (text[i] == ")")
        i += 1
        if depth == 0:
            return i


def _call(statement, known):
    """An asm statement as a call: its text, what it writes and what it reads are the arguments."""
    literals = re.match(r'\(\s*((?:"(?:\\.|[^"\\])*"\s*)+)', statement)
    text = "".join(re.findall(r'"((?:\\.|[^"\\])*)"', literals[1]))
    operands, at = [], literals.end()
    while found := re.compile(r'"([^"]*)"\s*(\(?)').search(statement, at):
        at = found.end()
        if found[2]:
            at = _end(statement, found.end() - 1)
            operands.append(statement[found.end() : at - 1])
    name = re.search(r"(?:^|; |\{ |\bagain: )((?!\.)[a-z][\w.]*(?:::\w+)*)", re.sub(r"\.reg [^;]*; ?", "", text))
    if name is None:  # no instruction
        return "", None
    name = re.sub(r"\W+", "_", name[1])
    return f'ptx::{name}("{text}"{"".join(f", {x}" for x in operands)})', name if name not in known else None


@cache
def translated(source):
    """The text of a kernel and its headers for the host."""
    return translate(sources.joined(f"gpu_kernels/{source}"))


def translate(text):
    """CUDA C++ as that of the host."""
    text = re.sub(r"(#define PYSIMD_MMA\(.*?\)) +\\\n(?:.*\\\n)*.*\n", r"\1 ptx::mma(TYPES, d, a, b)\n", text, count=1)
    wmma = re.compile(r"/\* ADDRESS is the constraint.*?(?=\} // namespace warp_matrix)", re.DOTALL)
    text = wmma.sub(lambda _: _WMMA, text)
    text = re.sub(
        r"#include <.*?>|^typedef unsigned.*u(?:64|32|16);|^typedef long long i64;", "", text, flags=re.MULTILINE
    )
    shared = r"extern __shared__ (?:__align__\(\d+\) )?([\w ]+?) (\w+)\[\];"
    text = re.sub(shared, r"static thread_local \1* \2 = (\1*)host::dynamic_shared;", text)
    text = re.sub(r"^( *while \(!.*\)) \{\}$", r"\1 host::yield();", text, flags=re.MULTILINE)
    text = re.sub(r"\b(ACC|INT)\d+\(\d+\)(?:, \1\d+\(\d+\))*", '"+f"(d)', text)  # all accumulators
    known = set(re.findall(r"static inline void (\w+)\(", (HERE / "cuda_threads.h").read_text()))
    parts, missing, at = [], set(), 0
    for found in re.finditer(r"\basm(?: volatile)?(?=\()", text):
        end = _end(text, found.end())
        call, unknown = _call(text[found.end() : end], known)
        parts += [text[at : found.start()], call]
        at = end
        missing |= {unknown} - {None}
    others = "".join(f"template <class... X> void {name}(X&&...) {{ abort(); }}\n" for name in sorted(missing))
    return f"{_INCLUDE}namespace ptx {{\n{others}}}\n" + "".join(parts) + text[at:]


@cache
def _precompiled():
    """The folder with cuda_threads.h as the compiler has read it: a third less time for each library."""
    folder = tempfile.TemporaryDirectory()
    header, made = HERE / "cuda_threads.h", Path(folder.name, "cuda_threads.h.gch")
    subprocess.run([COMPILER, *_FLAGS, "-x", "c++-header", str(header), "-o", str(made)], check=True)
    return folder  # which is removed with this object


class Library:
    """The entries of one source, template instances, compiled into ``folder``."""

    def __init__(self, source, entries, folder, change=lambda text: text):
        text = change(translated(source))
        text = _INCLUDE + text.replace(_INCLUDE, "")  # a precompiled header is the first that is included
        cases = "".join(
            f"    case {i}: kernel = [](void** x) {{ host::call({entry}, x); }}; break;\n"
            for i, entry in enumerate(entries)
        )
        text += (
            '\nextern "C" int run(int entry, unsigned grid, unsigned threads, int cooperative, void** arguments) {\n'
            f"    void (*kernel)(void**) = nullptr;\n    switch (entry) {{\n{cases}    }}\n"
            "    return host::run_grid(grid, threads, cooperative, kernel, arguments);\n}\n"
        )
        path = folder / (re.sub(r"\W", "_", source) + ".cpp")
        path.write_text(text)
        command = [COMPILER, *_FLAGS, "-shared", f"-I{_precompiled().name}"]
        command += [f"-I{HERE}", str(path), "-o", str(path.with_suffix(".so"))]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[:4000]
        self._run, self._entries = ctypes.CDLL(str(path.with_suffix(".so"))).run, list(entries)

    def function(self, entry):
        """What launches an entry as CuPy does a compiled kernel; arguments have the ``ptr`` of their bytes."""
        index = self._entries.index(entry)

        def launch(grid, block, arguments, shared_mem=0, stream=None, cooperative=False):
            assert shared_mem <= 227 << 10
            addresses = (ctypes.c_void_p * len(arguments))(*(x.ptr for x in arguments))
            assert self._run(index, grid[0], block[0], int(cooperative), addresses), f"{entry} does not end"

        return launch
