"""The header of a GPU kernel file: fixed labels, read by the tests of the tables."""

import re

LABELS = ("contract", "tile", "regs", "per k", "ratio", "rounding", "needs", "idea", "lanes", "launch", "smem")


def labels_of(text: str) -> dict[str, str]:
    """Label and text of a file's header."""
    found, label = {}, None
    for line in text[: text.index("*/")].splitlines()[1:]:
        match = re.match(r" \* (\w+(?: k)?)\s{2,}(.*)", line)
        if match:
            label, found[match[1]] = match[1], match[2]
        elif label:
            found[label] += " " + line.lstrip(" *").strip()
    return found
