"""``pysimd kernels``."""

from __future__ import annotations

import argparse
from typing import Any

from pysimd import dtypes, registry
from pysimd.cli.options import BACKENDS
from pysimd.cli.output import print_json, say
from pysimd.errors import OptionError
from pysimd.microkernel import MicroKernel
from pysimd.report.text import number, table

HELP = "list the kernels"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--backend", choices=BACKENDS)
    parser.add_argument("--target", help="instruction set or GPU family, e.g. avx2")
    parser.add_argument("--types", help="types family, e.g. f32 or i8i32")
    parser.add_argument("--form", help="outer, inner, or the matrix unit")
    parser.add_argument("--available", action="store_true", help="only those that can run on this machine")


def execute(options) -> int:
    wanted = {key: getattr(options, key) for key in ("backend", "target", "types", "form")}
    everything = registry.kernels()
    for key in ("target", "types", "form"):
        known = list(dict.fromkeys(getattr(k, key) for k in everything))
        if wanted[key] is not None and wanted[key] not in known:
            raise OptionError(f"--{key} {wanted[key]}: the kernels have {', '.join(known)}")
    found = registry.kernels(**wanted, available=True if options.available else None)
    if options.json:
        print_json(kernels=[_fields(k) for k in found])
        return 0
    headers = ["kernel", "backend", "types", "form", "tile", "k_group", "FMA/element", "here"]
    print(table(headers, [_cells(k) for k in found], right=["k_group", "FMA/element"]))
    shown = {k.backend for k in found} | {wanted["backend"]} if any(wanted.values()) else set(BACKENDS)
    for backend in registry.backends():
        if not backend.available and backend.name in shown:
            say(f"{backend.name}: {backend.reason}")
    return 0


def _cells(k: MicroKernel) -> list[object]:
    here = "yes" if k.available else f"no: {k.unavailable_reason}"
    return [k.name, k.backend, k.types, k.form, f"{k.mr}x{k.nr}", k.k_group, number(k.ratio.value, 2), here]


def _fields(kernel: MicroKernel) -> dict[str, Any]:
    family = dtypes.FAMILIES[kernel.types]
    plain = ("name", "backend", "target", "types", "form", "mr", "nr", "k_group", "requires")
    return {
        **{key: getattr(kernel, key) for key in plain},
        "a_dtype": family.a,
        "b_dtype": family.b,
        "c_dtype": family.c,
        "macs_per_element": kernel.ratio.value,
        "macs_per_byte": kernel.ratio.per_byte,
        "available": kernel.available,
        "unavailable_reason": kernel.unavailable_reason,
        "source_path": kernel.source_path,
    }
