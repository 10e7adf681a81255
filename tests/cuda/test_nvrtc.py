"""What reaches the user when a kernel does not compile. CuPy is a fake; needs no GPU."""

from types import SimpleNamespace

import fake_cupy
import pytest

import pysimd
from pysimd.backends.cuda import nvrtc

ENTRY = "outer<F32, 4, 4, ANY, ANY, false>"


class CompileException(Exception):
    """As CuPy's: its text is the log, and it is no RuntimeError."""


class FakeModule:
    """A ``cupy.RawModule`` that compiles when a function is asked for, and keeps what it was given."""

    failure: Exception | None = None
    given: dict | None = None

    def __init__(self, **given):
        type(self).given = given

    def get_function(self, name):
        if self.failure:
            raise self.failure
        return f"function {name}"


@pytest.fixture
def module(monkeypatch):
    fake = type("Module", (FakeModule,), {})
    compiler = SimpleNamespace(CompileException=CompileException)
    fake_cupy.install(monkeypatch, SimpleNamespace(RawModule=fake, cuda=SimpleNamespace(compiler=compiler)))
    return fake


def test_what_cupy_is_given(module):
    assert nvrtc.function("outer.cu", ENTRY) == f"function {ENTRY}"
    assert module.given == {
        "code": nvrtc.source("outer.cu"),
        "options": nvrtc.OPTIONS,
        "name_expressions": (ENTRY,),
        "enable_cooperative_groups": False,
    }
    nvrtc.function("wgmma.cu", "wgmma<>", "ladder", arch="sm_90a", cooperative=True)
    assert module.given["code"] == nvrtc.source("wgmma.cu", "ladder")
    assert module.given["options"] == (*nvrtc.OPTIONS, "-arch=sm_90a")
    assert module.given["enable_cooperative_groups"]


LOG = """outer.cu(6): catastrophic error: cannot open source file "cuda_fp16.h"
  #include <cuda_fp16.h>
                        ^

1 catastrophic error detected in the compilation of "outer.cu".
"""


def test_a_failure_is_not_kept(module):
    """The compiler that failed once is asked again."""
    module.failure = CompileException("")
    for _ in range(2):
        with pytest.raises(pysimd.UnavailableError):
            nvrtc.function("outer.cu", ENTRY)
    module.failure = None
    assert nvrtc.function("outer.cu", ENTRY) == f"function {ENTRY}"


FAILURES = {
    "a header is missing": (CompileException(LOG), "cannot open source file"),
    "NVRTC is missing": (RuntimeError("CuPy failed to load libnvrtc.so.13: no such file"), "libnvrtc.so.13"),
    "the driver is older": (RuntimeError("CUDA_ERROR_UNSUPPORTED_PTX_VERSION"), "UNSUPPORTED_PTX"),
    "nothing is said": (CompileException(""), "CompileException"),
}


@pytest.mark.parametrize("case", FAILURES)
def test_a_failure_is_the_projects_own_error(case, module):
    module.failure, expected = FAILURES[case]
    with pytest.raises(pysimd.UnavailableError, match=expected) as caught:
        nvrtc.function("outer.cu", ENTRY)
    message = str(caught.value)
    assert ENTRY in message
    assert "pip install 'pysimd[cuda]'" in message
    assert "detected in the compilation" not in message  # the first lines of the log are enough
    assert "\n" not in message
    assert caught.value.__cause__ is module.failure
