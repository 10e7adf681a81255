"""Plans, and which call gets which: arrays that are only shapes, strides and addresses, kernels that record. No GPU."""

import contextlib
import ctypes
import gc
import sys
import threading
import types

import fake_cupy
import numpy as np
import pytest
from process import output_of

from pysimd.backends.cuda import device as cuda_device
from pysimd.backends.cuda.implementation import INSTANCES
from pysimd.backends.gpu import implementation, memory, plans, replay
from pysimd.backends.gpu.plans import COUNTER, SCRATCH, Argument, KernelLaunch, KernelPlan, Slot

A, B, C0, C = 4096, 8192, 16384, 65536


class Array:
    """What a CuPy array is to a plan."""

    def __init__(self, pointer, shape=(8, 8), strides=None, device=0, dtype="f4"):
        self.shape, self.dtype, self.itemsize = shape, np.dtype(dtype), 4
        self.strides = strides or (4 * shape[1], 4)
        self.data = types.SimpleNamespace(ptr=pointer, device_id=device)


@pytest.fixture
def cupy(monkeypatch):
    INSTANCES.wait()  # its thread imports CuPy for each compilation
    module = fake_cupy.module()
    module.ndarray = lambda shape, dtype: Array(C, shape, dtype=dtype)
    fake_cupy.install(monkeypatch, module)
    memory._counters.cache_clear()
    yield module
    memory._counters.cache_clear()


class Kernel:
    """Records what it is launched with: the words of its arguments at the time of the launch."""

    def __init__(self):
        self.launches = []

    def __call__(self, grid, block, arguments, shared_bytes, stream, cooperative):
        words = [np.frombuffer((ctypes.c_char * 40).from_address(x.ptr), np.int64).tolist() for x in arguments]
        self.launches.append((grid, block, words, shared_bytes, stream, cooperative))

    @property
    def addresses(self):
        """The first four words of the first argument of each launch."""
        return [words[0][:4] for _, _, words, *_ in self.launches]


def fields(*addresses):
    return np.array([*addresses, 77], np.int64)


def launch(kernel, *addresses, order=(plans.A, plans.B, plans.C0, plans.C), **more):
    arrays = [Array(x) if x else None for x in addresses]
    return KernelLaunch(kernel, (3,), (64,), (plans.operands_argument(fields(*addresses), arrays, order),), **more)


def run(plan, *addresses, stream=None):
    plan.run([*addresses, 0, 0], stream)


@pytest.mark.usefixtures("cupy")
class TestPlan:
    def test_new_addresses_in_their_places(self):
        kernel = Kernel()
        plan = KernelPlan([launch(kernel, A, B, 0, C)])
        run(plan, A + 512, B + 1024, 0, C + 2048)
        run(plan, A, B, 0, C, stream="a stream")
        assert kernel.addresses == [[A + 512, B + 1024, 0, C + 2048], [A, B, 0, C]]
        assert [x[3:] for x in kernel.launches] == [(0, None, False), (0, "a stream", False)]

    def test_a_swapped_call_keeps_its_order(self):
        kernel = Kernel()
        order = plans.B, plans.A, plans.C0, plans.C
        run(KernelPlan([launch(kernel, A, A, 0, C, order=order)]), A, B, 0, C)
        assert kernel.addresses == [[B, A, 0, C]]

    def test_parts_of_an_operand_keep_their_distance(self):
        kernel = Kernel()
        argument = plans.operands_argument(fields(A + 64, B, C0, C + 128), [Array(x) for x in (A, B, C0, C)])
        run(KernelPlan([KernelLaunch(kernel, (1,), (32,), (argument,), 9, True)]), 2 * A, B, C0 + 8, 2 * C)
        assert kernel.launches[0][2:] == ([[2 * A + 64, B, C0 + 8, 2 * C + 128, 77]], 9, None, True)

    def test_several_launches_and_arguments_that_are_no_addresses(self):
        kernel = Kernel()
        other = Argument(np.arange(5, dtype=np.int64))
        first, second = (launch(kernel, A, B, 0, C, order=order) for order in (range(4), (1, 0, 2, 3)))
        run(KernelPlan([first._replace(arguments=(*first.arguments, other)), second]), A, B, 0, C)
        assert kernel.launches[0][2] == [[A, B, 0, C, 77], [0, 1, 2, 3, 4]]
        assert kernel.launches[1][2] == [[B, A, 0, C, 77]]

    def test_an_opaque_argument_is_told_its_address(self):
        told = []
        argument = Argument(np.zeros(16, np.int64), (Slot(0, plans.B, 24),), lambda *given: told.append(given))
        plan = KernelPlan([KernelLaunch(lambda *_: None, (1,), (1,), (argument,))])
        run(plan, A, B, 0, C)
        (host, address), *_ = told
        assert host % 64 == 0
        assert address == B + 24

    def test_every_call_has_parameters_of_its_own(self):
        """Two threads may run one plan."""
        inside, addresses = threading.Barrier(2, timeout=10), []

        def kernel(grid, block, arguments, *_):
            inside.wait()
            addresses.append(np.frombuffer((ctypes.c_char * 8).from_address(arguments[0].ptr), np.int64)[0])

        plan = KernelPlan([launch(kernel, A, B, 0, C)])
        threads = [threading.Thread(target=run, args=(plan, x, B, 0, C)) for x in (A, A + 256)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(addresses) == [A, A + 256]

    def test_nothing_to_launch(self):
        run(KernelPlan([]), A, B, 0, C)


class TestScratchMemory:
    def plan(self, kernel):
        argument = Argument(np.zeros(5, np.int64), (Slot(0, SCRATCH, 512), Slot(1, COUNTER)))
        return KernelPlan([KernelLaunch(kernel, (1,), (1,), (argument,))], 4096, counts=True)

    def test_it_is_allocated_for_the_launch_and_given_back(self, cupy):
        kernel = Kernel()
        run(self.plan(kernel), A, B, 0, C)
        scratch, counter = kernel.addresses[0][:2]
        assert ("alloc", "pool", scratch - 512) in cupy.events
        assert cupy.events[-1] == ("free", "pool", scratch - 512)
        assert ("memset", counter, 0, memory.COUNTER_BYTES, 0) in cupy.events

    def test_a_counter_is_taken_again_as_its_launch_left_it(self, cupy):
        """It is set to zero once, when its memory is new."""
        kernel = Kernel()
        for _ in range(3):
            run(self.plan(kernel), A, B, 0, C)
        assert len({words[1] for words in kernel.addresses}) == 1
        assert sum(event[0] == "memset" for event in cupy.events) == 1

    def test_launches_at_the_same_time_have_counters_of_their_own(self, cupy):
        counters = []

        def kernel(grid, block, arguments, *_):
            counters.append(np.frombuffer((ctypes.c_char * 16).from_address(arguments[0].ptr), np.int64)[1])
            if len(counters) == 1:
                run(plan, A, B, 0, C)

        plan = self.plan(kernel)
        run(plan, A, B, 0, C)
        assert len(set(counters)) == 2

    @pytest.mark.parametrize("what", ["alloc", "Memory", "memset", "launch"])
    def test_each_request_fails_once(self, what, cupy, monkeypatch):
        """Nothing is launched, nothing is kept, and the next call has a counter of zero."""
        kernel, failures = Kernel(), []
        original = cupy.cuda.runtime.memsetAsync if what == "memset" else getattr(cupy.cuda, what, None)

        def refuse(*given):
            if not failures:
                failures.append(what)
                raise MemoryError(what)
            return original(*given)

        if what == "memset":
            monkeypatch.setattr(cupy.cuda.runtime, "memsetAsync", refuse)
        elif what != "launch":
            monkeypatch.setattr(cupy.cuda, what, refuse)

        def launched(*given):
            if what == "launch" and not failures:
                failures.append(what)
                raise MemoryError(what)
            kernel(*given)

        plan = self.plan(launched)
        with pytest.raises(MemoryError, match=what):
            run(plan, A, B, 0, C)
        assert kernel.launches == []
        gc.collect()  # what the traceback held
        run(plan, A, B, 0, C)
        scratch, counter = kernel.addresses[0][:2]
        assert ("memset", counter, 0, memory.COUNTER_BYTES, 0) in cupy.events
        allocated = [event[2] for event in cupy.events if event[0] == "alloc"]
        freed = [event[2] for event in cupy.events if event[0] == "free"]
        assert set(allocated) - set(freed) == {counter}
        assert scratch - 512 in freed

    def test_a_captured_graph_owns_it(self, monkeypatch):
        """Allocated, set to zero and freed by nodes of the graph: each capture of one stream has its own."""
        module = fake_cupy.module(capturing=True, stream=1 << 30)
        fake_cupy.install(monkeypatch, module)
        kernel = Kernel()
        for _ in range(2):
            run(self.plan(kernel), A, B, 0, C)
        (scratch, counter, *_), (scratch_2, counter_2, *_) = kernel.addresses
        assert len({scratch, counter, scratch_2, counter_2}) == 4
        assert {source for what, source, *_ in module.events if what in ("alloc", "free")} == {"graph"}
        assert [event for event in module.events if event[0] == "memset"] == [
            ("memset", x, 0, memory.COUNTER_BYTES, 1 << 30) for x in (counter, counter_2)
        ]

    def test_a_device_without_such_allocations_is_told(self, monkeypatch):
        module = fake_cupy.module(capturing=True, stream=1 << 30)

        def refuse(nbytes):
            raise RuntimeError("not supported")

        module.cuda.malloc_async = refuse
        fake_cupy.install(monkeypatch, module)
        with pytest.raises(memory.OptionError, match=r"needs 4096 bytes .* \(not supported\): capture products of"):
            run(self.plan(Kernel()), A, B, 0, C)

    @pytest.mark.parametrize("handle", [0, 1])
    def test_the_default_stream_captures_nothing(self, handle, monkeypatch):
        """And is not asked: CUDA refuses the question while another stream captures."""
        fake_cupy.install(monkeypatch, fake_cupy.module(capturing=True, stream=handle))
        assert not memory.capturing()


class TestReplay:
    @pytest.fixture
    def kernel(self, cupy):
        return Kernel()

    @pytest.fixture
    def replays(self, cupy):
        return replay.CupyReplays()

    def keep(self, replays, kernel, a, b, c0, out, call="matmul"):
        arrays = a, b, c0, out
        order = [0 if x is None else x.data.ptr for x in arrays]
        key = replays.key(a, b, c0, out, call)
        replays.keep(key, KernelPlan([launch(kernel, *order)]), arrays, out.shape, out.dtype)
        return key

    def test_other_arrays_of_the_same_layout(self, replays, kernel):
        self.keep(replays, kernel, Array(A), Array(B), None, Array(C))
        a, b, out = Array(A + 512), Array(B + 1024), Array(C + 2048)
        assert replays.replay(a, b, None, out, "matmul") is out
        assert kernel.addresses == [[A + 512, B + 1024, 0, C + 2048]]

    def test_a_new_result(self, replays, kernel):
        key = replays.key(Array(A), Array(B), None, None, "matmul")
        plan = KernelPlan([launch(kernel, A, B, 0, C)])
        replays.keep(key, plan, (Array(A), Array(B), None, Array(C)), (8, 8), np.dtype("f4"))
        result = replays.replay(Array(A), Array(B + 256), None, None, "matmul")
        assert (result.shape, result.dtype, result.data.ptr) == ((8, 8), np.float32, C)
        assert kernel.addresses == [[A, B + 256, 0, C]]

    def test_c_may_be_out_or_apart_from_it(self, replays, kernel):
        self.keep(replays, kernel, Array(A), Array(B), Array(C), Array(C), "gemm")
        for c in (C, C0, C - 256, C + 256):
            out = Array(C)
            assert replays.replay(Array(A), Array(B), Array(c), out, "gemm") is out
        assert [x[2] for x in kernel.addresses] == [C, C0, C - 256, C + 256]
        assert replays.replay(Array(A), Array(B), Array(C + 128), Array(C), "gemm") is None

    def test_c_of_other_strides_is_not_out(self, replays, kernel):
        columns = (4, 32)
        self.keep(replays, kernel, Array(A), Array(B), Array(C0, strides=columns), Array(C), "gemm")
        assert replays.replay(Array(A), Array(B), Array(C, strides=columns), Array(C), "gemm") is None

    def test_a_c_that_is_not_read_may_overlap(self, replays, kernel):
        key = replays.key(Array(A), Array(B), Array(C0), Array(C), "gemm")
        arrays = Array(A), Array(B), None, Array(C)
        replays.keep(key, KernelPlan([launch(kernel, A, B, 0, C)]), arrays, (8, 8), np.dtype("f4"))
        assert replays.replay(Array(A), Array(B), Array(C + 128), Array(C), "gemm") is not None

    @pytest.mark.parametrize("at", [A, A + 128, A - 128, B + 252, B])
    def test_results_that_overlap_an_operand_are_not_replayed(self, replays, kernel, at):
        """A and B are 256 bytes each."""
        self.keep(replays, kernel, Array(A), Array(B), None, Array(C))
        aligned = at // 32 * 32
        assert replays.replay(Array(A), Array(B), None, Array(aligned), "matmul") is None
        assert kernel.launches == []

    @pytest.mark.parametrize("at", [A + 256, A - 256, B + 256])
    def test_results_next_to_an_operand_are(self, replays, kernel, at):
        self.keep(replays, kernel, Array(A), Array(B), None, Array(C))
        assert replays.replay(Array(A), Array(B), None, Array(at), "matmul") is not None

    def test_what_the_launch_depends_on_is_in_the_key(self, replays):
        a, b, c = Array(A), Array(B), Array(C)
        others = [
            (Array(A + 16), b, None, c),  # alignment
            (Array(A, (8, 9)), b, None, c),
            (Array(A, strides=(64, 4)), b, None, c),
            (Array(A, dtype="i4"), b, None, c),
            (a, Array(B, strides=(4, 32)), None, c),
            (a, b, None, Array(C, strides=(4, 32))),
            (a, b, None, None),
            (a, b, c, None),
            (a, b, c, c),
            (a, b, Array(C + 16), c),
            (Array(A, device=1), b, None, c),
            (a, Array(B, device=1), None, c),
            (a, b, None, Array(C, device=1)),
        ]
        keys = [replays.key(*x, "matmul") for x in ((a, b, None, c), *others)]
        keys += [replays.key(a, b, None, c, call) for call in ("a kernel", ("a kernel",), (1.0, 0.0))]
        assert len(set(keys)) == len(keys)

    def test_arrays_of_another_device_are_multiplied_there(self, replays, kernel, cupy):
        entered = []

        class Device:
            def __init__(self, device):
                self.device = device

            def __enter__(self):
                entered.append(self.device)

            def __exit__(self, *_):
                pass

        replays._device = Device
        for device in (1, 0):
            on = {"device": device}
            self.keep(replays, kernel, Array(A, **on), Array(B, **on), None, Array(C, **on))
            assert replays.replay(Array(A, **on), Array(B, **on), None, Array(C, **on), "matmul") is not None
        assert entered == [1]
        assert len(kernel.launches) == 2

    @pytest.mark.parametrize("b", [None, "b", np.ones((8, 8)), 3])
    def test_other_things_have_no_plan(self, replays, b):
        assert replays.replay(Array(A), b, None, None, "matmul") is None
        assert replays.replay(Array(A), Array(B), None, None, ["a list"]) is None
        assert replays.replay(Array(A), Array(B), None, None, None) is None
        assert replays.key(Array(A), Array(B), None, None, None) is None

    def test_no_more_are_kept_than_said(self, replays, kernel, monkeypatch):
        monkeypatch.setattr(replay, "MOST", 2)
        arrays = Array(A), Array(B), None, Array(C)
        for call in "abc":
            self.keep(replays, kernel, *arrays, call)
        assert [replays.replay(*arrays, call) is not None for call in "abc"] == [False, False, True]


class TestDevices:
    """What is compiled and launched follows the arrays, not the device that happens to be current."""

    def test_a_bound_call_goes_to_the_device_of_its_arrays(self, cupy):
        entered, kernel = [], Kernel()

        class Device(contextlib.nullcontext):
            def __init__(self, device):
                super().__init__()
                entered.append(device)

        cupy.cuda.Device = Device
        arrays = tuple(Array(x, device=1) for x in (A, B, C, C))
        plan = KernelPlan([launch(kernel, A, B, C, C)])
        for device in (1, 0):
            implementation._Bound("kernel", plan, arrays, device, None)()
        assert entered == [1]
        assert kernel.addresses == [[A, B, C, C]] * 2

    def test_features_are_those_of_the_device_that_is_asked_for(self, monkeypatch):
        devices = {0: ("NVIDIA A100", 80), 1: ("NVIDIA H200", 90), 2: ("NVIDIA B200", 100)}
        monkeypatch.setattr(cuda_device, "properties", devices.__getitem__)
        here = cuda_device.Backend("cuda", True, "", "NVIDIA A100", ("sm_80",))
        monkeypatch.setattr(cuda_device, "backend", lambda: here)
        row = types.SimpleNamespace(name="bf16_best", requires="sm_90a")
        assert [cuda_device.has_setmaxnreg(i) for i in devices] == [False, True, False]
        assert [bool(cuda_device.why_not(row, i)) for i in (None, *devices)] == [True, True, False, True]
        assert "NVIDIA B200 is sm_100: bf16_best needs sm_90a, which no other" in cuda_device.why_not(row, 2)


class TestGemmCall:
    def test_equal_factors_are_one_call(self):
        assert replay.gemm_call(2, 1.0, 0, True, None) == replay.gemm_call(2.0, np.float32(1), False, 1, None)

    @pytest.mark.parametrize("alpha", [0, -0.0, 1 + 0j, "1", None, [1], np.ones(1)])
    def test_no_plan_for_what_is_checked_each_time(self, alpha):
        """Zero of either sign, which are equal, and what is no factor."""
        assert replay.gemm_call(alpha, 0.0, False, False, None) is None


class Tensor(Array):
    """What a tensor of torch is to a plan."""

    is_negative = requires_grad = False

    def __init__(self, pointer, **more):
        device = more.pop("device", 0)
        super().__init__(pointer, **more)
        self.get_device, self.data_ptr, self.is_neg = lambda: device, lambda: pointer, lambda: self.is_negative

    def stride(self):
        return self.strides


class TestTorch:
    @pytest.fixture
    def replays(self, cupy, monkeypatch):
        self.forward_mode = types.SimpleNamespace(_current_level=-1)
        autograd = types.SimpleNamespace(forward_ad=self.forward_mode)
        empty = types.SimpleNamespace(_empty_strided_cuda=self.made)
        c = types.SimpleNamespace(_dynamo=types.SimpleNamespace(guards=empty))
        monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(float32=np.float32, autograd=autograd, _C=c))
        monkeypatch.setattr(replay, "_layouts", [])
        monkeypatch.setattr(replay.torch_tensors, "current_stream", lambda device: f"torch's, device {device}")
        return replay.TorchReplays()

    def made(self, shape, strides, dtype):
        self.strides = strides
        return Tensor(C, shape=shape, dtype=dtype)

    @pytest.mark.parametrize(("shape", "strides"), [((2, 3, 4), (12, 4, 1)), ((5, 2), (2, 1)), ((3, 0, 2), (2, 2, 1))])
    def test_results_are_in_c_order(self, replays, shape, strides):
        made, address = replays.new(None, shape, np.float32)
        assert (made.shape, address, self.strides) == (shape, C, strides)

    def test_a_torch_without_the_function_of_its_generated_code(self, monkeypatch):
        torch = types.SimpleNamespace(_C=None, empty_strided=lambda *given, **options: (given, options))
        monkeypatch.setitem(sys.modules, "torch", torch)
        given = (2, 3), (3, 1)
        assert replay.torch_tensors.empty_function()(*given, "dtype") == (given, {"dtype": "dtype", "device": "cuda"})

    def test_on_its_stream_into_its_tensor(self, replays):
        kernel, a, b = Kernel(), Tensor(A), Tensor(B)
        plan = KernelPlan([launch(kernel, A, B, 0, C)])
        replays.keep(replays.key(a, b, None, None, "matmul"), plan, (a, b, None, Tensor(C)), (8, 8), np.dtype("f4"))
        result = replays.replay(Tensor(A + 64), b, None, None, "matmul")
        assert type(result) is Tensor
        assert result.dtype == np.float32
        assert [x[4] for x in kernel.launches] == ["torch's, device 0"]
        assert kernel.addresses == [[A + 64, B, 0, C]]

    @pytest.mark.parametrize("attribute", ["requires_grad", "is_negative"])
    @pytest.mark.parametrize("which", range(4))
    def test_what_is_refused_has_no_plan(self, replays, attribute, which):
        tensors = [Tensor(x) for x in (A, B, C0, C)]
        assert replays.key(*tensors, "gemm") is not None
        setattr(tensors[which], attribute, True)
        assert replays.key(*tensors, "gemm") is None

    def test_no_plan_in_forward_mode(self, replays):
        """A tensor may have a tangent, which would be lost."""
        self.forward_mode._current_level = 0
        assert replays.key(Tensor(A), Tensor(B), None, None, "matmul") is None

    def test_layouts_are_read_in_c(self):
        """Where torch has DLPack's exchange API: a key for each layout, none for what is refused."""
        assert output_of("-m", "fake_exchange") == "OK\n"

    def test_a_tensor_without_memory_has_none(self, replays):
        def refuse():
            raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

        a = Tensor(A)
        a.data_ptr = refuse
        assert replays.replay(a, Tensor(B), None, None, "matmul") is None
