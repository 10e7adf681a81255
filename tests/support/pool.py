"""Code that runs in a process of its own, on the pool of threads of that process."""

import os
import subprocess
import sys

import pytest

LINUX = pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="reads /proc/self/task")

OPERANDS = """
import os, resource, signal, sys, threading, time, warnings
import numpy as np
import pysimd
from pysimd.backends.cpu import dispatch
from pysimd.backends.cpu.implementation import CPU

CPU.door.set_limits(*dispatch.limits()._replace(given_ns=0))
warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of a fork in a process with threads
rng = np.random.default_rng(0)
a, b = rng.standard_normal((64, 16, 16), np.float32), rng.standard_normal((64, 16, 16), np.float32)
x, y = rng.standard_normal((300, 1300), np.float32), rng.standard_normal((1300, 200), np.float32)
batch, large = pysimd.matmul(a, b, threads=1).tobytes(), pysimd.matmul(x, y, threads=1).tobytes()

def right(threads):
    return pysimd.matmul(a, b, threads=threads).tobytes() == batch and (
        pysimd.matmul(x, y, threads=threads).tobytes() == large
    )

def tasks():
    return set(os.listdir("/proc/self/task"))
"""


def output(code, *command):
    """What a process that runs ``code`` after OPERANDS prints; it must end well."""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, sys.executable, "-c", OPERANDS + code], capture_output=True, text=True, timeout=300, env=environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


POOL = """
from pysimd._cpu import ffi, lib

waits, ever = lib.pysimd_waits, 1 << 62
look_ns, waits.look_ns, waits.lost_ns, waits.apart = waits.look_ns, ever, ever, 0  # a busy machine changes nothing

def run(threads, items, item, woken=0, ns=0):
    # item(thread, item) for each of the items, on the pool; what it returns or raises is lost
    count = ffi.callback("int64_t(void *, int64_t)", lambda context, phase: items)
    each = ffi.callback("void(void *, int, int64_t, int64_t)", lambda context, thread, phase, i: item(thread, i))
    lib.pysimd_run(ffi.new("pysimd_work *", {"phases": 1, "items": count, "run": each}), threads, woken, ns)

def start(workers):
    # their threads: each item waits until all of them have one
    together, found = threading.Barrier(workers + 1), []
    def item(thread, i):
        found.append(threading.get_native_id())
        together.wait(60)
    run(workers + 1, workers + 1, item)
    return [task for task in found if task != threading.get_native_id()]

def asleep(task):
    return open(f"/proc/self/task/{task}/stat").read().rsplit(") ", 1)[1][0] == "S"

def until(condition):
    end = time.monotonic() + 60
    while not condition() and time.monotonic() < end:
        time.sleep(0.001)
    return condition()
"""
"""Work of one's own on the pool, for ``output`` too."""
