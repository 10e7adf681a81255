"""The loops that measure the peaks of a GPU: their machine code, and what is launched."""

import cuda_machine_code as machine
import numpy as np
import pytest
from pysimd.gpu_kernels import table

import pysimd
from pysimd.backends.cuda import implementation as cuda
from pysimd.backends.cuda.implementation import CUDA
from pysimd.bench import cuda_peaks

compiles = pytest.mark.skipif(bool(machine.missing()), reason=machine.missing() or "nothing")
on_gpu = pytest.mark.skipif(not CUDA.backend().available, reason=CUDA.backend().reason or "nothing")

PEAKS = {
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


def loop(source, entry, arch, instruction):
    code = machine.compiled(source, entry, arch, ".")
    assert code.count("LDL", "STL") == 0
    return code.hot_loop(instruction)


# --- machine code, without a GPU ---


@compiles
@pytest.mark.parametrize("arch", machine.ARCHITECTURES)
@pytest.mark.parametrize(("name", "instruction"), PEAKS.items())
def test_the_loop_is_its_instruction_and_its_counter(name, instruction, arch):
    if "MMA" in name and arch < 80:
        pytest.skip("these shapes came with sm_80")
    found = loop("peaks.cu", f"peak<{name}>", arch, instruction)
    assert sum(x.name.startswith(instruction) for x in found) == cuda_peaks._PEAK_INSTRUCTIONS
    assert len(found) <= cuda_peaks._PEAK_INSTRUCTIONS + 6


@compiles
@pytest.mark.parametrize("arch", machine.ARCHITECTURES)
@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize(("memory", "instruction"), LOADS.items())
def test_loads_are_of_their_memory_and_width(memory, instruction, word, arch):
    found = loop("loads.cu", f"loads<{word}, {memory}>", arch, instruction)
    loaded = [x for x in found if x.name.startswith(("LD", "LDS"))]
    assert [x.bytes_loaded("LDS.", "LDG.") for x in loaded] == [WORDS[word]] * cuda_peaks._UNROLL
    assert all(x.name.startswith(instruction) for x in loaded)
    if arch > 75:  # where the name of an instruction says that it bypasses L1
        assert all(("STRONG.GPU" in x.name) == (memory == "L2") for x in loaded)
    assert len(found) < 5 * cuda_peaks._UNROLL  # a multiprocessor issues four instructions in the cycle of a load


# --- the peak of each kernel ---


def test_every_kernel_has_a_peak():
    assert {row.instruction for row in table.KERNELS} == set(cuda_peaks.PEAKS)


def test_tensor_cores_before_sm_80_have_none(monkeypatch):
    rows = {row.instruction: row for row in table.KERNELS}
    for capability, known in ((75, False), (80, True)):
        here = pysimd.Backend("cuda", True, "", "a GPU", (f"sm_{capability}",))
        monkeypatch.setattr(cuda, "backend", lambda here=here: here)
        assert cuda_peaks.ceiling(rows["FFMA"]) == ("ffma", 2)
        assert (cuda_peaks.ceiling(rows["HMMA"]) is not None) == known


def test_windows_are_powers_of_two():
    assert [cuda_peaks._power_of_two(x) for x in (1, 2, 3, 1023, 1024)] == [1, 2, 2, 512, 1024]


# --- on the device ---


@on_gpu
@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("memory", ["shared", "L1", "L2", "memory"])
def test_an_iteration_loads_every_word_once(memory, word):
    """The exclusive or of what each block loads in one iteration is NumPy's of that part of the window."""
    import cupy

    timed = cuda_peaks.loads_run(memory, word)
    grid, block, (buffer, out, words, turns) = timed.run.args
    step = cuda_peaks._UNROLL * cuda_peaks._THREADS
    assert timed.amount == grid[0] * step * int(turns) * WORDS[word]
    assert (memory in ("shared", "L1")) == (int(words) == step)
    timed.run.func(grid, block, (buffer, out, words, np.int32(1)))
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
    for _, run in ((x, cuda_peaks.peak_run(*x)) for x in cuda_peaks.PEAKS.values()):
        run[0]()
    assert peaks.peaks("cuda") == found


@on_gpu
def test_no_accumulator_becomes_infinite():
    """Arithmetic on infinities draws less power, and would run at a higher clock."""
    import cupy

    for name, operations in cuda_peaks.PEAKS.values():
        run, _ = cuda_peaks.peak_run(name, operations, steps=100)
        run()
        out = run.args[2][1]
        if name in ("ffma", "hmma"):
            assert bool(cupy.isfinite(out).all()), name
