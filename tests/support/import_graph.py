"""The graph of imports of a package, read from its sources: those inside functions and those for type checkers too."""

from __future__ import annotations

import ast
from pathlib import Path


def modules(folder: Path, package: str) -> dict[str, Path]:
    """Every module of a package and its file."""
    found = {}
    for path in sorted(folder.rglob("*.py")):
        parts = [package, *path.relative_to(folder).with_suffix("").parts]
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(tree: ast.AST, known: set[str]) -> set[str]:
    """The modules among ``known`` that a module imports, wherever in it the statement stands.

    ``from a.b import c`` imports ``a.b.c`` where that is a module, else ``a.b``. The packages above a module, which are
    loaded with it, are not counted: that is so for every module.
    """
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name in known}
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise ValueError(f"line {node.lineno}: a relative import")
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                found |= {full} if full in known else {node.module} & known
    return found


def graph(packages: dict[str, Path], extensions: tuple[str, ...] = ()) -> dict[str, set[str]]:
    """Module to the modules that it imports, for packages in these folders; ``extensions`` are compiled modules."""
    files = {name: path for package, folder in packages.items() for name, path in modules(folder, package).items()}
    known = {*files, *extensions}
    edges = {name: imported(ast.parse(path.read_text()), known) - {name} for name, path in files.items()}
    return edges | {name: set() for name in extensions}


def circle(edges: dict[str, set[str]]) -> list[str]:
    """Modules that import each other in a circle, the first one again at the end; empty if there is none."""
    done: set[str] = set()

    def search(module: str, trail: list[str]) -> list[str]:
        if module in trail:
            return [*trail[trail.index(module) :], module]
        if module in done:
            return []
        for other in sorted(edges[module]):
            if found := search(other, [*trail, module]):
                return found
        done.add(module)
        return []

    for module in sorted(edges):
        if found := search(module, []):
            return found
    return []
