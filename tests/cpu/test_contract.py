"""The C contract of pysimd.h: each kernel's ``run`` itself, on panels that the tests lay out (not pack.c)."""

import numpy as np
import panels
import pytest
from cases import k_lengths
from reference import check, operands, random_result


@pytest.mark.parametrize("k", k_lengths())
@pytest.mark.parametrize("packed", [True, False], ids=["packed", "loose"])
def test_run(cpu_kernel, k, packed, rng):
    """C += A B on one full tile; nothing between the rows of C is written."""
    a, b = operands(cpu_kernel, k)
    c = random_result(rng, cpu_kernel.c_dtype, (cpu_kernel.mr, cpu_kernel.nr + 3))
    before = c.copy()
    panels.run(cpu_kernel, panels.tile(cpu_kernel, a, b, packed=packed), c, cpu_kernel.nr + 3)
    check(c[:, : cpu_kernel.nr], cpu_kernel.types, a, b, before[:, : cpu_kernel.nr])
    assert c[:, cpu_kernel.nr :].tobytes() == before[:, cpu_kernel.nr :].tobytes()


def test_run_with_negative_and_misaligned_c(cpu_kernel, rng):
    """Rows of C backwards, its base one byte off."""
    a, b = operands(cpu_kernel, 9)
    memory = np.zeros(cpu_kernel.mr * cpu_kernel.nr * 8 + 1, np.uint8)[1:]
    c = memory[: cpu_kernel.mr * cpu_kernel.nr * cpu_kernel.c_dtype.itemsize].view(cpu_kernel.c_dtype)
    c = c.reshape(cpu_kernel.mr, cpu_kernel.nr)
    panels.run(cpu_kernel, panels.tile(cpu_kernel, a, b, packed=True), c[-1:], -cpu_kernel.nr)
    check(c[::-1].copy(), cpu_kernel.types, a, b)


def test_packed_and_loose_panels_give_the_same_bits(cpu_kernel):
    a, b = operands(cpu_kernel, 37)
    results = []
    for packed in (True, False):
        c = np.zeros((cpu_kernel.mr, cpu_kernel.nr), cpu_kernel.c_dtype)
        panels.run(cpu_kernel, panels.tile(cpu_kernel, a, b, packed=packed), c, cpu_kernel.nr)
        results.append(c.tobytes())
    assert results[0] == results[1]
    assert results[0] == cpu_kernel(a, b).tobytes()
