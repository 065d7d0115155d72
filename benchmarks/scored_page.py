"""The page of scored rows in Chromium: the time to open it, to sort, filter, search and open a row, and its size.

::

    python benchmarks/scored_page.py [--rows 5000] [--components 12] [--keep FILE.html]

Rows have two texts of 1,000 characters and reasons of 200 in four of the components; one number in a hundred is
missing. A time runs from the event until the frame after it is drawn: the median over three loads of the page, three
times each. 5,000 rows must open in less than 3 s and answer in less than .2 s.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from chromium import Chromium, found
from metricsmith.metric import Part
from metricsmith.records import Judgement, Scale, Status
from metricsmith.report.scored.document import write_page
from metricsmith.report.scored.record import ScoredRow, ScoredRows

WORDS = "the road is shut until further notice and every fact that a reader needs stands in its first line"
TIMED = """
(async () => {
  const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  const get = (id) => document.getElementById(id);
  const set = (id, value) => {
    get(id).value = value;
    for (const name of ["input", "change"]) get(id).dispatchEvent(new Event(name, { bubbles: true }));
  };
  await frame();
  const started = performance.now();
  %s;
  await frame();
  return performance.now() - started;
})()
"""
ACTIONS = {
    "sort by value": ["document.querySelectorAll('.scored thead button')[1].click()"] * 3,
    "sort by a component": ["document.querySelectorAll('.scored thead button')[6].click()"] * 3,
    "sort by a text": ["document.querySelectorAll('.scored thead button')[2].click()"] * 3,
    "filter by value": [f"set('low', '{low}')" for low in (2, 3.5, "")],
    "filter by status": [f"set('status', '{kind}')" for kind in ("missing", "complete", "")],
    "filter by a component": ["set('part', '1'), set('part-low', '0')", "set('part', '2')", "set('part', '')"],
    "first search": ["set('search', 'first line')"],
    "search": [f"set('search', '{text}')" for text in ("row 7", "zzz", "")],
    "next rows": ["document.querySelector('[aria-label=\"next rows\"]').click()"] * 3,
    "open a row": [f"document.querySelectorAll('tr.row button')[{place}].click()" for place in range(3)],
}


def text(draw: random.Random, length: int) -> str:
    """Words of about so many characters."""
    return " ".join(draw.choices(WORDS.split(), k=length // 4))[:length]


def scored_rows(rows: int, components: int) -> ScoredRows:
    """Made-up rows whose contributions add up to their values."""
    draw, made = random.Random(7), []
    for number in range(rows):
        parts = []
        for place in range(components):
            lost = draw.random() < 0.01
            name, adds = f"component_{place}", draw.gauss(0, 0.2)
            reason = text(draw, 200) if place % 3 == 0 and not lost else ""
            judgement = Judgement(name, 3 + adds, 0.5, reason)
            if lost:
                judgement, adds = Judgement(name, status=Status.TRANSPORT, error="HTTP 500: overloaded"), math.nan
            parts.append(Part(name, "a number from 1 to 5", 0.2, True, adds, 0.0, judgement))
        value = math.fsum([3.1, *(part.contribution for part in parts if part.judgement.ok)])
        cells = {"input": text(draw, 1000), "output": f"row {number} {text(draw, 990)}"}
        prediction = Judgement("induced", value, min(1.0, max(0.0, (value - 1) / 4)))
        made.append(ScoredRow(f"row-{number}", cells, prediction, 3.1, tuple(parts)))
    return ScoredRows(made, "rating", Scale(1, 5, 1), "made up", "benchmark")


def measured(browser: Chromium, page: Path) -> dict[str, list[float]]:
    """Milliseconds of opening the page (until it is drawn, since the address was known) and of each action."""
    times: dict[str, list[float]] = {"open": []} | {name: [] for name in ACTIONS}
    for _ in range(3):
        browser.open(page)
        times["open"].append(browser.run(TIMED % "" + ".then(() => performance.now())"))
        for name, scripts in ACTIONS.items():
            times[name] += [browser.run(TIMED % script) for script in scripts]
    return times


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--components", type=int, default=12)
    parser.add_argument("--keep", type=Path)
    asked = parser.parse_args()
    program = found()
    if program is None:
        raise SystemExit("no Chromium on this machine")
    with tempfile.TemporaryDirectory() as folder:
        page = asked.keep or Path(folder) / "page.html"
        table, started = scored_rows(asked.rows, asked.components), time.perf_counter()
        write_page(table, page)
        print(f"{asked.rows} rows x {asked.components} components, {page.stat().st_size / 1e6:.1f} MB, "
              f"written in {time.perf_counter() - started:.1f} s")  # fmt: skip
        with Chromium(program, Path(folder)) as browser:
            for name, milliseconds in measured(browser, page.resolve()).items():
                print(f"  {name:22} {median(milliseconds):6.0f} ms")


if __name__ == "__main__":
    main()
