"""Kernels, rungs and backends pickled, copied and as plain data: kernels are compared by identity."""

import copy
import dataclasses
import json
import pickle
import subprocess
import sys

import pytest

import pysimd

NAMED = [*pysimd.kernels(), *pysimd.rungs("cpu"), *pysimd.rungs("cuda")]


@pytest.mark.parametrize("thing", NAMED, ids=lambda x: x.name)
def test_a_copy_is_the_object_itself(thing):
    assert copy.copy(thing) is thing
    assert copy.deepcopy([thing])[0] is thing
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(thing, protocol)) is thing


def test_bound_methods_of_kernels():
    kernel = pysimd.kernel("generic_f32_outer_4x4")
    assert pickle.loads(pickle.dumps(kernel.bind)) == kernel.bind


@pytest.mark.parametrize("backend", pysimd.backends(), ids=lambda x: x.name)
def test_a_copy_of_a_backend_is_equal(backend):
    assert copy.copy(backend) == copy.deepcopy(backend) == pickle.loads(pickle.dumps(backend)) == backend


def test_another_process():
    """It has its own objects, which are those of its registry."""
    program = (
        "import pickle, sys, pysimd; found = pickle.load(sys.stdin.buffer); "
        "assert found == [*pysimd.kernels(), *pysimd.rungs('cpu'), *pysimd.rungs('cuda')], found"
    )
    subprocess.run([sys.executable, "-c", program], input=pickle.dumps(NAMED), check=True)


def test_a_kernel_that_another_version_has():
    data = pickle.dumps(pysimd.kernel("generic_f32_outer_4x4")).replace(b"outer_4x4", b"outer_9x9")
    with pytest.raises(pysimd.UnknownKernelError, match="'generic_f32_outer_9x9' in this version"):
        pickle.loads(data)


@pytest.mark.parametrize("thing", [*NAMED, *pysimd.backends()], ids=lambda x: x.name)
def test_plain_data(thing):
    data = dataclasses.asdict(thing)
    assert json.loads(json.dumps(data))["name"] == thing.name
    assert not [key for key in data if key.startswith("_")]
