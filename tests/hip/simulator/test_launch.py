"""Launches and code objects: what is refused before anything runs, and texts that are taken apart."""

import struct

import amd_waves
import numpy as np
import pytest
from hip_machine_code import missing

from pysimd import simulator
from pysimd.errors import OptionError, UnavailableError
from pysimd.simulator import LaunchError, compilers, run
from pysimd.simulator.assembly import instructions_of, parse
from pysimd.simulator.errors import SimulationError

needs_compiler = pytest.mark.skipif(bool(missing()), reason=missing() or "nothing")

FILL = """
typedef int (*unused)(int);
extern "C" __attribute__((global, amdgpu_flat_work_group_size(1, 128))) void fill(int* out, int value) {
    out[__builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x()] = value;
}
template <int N> __attribute__((global)) void scaled(float* out) { *out = N; }
template __attribute__((global)) void scaled<3>(float*);
"""


def fill(grid=(2,), block=(64,), *, name="fill", packed=None, lds=0, target="gfx90a"):
    out, memory = np.zeros(128, np.int32), simulator.Memory()
    packed = struct.pack("<Qi", memory.add(out), 7) if packed is None else packed
    counts = simulator.launch(simulator.compile_hip(FILL, target), name, grid, block, packed, memory, lds)
    return out, counts


@needs_compiler
class TestLaunch:
    def test_fills(self):
        out, counts = fill()
        assert (out == 7).all()
        assert counts.store_bytes == {"global": 512}
        assert counts.load_bytes["arguments"] > 0

    @pytest.mark.parametrize("target", ["gfx90a", "gfx1100"])
    def test_a_block_that_is_no_multiple_of_a_wave(self, target):
        out, counts = fill((1,), (49,), target=target)
        np.testing.assert_array_equal(out, np.where(np.arange(128) < 49, 7, 0))
        assert counts.store_bytes == {"global": 4 * 49}
        assert counts.waves("s_endpgm") == -(-49 // amd_waves.wave_size(target))

    def test_no_blocks(self):
        out, counts = fill((0,))
        assert (out == 0).all()
        assert counts.instructions == {}

    def test_more_blocks_than_run_at_once(self):
        out, memory = np.zeros(64 * 200, np.int32), simulator.Memory()
        packed = struct.pack("<Qi", memory.add(out), 7)
        simulator.launch(simulator.compile_hip(FILL, "gfx90a"), "fill", (200,), (64,), packed, memory)
        assert (out == 7).all()

    @pytest.mark.parametrize(
        ("wrong", "why"),
        [
            ({"name": "fil"}, "no kernel 'fil' in this code object; it has _Z6scaled.*, fill"),
            ({"packed": b"1234"}, "fill: 4 bytes of arguments given, 12 expected"),
            ({"block": (129,)}, r"block \(129, 1, 1\) has 129 threads; at most 128"),
            ({"block": (0,)}, "none of a block zero"),
            ({"grid": (1, 1, 1, 1)}, "expected one to three sizes"),
            ({"grid": (-1,)}, "none negative"),
            ({"lds": 65537}, "0 \\+ 65537 bytes of LDS; at most 65536"),
        ],
    )
    def test_refused(self, wrong, why):
        with pytest.raises(LaunchError, match=why):
            fill(**wrong)

    def test_a_template_instance_has_its_mangled_name(self):
        code, memory, out = simulator.compile_hip(FILL, "gfx90a"), simulator.Memory(), np.zeros(1, np.float32)
        simulator.launch(code, "_Z6scaledILi3EEvPf", (1,), (1,), struct.pack("<Q", memory.add(out)), memory)
        assert out[0] == 3

    def test_scratch_is_refused(self):
        source = """
        extern "C" __attribute__((global)) void spill(int* out, int n) {
            volatile int kept[64];
            for (int i = 0; i < 64; ++i) kept[i] = i * n;
            *out = kept[n & 63];
        }"""
        memory = simulator.Memory()
        packed = struct.pack("<Qi", memory.add(np.zeros(1, np.int32)), 1)
        code = simulator.compile_hip(source, "gfx942")
        assert code.kernels["spill"].scratch >= 256
        with pytest.raises(simulator.UnsupportedInstruction, match=r"spill uses \d+ bytes of scratch"):
            simulator.launch(code, "spill", (1,), (1,), packed, memory)

    def test_a_kernel_without_end(self, monkeypatch):
        monkeypatch.setattr(run, "MOST_INSTRUCTIONS", 1000)
        loop = 'extern "C" __attribute__((global)) void loop(volatile int* x) { while (!*x) {} }'
        memory = simulator.Memory()
        packed = struct.pack("<Q", memory.add(np.zeros(1, np.int32)))
        with pytest.raises(SimulationError, match="loop executed 1000 instructions without an end"):
            simulator.launch(simulator.compile_hip(loop, "gfx1030"), "loop", (1,), (1,), packed, memory)

    def test_a_loop_with_a_barrier_and_without_end(self, monkeypatch):
        """Also where the waves stop at barriers, or diverge and converge in each iteration."""
        monkeypatch.setattr(run, "MOST_INSTRUCTIONS", 1000)
        for body in ("__builtin_amdgcn_s_barrier();", "if (__builtin_amdgcn_workitem_id_x() & *x) x[1] += 1;"):
            source = f'extern "C" __attribute__((global)) void loop(volatile int* x) {{ while (!*x) {{ {body} }} }}'
            memory = simulator.Memory()
            packed = struct.pack("<Q", memory.add(np.zeros(2, np.int32)))
            with pytest.raises(SimulationError, match="loop executed 1000 instructions without an end"):
                simulator.launch(simulator.compile_hip(source, "gfx906"), "loop", (1,), (64,), packed, memory)

    def test_a_null_pointer(self):
        with pytest.raises(simulator.AccessError, match=r"fill, instruction .*global_store.*address 0x"):
            fill(packed=struct.pack("<Qi", 0, 7))

    def test_user_registers_in_the_order_of_the_descriptor(self):
        """Every group that a descriptor can ask for is in front of the block's index, as wide as the hardware's."""
        asked = ("private_segment_buffer", "dispatch_ptr", "queue_ptr", "dispatch_id", "flat_scratch_init")
        body = """
          s_load_dwordx2 s[20:21], s[8:9], 0x0
          s_waitcnt lgkmcnt(0)
          v_mov_b32_e32 v1, s14
          v_lshlrev_b32_e32 v2, 2, v1
          global_store_dword v2, v1, s[20:21]"""
        lines = "".join(f"  .amdhsa_user_sgpr_{name} 1\n" for name in asked)
        text = amd_waves.source(body, "gfx900", arguments=8)
        text = text.replace("  .amdhsa_user_sgpr_kernarg", lines + "  .amdhsa_user_sgpr_kernarg")
        out, memory = np.full(3, -1, np.int32), simulator.Memory()
        packed = struct.pack("<Q", memory.add(out))
        simulator.launch(simulator.assemble(text, "gfx900"), "probe", (3,), (1,), packed, memory)
        np.testing.assert_array_equal(out, np.arange(3))

    def test_the_same_source_is_compiled_once(self):
        assert simulator.compile_hip(FILL, "gfx90a") is simulator.compile_hip(FILL, "gfx90a")


class TestToolchain:
    @needs_compiler
    def test_errors_are_the_compilers(self):
        with pytest.raises(simulator.CompileError, match=r"kernel.hip:2:.*error: .*undeclared") as caught:
            simulator.compile_hip('extern "C" __attribute__((global)) void f(int* x)\n{ *x = undeclared; }', "gfx906")
        assert "/tmp" not in str(caught.value)

    @needs_compiler
    def test_an_unknown_target(self):
        with pytest.raises(simulator.CompileError, match="gfx999"):
            simulator.compile_hip(FILL, "gfx999")

    @needs_compiler
    def test_it_says_what_it_is(self):
        tools = simulator.toolchain()
        assert tools.name in tools.version or "clang version" in tools.version

    def test_there_is_none(self, monkeypatch):
        monkeypatch.setattr(compilers, "_distribution_clang", lambda: None)
        monkeypatch.setattr(compilers, "_ziglang", lambda: None)
        monkeypatch.delenv("PYSIMD_CLANG", raising=False)
        with pytest.raises(UnavailableError, match=r"clang-19, lld-19 and llvm-19 .*pip install 'pysimd\[simulate\]'"):
            compilers.toolchain.__wrapped__()

    def test_a_choice_that_is_none(self, monkeypatch):
        monkeypatch.setenv("PYSIMD_CLANG", "gcc")
        with pytest.raises(OptionError, match="PYSIMD_CLANG='gcc': use one of clang, ziglang"):
            compilers.toolchain.__wrapped__()

    def test_no_disassembler(self):
        tools = simulator.Toolchain("some", "some 1", ("some",), ("some",), "")
        with pytest.raises(UnavailableError, match="some has no disassembler: install llvm-19"):
            tools.disassemble(b"")

    @needs_compiler
    def test_code_made_elsewhere(self):
        if not simulator.toolchain().objdump:
            pytest.skip("no llvm-objdump")
        code = simulator.compile_hip(FILL, "gfx1030")
        again = simulator.CodeObject.from_bytes(code.elf, "gfx1030")
        assert again.instructions == code.instructions

    def test_no_code_object(self):
        with pytest.raises(SimulationError, match="not an AMD code object"):
            simulator.CodeObject(b"\x7fELF" + bytes(60), "gfx90a", "")


LISTING = """
Disassembly of section .text:

0000000000001900 <one>:
\ts_load_dword s0, s[0:1], 0x8                               // 000000001900: C0020000 00000008
\ts_cbranch_scc1 2                                           // 000000001908: BF850002 <one+0x14>
\tv_pk_fma_f16 v0, v1, s2, v0 op_sel_hi:[1,0,1]              // 00000000190C: D38E0000 1C000501
\ts_endpgm                                                   // 000000001914: BF810000

0000000000001a00 <two>:
\ts_endpgm                                                   // 000000001A00: BF810000
"""
ASSEMBLY = """
\t.text
one:                                    ; @one
; %bb.0:
\ts_load_dword s0, s[0:1], 0x8
\ts_cbranch_scc1 .LBB0_2
\tv_pk_fma_f16 v0, v1, s2, v0 op_sel_hi:[1,0,1]   ; a comment
.LBB0_2:
\ts_endpgm
\t.section\t.rodata,"a",@progbits
\t.amdhsa_kernel one
two:
\ts_endpgm
"""


class TestText:
    @pytest.mark.parametrize("text", [LISTING, ASSEMBLY], ids=["listing", "assembly"])
    def test_of_kernels(self, text):
        found = instructions_of(text, ("one", "two"))
        assert [x.mnemonic for x in found["one"]] == ["s_load_dword", "s_cbranch_scc1", "v_pk_fma_f16", "s_endpgm"]
        assert [x.target for x in found["one"]] == [None, 3, None, None]
        assert [x.mnemonic for x in found["two"]] == ["s_endpgm"]

    def test_a_kernel_that_is_not_there(self):
        with pytest.raises(SimulationError, match="no instructions of three"):
            instructions_of(LISTING, ("one", "three"))

    def test_a_branch_to_nowhere(self):
        with pytest.raises(SimulationError, match=r"goes to \.LBB9"):
            instructions_of("one:\n s_branch .LBB9\n", ("one",))

    @pytest.mark.parametrize(
        ("line", "why"),
        [
            ("global_load_dword v0, v[2:3], off offset:16 glc offset:8", "a modifier stands twice in"),
            ("ds_write_b32 v0, v1 offset:16, v2", "cannot take apart the operands"),
        ],
    )
    def test_of_no_instruction(self, line, why):
        with pytest.raises(SimulationError, match=why):
            parse(line)

    def test_of_one_instruction(self):
        x = parse("v_add_u32_sdwa v0, sext(v1), v2 dst_sel:DWORD src0_sel:BYTE_1")
        assert (x.mnemonic, x.encoding) == ("v_add_u32", "sdwa")
        assert x.operands == ("v0", "sext(v1)", "v2")
        assert x.modifiers == {"dst_sel": "DWORD", "src0_sel": "BYTE_1"}
        x = parse("global_load_dwordx4 v[0:3], v[4:5], off offset:-16 glc")
        assert x.operands == ("v[0:3]", "v[4:5]", "off")
        assert x.modifiers == {"offset": -16, "glc": True}
        x = parse("v_dual_fmac_f32 v0, v1, v2 :: v_dual_mov_b32 v3, 1.0")
        assert (x.mnemonic, x.second.mnemonic, x.second.operands) == ("v_fmac_f32", "v_mov_b32", ("v3", "1.0"))
        x = parse("ds_swizzle_b32 v0, v1 offset:swizzle(QUAD_PERM,0,1,2,3)")
        assert x.modifiers == {"offset": "swizzle(QUAD_PERM,0,1,2,3)"}
        assert parse("s_delay_alu instid0(VALU_DEP_1) | instskip(NEXT)").operands == ()
