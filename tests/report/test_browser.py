"""The page in a real browser: offline from a file, no complaint on the console, something to see."""

from __future__ import annotations

import re
import struct
import subprocess
import zlib
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from chromium import FLAGS, found
from judged_choices import write_tables
from meta_evaluations import FULL
from metricsmith.datasets.choices import read_rated_choices
from metricsmith.rating_model.vectors import Decision
from metricsmith.report.induction.document import RunDocument
from metricsmith.report.meta_evaluation.document import MetaEvaluationDocument
from metricsmith.report.render import render_html
from metricsmith.report.suite.document import SuiteDocument
from metricsmith.report.validation.document import ValidationDocument
from metricsmith.report.validation.record import validate_judges
from suites import FULL as SUITE

pytestmark = pytest.mark.browser

CONTROL = '<!doctype html><title>control</title>{policy}<img src="http://elsewhere.invalid/x.png">'
POLICY = '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'">'
# The page's own colours (report.css), light and dark: what its plots are drawn with.
BLUE = {"light": (10, 90, 168), "dark": (111, 177, 242)}
PAPER = {"light": (251, 250, 247), "dark": (20, 23, 26)}


@dataclass(frozen=True)
class Visit:
    """The browser's word on a page: its tree, its console, the hosts that were asked for anything."""

    tree: str
    console: list[str]
    hosts: set[str]


@pytest.fixture(scope="module")
def browser() -> str:
    return found() or pytest.skip("no Chromium on this machine")


def run(browser: str, folder: Path, html: str, *options: str) -> subprocess.CompletedProcess[str]:
    page = folder / "page.html"
    page.write_text(html, "utf-8")
    command = [browser, *FLAGS, f"--user-data-dir={folder / 'profile'}", *options, page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True, encoding="utf-8")


def visit(browser: str, folder: Path, html: str) -> Visit:
    log = folder / "network.json"
    done = run(browser, folder, html, "--enable-logging=stderr", f"--log-net-log={log}", "--dump-dom")
    urls = re.findall(r'"url":"(https?://[^"]*)"', log.read_text("utf-8"))
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return Visit(done.stdout, console, {urlsplit(url).netloc for url in urls})


def test_the_watch_sees_what_it_is_there_to_see(browser, tmp_path):
    assert "elsewhere.invalid" in visit(browser, tmp_path, CONTROL.format(policy="")).hosts
    assert "violates" in " ".join(visit(browser, tmp_path, CONTROL.format(policy=POLICY)).console)


@pytest.mark.parametrize("kind", ["realistic", "evil"])
def test_the_page_opens_offline_without_a_complaint(browser, tmp_path, make_record, evil_record, read, kind):
    own = visit(browser, tmp_path, "<!doctype html><title>empty</title>").hosts
    seen = visit(browser, tmp_path, render_html(RunDocument(make_record() if kind == "realistic" else evil_record)))
    assert seen.console == []
    assert seen.hosts <= own
    tree = read(seen.tree)
    assert sum((a.get("class") or "").startswith("plot ") for _, a in tree.elements) == 7
    assert not {"script", "img", "iframe", "object"} & {tag for tag, _ in tree.elements}
    if kind == "realistic":
        marks = [tag for tag, _ in tree.elements if tag in {"circle", "rect", "path", "line", "polyline"}]
        assert len(marks) > 250


@pytest.mark.parametrize(
    ("document", "plots"), [(MetaEvaluationDocument(FULL), 2), (SuiteDocument(SUITE), 3)], ids=["metrics", "suite"]
)
def test_a_meta_evaluation_opens_offline_without_a_complaint(browser, tmp_path, read, document, plots):
    own = visit(browser, tmp_path, "<!doctype html><title>empty</title>").hosts
    seen = visit(browser, tmp_path, render_html(document))
    assert seen.console == []
    assert seen.hosts <= own
    elements = read(seen.tree).elements
    assert sum((a.get("class") or "").startswith("plot ") for _, a in elements) == plots
    assert not {"script", "img", "iframe", "object", "b", "i"} & {tag for tag, _ in elements}


def test_judges_beside_people_open_offline_without_a_complaint(browser, tmp_path, read):
    tables = read_rated_choices(*write_tables(tmp_path))
    asked = {"decision": Decision(("rude",)), "thresholds": [0.5, 0.3], "draws": 100}
    record = validate_judges(tables.human, tables.judges, tables.options, notes=tables.notes, **asked)
    own = visit(browser, tmp_path, "<!doctype html><title>empty</title>").hosts
    seen = visit(browser, tmp_path, render_html(ValidationDocument(record)))
    assert seen.console == []
    assert seen.hosts <= own
    elements = read(seen.tree).elements
    assert sum((a.get("class") or "").startswith("plot ") for _, a in elements) > 5
    assert not {"script", "img", "iframe", "object"} & {tag for tag, _ in elements}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), [(500, 1800), (1100, 1400)])
def test_the_plots_are_painted(browser, tmp_path, make_record, width, height, scheme):
    html = render_html(RunDocument(make_record()))
    shot = tmp_path / "shot.png"
    run(
        browser, tmp_path, html, f"--window-size={width},{height}", f"--screenshot={shot}",
        f"--blink-settings=preferredColorScheme={0 if scheme == 'dark' else 1}",
    )  # fmt: skip
    shown, pixels = colours(shot)
    assert shown == (width, height)
    assert pixels.get(PAPER[scheme], 0) > 0.5 * width * height
    assert pixels.get(BLUE[scheme], 0) > 1000  # the bars of the weights alone are more


def colours(path: Path) -> tuple[tuple[int, int], dict[tuple[int, ...], int]]:
    """Size of an 8-bit PNG and how often each colour occurs, by the PNG specification's five filters."""
    import numpy as np

    data, place, packed = path.read_bytes(), 8, b""
    width, height, depth, kind = struct.unpack(">IIBB", data[16:26])
    assert (depth, kind) in {(8, 2), (8, 6)}
    size = {2: 3, 6: 4}[kind]
    while place < len(data):
        (length,) = struct.unpack(">I", data[place : place + 4])
        if data[place + 4 : place + 8] == b"IDAT":
            packed += data[place + 8 : place + 8 + length]
        place += 12 + length
    lines = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, 1 + width * size)
    image = np.zeros((height + 1, width + 1, size), dtype=np.int64)
    for y in range(1, height + 1):
        kind, line = int(lines[y - 1, 0]), lines[y - 1, 1:].reshape(width, size).astype(np.int64)
        if kind in (0, 2):
            image[y, 1:] = line + (image[y - 1, 1:] if kind == 2 else 0) & 255
        elif kind == 1:
            image[y, 1:] = np.cumsum(line, axis=0) & 255
        else:
            unfilter(image, y, line, kind)
    flat = image[1:, 1:, :3].reshape(-1, 3)
    found, counts = np.unique(flat @ np.array([65536, 256, 1]), return_counts=True)
    known = zip(found.tolist(), counts.tolist(), strict=True)
    return (width, height), {(c >> 16, c >> 8 & 255, c & 255): number for c, number in known}


def unfilter(image, y, line, kind):
    """The two filters that need their left neighbour: average and Paeth."""
    above, here = image[y - 1].tolist(), image[y].tolist()
    for x, pixel in enumerate(line.tolist(), start=1):
        for c, value in enumerate(pixel):
            left, up, corner = here[x - 1][c], above[x][c], above[x - 1][c]
            if kind == 3:
                guess = (left + up) // 2
            else:
                far = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
                guess = (left, up, corner)[far.index(min(far))]
            here[x][c] = value + guess & 255
    image[y] = here
