"""Make the tables of docs/scaling.md from recorded results: ``python benchmarks/render_scaling.py``.

Reads scaling_cpu.json, callers.json and torch_calls.json in benchmarks/results (made by scaling.py, callers.py and
torch_calls.py with ``--out``); writes the text between the markers ``scaling:begin`` and ``scaling:end``.
"""

from __future__ import annotations

from typing import Any

import record

PAGE = record.ROOT / "docs" / "scaling.md"


def machine(document: dict[str, Any]) -> str:
    """A sentence: where and with what the document was recorded."""
    found = document["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in document["versions"].items())
    return (
        f"{found['device']}, {found['cores']} cores; {versions}; NumPy {found['numpy']}; {found['date']}, "
        f"commit {found['commit']}."
    )


def ways(document: dict[str, Any]) -> list[str]:
    """Each problem, by plain ``matmul`` and by Dask; and the cost of a chunk."""
    names = list(document["rows"][0]["seconds"])
    lines = [
        [row["problem"], str(row["chunks"]), *(f"{1000 * row['seconds'][name]:.0f}" for name in names)]
        for row in document["rows"]
    ]
    cost = ", ".join(f"{us:.0f} us with {name}" for name, us in document["overhead_us"].items())
    return [
        "### One batch and one large product",
        "",
        f"Milliseconds, float32. {machine(document)}",
        "`matmul` returns one array; Dask's results stay in chunks. The processes hold their operands from the start.",
        "",
        *record.table(["problem", "chunks of the result", *(f"`{x}`" if "(" in x else x for x in names)], lines),
        "",
        f"A chunk whose product takes no time costs {cost}.",
    ]


def callers(document: dict[str, Any]) -> list[str]:
    """One small product from each caller."""
    lines = [[row["caller"], "not measured" if row["ns"] is None else f"{row['ns']:.1f}"] for row in document["rows"]]
    return [
        "### One small product",
        "",
        f"Nanoseconds a call of `{document['kernel']}`, 4x4 with K = 4, operands in cache. {machine(document)}",
        "",
        *record.table(["caller", "ns"], lines),
    ]


def torch_calls(document: dict[str, Any]) -> list[str]:
    """torch's product and ours."""
    names = list(document["rows"][0]["us"])
    lines = [[row["case"], row["dtype"], *(f"{row['us'][name]:.1f}" for name in names)] for row in document["rows"]]
    return [
        "### torch's CPU tensors",
        "",
        f"Microseconds a call on one thread; recorded: an operand requires gradients. {machine(document)}",
        "",
        *record.table(["batch", "dtype", *names], lines),
    ]


def rendered(page: str) -> str:
    """The page with the tables of the recorded results."""
    parts = [
        ways(record.read("scaling_cpu")),
        callers(record.read("callers")),
        torch_calls(record.read("torch_calls")),
    ]
    return record.replaced(page, "\n\n".join("\n".join(part) for part in parts), "scaling")


def main() -> None:
    PAGE.write_text(rendered(PAGE.read_text()))


if __name__ == "__main__":
    main()
