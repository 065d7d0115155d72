"""The page of scored rows, as it is written."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from metricsmith.records import Judgement, Status
from metricsmith.report.render import render_page
from metricsmith.report.scored import document
from metricsmith.report.scored.document import scored_page, scored_verdict, shown_rows, write_page
from metricsmith.report.scored.record import ScoredRow
from scored_tables import beside, part, row, scored


def data(html: str) -> dict:
    start = html.index('id="scored-data">') + len('id="scored-data">')
    return json.loads(html[start : html.index("</script>", start)])


def page_of(table) -> str:
    return render_page(scored_page(table), table.metric)


def test_the_rows_in_the_page_add_up_to_their_values():
    draws = [math.pi / 7, -math.e / 11, 1 / 3, 1e-7]
    table = scored(*(row(f"r{n}", *(part(f"p{k}", x * (n + 1), 2.0) for k, x in enumerate(draws))) for n in range(20)))
    for _, _, value, intercept, *_, adds, _, _ in data(page_of(table))["rows"]:
        assert math.fsum([intercept, *adds]) == pytest.approx(value, abs=1e-8)


def test_failures_have_their_status_and_error_and_no_number():
    found = data(page_of(scored()))["rows"]
    first, second, third = found
    assert (first[4], first[10]) == ("ok", {})
    assert second[7:9] == [[1.0, None], [-1.0, None]]
    assert second[10] == {"1": ["transport", "HTTP 500"]}
    assert (third[2], third[4]) == (None, "transport")
    assert third[5] == "too little to go by: tone: no value (HTTP 500)"


def test_the_verdict_counts_what_is_missing():
    # (3 + .5 - .25 and 3 - 1) / 2 = 2.625
    found = scored_verdict(scored())
    assert found.sentence == (
        "2 rows scored, mean stars 2.62 on 1 to 5; 1 row without a value; components missing in 2 rows."
    )
    assert found.tone == "bad"  # one row of three
    whole = scored_verdict(scored(row("a", part("tone", 1.0, 2.0))))
    assert (whole.sentence, whole.tone) == ("1 row scored, mean stars 4.00 on 1 to 5.", "good")
    several = scored_verdict(beside(("a", 0.5, 0.25), ("b", None, 0.5)))
    assert (several.sentence, several.tone) == ("2 rows by 2 metrics; values missing in 1 row.", "unsure")


def test_without_a_scale_the_scores_tell_the_decimals():
    table = scored(
        row("a", part("tone", 0.25, 2.0)), row("b", part("tone", 0.75, 2.0)), row("c", part("tone", 0.5, 2.0))
    )
    assert "mean stars 3.50." in scored_verdict(replace(table, scale=None)).sentence  # the range of .5 has three
    bent = [replace(one, prediction=replace(one.prediction, score=score))
            for one, score in zip(table.rows, (0.1, 0.9, 0.2), strict=True)]  # fmt: skip
    assert "mean stars 3.500." in scored_verdict(replace(table, rows=bent, scale=None)).sentence


def test_the_page_shows_what_is_missing_beside_the_distribution(read):
    page = read(page_of(scored()))
    assert page.mismatched == []
    facts = dict(zip(page.inside("dt"), page.inside("dd"), strict=False))
    assert facts["No value: transport"] == "1"
    assert facts["A component missing"] == "2"
    assert len([a for tag, a in page.elements if tag == "rect" and "data-low" in a]) == 2
    assert page.headings[0] == (1, "Scored rows stars, 1 to 5")


def test_metrics_beside_each_other_have_a_distribution_each_and_no_value():
    html = page_of(beside(("a", 0.5, 0.25), ("b", None, 0.5)))
    found = data(html)
    assert (found["value"], found["adds"], [name for name, _ in found["parts"]]) == (None, False, ["bleu", "chrf"])
    assert ("plot-part-0" in html, "plot-part-1" in html, "plot-value" in html) == (True, True, False)


def test_the_first_rows_stand_in_the_table_without_a_script(read):
    rows = [row(f"r{number}", part("tone", 0.5, 4.0), output="a" * 200) for number in range(60)]
    page = read(page_of(scored(*rows)))
    assert page.text.count("The first 50 rows.") == 1
    ids = [text for text in page.inside("th", scope="row") if text.startswith("r")]
    assert ids == [f"r{number}" for number in range(50)]
    assert page.inside("td")[:3] == ["3.50", "a" * 79 + "…", "+0.50"]


def test_hostile_texts_stay_text(read, evil):
    hostile = evil + "</script><!--\u2028\u2029\ud800"
    judged = Judgement("m", 3.0, 0.5, hostile, Status.OK)
    bad = replace(part(hostile, 0.5, 1.0), judgement=judged, meaning=hostile)
    table = replace(scored(ScoredRow(hostile, {hostile: hostile}, judged, 2.5, (bad,))), target=hostile, source=hostile)
    html = page_of(table)
    page = read(html)
    assert page.mismatched == []
    tags = [tag for tag, _ in page.elements]
    assert tags.count("script") == 2
    assert not {"img", "iframe", "b"} & set(tags)
    place = html.index('id="scored-data">')
    assert "\u2028" not in html[place : html.index("</script>", place)]
    (kept,) = data(html)["rows"]
    assert kept[1][0].startswith("<script>alert(1)</script>")
    assert "\x00" not in kept[1][0]


def test_the_policy_admits_the_script_by_its_hash_alone(read):
    (policy,) = [a["content"] for tag, a in read(page_of(scored())).elements if a.get("http-equiv")]
    sources = [part.strip() for part in policy.split(";") if part.strip().startswith("script-src")]
    assert len(sources) == 1
    assert sources[0].startswith("script-src 'sha256-")
    assert "unsafe" not in policy


def test_texts_are_cut_where_the_page_would_grow_too_large_and_the_page_says_so(monkeypatch, read):
    table = scored(*(row(f"r{n}", part("tone", 0.5, 4.0), output="x" * 900, system="s") for n in range(20)))
    assert "are cut" not in read(page_of(table)).text
    monkeypatch.setattr(document, "MOST_BYTES", 16_000)
    html = page_of(table)
    assert "20 texts of more than 600 characters are cut there on this page, marked […]." in read(html).text
    assert data(html)["rows"][0][1] == ["x" * 600 + " […]", "s"]


def test_of_too_many_rows_the_worst_stay_in_their_order(monkeypatch):
    monkeypatch.setattr(document, "MOST_ROWS", 2)
    rows = [row(name, part("tone", adds, 1.0)) for name, adds in (("a", 1.0), ("b", -1.0), ("c", 0.0))]
    lacking = scored().rows[2]
    kept, said = shown_rows(scored(*rows, lacking))
    assert [one.id for one in kept] == ["b", "r10"]
    assert said == (
        "The table has 2 of 4 rows, the worst (rows without a value, then the lowest scores); 2 are left out. "
        "The distribution is that of all rows."
    )
    kept, said = shown_rows(beside(("a", 0.9, 0.9), ("b", 0.1, 0.1), ("c", None, 0.5)))
    assert [one.id for one in kept] == ["a", "c"]
    assert "the first (those with a missing value before others)" in said
    monkeypatch.setattr(document, "MOST_ROWS", 4)
    assert shown_rows(scored(*rows, lacking)) == ([*rows, lacking], "")


def test_many_components_leave_room_for_fewer_rows(monkeypatch):
    monkeypatch.setattr(document, "MOST_CELLS", 6)
    assert len(shown_rows(scored())[0]) == 2  # 6 // (2 components and a text)


def test_each_component_has_a_line_with_its_numbers_and_failures(read):
    page = read(page_of(scored()))
    lines = page.text[page.text.index("moves the value by") :]
    # tone adds .5 and -1, the mean size is .75; it is missing in one row of three
    for text in ("tone", "2.50", "0.75", "33\xa0%", "1 transport", "67\xa0%", "2 transport"):
        assert text in lines, text


def test_the_page_is_written_whole(tmp_path):
    write_page(scored(notes=("a note",)), tmp_path / "page.html")
    html = (tmp_path / "page.html").read_text("utf-8")
    assert html.startswith("<!doctype html>")
    assert "a note" in html
    assert "metricsmith 1 | made up" in html
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
