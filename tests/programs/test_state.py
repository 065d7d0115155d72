"""Settings that travel with a module, and the one file that a metric becomes."""

from __future__ import annotations

import json

import dspy
import pytest

from metricsmith import saving
from metricsmith.errors import StateError
from metricsmith.programs.state import Settings, read_state
from metricsmith.saving import SCHEMA_VERSION, write_state


class Holder(dspy.Module):
    def __init__(self, **values):
        super().__init__()
        self.settings = Settings(**values)


def test_settings_read_as_attributes_and_unknown_ones_are_attribute_errors():
    settings = Settings(name="a", levels=[1, 2])
    assert (settings.name, settings.levels) == ("a", [1, 2])
    with pytest.raises(AttributeError, match="colour"):
        settings.colour  # noqa: B018


def test_dspys_reset_leaves_settings_alone():
    module = Holder(name="a").reset_copy()
    assert module.settings.name == "a"


def test_a_copy_of_a_module_has_settings_of_its_own():
    first = Holder(levels=[1, 2])
    second = first.deepcopy()
    second.settings.values["levels"].append(3)
    assert first.settings.levels == [1, 2]


def test_loaded_settings_replace_the_old_ones_and_do_not_share_the_state():
    saved = Settings(name="a").dump_state()
    settings = Settings(name="b", extra=1)
    settings.load_state(saved)
    saved["name"] = "changed"
    assert settings.values == {"name": "a"}


def test_what_is_written_is_read_back_with_version_and_hash(tmp_path):
    write_state({"kind": "column", "name": "größe"}, tmp_path / "m.json")
    content = read_state(tmp_path / "m.json")
    assert (content["kind"], content["name"], content["schema_version"]) == ("column", "größe", SCHEMA_VERSION)
    assert content["versions"]["metricsmith"]


def test_a_state_that_is_no_json_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "m.json"
    write_state({"kind": "column", "name": "old"}, path)
    with pytest.raises(ValueError, match="JSON compliant"):
        write_state({"kind": "column", "name": float("nan")}, path)
    assert read_state(path)["name"] == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["m.json"]


def test_a_reader_of_the_old_file_never_meets_the_new_one(tmp_path):
    path = tmp_path / "m.json"
    write_state({"kind": "column", "name": "old"}, path)
    with path.open(encoding="utf-8") as reader:
        write_state({"kind": "column", "name": "new"}, path)
        assert json.load(reader)["name"] == "old"
    assert read_state(path)["name"] == "new"


def test_a_file_of_another_schema_version_is_refused_with_both_versions(tmp_path, monkeypatch):
    monkeypatch.setattr(saving, "SCHEMA_VERSION", 99)
    write_state({"kind": "column", "name": "a"}, tmp_path / "m.json")
    monkeypatch.undo()
    with pytest.raises(StateError, match=f"schema version 99; this version reads {SCHEMA_VERSION}"):
        read_state(tmp_path / "m.json")
