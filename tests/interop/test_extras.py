"""What is missing: each module of ``pysimd.interop`` names the extra that installs its package."""

import pytest
from process import output_of

CODE = """
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "{0}" else find(name, *rest)
import pysimd
try:
    import pysimd.interop.{0}
except pysimd.UnavailableError as error:
    print(error)
"""


@pytest.mark.parametrize("package", ["dask", "jax", "numba", "torch"])
def test_the_error_names_the_extra(package):
    assert output_of("-c", CODE.format(package)) == f"{package} is not installed: pip install 'pysimd[{package}]'\n"
