"""The page, the Markdown and the lines of judges beside people."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from judged_choices import write_tables
from metricsmith.datasets.choices import read_rated_choices
from metricsmith.rating_model.vectors import Decision
from metricsmith.report.render import render_html, render_json, render_markdown, render_terminal
from metricsmith.report.validation.document import ValidationDocument, next_step, validation_verdict, write_validation
from metricsmith.report.validation.record import validate_judges
from metricsmith.report.validation.use import curves, holds, ranked, slopes


def record_of(folder, **settings):
    read = read_rated_choices(*write_tables(folder, **settings.pop("tables", {})))
    asked = {"decision": Decision(("rude",)), "thresholds": [0.5, 0.3], "draws": 200, "sources": read.sources}
    return validate_judges(read.human, read.judges, read.options, notes=read.notes, **{**asked, **settings})


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    return record_of(tmp_path_factory.mktemp("tables"))


def test_the_page_has_its_sections_in_order_and_a_plot_for_each_question(record):
    page = render_html(ValidationDocument(record))
    keys = re.findall(r'<section id="(\w+)"', page)
    wanted = ["judges", "use", "sensitivity", "violations", "disagreements", "replacing", "reading", "notes"]
    assert keys == [key for key in wanted if key != "violations" or record.selection.violations]
    plots = re.findall(r'class="plot plot-([\w-]+)"', page)
    assert plots[0] == "judges"
    assert plots.count("beta-500") == plots.count("beta-300") == plots.count("prevalence") == 1
    assert len(set(plots)) == len(plots)
    assert "http:" not in page
    assert "https:" not in page


def test_the_record_is_json_and_the_files_are_written(record, tmp_path):
    write_validation(record, tmp_path)
    content = json.loads((tmp_path / "validate.json").read_text("utf-8"))
    assert content == json.loads(render_json(record))
    assert content["selection"]["pick"] == record.selection.pick
    assert content["clinic"]["split"]["consistency"]
    assert len(content["replacing"]["atlas"]["p_values"]) == 5


def test_a_plot_of_slopes_stands_for_each_order_of_the_judges(record):
    found = record.selection
    orders = {
        tuple(one.judge for one in ranked(result)) for result in found.results if result.name not in
        ("decision_consistency", "prevalence_bias")
    }  # fmt: skip
    figures = slopes(found)
    assert len(figures) == len(orders)
    told = " ".join(figure.caption for figure in figures)
    assert all(result.name.replace("_", " ") in told for result in found.results[:-2])
    best = ranked(found.result("decision_consistency"))[0].judge
    assert f"{best}: place" in figures[0].plot
    assert f"and place 1 ({best_value(found)})" in figures[0].plot
    by_consistency = next(one for one in found.results if one.name == "decision_consistency")
    right = slopes(replace(found, results=(replace(by_consistency, name="js_distance"), *found.results[-2:])))[0].plot
    assert right.count('class="curve"') == 1
    assert 'class="curve down"' not in right
    assert re.search(r'<polyline points="130.0,44.0 230.0,44.0" class="curve"', right)


def best_value(found):
    return f"{max(one.value for one in found.result('decision_consistency').figures):.2f}".lstrip("0")


def test_ranges_of_beta_name_the_best_judge_of_each(record):
    sweep = record.selection.sweep
    lines = holds(sweep)
    assert len(lines) == 2
    first = next(cell for cell in sweep if cell.threshold == 0.5 and cell.beta == 0)
    assert lines[0].startswith(f"Best in use at threshold 0.5: {first.best} for beta 0")
    changed = [replace(cell, best="other" if cell.beta == 0.25 else "same") for cell in sweep if cell.threshold == 0.3]
    assert holds(changed) == [
        "Best in use at threshold 0.3: same for beta 0 to 0.2, other for beta 0.25, same for beta 0.3 to 0.5."
    ]
    alike = [replace(cell, best="" if cell.beta else "one") for cell in sweep if cell.threshold == 0.3]
    assert holds(alike) == ["Best in use at threshold 0.3: one for beta 0, all judges alike for beta 0.05 to 0.5."]
    assert curves([cell for cell in sweep if cell.beta == 0]) == []


def test_the_verdict_has_the_tone_of_the_choice(record):
    tones = {}
    for word in ("chosen", "depends", "undecided"):
        tones[word] = validation_verdict(replace(record, selection=replace(record.selection, verdict=word))).tone
    assert tones == {"chosen": "good", "depends": "unsure", "undecided": "unsure"}
    assert record.selection.pick in validation_verdict(record).sentence


def test_markdown_and_terminal_have_the_tables_and_no_plot(record):
    text = render_markdown(ValidationDocument(record))
    assert "| measure | pick | value |" in text
    assert "over all response sets" in text
    assert "svg" not in text
    assert "0.95" in render_terminal(ValidationDocument(record)).splitlines()[-1]


def test_without_a_use_no_figure_of_use_is_shown(tmp_path):
    record = record_of(tmp_path, decision=None, thresholds=[])
    page = render_html(ValidationDocument(record))
    assert 'id="sensitivity"' not in page
    assert "plot-slope" not in page
    assert "in use" not in page
    assert "regret" not in render_terminal(ValidationDocument(record))


def test_the_next_step_follows_the_verdict_and_asks_for_a_use_where_none_was_named(record):
    found = record.selection
    said = {
        word: next_step(replace(record, selection=replace(found, verdict=word)))
        for word in ("chosen", "depends", "undecided")
    }
    assert "score --labelled" in said["chosen"]
    assert "response sets" in said["depends"]
    assert "metricsmith plan" in said["undecided"]
    assert "--positive" in next_step(replace(record, decision=None, selection=replace(found, verdict="depends")))
    step = next_step(record)
    assert step in render_html(ValidationDocument(record))
    assert step in render_markdown(ValidationDocument(record))
    assert f"  next: {step}" in render_terminal(ValidationDocument(record))


def test_notes_on_ratings_stand_under_the_verdict_and_those_on_tables_at_the_end(record):
    lost = "3 of 9 items are left out"
    own = replace(record, selection=replace(record.selection, notes=(lost,)), notes=(*record.notes, lost))
    page = render_html(ValidationDocument(own))
    assert page.count(lost) == 1
    assert page.index(lost) < page.index('id="judges"') < page.index("columns guessed")
    lines = render_terminal(ValidationDocument(own)).splitlines()
    assert f"  {lost}" in lines
    assert f"note: {lost}" not in lines


def test_tables_by_measure_have_a_row_for_each_judge_the_best_first(record):
    text = render_markdown(ValidationDocument(record))
    order = [one.judge for one in ranked(record.selection.result("decision_consistency"))]
    for head in ("| judge | hit rate ↑ h/h |", "| best by | hit rate |"):
        rows = text[text.index(head) :].splitlines()[2 : 2 + len(order)]
        assert [row.split(" | ")[0] for row in rows] == [f"| {name}" for name in order]
    hits = {own.judge: own.value for own in record.selection.result("hit_rate").figures}
    matrix = text[text.index("| judge | hit rate ↑ h/h |") :].splitlines()[2]
    assert matrix.split(" | ")[1].startswith(f"{hits[order[0]]:.3f}".lstrip("0"))


def test_a_bias_stands_with_its_size_and_what_beta_adds_is_said(record):
    found = record.selection
    *others, bias = found.results
    below = replace(bias, figures=tuple(replace(own, value=-0.25) for own in bias.figures))
    text = render_terminal(ValidationDocument(replace(record, selection=replace(found, results=(*others, below)))))
    row = next(line for line in text.splitlines() if "size of prevalence bias" in line)
    assert row.split()[5] == ".250"
    lines = text.splitlines()
    assert lines[0] == validation_verdict(record).sentence  # the verdict, its reasons, and the one thing to do
    after = 1 + next(place for place, line in enumerate(lines) if line.startswith("  next: "))
    assert lines[after].endswith("; beta adds rude.")


def test_plots_say_how_many_judges_they_leave_out_and_hold_the_pick(record):
    found = record.selection
    first = found.result("decision_consistency")
    crowd = tuple(replace(first.figures[0], judge=f"j{place}", value=2.0) for place in range(14))
    results = tuple(replace(one, figures=(*one.figures, *crowd)) for one in found.results)
    judges = (*found.judges, *(own.judge for own in crowd))
    own = replace(record, selection=replace(found, results=results, judges=judges))
    figure = ValidationDocument(own).page().header[-1].blocks[1]
    assert f"13 of {len(judges)} judges" in figure.caption
    assert f"{found.pick}: " in figure.plot
    assert f" of {len(judges)} judges." in slopes(own.selection)[0].caption


def test_raters_who_share_no_item_are_not_replaced(tmp_path):
    read = read_rated_choices(*write_tables(tmp_path))
    table, places = read.human, range(len(read.human.item))
    alone = table.drawn(np.array([place for place in places if table.rater[place] == table.item[place] % 5]))
    record = validate_judges(alone, read.judges, read.options, decision=Decision(("rude",)), draws=50)
    assert record.replacing == {}
    assert 'id="replacing"' not in render_html(ValidationDocument(record))
    assert any("one human rating" in note for note in record.notes)


def test_names_of_the_data_cannot_break_the_page(record):
    evil = "<b>x</b> | `y`"
    found = record.selection
    renamed = [replace(one, figures=(replace(one.figures[0], judge=evil), *one.figures[1:])) for one in found.results]
    cases = tuple(replace(case, item=evil, judge=evil) for case in record.clinic.cases)
    own = replace(
        record, selection=replace(found, pick=evil, results=tuple(renamed), judges=(evil, *found.judges[1:])),
        clinic=replace(record.clinic, cases=cases), notes=(evil,), warnings=(evil,),
    )  # fmt: skip
    assert "<b>x" not in render_html(ValidationDocument(own))
    assert "<b>x" not in render_markdown(ValidationDocument(own))


def test_slopes_tell_long_names_apart_and_always_hold_the_pick(record):
    found = record.selection
    names = {old: f"provider/model-{old}" for old in found.judges}
    results = tuple(
        replace(one, pick=names[one.pick], figures=tuple(replace(own, judge=names[own.judge]) for own in one.figures))
        for one in found.results
    )
    plot = slopes(replace(found, judges=tuple(names.values()), results=results))[0].plot
    assert plot.count("…atlas<") == 1
    worst = ranked(found.result("decision_consistency"))[-1]
    crowd = [replace(worst, judge=f"j{place}", value=0.9) for place in range(15)]
    many = [
        replace(one, pick=worst.judge, figures=(*one.figures, *crowd)) if one.name == "hit_rate"
        else replace(one, figures=(*one.figures, *crowd)) for one in found.results
    ]  # fmt: skip
    plots = slopes(replace(found, judges=(*found.judges, *(own.judge for own in crowd)), results=tuple(many)))
    assert worst.judge in next(figure.plot for figure in plots if "hit rate" in figure.caption)
