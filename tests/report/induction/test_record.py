"""The record's derived properties and the contract of ``report.json``."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np

from metricsmith.formats import jsonable
from metricsmith.stats.agreement import Agreement

# The public contract: later work adds keys, never renames or drops one.
PROMISED = {
    "schema_version", "task", "signature", "evaluation", "rows", "components", "train", "test", "baselines",
    "judgements", "usage", "warnings",
}  # fmt: skip
BLOCK = {"n", "groups", "kendall_tau_b", "ci_low", "ci_high", "p_value", "pearson", "spearman"}


def test_the_promised_keys_are_there(make_record):
    content = make_record().as_dict()
    assert content.keys() >= PROMISED
    assert content["rows"].keys() >= {"rated", "train", "test", "unrated"}
    assert content["components"][0].keys() >= {
        "name", "kind", "weight", "direction", "tau_train", "tau_test", "missing",
    }  # fmt: skip
    for block in (content["train"], content["test"], *content["baselines"].values()):
        assert block.keys() >= BLOCK
    assert content["usage"].keys() >= {"requests", "prompt_tokens", "completion_tokens", "cost", "estimated"}
    assert content["usage"]["estimated"]["requests"] == 3608


def test_undefined_numbers_become_null(make_record):
    content = make_record(test=Agreement(0, 0), fidelity=math.inf).as_dict()
    assert content["test"]["kendall_tau_b"] is None
    assert content["fidelity"] is None
    json.dumps(content, allow_nan=False)


def test_jsonable_takes_numpy_numbers_and_leaves_booleans():
    value = jsonable({"a": np.float64(0.5), "b": (np.int64(3), np.float32("nan")), "c": True, 4: None})
    assert value == {"a": 0.5, "b": [3, None], "c": True, "4": None}
    assert value["c"] is True
    assert type(value["b"][0]) is int


def test_the_headline_is_the_test_block_unless_nothing_was_held_out(make_record):
    record = make_record()
    assert record.tested
    assert record.headline is record.test
    for untested in (make_record(evaluation="train_only"), make_record(test=Agreement(0, 0))):
        assert not untested.tested
        assert untested.headline is untested.train


def test_under_cross_validation_every_rated_row_is_held_out(make_record):
    record = make_record()
    train = next(row for row in record.data if row.split == "train")
    assert not record.held_out(train)
    assert record.held_out(replace(train, split="test"))
    assert make_record(evaluation="cv").held_out(train)
    assert not make_record(evaluation="cv").held_out(replace(train, rating=None))
