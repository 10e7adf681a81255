"""``python tests/scripts/fuzz.py --what api|c|elf|code --minutes M``: random inputs for so long.

    api   products of any shape, strides, dtype, out, kernel, threads, alpha and beta (tests/cpu/test_properties.py)
    c     driver, packing and blocks in C (tests/support/fuzz_driver.c), guided by libFuzzer where clang has it
    elf   code objects of AMD GPUs, changed at random, read by the simulator (tests/support/fuzzing.py)
    code  listings of their instructions, changed at random, decoded and executed by the simulator

Findings are written to tests/corpus/<what> (--corpus): tests/api/test_fuzz.py reads them again in every run. Those of
``api`` are printed, shrunk by hypothesis: each becomes a test of its own.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import random
import resource
import subprocess
import sys
import tempfile
import time
import traceback
from functools import partial
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS / "support")]

import fuzz_build  # noqa: E402 (the path is set above)
import fuzzing  # noqa: E402


def api(seconds: float, corpus: Path, seed: int) -> int:
    """The properties with other seeds than in the suite."""
    from hypothesis import HealthCheck, settings
    from hypothesis import seed as seeded

    spec = importlib.util.spec_from_file_location("test_properties", TESTS / "cpu" / "test_properties.py")
    properties = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(properties)
    tests = [x for name, x in vars(properties).items() if name.startswith("test_")]
    options = settings(
        max_examples=100, deadline=None, database=None, derandomize=False, suppress_health_check=list(HealthCheck)
    )
    tests = [options(test) for test in tests]
    end, rounds = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        for test in tests:
            try:
                seeded(seed + rounds)(test)()
            except Exception:
                traceback.print_exc()
                print(f"{test.__name__} fails with seed {seed + rounds}")
                return 1
        rounds += 1
    print(f"api: {rounds * len(tests) * 100} examples, none fails")
    return 0


def c(seconds: float, corpus: Path, seed: int) -> int:
    """The program of fuzz_driver.c."""
    command = fuzz_build.compiler(guided=True)
    guided = command is not None
    command = command or fuzz_build.compiler(guided=False)
    if command is None:
        print("c: neither clang with libFuzzer nor gcc is installed")
        return 2
    with tempfile.TemporaryDirectory() as folder:
        program = fuzz_build.build(Path(folder), command)
        for known in sorted(corpus.glob("*")):
            subprocess.run([str(program), str(known)], check=True, capture_output=True)
        if guided:
            seeds = Path(folder, "seeds")
            seeds.mkdir()
            options = [
                f"-max_total_time={seconds:.0f}",
                f"-seed={seed}",
                "-max_len=96",
                "-len_control=0",
                "-print_final_stats=1",
            ]
            words = [str(program), *options, f"-artifact_prefix={folder}/crash-", str(seeds)]
        else:
            words = [str(program), str(max(1, round(seconds))), str(seed), folder]
        done = subprocess.run(words, capture_output=True, text=True)
        print(
            "\n".join(x for x in (done.stdout + done.stderr).splitlines()[-60:] if "NEW" not in x and "REDUCE" not in x)
        )
        for path in Path(folder).glob("crash*"):
            if not path.name.startswith("crash-slow-unit-"):  # libFuzzer keeps them, too
                keep(corpus, path.read_bytes())
    return int(done.returncode != 0)


def keep(corpus: Path, data: bytes) -> None:
    """Write a finding into the corpus."""
    corpus.mkdir(parents=True, exist_ok=True)
    path = corpus / hashlib.sha256(data).hexdigest()[:16]
    path.write_bytes(data)
    print(f"a finding: {path}")


def reader(what: str, seconds: float, corpus: Path, seed: int) -> int:
    """The readers of fuzzing.py; goes on after a finding, of which one of each kind and place is kept."""
    make, change, read = fuzzing.READERS[what]
    right, rng = make(), random.Random(seed)
    end, count, found = time.monotonic() + seconds, 0, set()
    while time.monotonic() < end:
        data = change(rng.choice(right), rng)
        count += 1
        try:
            read(data)
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            kind = type(error).__name__, place.filename, place.lineno
            if kind not in found:
                found.add(kind)
                traceback.print_exc()
                keep(corpus, data)
    print(f"{what}: {count} inputs, {len(found)} findings")
    return int(bool(found))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--what", choices=("api", "c", "elf", "code"), required=True)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--corpus", type=Path, help="where findings are kept (tests/corpus/<what>)")
    options = parser.parse_args()
    corpus = options.corpus or TESTS / "corpus" / options.what
    seconds = 60 * options.minutes
    run = {"api": api, "c": c}.get(options.what) or partial(reader, options.what)
    code = run(seconds, corpus, options.seed)
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(f"{sum(x.ru_utime + x.ru_stime for x in used):.0f} s of a processor, compilers included")
    return code


if __name__ == "__main__":
    sys.exit(main())
