"""The page of scored rows in a real browser: sorted, filtered, searched and opened as by hand."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from benchmark import loaded
from chromium import Chromium, found
from metricsmith.records import Judgement, Status
from metricsmith.report.scored.document import write_page
from metricsmith.report.scored.record import ScoredRow
from scored_tables import beside, lost, part, row, scored

pytestmark = pytest.mark.browser

IDS = "[...document.querySelectorAll('tr.row th bdi')].map((one) => one.textContent)"
SAID = "document.querySelector('.said').textContent"
SET = """
((id, value) => {
  const field = document.getElementById(id);
  field.value = value;
  for (const name of ["input", "change"]) field.dispatchEvent(new Event(name, { bubbles: true }));
})
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    program = found() or pytest.skip("no Chromium on this machine")
    with Chromium(program, tmp_path_factory.mktemp("browser")) as browser:
        yield browser


@pytest.fixture
def open_page(browser, tmp_path):
    def open_page(table, *size, **options):
        write_page(table, tmp_path / "page.html")
        browser.open(tmp_path / "page.html", *size, **options)
        return browser

    return open_page


def set_field(browser, name, value):
    browser.run(f"{SET}('{name}', '{value}')")


def sort_by(browser, place):
    browser.run(f"document.querySelectorAll('.scored thead button')[{place}].click()")
    return browser.run(IDS)


# Values: r1 is 3.25, r2 is 2, r10 has none, r3 is 4.5.
FOUR = scored(*scored().rows, row("r3", part("tone", 1.0, 5.0), part("facts", 0.5, 4.0), output="An answer."))


def test_it_opens_offline_without_a_complaint(open_page):
    browser = open_page(FOUR)
    assert (browser.complaints, browser.requested) == ([], [])
    assert browser.run(IDS) == ["r1", "r2", "r10", "r3"]
    assert browser.run(SAID) == "4 of 4 rows, mean 3.25"  # (3.25 + 2 + 4.5) / 3


def test_a_click_on_a_head_sorts_and_another_turns_it_with_gaps_last(open_page):
    browser = open_page(FOUR)
    assert sort_by(browser, 1) == ["r2", "r1", "r3", "r10"]
    head = "document.querySelectorAll('.scored thead th')[1].ariaSort"
    assert browser.run(head) == "ascending"
    assert sort_by(browser, 1) == ["r3", "r1", "r2", "r10"]
    assert browser.run(head) == "descending"
    assert sort_by(browser, 3) == ["r2", "r1", "r3", "r10"]  # tone adds -1, .5, 1
    assert sort_by(browser, 0) == ["r1", "r2", "r3", "r10"]  # ids as people count
    assert sort_by(browser, 2) == ["r3", "r2", "r1", "r10"]  # An answer, Closed, the road, zebra
    set_field(browser, "sort", "4")
    assert browser.run(IDS)[:2] == ["r1", "r3"]  # facts adds -.25, .5
    browser.run("document.getElementById('turn').click()")
    assert browser.run(IDS)[:2] == ["r3", "r1"]


def test_a_column_of_numbers_sorts_as_numbers(open_page):
    cells = {"a": "-1.5", "b": "10", "c": "9", "d": "", "e": "-2.25"}
    browser = open_page(scored(*(row(name, part("tone", 0.5, 1.0), rating=cell) for name, cell in cells.items())))
    assert sort_by(browser, 2) == ["e", "a", "c", "b", "d"]


def test_filters_narrow_the_rows_together_and_are_cleared(open_page):
    browser = open_page(FOUR)
    for kind, ids in (
        ("complete", ["r1", "r3"]), ("missing", ["r2", "r10"]), ("none", ["r10"]), ("=transport", ["r2", "r10"]),
    ):  # fmt: skip
        set_field(browser, "status", kind)
        assert browser.run(IDS) == ids
    set_field(browser, "status", "")
    set_field(browser, "low", "2")
    assert browser.run(IDS) == ["r1", "r2", "r3"]
    set_field(browser, "high", "4")
    assert browser.run(IDS) == ["r1", "r2"]
    set_field(browser, "part", "0")
    set_field(browser, "part-low", "0")
    assert browser.run(IDS) == ["r1"]
    assert browser.run(SAID) == "1 of 4 rows, mean 3.25"
    browser.run("document.getElementById('reset').click(); new Promise((done) => setTimeout(done, 50))")
    assert len(browser.run(IDS)) == 4


def test_a_components_range_goes_by_the_number_that_is_shown(open_page):
    browser = open_page(FOUR)
    set_field(browser, "shown", "own")
    set_field(browser, "part", "0")
    set_field(browser, "part-low", "4")
    assert browser.run(IDS) == ["r1", "r3"]  # tone is 4 and 5
    assert browser.run("document.querySelector('tr.row').cells[3].textContent") == "4"


@pytest.mark.parametrize(
    ("text", "ids"),
    [("R1", ["r1", "r10"]), ("ROAD", ["r1"]), ("rude", ["r2"]), ("http 500", ["r2", "r10"]), ("nowhere", [])],
)
def test_search_finds_ids_texts_reasons_and_errors_in_any_case(open_page, text, ids):
    browser = open_page(FOUR)
    set_field(browser, "search", text)
    assert browser.run(IDS) == ids
    assert browser.run(SAID).startswith(f"{len(ids)} of 4 rows")


def opened(browser, place):
    browser.run(f"document.querySelectorAll('tr.row button')[{place}].click()")
    return browser.run(
        "[...document.querySelectorAll('.parts li')].slice(1).map((one) => one.innerText.split(/\\s*\\n\\s*/))"
    )


def test_a_row_opens_to_its_texts_and_a_sum_that_equals_the_value(open_page):
    browser = open_page(FOUR)
    assert opened(browser, 0) == [["tone", "4", "+0.500", "It is kind."], ["facts", "2", "−0.250"]]
    said = browser.run("document.querySelector('.sum').textContent")
    assert said == "3.250 = 3.000 for a row that is average in every component + 0.250 from the components"
    assert browser.run("document.querySelector('.texts').textContent") == "id r1outputthe road is shut"
    wide = browser.run("[...document.querySelectorAll('.track .bar')].map((one) => parseFloat(one.style.width))")
    assert wide == [25.0, 12.5]  # half of the track is 1, the largest of all rows
    assert browser.run("document.querySelector('tr.row button').ariaExpanded") == "true"
    assert opened(browser, 0) == []


def test_a_missing_component_counts_zero_and_is_marked(open_page):
    browser = open_page(FOUR)
    assert opened(browser, 1) == [
        ["tone", "1", "−1.000", "Rude."],
        ["facts", "–", "counts 0", "no value, transport: HTTP 500"],
    ]
    said = browser.run("document.querySelector('.sum').textContent")
    assert said == "2.000 = 3.000 for a row that is average in every component − 1.000 from the components"
    assert browser.run("document.querySelectorAll('.parts li.lost').length") == 1
    opened(browser, 1)
    opened(browser, 2)
    said = browser.run("document.querySelector('.sum').textContent")
    assert said == "no value, transport: too little to go by: tone: no value (HTTP 500)"


def test_the_keyboard_opens_a_row_and_chooses_a_bar(open_page):
    browser = open_page(FOUR)
    for focus in (
        "document.querySelector('tr.row button').focus()",
        "document.querySelector('rect[data-low]').focus()",
    ):
        browser.run(focus)
        for kind in ("keyDown", "keyUp"):
            browser.send(
                "Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", text="\r", windowsVirtualKeyCode=13
            )
    assert browser.run("document.querySelectorAll('rect[data-low]').length") == 3
    assert browser.run(IDS) == ["r2"]
    assert browser.run("document.getElementById('low').value") == "2"
    browser.run("document.getElementById('reset').click(); new Promise((done) => setTimeout(done, 50))")
    assert browser.run("document.querySelectorAll('tr.detail').length") == 1


def test_fifty_rows_are_drawn_at_a_time(open_page):
    browser = open_page(scored(*(row(f"r{number}", part("tone", number / 1000, 1.0)) for number in range(120))))
    assert len(browser.run(IDS)) == 50
    browser.run("document.querySelector('[aria-label=\"last rows\"]').click()")
    assert browser.run(IDS) == [f"r{number}" for number in range(100, 120)]
    assert browser.run("document.querySelector('.pager span').textContent") == "101 to 120"
    assert browser.run("document.querySelector('[aria-label=\"next rows\"]').disabled") is True


def test_metrics_beside_each_other_are_filtered_by_their_bars(open_page):
    browser = open_page(beside(("a", 0.5, 0.25), ("b", None, 0.5), ("c", 0.9, 0.75)))
    assert sort_by(browser, 1) == ["a", "c", "b"]
    browser.run("document.querySelector('.plot-part-1 rect').dispatchEvent(new MouseEvent('click'))")
    assert browser.run(IDS) == ["a"]
    assert browser.run("document.getElementById('part').value") == "1"
    assert browser.run("document.getElementById('low')") is None


def test_hostile_texts_never_become_elements(open_page, evil):
    hostile = evil + "</script><svg onload='alert(1)'>\u2028"
    judged = Judgement("m", 3.0, 0.5, hostile, Status.OK)
    bad = replace(part(hostile, 0.5, 1.0), judgement=judged, meaning=hostile)
    gone = replace(lost("b"), judgement=Judgement("b", status=Status.REFUSED, error=hostile))
    table = replace(
        scored(ScoredRow(hostile, {hostile: hostile}, judged, 2.5, (bad, gone))), target=hostile, source=hostile
    )
    browser = open_page(table)
    opened(browser, 0)
    assert browser.complaints == []
    assert browser.run("document.querySelectorAll('img, tr svg, script, iframe').length") == 2
    shown = browser.run("document.querySelector('.texts p[dir]').textContent")
    assert shown.startswith("<script>alert(1)</script>")
    assert browser.run("document.querySelectorAll('p[dir=auto]').length") == 3  # text, reason, error
    assert browser.run("document.getElementById('part').innerText.includes('\\u202e')") is False


@pytest.mark.parametrize(("width", "dark", "paper"), [(400, False, "251, 250, 247"), (1200, True, "20, 23, 26")])
def test_it_fits_phone_and_desktop_light_and_dark(open_page, width, dark, paper):
    wide = scored(
        *(
            row(f"r{n}", *(part(f"component_{k}", 0.1, 1.0, "x" * 300) for k in range(12)), output="y" * 500)
            for n in range(3)
        )
    )
    browser = open_page(wide, width, 900, dark=dark)
    opened(browser, 0)
    assert browser.run("document.documentElement.scrollWidth") == width
    assert browser.run("document.querySelector('.opened').getBoundingClientRect().right") <= width
    assert browser.run("getComputedStyle(document.body).backgroundColor") == f"rgb({paper})"


def test_without_scripts_the_first_rows_and_a_word_on_it_are_shown(open_page):
    browser = open_page(FOUR, script=False)
    assert browser.run("[...document.querySelectorAll('.scored tbody th')].map((one) => one.innerText)") == [
        "r1",
        "r2",
        "r10",
        "r3",
    ]
    assert browser.run("document.querySelector('form')") is None
    assert "need a browser that runs scripts" in browser.run("document.querySelector('noscript').innerText")


def test_five_thousand_rows_open_in_three_seconds_and_answer_in_a_fifth(browser, tmp_path):
    scored_page = loaded("scored_page")
    write_page(scored_page.scored_rows(5000, 12), tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size < 15e6
    opening, *others = map(min, scored_page.measured(browser, tmp_path / "page.html").values())
    waits = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))  # for a core, where more is run than there are
    assert opening < 3000 * waits
    assert max(others) < 200 * waits


def test_what_rounds_to_zero_has_no_sign_and_the_sum_of_an_opened_row_adds_up(open_page):
    # 3.4594 is 3.459, 3 is 3.000, and what the parts add, .4594 in all, is .459; of tone -.001 is 0.00.
    table = scored(row("a", part("tone", -0.001, 1.0), part("facts", 0.4604, 1.0)))
    table = replace(table, rows=[replace(table.rows[0], intercept=2.9996, prediction=Judgement("m", 3.4590, 0.6))])
    browser = open_page(table)
    cells = "[...document.querySelectorAll('tr.row td')].map((one) => one.textContent)"
    assert browser.run(cells) == ["3.46", "0.00", "+0.46"]
    browser.run("document.querySelector('tr.row button').click()")
    said = browser.run("document.querySelector('.sum').textContent")
    assert said.startswith("3.459 = 3.000 for")
    assert "+ 0.459 from" in said


def test_numbers_stand_beside_the_first_line_of_a_long_id(open_page):
    browser = open_page(scored(row("a-very-long-id-that-takes-three-lines-of-its-cell", part("tone", 0.5, 1.0))))
    top = """((one) => {
        const range = document.createRange();
        range.selectNodeContents(one);
        return range.getClientRects()[0].top;
    })"""
    id_top, number_top = (
        browser.run(f"{top}(document.querySelector('{one}'))") for one in ("tr.row th bdi", "tr.row td")
    )
    assert abs(id_top - number_top) < 3
