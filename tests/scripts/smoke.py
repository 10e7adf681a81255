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

for kernel in pysimd.kernels():
    assert kernel.source.strip(), kernel.name
    assert not kernel.source_path.startswith("/")
    if kernel.backend == "cpu" and kernel.available and kernel.types == "f32":
        x = rng.standard_normal((kernel.mr, 9)).astype(np.float32)
        y = rng.standard_normal((9, kernel.nr)).astype(np.float32)
        assert np.allclose(kernel(x, y), x @ y, atol=1e-5), kernel.name

for folder, wanted in {"cpu_kernels": ".inc", "gpu_kernels": "", "hip_kernels": ""}.items():
    names = [p.name for p in files(f"pysimd.{folder}").iterdir()]
    assert any(name.endswith(wanted) for name in names), (folder, names)
for name in ("kernels.inc", "core/pysimd.h", "templates/outer.h", "x86/avx2_f32_outer_8x8.c"):
    assert files("pysimd.cpu_kernels").joinpath(name).read_text()

print(f"pysimd {pysimd.__version__} from {package}: {len(pysimd.kernels())} kernels")
