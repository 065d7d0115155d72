"""The demonstration on embedded data, held against the truth that was planted."""

from __future__ import annotations

import csv
import json
import re
import sys

import pytest

from metricsmith.cli import main
from metricsmith.datasets import plain_notices
from metricsmith.errors import DataError


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def report(folder):
    patch = pytest.MonkeyPatch()
    patch.setattr(sys, "argv", ["metricsmith", "demo", "--out", str(folder)])
    try:
        main()
    except SystemExit as end:
        assert not end.code  # noqa: PT017
    finally:
        patch.undo()
    return json.loads((folder / "report.json").read_text("utf-8"))


def test_the_interval_excludes_zero(report):
    assert report["test"]["ci_low"] > 0
    assert report["test"]["p_value"] < 0.05


def test_it_is_labelled_synthetic_wherever_it_shows(report, folder):
    assert report["synthetic"] == plain_notices.SYNTHETIC
    assert plain_notices.SYNTHETIC.split(":")[0] in (folder / "report.html").read_text("utf-8")
    assert plain_notices.SYNTHETIC.split(":")[0] in (folder / "report.md").read_text("utf-8")


def test_components_carry_the_signs_that_the_generator_planted(report, folder):
    rows = plain_notices.load()[1]
    scores = {row["id"]: row for row in csv.DictReader((folder / "scores.csv").read_text("utf-8").splitlines())}
    signs = {}
    for component in report["components"]:
        values = [float(scores[row.id][component["name"]]) for row in rows]
        signs[component["name"]] = (component["direction"], plain_notices.expected_sign(rows, values))
    against = [name for name, (sign, due) in signs.items() if sign not in {1: "+", -1: "-", 0: "+-"}[due]]
    # A component that corrects others may carry another sign, if the report says that its weight is no effect.
    said = (folder / "report.md").read_text("utf-8").replace("\\", "")
    assert all(re.search(rf"goes against|another sign [^.]*{name} \(alone", said) for name in against), signs
    assert len(against) <= 1


def test_length_readability_and_recall_are_among_the_components(report):
    names = " ".join(component["name"] for component in report["components"])
    assert "fkgl" in names
    assert "output_" in names or "length" in names
    assert any(word in names for word in ("_r", "recall"))


def test_what_no_lexical_metric_sees_is_named(report):
    hidden = [note for note in report["notes"] if "no lexical metric can see it" in note]
    assert {note.split(":")[1].split(" costs")[0].strip() for note in hidden} == {"contradiction", "wrong tone"}


def test_it_writes_over_its_own_metric_and_no_other(report, folder, tmp_path, monkeypatch, capsys):
    other = '{"kind": "induced", "signature": "metricsmith 0 | data own.csv sha256:1"}'
    (tmp_path / "metric.json").write_text(other)

    def begun(*_, **__):
        raise DataError("it has begun")

    monkeypatch.setattr("metricsmith.optimizers.induce.induce", begun)
    for place, says in ((folder, "it has begun"), (tmp_path, "holds a metric of another run")):
        monkeypatch.setattr(sys, "argv", ["metricsmith", "demo", "--out", str(place)])
        with pytest.raises(SystemExit) as end:
            main()
        assert end.value.code == 2
        assert says in capsys.readouterr().err
    assert (tmp_path / "metric.json").read_text() == other
