"""``python tests/scripts/pictures_in_browser.py [chromium]``: the texts of all recorded pictures and of a page of
``pysimd report`` with the fonts of a browser: none may cover another or leave its picture. Prints what does, and exits
with 1 then. tests/api/test_pictures.py checks the same with widths that are taken for the texts, without a browser.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from pysimd.report.report import Report

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"

SCRIPT = """
const found = [];
document.querySelectorAll("details").forEach(x => x.open = true);
document.querySelectorAll("svg").forEach((svg, i) => {
  const texts = [...svg.querySelectorAll("text")], boxes = texts.map(x => x.getBBox()), all = svg.viewBox.baseVal;
  const said = j => i + ": " + texts[j].textContent;
  boxes.forEach((a, j) => {
    const inside = a.x >= 0 && a.y >= 0 && a.x + a.width <= all.width && a.y + a.height <= all.height;
    if (!inside) found.push([said(j), "is outside"]);
    boxes.slice(j + 1).forEach((b, k) => {
      const over = Math.min(a.y + a.height, b.y + b.height) - Math.max(a.y, b.y) > 3;  // lines of text: 13 of 15 pixels
      if (over && a.x < b.x + b.width && b.x < a.x + a.width) found.push([said(j), said(j + 1 + k)]);
    });
  });
});
document.title = JSON.stringify({pictures: document.querySelectorAll("svg").length, found});
"""


def page(body: str) -> str:
    return f"{body}<script>{SCRIPT}</script>"


def checked(browser: str, name: str, text: str) -> int:
    """How many faults the pictures of a page have, which are printed."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        path.write_text(text)
        command = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile"]
        done = subprocess.run([*command, "--dump-dom", path.as_uri()], capture_output=True, text=True, timeout=120)
    title = re.findall(r"<title>(\{.*?\})</title>", done.stdout)
    if not title:
        raise SystemExit(f"{name}: the browser gave no page\n{done.stderr[-500:]}")
    result = json.loads(title[-1])
    print(f"{name}: {result['pictures']} pictures, {len(result['found'])} faults")
    for fault in result["found"]:
        print("   ", *fault, sep="  ")
    return len(result["found"])


def main() -> None:
    browser = sys.argv[1] if len(sys.argv) > 1 else "chromium"
    pictures = "".join(path.read_text() for path in sorted(RESULTS.glob("*.svg")))
    faults = checked(browser, "recorded pictures", page(f"<title>x</title>{pictures}"))
    for path in sorted(RESULTS.glob("report_*.json")):
        faults += checked(browser, path.name, page(Report.from_dict(json.loads(path.read_text())).html()))
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
