"""Make the tables of docs/scaling.md from recorded results: ``python benchmarks/render_scaling.py``.

Reads scaling_cpu.json, scaling_torch_N_h200.json and scaling_dask_N_h200.json for 2 and 4 GPUs, callers.json,
torch_calls.json and torch_calls_h200.json in benchmarks/results (made by scaling.py, scaling_torch.py,
scaling_dask_cuda.py, callers.py and torch_calls.py with ``--out``); writes the text between the markers
``scaling:begin`` and ``scaling:end``.
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


GPUS = (2, 4)


def by_gpus(name: str) -> dict[int, dict[str, Any]]:
    """The documents of a script by the number of GPUs."""
    return {n: record.read(f"scaling_{name}_{n}_h200") for n in GPUS}


def gpu_machine(documents: dict[int, dict[str, Any]]) -> str:
    """A sentence: the GPUs and the versions."""
    found = documents[GPUS[0]]
    machine = found["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    runs = ((n, x["machine"]["date"], x["machine"]["commit"]) for n, x in documents.items())
    recorded = "; ".join(f"{n} GPUs {date}, commit {commit}" for n, date, commit in runs)
    return f"{machine['device']}, several of a machine; {versions}, CuPy {machine['cupy']}; {recorded}."


def scaled(documents: dict[int, dict[str, Any]], keys: tuple[str, ...], many: str) -> list[list[str]]:
    """For each problem its names, the time on one GPU in the first run, and time and speed-up on several."""
    lines = []
    for rows in zip(*(x["rows"] for x in documents.values()), strict=True):
        assert len({tuple(row[key] for key in keys) for row in rows}) == 1
        times = (f"{1000 * row['seconds'][many]:.2f} ({row['speedup']:.2f} x)" for row in rows)
        lines.append([*(str(rows[0][key]) for key in keys), f"{1000 * rows[0]['seconds']['one']:.2f}", *times])
    return lines


def torch_gpus() -> list[str]:
    """Sharded products, and products whose operands are on one GPU."""
    found = by_gpus("torch")
    return [
        "### Several GPUs, torch.distributed",
        "",
        f"Milliseconds a call, and the speed-up over one GPU in the same run. {gpu_machine(found)}",
        "Shards are on their GPUs; along k, the time of adding the partial results over NCCL is included. With the",
        "operands on one GPU, sending them and returning the result is included: by DTensor, or in panels by",
        "[examples/cuda/several_gpus.py](../examples/cuda/several_gpus.py). Two GPUs are two of the machine of four.",
        "",
        *record.table(
            ["problem", "dtype", "one GPU", *(f"{n} GPUs" for n in found)],
            scaled(found, ("problem", "dtype"), "sharded"),
        ),
    ]


def dask_gpus() -> list[str]:
    """Batches on the workers of dask-cuda."""
    found = by_gpus("dask")
    lines = scaled(found, ("problem", "products"), "all")
    plain = (f"{1000 * row['seconds']['one, without Dask']:.2f}" for row in found[GPUS[0]]["rows"])
    lines = [[*line[:2], without, *line[2:]] for line, without in zip(lines, plain, strict=True)]
    return [
        "### Several GPUs, Dask",
        "",
        "Milliseconds of a graph that multiplies each of eight float32 chunks so many times, on dask-cuda's workers,",
        f"one process a GPU, and the speed-up over one of them in the same run. {gpu_machine(found)}",
        "",
        *record.table(
            ["batch", "products", "one GPU without Dask", "one GPU", *(f"{n} GPUs" for n in found)],
            lines,
        ),
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


def torch_calls(title: str, said: str, document: dict[str, Any]) -> list[str]:
    """torch's product and ours."""
    names = list(document["rows"][0]["us"])
    lines = [[row["case"], row["dtype"], *(f"{row['us'][name]:.1f}" for name in names)] for row in document["rows"]]
    return [f"### {title}", "", said, "", *record.table(["batch", "dtype", *names], lines)]


def torch_calls_on_cpu(document: dict[str, Any]) -> list[str]:
    said = f"Microseconds a call on one thread; recorded: an operand requires gradients. {machine(document)}"
    lines = [[part, f"{us:.2f}"] for part, us in document["parts_us"].items()]
    made_of = ["", "What such a call consists of, for one 4x4 of float32:", "", *record.table(["call", "us"], lines)]
    return [*torch_calls("torch's CPU tensors", said, document), *made_of]


def torch_calls_on_gpu(document: dict[str, Any]) -> list[str]:
    found = document["machine"]
    said = (
        f"Microseconds until a call returns, without the time of the product. {found['device']}; torch "
        f"{document['versions']['torch']}, CuPy {found['cupy']}; {found['date']}, commit {found['commit']}."
    )
    return torch_calls("torch's GPU tensors", said, document)


def rendered(page: str) -> str:
    """The page with the tables of the recorded results."""
    parts = [
        ways(record.read("scaling_cpu")),
        torch_gpus(),
        dask_gpus(),
        callers(record.read("callers")),
        torch_calls_on_cpu(record.read("torch_calls")),
        torch_calls_on_gpu(record.read("torch_calls_h200")),
    ]
    return record.replaced(page, "\n\n".join("\n".join(part) for part in parts), "scaling")


def main() -> None:
    PAGE.write_text(rendered(PAGE.read_text()))


if __name__ == "__main__":
    main()
