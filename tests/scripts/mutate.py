"""Mutation testing: slips are planted in the sources at random, one at a time, and the tests must fail.

    pip install -e '.[test,mutate]'
    python tests/scripts/mutate.py --seed 1 --count 40 --area c

A mutant is one line changed by a rule of universalmutator (an operator, a constant, a condition, a statement removed).
It is drawn from all lines of code of the area, in a copy of the checkout. A mutant that does not compile, or whose code
is the same (comments, docstrings, or the same object file: trivial compiler equivalence), is drawn again. The tests
nearest to the file run first, then those of the area, then the whole suite; a mutant is killed by the first test that
fails or does not end. Survivors are printed with file, line and change: each is equivalent, or lacks a test.

With --nearest the tests nearest to the file are all that runs: minutes instead of hours, and a lower bound of the kill
rate, because another test may notice what they do not.
"""

import argparse
import ast
import contextlib
import io
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

# area: the files that are mutated, and the tests of the area
AREAS = {
    "c": (r"cpu_kernels/(core|templates|generic|x86)/.*\.[ch]", ["tests/cpu"]),
    "package": (
        r"pysimd/(?!simulator/|backends/(gpu|cuda|hip)/|(bench|inspection)/(cuda|nvidia|amd)).*\.py",
        ["tests/api", "tests/cpu", "tests/interop"],
    ),
    "simulator": (r"pysimd/simulator/.*\.py", ["tests/hip/simulator", "tests/hip"]),
    "gpu": (
        r"pysimd/backends/(gpu|cuda|hip)/.*\.py|gpu_kernels/.*\.(py|cuh?)|hip_kernels/.*\.(py|hip|h)",
        ["tests/cuda", "tests/hip"],
    ),
}
NOT_RUN_HERE = re.compile(r"/(mmla|mopa|outer_vla|tdp)\.h|/(vec_)?(avx512|amx)|/(ladder|peak)_(avx512|amx)")
RULES = {
    ".py": ["universal.rules", "python.rules"],
    ".c": ["universal.rules", "c_like.rules", "c.rules"],
    ".cu": ["universal.rules", "c_like.rules", "cpp.rules"],
}
RULES |= {".h": RULES[".c"], ".cuh": RULES[".cu"], ".hip": RULES[".cu"]}

NEW_WORDS = ("True", "False", "None", "pass", "break", "continue", "not", "if", "and", "or", "min", "max")

# The tests nearest to a file: the first pattern that its path matches.
NEAREST = {
    "core/entry": ["tests/api/test_entry.py"],
    "core/(door|request)": ["tests/cpu/test_door.py", "tests/api/test_arguments.py"],
    "core/(gemm|split|cost|caches)": ["tests/cpu/test_gemm.py", "tests/cpu/test_large.py"],
    "core/(beyond|trial|work|batch)": ["tests/cpu/test_matmul.py", "tests/cpu/test_gemv.py"],
    "core/direct": ["tests/cpu/test_direct.py"],
    "core/strips": ["tests/cpu/test_strips.py", "tests/cpu/test_large.py"],
    "core/(pack|narrow|widen)": ["tests/cpu/test_gemm.py", "tests/cpu/test_bfloat16.py", "tests/cpu/test_matmul.py"],
    "core/(scale|stage)": ["tests/cpu/test_gemm.py", "tests/cpu/test_half_results.py"],
    "core/(threads|placement|claims|grid)": ["tests/cpu/test_threads.py", "tests/cpu/test_placement.py"],
    "core/ladder": ["tests/cpu/test_ladder.py"],
    "core/(registry|features|api)": ["tests/cpu/test_dispatch.py", "tests/cpu/test_table.py"],
    "core/measure": ["tests/api/test_bench.py", "tests/api/test_peaks.py"],
    "gemv": ["tests/cpu/test_gemv.py"],
    "cpu_kernels": ["tests/cpu/test_kernels.py", "tests/cpu/test_matmul.py", "tests/cpu/test_headers.py"],
    "pysimd/cli/": ["tests/api/test_cli.py", "tests/api/test_tables.py", "tests/api/test_errors.py"],
    "pysimd/report/(html|report|rows|ratio)": [
        *("tests/api/test_html_report.py", "tests/api/test_report.py", "tests/api/test_tables.py"),
        *("tests/api/test_pictures.py", "tests/api/test_cli.py"),
    ],
    "pysimd/report/": [
        *("tests/api/test_pictures.py", "tests/api/test_tile_drawing.py", "tests/api/test_html_report.py"),
        *("tests/api/test_report.py", "tests/api/test_cli.py"),
    ],
    "pysimd/inspection/": [
        *("tests/api/test_inspect.py", "tests/cpu/test_machine_code.py", "tests/api/test_report.py"),
    ],
    "pysimd/bench/": [
        *("tests/api/test_bench.py", "tests/api/test_peaks.py", "tests/api/test_cli.py", "tests/api/test_tables.py"),
        "tests/cpu/test_ladder.py",
    ],
    "pysimd/interop/": ["tests/interop"],
    "backends/cpu/ladder": ["tests/cpu/test_ladder.py"],
    "backends/cpu": ["tests/cpu/test_door.py", "tests/cpu/test_dispatch.py", "tests/cpu/test_matmul.py"],
    "pysimd/[a-z]+.py": [
        *("tests/api/test_arguments.py", "tests/api/test_errors.py", "tests/cpu/test_dispatch.py"),
        *("tests/cpu/test_matmul.py", "tests/api/test_cli.py", "tests/api/test_inspect.py", "tests/api/test_copies.py"),
    ],
    "simulator/instructions/matrix": ["tests/hip/simulator/test_m*.py", "tests/hip/simulator/test_*.py"],
    "simulator/(instructions|operands|assembly)": [
        *("tests/hip/simulator/test_instructions.py", "tests/hip/simulator/test_m*.py"),
        "tests/hip/simulator/test_*.py",
    ],
    "simulator": ["tests/hip/simulator/test_launch.py", "tests/hip/simulator/test_*.py"],
    "backends/hip": ["tests/hip/test_host.py", "tests/hip/test_table.py", "tests/hip/test_ladder.py"],
    "hip_kernels": ["tests/hip/test_table.py", "tests/hip/test_faults.py", "tests/hip/test_kernels.py"],
    "backends/gpu/cupy_probe": ["tests/cuda/test_probe.py", "tests/hip/test_host.py"],
    "backends/cuda/library": ["tests/cuda/test_library.py"],
    "backends/cuda/(ladder|tensor_maps)|backends/gpu/(rungs|gemm)": [
        *("tests/cuda/test_ladder_launches.py", "tests/cuda/test_ladder_tensor.py", "tests/cuda/test_ladder_times.py"),
        *("tests/cuda/test_limits.py", "tests/cuda/test_ladder_pipelines.py"),
    ],
    "backends/(cuda|gpu)": [
        *("tests/cuda/test_plans.py", "tests/cuda/test_instances.py", "tests/cuda/test_table.py"),
        *("tests/cuda/test_library.py", "tests/cuda/test_limits.py", "tests/cuda/test_batched.py"),
        *("tests/cuda/test_ladder_launches.py", "tests/hip/test_table.py"),
    ],
    "gpu_kernels/(ladder_)?table": [
        *("tests/cuda/test_table.py", "tests/cuda/test_ladder_table.py", "tests/cuda/test_limits.py"),
        *("tests/cuda/test_plans.py", "tests/cuda/test_headers.py"),
    ],
    "gpu_kernels/ladder": [
        "tests/cuda/test_ladder_table.py",
        "tests/hip/test_ladder.py",
        "tests/cuda/test_ladder_*.py",
    ],
    "gpu_kernels/micro": [
        *("tests/cuda/test_batched_copies.py", "tests/cuda/test_headers.py", "tests/hip/test_faults.py"),
        *("tests/hip/test_kernels.py", "tests/cuda/test_machine_code.py"),
    ],
    "gpu_kernels/(peaks|loads|tile_rate)": ["tests/cuda/test_peaks.py"],
    "gpu_kernels": ["tests/cuda/test_block_header.py", "tests/cuda/test_headers.py"],
}

WAITING = 4
"""The time that a run of tests may take, in units of its processor time: other processes may use the processor."""

# NVRTC must compile some instance of a file that includes the mutated one; where no table names an instance, the
# templates alone.
COMPILE_CUDA = """
import sys, cupy
from pathlib import Path
from cupy_backends.cuda.libs import nvrtc
from pysimd import sources
from pysimd.gpu_kernels import ladder_table, table
from pysimd.inspection.nvidia import toolkit

options = ("-std=c++17", "-arch=sm_90a", f"-I{toolkit() / 'include'}", "--device-as-default-execution-space")
for user in (name for name in sys.argv[2:] if sys.argv[1] in sources.with_includes(name)):
    source = Path(user).name
    entries = [ladder_table.entry(row, x, x) for row in ladder_table.RUNGS if row.source == source
               for x in ("K_MAJOR", "MN_MAJOR")]
    entries += [entry for row in table.KERNELS if row.source == source for entry in table.entries(row)[:2]]
    for entry in entries or [None]:
        program = nvrtc.createProgram(sources.joined(user), "mutant.cu", (), ())
        if entry:
            nvrtc.addNameExpression(program, entry)
        try:
            nvrtc.compileProgram(program, options)
            sys.exit(0)
        except nvrtc.NVRTCError:
            pass
sys.exit(1)
"""

# Some target must compile some instance: the line may be for other targets alone.
COMPILE_HIP = """
import sys
from pysimd import errors, simulator, sources
from pysimd.backends.hip import simulation
from pysimd.hip_kernels import table

for row in table.KERNELS:
    if sys.argv[1] in sources.with_includes(f"hip_kernels/{row.source}"):
        for target in table.TARGETS:
            if row.requires in table.features(target):
                try:
                    simulation.compiled(row.source, table.entry(row, "ANY", "ANY", False), target)
                    sys.exit(0)
                except errors.PysimdError:
                    pass
sys.exit(1)
"""


@dataclass
class Mutant:
    """One changed line, and what became of it: ``result`` is killed, timeout or survived."""

    file: str
    line: int
    old: str
    new: str
    result: str = ""
    by: str = ""
    seconds: float = 0.0


def tracked():
    """The names of the checkout's files."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True).stdout
    return sorted(filter(None, listed.split("\0")))


def drawn(area, generator):
    """Mutants of an area without end: a line of code at random, then one of its mutants at random."""
    from universalmutator import mutator

    lines = {}
    for name in tracked():
        if not re.fullmatch(AREAS[area][0], name) or NOT_RUN_HERE.search(name):
            continue
        text = (ROOT / name).read_text().splitlines(keepends=True)
        with contextlib.redirect_stdout(io.StringIO()):
            found = mutator.mutants_regexp(text, RULES[Path(name).suffix], ignorePatterns=[], ignoreStringOnly=True)
        known = {*re.findall(r"\w+", "".join(text)), *NEW_WORDS}
        for number, new, *_ in found:
            if any(not word.isdigit() and word not in known for word in re.findall(r"\w+", new)):
                continue  # a rule matched a part of a name
            old = text[number - 1].rstrip("\n")
            lines.setdefault((name, number), []).append(Mutant(name, number, old, new.rstrip("\n")))
    keys = sorted(lines)
    while keys:
        key = generator.choice(keys)
        mutants = lines[key]
        yield mutants.pop(generator.randrange(len(mutants)))
        if not mutants:
            keys.remove(key)


NOTHING = ast.Constant, ast.Pass


def without_docstrings(text):
    """The syntax tree of Python code without docstrings, annotations and ``pass``, as text."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        for annotation in {"annotation", "returns"}.intersection(node._fields):
            setattr(node, annotation, None)
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [x for x in body if not isinstance(x.value if isinstance(x, ast.Expr) else x, NOTHING)]
    return ast.dump(tree)


def without_comments(text):
    """C code without comments and white space."""
    return re.sub(r"\s+", "", re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S))


class Tree:
    """A copy of the checkout, built, in which one mutant at a time is planted."""

    def __init__(self, folder):
        self.root = Path(folder)
        for name in tracked():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, self.root / name)
        for kind in ("cpu", "gpu", "hip"):
            (self.root / "pysimd" / f"{kind}_kernels").symlink_to(f"../{kind}_kernels")
        for product in ("build", "pysimd/_cpu.abi3.so"):  # newer than the sources: only what a mutant changes is built
            if (ROOT / product).is_dir():
                shutil.copytree(ROOT / product, self.root / product)
            elif (ROOT / product).exists():
                shutil.copy2(ROOT / product, self.root / product)
        self.environment = {**os.environ, "PYTHONPATH": str(self.root)}
        self.build()
        collect = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--collect-only", "tests"]
        subprocess.run(collect, cwd=self.root, env=self.environment, capture_output=True)  # writes all bytecode once
        self.environment["PYTHONDONTWRITEBYTECODE"] = "1"

    def build(self):
        """Whether the C code compiles."""
        command = [sys.executable, "setup.py", "-q", "build_clib", "build_ext", "--inplace"]
        return subprocess.run(command, cwd=self.root, env=self.environment, capture_output=True).returncode == 0

    @property
    def library(self):
        return (self.root / "pysimd/_cpu.abi3.so").read_bytes()

    def users(self, header):
        """The C files of this machine's kernels that include a header, also through others."""
        names, found = [Path(header).name], set()
        while names:
            pattern = re.compile(rf'#include "[^"]*{re.escape(names.pop())}"')
            for path in (self.root / "cpu_kernels").rglob("*.[ch]"):
                if path not in found and not NOT_RUN_HERE.search(str(path)) and pattern.search(path.read_text()):
                    found.add(path)
                    names += [path.name] if path.suffix == ".h" else []
        return [path for path in found if path.suffix == ".c"]

    @contextlib.contextmanager
    def planted(self, mutant):
        """The tree with the mutant in it; None where the mutant is no other program, or none."""
        path = self.root / mutant.file
        text, status, library = path.read_text(), path.stat(), self.library
        lines = text.splitlines(keepends=True)
        lines[mutant.line - 1] = mutant.new + "\n"
        path.write_text("".join(lines))
        try:
            yield self if self._is_another(path, text, "".join(lines), status, library) else None
        finally:
            path.write_text(text)
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))  # its bytecode holds again
            if path.is_relative_to(self.root / "cpu_kernels"):
                self._rebuild(path, status)

    def _is_another(self, path, before, after, status, library):
        if path.suffix == ".py":
            try:
                compile(after, path.name, "exec")
                return without_docstrings(before) != without_docstrings(after)
            except (SyntaxError, ValueError):
                return False
        if without_comments(before) == without_comments(after):
            return False
        if path.is_relative_to(self.root / "hip_kernels"):
            return self._runs(COMPILE_HIP, path)
        if path.is_relative_to(self.root / "gpu_kernels"):
            return self._runs(COMPILE_CUDA, path, *sorted(self.root.glob("gpu_kernels/**/*.cu")))
        return self._rebuild(path, status) and self.library != library

    def _runs(self, program, *paths):
        command = [sys.executable, "-c", program, *(str(path.relative_to(self.root)) for path in paths)]
        return subprocess.run(command, cwd=self.root, env=self.environment, capture_output=True).returncode == 0

    def _rebuild(self, path, status):
        changed = [path]
        if path.suffix == ".h":  # setup.py would build everything again
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
            changed = self.users(path.name)
        for source in changed:
            source.touch()
        return self.build()

    def tests(self, paths, without, limit):
        """killed and the test that failed, timeout, or survived."""
        found = (str(x.relative_to(self.root)) for path in paths for x in sorted(self.root.glob(path)))
        paths = list(dict.fromkeys(found))
        if not paths:
            return "survived", ""
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--no-header", *paths]
        command += [f"--ignore-glob={path}" for path in without]
        try:
            run = subprocess.run(
                command,
                **{"cwd": self.root, "env": self.environment, "capture_output": True, "text": True},
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit)),
                timeout=WAITING * limit,
            )
        except subprocess.TimeoutExpired:
            return "timeout", paths[0]
        if run.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
            return "timeout", paths[0]
        if run.returncode in (0, 5):
            return "survived", ""
        failed = re.search(r"^(?:FAILED|ERROR) (\S+)", run.stdout, re.M) or re.search(
            r"^_+ (.+?) _+$", run.stdout, re.M
        )
        return "killed", failed[1] if failed else "an error before the first test"


def nearest(file):
    """The paths of the tests that most likely notice a change of a file."""
    for pattern, paths in NEAREST.items():
        if found := re.search(pattern, file):
            stem = Path(file).stem
            own = [f"tests/*/test_{stem}.py"]
            return own + [path.format(*found.groups()) for path in paths]
    return []


def judged(tree, area, mutant, limit, only_nearest):
    """The mutant with its result; None if it has to be drawn again."""
    start = time.monotonic()
    with tree.planted(mutant) as planted:
        if planted is None:
            return None
        without = []
        others = [] if only_nearest else [AREAS[area][1], ["tests"]]
        for paths in (nearest(mutant.file), *others):
            mutant.result, mutant.by = tree.tests(paths, without, limit)
            if mutant.result != "survived":
                break
            without += paths
    mutant.seconds = round(time.monotonic() - start, 1)
    return mutant


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, default=40, help="mutants of each area")
    parser.add_argument("--area", choices=AREAS, action="append", help="all by default")
    parser.add_argument("--nearest", action="store_true", help="run the nearest tests alone: a lower bound")
    parser.add_argument("--limit", type=int, default=1800, help="seconds of processor time of a run of tests")
    parser.add_argument("--out", type=Path, help="a JSON file of all mutants")
    arguments = parser.parse_args()
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        tree = Tree(folder)
        for area in arguments.area or AREAS:
            results[area] = done = []
            for mutant in drawn(area, random.Random(f"{arguments.seed} {area}")):
                if judged(tree, area, mutant, arguments.limit, arguments.nearest) is None:
                    continue
                done.append(mutant)
                counted = f"{area} {len(done)}/{arguments.count} {mutant.result:8} {mutant.seconds:6.0f} s"
                print(f"{counted}  {mutant.file}:{mutant.line}  {mutant.by}", flush=True)
                if mutant.result == "survived":
                    print(f"    - {mutant.old.strip()}\n    + {mutant.new.strip()}", flush=True)
                if arguments.out:
                    record = {
                        "seed": arguments.seed,
                        "platform": sysconfig.get_platform(),
                        "nearest": arguments.nearest,
                    }
                    record |= {name: [asdict(x) for x in mutants] for name, mutants in results.items()}
                    arguments.out.write_text(json.dumps(record, indent=1) + "\n")
                if len(done) == arguments.count:
                    break
    for area, mutants in results.items():
        killed = sum(x.result != "survived" for x in mutants)
        print(f"{area}: {killed} of {len(mutants)} killed ({100 * killed / len(mutants):.0f} %)")


if __name__ == "__main__":
    main()
