"""``python smoke.py`` from any folder but the checkout's: the installed wheel works and has its sources inside."""

import sys
from importlib.resources import files
from pathlib import Path

import numpy as np

import pysimd

package = Path(pysimd.__file__).parent
assert Path(sys.prefix) in package.parents, f"{package} is not the installed package"

rng = np.random.default_rng(0)
a, b = (rng.standard_normal((1000, 4, 4)).astype(np.float32) for _ in range(2))
error = np.abs(pysimd.matmul(a, b) - a.astype(np.float64) @ b.astype(np.float64)).max()
assert error < 1e-5, error


def operand(values, types, which=0):
    """The values as an operand of a kernel; bfloat16 as its bits, because this environment has no ml_dtypes."""
    if types == "bf16f32":
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    dtypes = {"f32": "ff", "f64": "dd", "f16f32": "ee", "f16": "ee", "i8i32": "bb", "u8i8i32": "Bb"}
    return values.astype(dtypes[types][which])


ran = []
for kernel in pysimd.kernels():
    assert kernel.source.strip(), kernel.name
    assert not kernel.source_path.startswith("/")
    if kernel.backend == "cpu" and kernel.available:
        x, y = rng.integers(0, 8, (kernel.mr, 9)), rng.integers(0, 8, (9, kernel.nr))
        assert (kernel(operand(x, kernel.types), operand(y, kernel.types, 1)) == x @ y).all(), kernel.name
        ran.append(kernel.name)

for folder, wanted in {"cpu_kernels": ".inc", "gpu_kernels": "", "hip_kernels": ""}.items():
    names = [p.name for p in files(f"pysimd.{folder}").iterdir()]
    assert any(name.endswith(wanted) for name in names), (folder, names)
for name in ("kernels.inc", "core/pysimd.h", "templates/outer.h", "x86/avx2_f32_outer_8x8.c"):
    assert files("pysimd.cpu_kernels").joinpath(name).read_text()

print(f"pysimd {pysimd.__version__} from {package}: {len(pysimd.kernels())} kernels, run:", *ran)
