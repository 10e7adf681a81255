"""Plans: what a launch is given the second time. Arrays that are only shapes, strides and addresses; no GPU."""

import types

import numpy as np
import pytest

from pysimd.backends.gpu import plans

pytest.importorskip("cupy")

A, B, C = 4096, 8192, 65536


class Array:
    """What a CuPy array is to a plan."""

    def __init__(self, pointer, shape=(8, 8), strides=None, device=0):
        self.shape, self.dtype, self.itemsize = shape, np.dtype(np.float32), 4
        self.strides = strides or (4 * shape[1], 4)
        self.data = types.SimpleNamespace(ptr=pointer, device_id=device)


@pytest.fixture(autouse=True)
def device(monkeypatch):
    monkeypatch.setattr(plans, "current_device", lambda: 0)


@pytest.fixture
def given():
    """Addresses that launches were begun with, in the order of a Gemm's fields."""
    return []


def launch(given, *addresses, **more):
    def begin(fields):
        return lambda: given.append([int(x) for x in fields[:4]])

    return plans.KernelLaunch(begin, np.array([*addresses, 77], np.int64), **more)


def kept(launch, a, b, c, **more):
    """Plans with one, and its key."""
    found, key = plans.Plans(), plans.key(a, b, c)
    found.keep(key, launch, a, b, c, **more)
    return found, key


def test_new_addresses_in_their_places(given):
    found, key = kept(launch(given, A, B, 0, C), Array(A), Array(B), Array(C))
    a, b, c = Array(A + 512), Array(B + 1024), Array(C + 2048)
    assert plans.key(a, b, c) == key
    assert found.replay(key, a, b, c) is c
    assert given == [[A + 512, B + 1024, 0, C + 2048]]


def test_a_swapped_call_keeps_its_order_where_both_operands_are_one(given):
    x = Array(A)
    found, key = kept(launch(given, A, A, 0, C, operands_swapped=True), x, x, Array(C))
    found.replay(key, Array(A), Array(B), Array(C))
    assert given == [[B, A, 0, C]]


def test_the_result_is_added_to(given):
    found, key = kept(launch(given, A, B, C, C), Array(A), Array(B), Array(C), c_is_target=True)
    found.replay(key, Array(A), Array(B), Array(C + 4096))
    assert given == [[A, B, C + 4096, C + 4096]]


def test_every_call_has_fields_of_its_own():
    """Two threads may replay one plan."""
    given = []
    begin = plans.KernelLaunch(lambda fields: lambda: given.append(fields), np.array([A, B, 0, C], np.int64))
    found, key = kept(begin, Array(A), Array(B), Array(C))
    for at in (C + 4096, C):
        found.replay(key, Array(A), Array(B), Array(at))
    assert [fields[3] for fields in given] == [C + 4096, C]


def test_copies_of_operands_are_not_kept(given):
    found, key = kept(launch(given, A + 512, B, 0, C), Array(A), Array(B), Array(C))
    assert found.replay(key, Array(A), Array(B), Array(C)) is None
    assert given == []


@pytest.mark.parametrize("at", [A, A + 128, A - 128, B + 252, B])
def test_results_that_overlap_an_operand_are_not_replayed(given, at):
    """A and B are 256 bytes each."""
    found, key = kept(launch(given, A, B, 0, C), Array(A), Array(B), Array(C))
    assert found.replay(key, Array(A), Array(B), Array(at)) is None
    assert given == []


@pytest.mark.parametrize("at", [A + 256, A - 256, B + 256])
def test_results_beside_an_operand_are(given, at):
    found, key = kept(launch(given, A, B, 0, C), Array(A), Array(B), Array(C))
    assert found.replay(key, Array(A), Array(B), Array(at)) is not None


def test_what_the_launch_depends_on_is_in_the_key():
    a, b, c = Array(A), Array(B), Array(C)
    others = [
        (Array(A + 16), b, c),  # alignment
        (Array(A, (8, 9)), b, c),
        (Array(A, strides=(64, 4)), b, c),
        (a, Array(B, strides=(4, 32)), c),
        (a, b, Array(C, strides=(4, 32))),
        (a, b, None),
    ]
    keys = [plans.key(*x) for x in ((a, b, c), *others)] + [plans.key(a, b, c, 2.0, 0.0, None)]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("which", range(3))
def test_arrays_of_another_device_have_no_plan(which):
    arrays = [Array(x, device=int(i == which)) for i, x in enumerate((A, B, C))]
    assert plans.key(*arrays) is None
    assert plans.Plans().replay(None, *arrays) is None


def test_a_library_is_given_the_arrays():
    calls = []
    found, key = kept(plans.LibraryCall(lambda *x: calls.append(x)), Array(A), Array(B), Array(C))
    x = Array(A + 512), Array(B), Array(C)
    assert found.replay(key, *x) is x[2]
    assert calls == [x]


def test_no_more_are_kept_than_said(given, monkeypatch):
    monkeypatch.setattr(plans, "MOST", 2)
    found, operands = plans.Plans(), (Array(A), Array(B), Array(C))
    keys = [plans.key(*operands, i) for i in range(3)]
    for key in keys:
        found.keep(key, launch(given, A, B, 0, C), *operands)
    assert [found.replay(key, *operands) is not None for key in keys] == [False, False, True]
