"""The rooms of the package and what they may import: no circle, and nothing from a room above."""

import ast
from pathlib import Path

import import_graph
import pytest

import pysimd
from pysimd import cpu_kernels, gpu_kernels, hip_kernels

PACKAGE = Path(pysimd.__file__).parent
KERNELS = {module.__name__: Path(module.__file__).parent for module in (cpu_kernels, gpu_kernels, hip_kernels)}

# From low to high. A module belongs to the room of its longest prefix here, and imports its own room and lower ones.
ORDER = (
    ("_version", "_cpu", "errors", "once", "cpu_kernels", "gpu_kernels", "hip_kernels"),
    ("arguments", "dtypes", "ratio", "sources"),
    ("operands", "simulator"),
    ("microkernel",),
    ("backends", "backends.gpu", "backends.cpu"),
    ("backends.cuda", "backends.hip"),
    ("registry",),
    ("products", "inspection"),
    ("bench",),
    ("report",),
    ("cli", "interop"),
    ("",),
)


@pytest.fixture(scope="module")
def edges():
    return import_graph.graph({"pysimd": PACKAGE, **KERNELS}, ("pysimd._cpu",))


def room_of(module: str) -> tuple[str, int]:
    """The room of a module and its height."""
    name = module.removeprefix("pysimd").removeprefix(".")
    rooms = [(room, height) for height, level in enumerate(ORDER) for room in level]
    return max(((r, h) for r, h in rooms if r == "" or name == r or name.startswith(f"{r}.")), key=lambda x: len(x[0]))


def test_no_circle(edges):
    assert len(edges) > 50, "the graph is not that of the package"
    assert import_graph.circle(edges) == []


def test_no_import_runs_upwards(edges):
    wrong = []
    for module, others in edges.items():
        own, height = room_of(module)
        for other in others:
            room, above = room_of(other)
            if room != own and above >= height:
                wrong.append(f"{module} imports {other}")
    assert wrong == []


def test_every_module_has_a_room(edges):
    """The package itself and its __main__ alone are in no room: they see everything."""
    assert {m for m in edges if room_of(m)[0] == ""} == {"pysimd", "pysimd.__main__"}


def test_no_module_shares_its_name_with_a_public_function():
    """``pysimd.backends`` is a function and a folder: ``__init__`` loads the folder first, so that the name stays."""
    modules = {p.stem for p in PACKAGE.glob("*.py")} | {
        p.name for p in PACKAGE.iterdir() if (p / "__init__.py").exists()
    }
    assert modules & set(pysimd.__all__) == {"backends"}


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        ({"a": "import p.b", "b": ""}, []),
        ({"a": "import p.b", "b": "from p import a"}, ["p.a", "p.b", "p.a"]),
        (
            {"a": "def f():\n    from p.b import x", "b": "from p.c import y", "c": "import p.a"},
            ["p.a", "p.b", "p.c", "p.a"],
        ),
    ],
    ids=["a tree", "two", "three, one inside a function"],
)
def test_a_circle_is_found(sources, expected, tmp_path):
    for name, text in {"__init__": "", **sources}.items():
        (tmp_path / f"{name}.py").write_text(text)
    assert import_graph.circle(import_graph.graph({"p": tmp_path})) == expected


def test_a_relative_import_is_refused():
    with pytest.raises(ValueError, match="line 1: a relative import"):
        import_graph.imported(ast.parse("from . import x"), {"p"})
