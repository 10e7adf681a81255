"""Why a CuPy backend cannot run, told apart: CuPy missing, the other build of CuPy, no driver, no device.

Importing CuPy proves nothing: the driver may be missing. Nothing here is called by ``import pysimd``.
"""

from __future__ import annotations

import importlib.util


def reason(extra: str, want_hip: bool) -> str:
    """Empty if CuPy of the wanted build is here and sees a device; else what is missing and what to do."""
    install = f"pip install 'pysimd[{extra}]'"
    if importlib.util.find_spec("cupy") is None:
        return f"CuPy is not installed: {install}"
    try:
        import cupy
    except Exception as error:
        library = "ROCm (libamdhip64)" if want_hip else "CUDA"
        cause = error.__cause__ or error  # CuPy's own text is long and says less
        return f"CuPy is installed but does not import ({cause}): its {library} libraries are missing, or {install}"
    if bool(cupy.cuda.runtime.is_hip) != want_hip:
        built, wanted = ("CUDA", "ROCm") if want_hip else ("ROCm", "CUDA")
        return f"CuPy is built for {built}, not {wanted}: uninstall it, then {install} (the two cannot coexist)"
    name = "AMD" if want_hip else "NVIDIA"
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        if "InsufficientDriver" in str(error):
            return f"no {name} driver: install the driver of your GPU ({error})"
        return f"no {name} device: {error}"
    return "" if count else f"no {name} device is visible to this process"
