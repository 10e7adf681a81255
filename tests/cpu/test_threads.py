"""Threads: the same bits for any number of them and any place in a batch; calls from many threads; the pool: fork,
signals, sharing, refused threads."""

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from cases import QUICK, few
from pool import LINUX, output
from process import RUNNER, SANITIZED
from pysimd._cpu import ffi, lib
from reference import check, random_operand

import pysimd
from pysimd import dtypes
from pysimd.backends.cpu.implementation import CPU

CASES = [  # batch, m, k, n: split by products, by rows of tiles, and not at all
    ((7,), 4, 4, 4),
    ((3, 5), 8, 8, 8),
    ((2,), 45, 17, 33),
    ((1,), 200, 9, 50),
    ((), 131, 40, 70),
    ((), 3, 5, 3),
    ((), 104, 90, 112),  # by rows of tiles on two and three threads
    ((), 128, 128, 128),  # grids of parts: equal ones, and of one tile less
    ((2,), 136, 130, 144),
    ((3,), 64, 200, 192),
    ((), 132, 300, 77),
    ((), 41, 2200, 131),
    ((), 30, 5000, 50),  # blocks of K by themselves, whose sums are added
    ((2,), 70, 2500, 33),
    ((), 100, 20000, 21),
    ((), 100, 9000, 180),
    ((), 200, 200, 200),
    ((), 256, 256, 384),  # blocks: each thread has columns, or rows; columns that are not divided equally
    ((), 90, 130, 1111),
    ((), 1000, 70, 321),
    ((), 70, 70, 26000),  # four blocks of B, so five phases
    ((), 404, 79, 13),  # of medium size: by rows of tiles on any number of threads; few rows, as columns
    ((), 85, 349, 48),
    ((), 23, 54, 1403),
    ((), 9, 95, 1838),
    ((), 126, 5, 3190),
    ((), 700, 40, 1700),  # a B of more than 256 KiB for each thread
]


def pair(rng, types, batch, m, k, n):
    family = dtypes.FAMILIES[types]
    a = random_operand(rng, dtypes.dtype_of(family.a), (*batch, m, k))
    b = random_operand(rng, dtypes.dtype_of(family.b), (*batch, k, n))
    if a.dtype.name == "uint16":
        pytest.skip("bfloat16 without ml_dtypes is for named kernels")
    return a, b


@pytest.mark.parametrize("types", CPU.offered)
@pytest.mark.parametrize("case", few(CASES[:6], 3) + CASES[6:], ids=str)
def test_same_bits_for_any_number_of_threads(types, case, rng):
    """Also with B transposed, added to C, and with factors."""
    if QUICK and np.prod(case[1:]) > 1e8 and types not in ("f32", "bf16f32", "i8i32"):
        pytest.skip("long")
    a, b = pair(rng, types, *case)
    one = pysimd.matmul(a, b, threads=1)
    check(one, types, a, b)
    c = random_operand(rng, one.dtype, one.shape)
    transposed = np.ascontiguousarray(b.swapaxes(-1, -2)).swapaxes(-1, -2)
    of_transposed = pysimd.matmul(a, transposed, threads=1)
    check(of_transposed, types, a, b)
    scaled = pysimd.gemm(a, b, c, alpha=2, beta=-1, threads=1)
    for threads in few((2, 3, 4, 8, 300)):
        assert pysimd.matmul(a, b, threads=threads).tobytes() == one.tobytes(), threads
        assert pysimd.matmul(a, transposed, threads=threads).tobytes() == of_transposed.tobytes(), threads
        assert pysimd.gemm(a, b, c, alpha=2, beta=-1, threads=threads).tobytes() == scaled.tobytes(), threads
    assert pysimd.matmul(a, b).tobytes() == one.tobytes()


@pytest.mark.parametrize("types", CPU.offered)
@pytest.mark.parametrize("size", [3, 4, 8, 16, 19])
def test_same_bits_at_any_place_in_a_batch(types, size, rng):
    a, b = pair(rng, types, (9,), size, size, size)
    whole = pysimd.matmul(a, b)
    out = np.empty_like(whole)
    for i in range(9):
        assert pysimd.matmul(a[i], b[i]).tobytes() == whole[i].tobytes()
        pysimd.matmul(a[i], b[i], out=out[i])
    assert out.tobytes() == whole.tobytes()
    assert pysimd.matmul(a[::-2], b[::-2]).tobytes() == whole[::-2].tobytes()
    assert pysimd.matmul(a[3:], b[3:]).tobytes() == whole[3:].tobytes()


@pytest.mark.parametrize("size", [4, 8, 16])
def test_streamed_results_have_the_same_bits(size, rng, cpu_limits):
    a, b = pair(rng, "f32", (11,), size, size, size)
    stored = pysimd.matmul(a, b, threads=1)
    cpu_limits(stream_bytes=1)
    assert pysimd.matmul(a, b, threads=2).tobytes() == stored.tobytes()


def test_eight_threads_call_at_once(rng):
    """Every thread its own operands, all entry points, for many rounds; each result is compared with its first."""
    rounds = 5 if QUICK else 100
    kernel = max(pysimd.kernels("cpu", types="f32", form="outer", available=True), key=lambda k: k.mr * k.nr)
    wrong = []

    def work(number):
        rng = np.random.default_rng(number)
        a = random_operand(rng, np.dtype("f4"), (50, kernel.mr, 20 + number))
        b = random_operand(rng, np.dtype("f4"), (50, 20 + number, kernel.nr))
        c = np.zeros((kernel.mr, kernel.nr), np.float32)
        expected = kernel(a, b)
        run = kernel.bind(a[0], b[0], c)
        for _ in range(rounds):
            c[...] = 0
            run()
            same = kernel(a, b).tobytes() == pysimd.matmul(a, b, threads=2, kernel=kernel).tobytes()
            if not same or not np.array_equal(kernel(a, b), expected) or not np.array_equal(c, expected[0]):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


SHARED_WORK = {
    "tiles": ((20_000, 16, 16), (20_000, 16, 16)),
    "a shared operand": ((20_000, 16, 16), (16, 16)),
    "blocks, whole products": ((200, 100, 100), (200, 100, 100)),
    "blocks of one product": ((700, 700), (700, 700)),
    "strips": ((6, 1500), (1500, 4000)),
}
"""Shapes of large products of every route."""


@pytest.mark.skipif(bool(RUNNER) or SANITIZED, reason="the estimate of the time is of an unchanged program")
@pytest.mark.parametrize("name", SHARED_WORK)
def test_large_work_is_shared(name):
    """By default a second thread takes a tenth of the items of a call, or more: of some call, for busy processors may
    keep it from its work for a while."""
    code = f"""
import time
import numpy as np, pysimd
from pysimd._cpu import lib

waits = lib.pysimd_waits
a, b = (np.ones(shape, np.float32) for shape in {SHARED_WORK[name]})
out, share, end = pysimd.matmul(a, b, threads=1), 0, time.monotonic() + 60
while share < 0.1 and time.monotonic() < end:
    led, taken = waits.led, waits.taken
    pysimd.matmul(a, b, out=out)
    led, taken = waits.led - led, waits.taken - taken
    share = taken / max(led + taken, 1)
print(share)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=100,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYSIMD_NUM_THREADS": "2"},
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) >= 0.1


# --- the pool of threads ---


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_fork_after_use():
    """A child starts threads of its own, and so does its child; each ends in the ordinary way."""
    code = """
assert right(3)
generation = 0
for _ in range(2):
    child = os.fork()
    if child:
        break
    generation += 1
    assert right(1) and right(3) and right(4)
if child:
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert right(3)
if generation == 0:
    print("right")
"""
    assert output(code) == ["right"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_fork_during_calls():
    """Whatever the threads of the parent do at the time of the fork, those of the child work."""
    code = f"""
done = threading.Event()
wrong = []
def work():
    while not done.is_set():
        if not right(3):
            wrong.append(1)
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
for _ in range({5 if QUICK else 30}):
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        os._exit(0 if right(3) else 1)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        wrong.append(2)
done.set()
for thread in threads:
    thread.join()
print(wrong)
"""
    assert output(code) == ["[]"]


@LINUX
def test_calls_at_the_same_time_share_the_threads():
    """Eight calls that ask for three threads have two more than their own between them, asleep or awake."""
    code = f"""
before = len(tasks())
wrong = []
def work(number):
    for i in range({8 if SANITIZED else 40}):
        if not right(1 + (number + i) % 3):
            wrong.append(number)
        if i % {2 if SANITIZED else 10} == 0:
            time.sleep(0.002)
threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
time.sleep(0.05)
print(wrong, len(tasks()) - before, right(3))
"""
    assert output(code) == ["[]", "2", "True"]


@LINUX
def test_signals_are_for_other_threads():
    """A worker blocks all signals but those of its own faults."""
    code = """
before = tasks()
assert right(3)
time.sleep(0.1)  # a new thread blocks all signals until it has begun
for task in tasks() - before:
    status = dict(line.split(":", 1) for line in open(f"/proc/self/task/{task}/status"))
    blocked = int(status["SigBlk"], 16)
    names = [s.name for s in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGSEGV) if blocked >> (s - 1) & 1]
    print(*names)
"""
    assert output(code) == ["SIGINT", "SIGTERM", "SIGALRM"] * 2


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no setitimer")
def test_a_call_in_a_signal_handler():
    """It is answered while the interrupted product holds the threads."""
    n = 400 if SANITIZED else 2500  # a product of some tenths of a second
    code = f"""
n = {n}
calls = []
def handler(*_):
    calls.append(right(2))
    signal.setitimer(signal.ITIMER_REAL, 0.05)
signal.signal(signal.SIGALRM, handler)
wide = np.broadcast_to(np.float32(1), (n, 2 * n))
pysimd.matmul(wide[:, :n], wide[:, :n], threads=2)
signal.setitimer(signal.ITIMER_REAL, 0.01)
result = pysimd.matmul(wide, wide.T, threads=2)
signal.setitimer(signal.ITIMER_REAL, 0)
print((result == 2 * n).all(), len(calls) > 0, all(calls))
"""
    assert output(code) == ["True"] * 3


@LINUX
def test_refused_threads():
    """Stacks of 32 GiB, and addresses for 8: the system creates no thread, and the bits are the same."""
    import resource

    if SANITIZED:
        pytest.skip("the address sanitizer needs more addresses")
    if resource.getrlimit(resource.RLIMIT_STACK)[1] != resource.RLIM_INFINITY:
        pytest.skip("the limit on stacks cannot be raised")
    code = """
before = len(tasks())
try:
    threading.Thread(target=int).start()
    print("not refused")
except RuntimeError:
    print(right(2), right(4), len(tasks()) - before)
"""
    limit = "import os, resource, sys; resource.setrlimit(resource.RLIMIT_STACK, (32 << 30, -1)); "
    limit += "resource.setrlimit(resource.RLIMIT_AS, (8 << 30, -1)); os.execv(sys.argv[1], sys.argv[1:])"
    assert output(code, sys.executable, "-c", limit) == ["True", "True", "0"]


CROWDED = """
import subprocess
from pysimd._cpu import lib

waits, n = lib.pysimd_waits, SIZE
here, there = sorted(os.sched_getaffinity(0))[:2]
x = rng.standard_normal((n, n), np.float32)
right = pysimd.matmul(x, x, threads=1).tobytes()
look_ns, waits.look_ns, waits.apart = waits.look_ns, 1 << 60, 0  # at first the worker is not moved
waits.shared_ns = 0  # nor sent away from the caller's processor, and it does not sleep early
known = tasks()
assert pysimd.matmul(x, x, threads=2).tobytes() == right
worker = [int(task) for task in tasks() - known]
assert len(worker) == 1
os.sched_setaffinity(0, {here})
os.sched_setaffinity(worker[0], {there})
waits.look_ns = look_ns
busy = "import os\\nos.sched_setaffinity(0, {%d})\\nprint(flush=True)\\nwhile os.getppid() == %d: pass"
others = [
    subprocess.Popen([sys.executable, "-S", "-c", busy % (there, os.getpid())], stdout=subprocess.PIPE)
    for _ in range(10)
]
for other in others:
    other.stdout.readline()
wrong, end = 0, time.monotonic() + 60
while time.monotonic() < end and not COUNT:
    wrong += pysimd.matmul(x, x, threads=2).tobytes() != right
    time.sleep(0.001)
found = COUNT
for other in others:
    other.kill()
print(found > 0, wrong, os.sched_getaffinity(worker[0]) == {there}, right == pysimd.matmul(x, x, threads=2).tobytes())
"""
"""A process whose worker has a processor that ten other processes use all the time. So the worker is away for longer
than the caller is between three looks at it, where others have the caller's processor too: with three processes a
rescue took 3 seconds beside two others, and once none came within a minute."""


@LINUX
@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="no affinity")
@pytest.mark.skipif(bool(RUNNER), reason="the emulator has its own threads")
@pytest.mark.parametrize("count", ["rescued", "lost", "absent", "freed"])
def test_a_worker_without_a_processor(count):
    """One that lost it in the middle of an item is found by its caller; one that waited for a call takes notice that
    others use it. A caller notices one that was awake and has not begun, and ends its call without one that waits for
    the next phase. A worker that may not run on the caller's processor, as here, is left where it is."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one processor")
    settings = {
        "rescued": "",
        "lost": "waits.look_ns = 1 << 60\nwaits.lost_ns = 100_000\n",
        "absent": "waits.look_ns = waits.lost_ns = waits.awake_ns = 1 << 60\n",
        "freed": "waits.look_ns = waits.lost_ns = waits.worth_ns = 1 << 60\n",
    }[count]
    size = "200" if count == "absent" else "1000"  # a short call ends before the others leave the processor
    code = (
        CROWDED.replace("SIZE", size)
        .replace("COUNT", f"waits.{count}")
        .replace("wrong, end =", settings + "wrong, end =")
    )
    assert output(code) == ["True", "0", "True", "True"]


def test_the_gil_is_released(rng):
    """While one thread multiplies, for tens of milliseconds, another one runs Python."""
    a, b = pair(rng, "f64", (), 200 if QUICK and (RUNNER or SANITIZED) else 2000, 500, 2000)
    ticks = []
    done = threading.Event()

    def count():
        while not done.is_set():
            ticks.append(None)
            done.wait(0.0005)

    pysimd.matmul(a[:1], b)  # everything is loaded
    counter = threading.Thread(target=count)
    counter.start()
    before = len(ticks)
    pysimd.matmul(a, b, threads=1)
    during = len(ticks) - before
    done.set()
    counter.join()
    assert during > 1, "the other thread stood still"


@pytest.mark.parametrize("threads", [1, 2, 3, 5, 16])
@pytest.mark.parametrize("items", [1, 2, 7, 16, 33])
def test_each_item_is_taken_once_and_by_the_same_thread_in_every_call(threads, items):
    """Threads that take items in turn have one range of them each; those that are left when a thread does not come are
    the others'."""
    for late in (None, 0, threads - 1):
        size = ffi.sizeof("pysimd_claim")
        memory = ffi.new("char[]", (threads + 1) * size)
        address = int(ffi.cast("uintptr_t", memory))
        claims = ffi.cast(
            "pysimd_claim *", memory + -address % size
        )  # ffi.new aligns to 16 bytes, a claim has a cache line
        owner = {}
        present = [t for t in range(threads) if t != late] or [0]
        for call in range(items):
            thread = present[call % len(present)]
            item = lib.pysimd_take_item(claims, threads, items, thread)
            assert item in range(items)
            assert item not in owner
            owner[item] = thread
        if late is None and items % threads == 0:
            assert [owner[i] for i in range(items)] == [t for t in range(threads) for _ in range(items // threads)]


GRIDS = [  # kernel, threads, products, m, k, n: rows and columns of the grid, or None
    ("avx2_f32_outer_6x16", 2, 1, 128, 128, 128, (2, 1)),
    ("avx2_f32_outer_6x16", 2, 1, 64, 128, 256, (1, 2)),
    ("avx2_f32_outer_6x16", 2, 3, 128, 128, 128, (2, 1)),  # of three products on two threads each is halved,
    ("avx2_f32_outer_6x16", 2, 2, 128, 128, 128, (1, 1)),  # of two none
    ("avx2_f32_outer_6x16", 16, 1, 200, 200, 200, (4, 4)),
    ("avx2_f32_outer_6x16", 16, 1, 20, 1000, 1000, (1, 16)),
    ("avx2_f32_outer_6x16", 16, 1, 5, 1000, 16, (1, 1)),  # a micro-tile has no parts
    ("avx2_f32_outer_6x16", 2, 8, 128, 128, 128, None),  # so many products are divided among threads as they are
    ("avx2_f32_outer_6x16", 1, 1, 128, 128, 128, None),
    ("avx2_f32_outer_6x16", 2, 1, 204, 204, 204, None),  # too large for few threads,
    ("avx2_f32_outer_6x16", 8, 1, 512, 512, 512, (2, 4)),
    ("avx2_f32_outer_6x16", 8, 1, 513, 512, 512, None),  # has too many rows,
    ("avx2_f32_outer_6x16", 16, 1, 1000, 1100, 1000, None),  # or is too large
    ("avx2_i8i32_outer_6x16", 2, 1, 128, 128, 128, (2, 1)),
    ("amx_bf16f32_outer_32x32", 16, 1, 512, 512, 512, (4, 4)),
    ("amx_bf16f32_outer_32x32", 8, 1, 512, 512, 512, (2, 4)),
    ("amx_bf16f32_outer_32x32", 2, 1, 512, 512, 64, (2, 1)),
    ("amx_bf16f32_outer_32x32", 8, 1, 500, 512, 500, (2, 4)),
    ("amx_bf16f32_outer_32x32", 8, 1, 1024, 1024, 2048, (8, 2)),  # of large products two for each thread, or more
    ("amx_bf16f32_outer_32x32", 12, 1, 8192, 512, 4096, None),
    ("amx_bf16f32_outer_32x32", 8, 2, 512, 512, 512, None),
]
GRIDS_OF_BLOCKS = [  # the same with several blocks of K: their number last
    ("avx2_f32_outer_6x16", 2, 1, 64, 4096, 64, 4, (1, 1, 4)),
    ("avx2_f32_outer_6x16", 2, 1, 64, 3000, 64, 3, (1, 1, 3)),
    ("avx2_f32_outer_6x16", 16, 1, 64, 4096, 64, 4, (2, 2, 4)),
    ("avx2_f32_outer_6x16", 2, 1, 256, 4096, 256, 4, (1, 1, 4)),
    ("avx2_f32_outer_6x16", 2, 1, 1000, 4096, 1000, 4, None),  # C is too large,
    ("avx2_f32_outer_6x16", 2, 1, 64, 4096, 64, 1000, None),  # or there are too many of them
    ("avx2_f32_outer_6x16", 1, 1, 64, 4096, 64, 4, None),
    ("avx2_f32_outer_6x16", 2, 2, 64, 4096, 64, 4, None),  # each thread has a product of its own
    ("amx_bf16f32_outer_32x32", 2, 1, 64, 4096, 64, 8, (1, 1, 8)),
]


def grid_of(name, threads, products, m, k, n, blocks=1):
    kernels = {ffi.string(lib.pysimd_kernels[i].name): i for i in range(lib.pysimd_kernel_count)}
    kernel = ffi.addressof(lib.pysimd_kernels, kernels[name.encode()])
    product = ffi.new("pysimd_product *")
    product.m, product.k, product.n = m, k, n
    grid = lib.pysimd_grid_for(kernel, product, threads, products, blocks, 1)
    assert grid.blocks in (1, blocks)
    found = (grid.rows, grid.columns) if grid.blocks == 1 else (grid.rows, grid.columns, grid.blocks)
    return found if grid.rows else None


@pytest.mark.parametrize("case", GRIDS + GRIDS_OF_BLOCKS, ids=str)
def test_the_grid_of_parts(case):
    assert grid_of(*case[:-1]) == case[-1]


@pytest.mark.parametrize("threads", [2, 3, 5, 8, 16, 64, 256])
def test_no_grid_has_more_parts_than_two_for_a_thread_nor_parts_without_tiles(threads, rng):
    for _ in range(300):
        m, k, n = (int(x) for x in rng.integers(1, 700, 3))
        products = int(rng.integers(1, 5))
        blocks = int(rng.integers(1, 9))
        if grid := grid_of("avx2_f32_outer_6x16", threads, products, m, k, n, blocks):
            rows, columns, blocks = (*grid, 1)[:3]
            assert rows * columns <= max(1, -(-2 * threads // (products * blocks)))
            assert rows <= -(-m // 6)
            assert columns <= -(-n // 16)


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_threads_that_a_call_asks_for_have_work_each(threads, cpu_limits, rng):
    """It computes alone what is not worth two of them."""
    a, b = pair(rng, "f32", (500,), 8, 8, 8)
    waits = lib.pysimd_waits
    for given_ns, divided in ((1e9, False), (0, True), (1.0, True)):
        cpu_limits(given_ns=given_ns)
        before = waits.led + waits.taken
        pysimd.matmul(a, b, threads=threads)
        assert (waits.led + waits.taken > before) == divided


@pytest.mark.parametrize("shape", [(46, 59, 49), (60, 55, 60), (46, 70, 60), (14, 300, 45), (300, 12, 50)])
@pytest.mark.parametrize("types", ["f32", "f16f32", "f64"])
def test_a_batch_of_products_is_divided(shape, types, cpu_limits, rng):
    """Products that are too small for two threads each, but not all of them."""
    cpu_limits(given_ns=0)
    m, k, n = shape
    a, b = pair(rng, types, (10,), m, k, n)
    waits = lib.pysimd_waits
    before = waits.led + waits.taken
    two = pysimd.matmul(a, b, threads=2)
    assert waits.led + waits.taken > before
    assert two.tobytes() == pysimd.matmul(a, b, threads=1).tobytes()


@pytest.mark.parametrize("shape", [(85, 349, 48), (404, 79, 13), (23, 54, 1403), (9, 95, 1838), (70, 98, 242)], ids=str)
@pytest.mark.parametrize("types", ["f32", "f64", "f16f32"])
@pytest.mark.parametrize("threads", [2, 4, 16])
def test_a_product_of_medium_size_is_divided(shape, types, threads, cpu_limits, rng):
    """Those of 0.4 to 2 million multiply-adds were one thread's where there were more than three."""
    m, k, n = shape
    if CPU.chosen(types, n, m, k).target == "amx":
        pytest.skip("too little work for two threads with tile registers")
    cpu_limits(given_ns=0)
    a, b = pair(rng, types, (), *shape)
    waits = lib.pysimd_waits
    before = waits.led + waits.taken
    pysimd.matmul(a, b, threads=threads)
    assert waits.led + waits.taken > before


@pytest.fixture
def shared():
    """A function that says whether processors are shared with threads that spin, until the end of the test."""
    waits = lib.pysimd_waits
    before = waits.shared_until, waits.crowded_until

    def say(is_shared):
        waits.shared_until = waits.crowded_until = (1 << 62) * is_shared

    yield say
    waits.shared_until, waits.crowded_until = before


@pytest.mark.parametrize("cores", [2, 3, 4, 16])
def test_few_cores_that_are_shared_take_a_second_thread_late(cores, cpu_limits, shared):
    """Up to three for one ``thread_ns`` of work, for eight while they are shared; more of them for two."""
    kernel = pysimd.kernel("generic_f32_outer_4x4")

    def threads(thread_ns, cores=cores):
        cpu_limits(threads=cores, thread_ns=thread_ns)
        return CPU.threads(kernel, 64, 64, 64, 1)

    low, high = 1.0, 1e9
    while high / low > 1.01:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if threads(middle, 16) > 1 else (low, middle)
    estimate = 2 * low
    shared(True)
    assert threads(estimate / 1.8) == 1
    assert (threads(estimate / 2.2) > 1) == (cores > 3)
    assert (threads(estimate / 7.2) > 1) == (cores > 3)
    assert threads(estimate / 8.8) > 1
    shared(False)
    assert threads(estimate / 0.9) == 1
    assert (threads(estimate / 1.1) > 1) == (threads(estimate / 1.8) > 1) == (cores <= 3)
    assert threads(estimate / 2.2) > 1


def test_parts_of_products_stay_in_their_scratch_memory(rng):
    """Fewer products than threads, each divided by rows: a part's panels are smaller, and no more of them are packed
    together than there is memory for."""
    for m, k, n, batch, threads in ((120, 32, 40, 3, 4), (200, 16, 80, 7, 8), (500, 8, 100, 5, 16)):
        a = rng.standard_normal((batch, m, k)).astype(np.float16)
        b = rng.standard_normal((batch, k, n)).astype(np.float16)
        expected = pysimd.matmul(a, b, threads=1)
        for _ in range(20):
            np.testing.assert_array_equal(pysimd.matmul(a, b, threads=threads), expected)
