"""The loops that measure the peaks of a GPU: their machine code is what their names say. And what is launched."""

import time

import cuda_machine_code as machine
import numpy as np
import pytest
from pysimd.gpu_kernels import table

import pysimd
from pysimd.backends.cuda import device as cuda_device
from pysimd.backends.cuda.implementation import CUDA
from pysimd.bench import cuda_peaks

compiles = pytest.mark.skipif(bool(machine.missing()), reason=machine.missing() or "nothing")
on_gpu = pytest.mark.skipif(not CUDA.backend().available, reason=CUDA.backend().reason or "nothing")

LOOPS = {
    "FFMA": "FFMA",
    "DFMA": "DFMA",
    "HFMA2": "HFMA2",
    "HFMA2_BROADCAST": "HFMA2",
    "DP4A": "IDP.4A",
    "HMMA": "HMMA.16816",
    "IMMA": "IMMA.16832",
}
LOADS = {"SHARED": "LDS", "L1": "LDG.E", "L2": "LDG.E"}
WORDS = {"uint4": 16, "unsigned": 4}


@pytest.fixture(scope="module")
def everything():
    """Compiled in parallel before the first test."""
    wanted = [("peaks.cu", f"peak<{x}>", arch) for x in LOOPS for arch in machine.ARCHITECTURES if exists(x, arch)]
    wanted += [
        ("loads.cu", f"loads<{word}, {memory}>", arch)
        for word in WORDS
        for memory in LOADS
        for arch in machine.ARCHITECTURES
    ]
    machine.compile_all((*x, ".") for x in wanted)


def exists(name, arch):
    """sm_80 introduced these shapes of the tensor cores' products."""
    return arch >= 80 or "MMA" not in name


def loop(source, entry, arch, instruction):
    code = machine.compiled(source, entry, arch, ".")
    assert code.count("LDL", "STL") == 0
    return code.hot_loop(instruction)


# --- machine code, without a GPU ---


@compiles
@pytest.mark.usefixtures("everything")
@pytest.mark.parametrize("arch", machine.ARCHITECTURES)
@pytest.mark.parametrize(("name", "instruction"), LOOPS.items())
def test_a_peak_loop_is_its_instruction_and_little_else(name, instruction, arch):
    if not exists(name, arch):
        pytest.skip("sm_80 introduced these shapes")
    found = loop("peaks.cu", f"peak<{name}>", arch, instruction)
    assert sum(x.name.startswith(instruction) for x in found) == cuda_peaks.INSTRUCTIONS
    assert len(found) <= cuda_peaks.INSTRUCTIONS + 6


@compiles
@pytest.mark.usefixtures("everything")
@pytest.mark.parametrize("arch", machine.ARCHITECTURES)
@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize(("memory", "instruction"), LOADS.items())
def test_loads_are_of_their_memory_and_width(memory, instruction, word, arch):
    found = loop("loads.cu", f"loads<{word}, {memory}>", arch, instruction)
    loaded = [x for x in found if x.name.startswith(("LD", "LDS"))]
    assert [x.bytes_loaded("LDS.", "LDG.") for x in loaded] == [WORDS[word]] * cuda_peaks.UNROLL
    assert all(x.name.startswith(instruction) for x in loaded)
    if arch > 75:  # the name says that the load bypasses L1
        assert all(("STRONG.GPU" in x.name) == (memory == "L2") for x in loaded)
    assert len(found) < 5 * cuda_peaks.UNROLL  # four instructions a cycle for one load at most


# --- which peak a kernel is compared with ---


def test_every_kernel_has_a_peak():
    assert {row.instruction for row in table.KERNELS} == set(cuda_peaks.PEAKS)


def test_tensor_cores_before_sm_80_have_none(monkeypatch):
    rows = {row.instruction: row for row in table.KERNELS}
    for capability, known in ((75, False), (80, True)):
        here = pysimd.Backend("cuda", True, "", "a GPU", (f"sm_{capability}",))
        monkeypatch.setattr(cuda_device, "backend", lambda here=here: here)
        assert cuda_peaks.peak_loop(rows["FFMA"]) == ("ffma", 2)
        assert (cuda_peaks.peak_loop(rows["HMMA"]) is not None) == known


def test_windows_are_powers_of_two():
    assert [cuda_peaks._power_of_two(x) for x in (1, 2, 3, 1023, 1024)] == [1, 2, 2, 512, 1024]


# --- on the device ---


@on_gpu
@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("memory", ["shared", "L1", "L2", "memory"])
def test_every_word_is_loaded_once_an_iteration(memory, word):
    """The exclusive or of what each block loaded in one iteration, against NumPy's of that part of the window."""
    import cupy

    work = cuda_peaks.load_work(memory, word)
    grid, block, (buffer, out, words, iterations) = work.launch.args
    step = cuda_peaks.UNROLL * cuda_peaks.THREADS
    assert work.amount == grid[0] * step * int(iterations) * WORDS[word]
    assert (memory in ("shared", "L1")) == (int(words) == step)
    work.launch.func(grid, block, (buffer, out, words, np.int32(1)))
    window = cupy.asnumpy(buffer)[: int(words) * WORDS[word]].view(np.uint32).reshape(-1, step * WORDS[word] // 4)
    expected = np.bitwise_xor.reduce(window, axis=1)
    found = np.bitwise_xor.reduce(cupy.asnumpy(out).reshape(grid[0], block[0]), axis=1)
    assert np.array_equal(found, expected[np.arange(grid[0]) % len(expected)])


@on_gpu
def test_peaks_of_this_device():
    from pysimd.bench import peaks

    found = peaks.peaks("cuda", fresh=True)
    of_f32 = next(x for x in found.peaks if (x.types, x.instruction) == ("f32", "FFMA"))
    rates = {x.memory: x.gbytes_per_s for x in of_f32.loads}
    assert list(rates) == ["shared", "L1", "L2", "memory"]
    assert rates["L1"] > rates["L2"] > rates["memory"] > 0
    for loop in cuda_peaks.PEAKS.values():
        cuda_peaks.peak_work(loop).launch()
    assert peaks.peaks("cuda") == found


@on_gpu
def test_rates_are_those_of_the_device():
    """A launch that takes the host longer than the device has the same rate."""
    work = cuda_peaks.peak_work(cuda_peaks.PEAKS["FFMA"], steps=100)

    def slowly():
        time.sleep(0.002)
        work.launch()

    rates = cuda_peaks.rates({"quickly": work, "slowly": work._replace(launch=slowly)})
    assert rates["slowly"] > rates["quickly"] / 2


@on_gpu
def test_no_accumulator_becomes_infinite():
    """Infinite numbers would cost less power."""
    import cupy

    for loop in cuda_peaks.PEAKS.values():
        launch, _ = cuda_peaks.peak_work(loop, steps=100)
        launch()
        out = launch.args[2][1]
        if loop.instance in ("ffma", "hmma"):
            assert bool(cupy.isfinite(out).all()), loop.instance
