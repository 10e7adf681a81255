"""``pysimd report``: one page that refers to no other file and holds every number that it shows."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

import pysimd
from pysimd import inspection
from pysimd.bench import peaks
from pysimd.report import html, report

NAMES = ["generic_f32_inner_4x4", "generic_f32_outer_4x4", "generic_f64_outer_4x4", "cuda_f32_outer_4x4"]
VOID = {"meta", "i/"}


class Page(HTMLParser):
    """The tags of a page and their text; tags must be closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.cells, self.scripts, self.links = [], [], [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.links += [value for key, value in attributes if key in ("src", "href", "action")]
        if tag not in VOID:
            self.open.append(tag)
        if tag == "td":
            self.cells.append("")

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] == ["td"]:
            self.cells[-1] += data
        if self.open[-1:] == ["script"]:
            self.scripts.append(data)


def test_the_style_sheet_declares_properties():
    """A browser skips what is no ``property: value``, without a word."""
    blocks = re.findall(r"\{([^{}]*)\}", html._STYLE)
    assert len(blocks) > 20
    for declaration in ";".join(blocks).split(";"):
        assert re.fullmatch(r"\s*[a-z]+(-[a-z]+)*: [^:]+", declaration), declaration


@pytest.fixture
def made(monkeypatch):
    """A report whose rows have every field, and a kernel that could not be counted."""
    rows = []
    for row in pysimd.compare(NAMES).rows:
        counted = {
            "macs": 32,
            "multiply_adds": 8,
            "element_ratio": row.ratio,
            "instruction_ratio": 1.5,
            "registers": 9,
            "stores": 0,
        }
        counted |= {"registers_there_are": 16, "moves": 1, "spills": 0, "target": row.target, "element_bytes": 4}
        counted |= {"load_instructions": {"memory": 8}, "load_elements": {"memory": 32 / row.ratio}}
        counted |= {"remark": "a < b & c", "agrees": False}
        speed = {"gflops": 20.0, "peak_gflops": 25.0, "percent_of_peak": 80.0, "peak_gloads_per_s": 8.0}
        speed |= {"peak_load_gbytes_per_s": 128.0, "percent_of_load_rate": 31.0, "percent_of_load_bandwidth": 17.0}
        if row.backend == "cuda":
            rows.append(replace(row, uncounted_reason="no <tool>"))
        else:
            rows.append(replace(row, counted=counted, limit="loads", **speed))
    return report.Report(tuple(rows), report.machine())


def test_page_is_well_formed_and_refers_to_no_other_file(made):
    text = made.html()
    page = Page(text)
    assert page.links == []
    assert {"link", "img", "iframe", "object"}.isdisjoint(page.tags)
    assert page.tags.count("script") == 1
    addresses = set(re.findall(r"\w+://[^\"\s]+|url\(|@import", text.replace(page.scripts[0], "")))
    assert addresses <= {"http://www.w3.org/2000/svg"}  # a namespace, which no browser fetches


def test_embedded_json_is_the_report(made):
    (script,) = Page(made.html()).scripts
    assert json.loads(script) == json.loads(made.to_json())
    assert f'id="{html.JSON_ID}"' in made.html()


def test_every_kernel_is_in_bars_table_and_drawings(made):
    page = Page(made.html())
    assert len(page.cells) == len(NAMES) * len(html._HEADERS)
    assert [x for x in page.cells if x in NAMES] == sorted(NAMES, key=lambda x: x.startswith("cuda"))
    assert page.tags.count("details") == len(NAMES)
    assert made.html().count('class="roof"') == 2  # f32 and f64
    assert page.tags.count("circle") == 3 + 2 + 1  # kernels, and the forms in the legends of f32 and f64


def test_a_row_has_the_color_of_its_form_and_is_pale_where_nothing_is_known(made):
    classes = [re.match('<tr class="(.*?)"><td>', html._line(row))[1] for row in made.rows]
    assert classes == ["inner", "outer", "outer", "outer" if made.rows[3].available else "outer off"]


def test_numbers_of_a_row(made):
    cells = html._cells(made.rows[1])
    assert cells == [
        NAMES[1],
        "4x4",
        "2.00",
        "2.00",
        "1.50",
        "0, 1, 0",
        "9 of 16",
        "20",
        "80",
        "31",
        "17",
        "loads",
        "-",
    ]


def test_a_target_that_a_kernel_lacks_is_a_remark_without_a_row(made):
    counted = made.rows[1]
    not_there = {"counted": None, "gflops": None, "percent_of_load_bandwidth": None}
    lacking = replace(counted, **not_there, uncounted_reason="not for gfx0")
    page = Page(report.Report((counted, lacking), made.machine).html())
    assert sum(cell.startswith(counted.kernel) for cell in page.cells) == 1
    assert "not for gfx0" in report.Report((counted, lacking), made.machine).html().partition("<script")[0]


def test_a_kernel_has_one_bar_and_one_drawing(made):
    page = Page(report.Report((made.rows[1], made.rows[1]), made.machine).html())
    assert page.tags.count("details") == 1
    assert page.tags.count("svg") == 3  # bars, a roofline, a tile


def test_table_of_peaks_has_every_figure(made):
    loads = (peaks.Loads("L1", 4096, 123.0, 7.0), peaks.Loads("memory", 1 << 20, 11.0, 1.0))
    found = (peaks.Peak("sse", "f32", "", 45.0, loads), peaks.Peak("sse", "i8i32", "", 67.0, ()))
    of_machine = peaks.Peaks("cpu", {"device": "a <CPU>"}, "2026", 1.0, found)
    text = report.Report(made.rows, made.machine, (of_machine,)).html()
    assert Page(text).cells[:10] == ["sse", "f32", "45", "123", "11", "sse", "i8i32", "67", "-", "-"]
    assert "a &lt;CPU&gt;" in text


def test_text_from_elsewhere_is_escaped(made):
    text = made.html().partition("<script")[0]
    assert "a &lt; b &amp; c" in text
    assert "no &lt;tool&gt;" in text


def test_report_of_nothing():
    assert "<h2>Rooflines" not in pysimd.compare([]).html()


def test_report_from_its_json(made):
    again = report.Report.from_dict(json.loads(made.to_json()))
    assert again.to_json() == made.to_json()


@pytest.mark.parametrize("data", [{}, [], {"schema_version": 1, "machine": {}, "rows": [{"kernel": "x"}]}])
def test_json_that_is_not_a_report(data):
    with pytest.raises(pysimd.OptionError, match="not a report"):
        report.Report.from_dict(data)


@pytest.mark.parametrize("what", ["counted", "machine"])
def test_a_damaged_report(made, what):
    data = json.loads(made.to_json())
    if what == "counted":
        del data["rows"][0]["counted"]["multiply_adds"]
    else:
        data["machine"] = None
    with pytest.raises(pysimd.OptionError, match="not a report"):
        report.Report.from_dict(data)


def test_report_of_another_version(made):
    with pytest.raises(pysimd.OptionError, match="schema_version 99"):
        report.Report.from_dict({**made.to_dict(), "schema_version": 99})


def test_recorded_counts_are_shown_below_the_tiles(made, monkeypatch):
    """Nothing is compiled or disassembled for a page of what was recorded."""
    monkeypatch.setattr(inspection, "inspect", None)
    monkeypatch.setattr(report, "inspect", None)
    notes = made.html().partition("<h2>Register tiles")[2]
    assert notes.count("the built loop (generic): 8 multiply-add and 8 load instructions an iteration") == 3
    assert notes.count("the built loop could not be read") == 1  # that of the kernel without counts
    assert "could not be read: no &lt;tool&gt;" in notes


def test_the_tile_is_of_a_target_that_was_counted(made):
    """Where a kernel cannot be compiled for the first of several targets."""
    lacking = replace(made.rows[1], counted=None, percent_of_load_bandwidth=None, uncounted_reason="not for gfx0")
    notes = report.Report((lacking, made.rows[1]), made.machine).html().partition("<h2>Register tiles")[2]
    assert "the built loop (generic)" in notes.partition("<script")[0]
