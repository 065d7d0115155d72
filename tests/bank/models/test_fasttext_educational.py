"""Educational value, and with it all that the three fastText metrics share."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import tiny_texts
from metricsmith.bank.base import TextBatch
from metricsmith.bank.catalogue import full_bank
from metricsmith.bank.models import fasttext_educational
from metricsmith.bank.models.engine.loader import unload
from metricsmith.bank.weighted import lacking
from metricsmith.errors import NeedsError
from model_cases import CASES, tiny_family

pytestmark = pytest.mark.extras
fasttext = pytest.importorskip("fasttext")
NAME = "fasttext_educational_value"


@pytest.fixture
def family(tiny, tiny_folder):
    return tiny_family("fasttext_educational", tiny, tiny_folder)


def judged(family, *texts):
    batch = TextBatch(texts, [""] * len(texts), [[]] * len(texts), None, family.model)
    scores, reasons = fasttext_educational.compute(batch, [NAME])
    return scores[NAME].tolist(), list(reasons)


def test_a_row_is_the_expected_grade(family):
    model, texts = fasttext.load_model(family.model.path), tiny_texts.sentences(30)
    expected = []
    for text in texts:
        shares = dict(zip(*model.predict(text, k=-1), strict=True))
        expected.append(shares["__label__Mid"] + 2 * shares["__label__High"])
    assert np.ptp(expected) > 0.5
    assert judged(family, *texts, *texts)[0] == pytest.approx(expected * 2, abs=1e-6)


def test_sums_stay_in_the_range_of_grades(family, monkeypatch):
    # fastText adds .00001 to each probability.
    from metricsmith.bank.models.engine import fasttext as engine

    class Sure:
        def predict(self, text, k):
            return ("__label__High", "__label__Mid", "__label__Low"), (1.00001, 0.00001, 0.00001)

    monkeypatch.setattr(engine, "_loaded", lambda spec: Sure())
    assert judged(family, "a text")[0] == [2.0]


def test_line_breaks_are_spaces_and_blank_texts_have_no_number(family):
    (broken, spaced, empty), reasons = judged(family, "The dog\nslept.", "The dog slept.", " \n")
    assert broken == spaced
    assert math.isnan(empty)
    assert reasons == ["", "", "the output is empty"]


def test_a_file_of_other_labels_is_refused(family, tiny_folder):
    other = CASES["fasttext_nsfw"].checkpoint(tiny_folder)
    with pytest.raises(NeedsError, match="tells the labels __label__non-nsfw, __label__nsfw, and must tell"):
        judged(replace(family, model=replace(family.model, path=str(other))), "a text")


@pytest.mark.parametrize("content", [b"", b"no model of fastText's"])
def test_a_broken_file_is_refused(family, tmp_path, content):
    (tmp_path / "model.bin").write_bytes(content)
    with pytest.raises(NeedsError, match="cannot be read as fastText's; is it cut short or damaged"):
        judged(replace(family, model=replace(family.model, path=str(tmp_path / "model.bin"))), "a text")


def test_the_file_may_be_named_by_its_folder_and_one_that_lacks_it_is_no_place(family, tmp_path):
    spec = family.model
    (tmp_path / spec.file).write_bytes(spec.files()[0].read_bytes())
    inside = replace(spec, path=str(tmp_path))
    assert inside.digest() == spec.digest()
    assert judged(replace(family, model=inside), "a text")[0] == judged(family, "a text")[0]
    (tmp_path / spec.file).unlink()
    assert "model_quantized.bin is not there: `metricsmith bank fetch fasttext_educational`" in inside.lacking()
    nowhere = full_bank(["fasttext_nsfw"], cache_dir=tmp_path).get("fasttext_nsfw").family
    assert lacking(nowhere) == "weights not on this machine: `metricsmith bank fetch fasttext_nsfw`"


def test_unloading_drops_the_files_as_well(family):
    from metricsmith.bank.models.engine import fasttext as engine

    judged(family, "a text")
    assert engine._read.cache_info().currsize > 0
    unload()
    assert engine._read.cache_info().currsize == 0


@pytest.mark.parametrize("place", [3, 9, 60, 70, 300, 0.1, 0.5, 0.9, 0.9999])
def test_a_file_that_is_cut_short_is_refused_as_that_before_it_is_read(family, tmp_path, place):
    whole = family.model.files()[0].read_bytes()
    (tmp_path / "model.bin").write_bytes(whole[: place if place > 1 else int(place * len(whole))])
    with pytest.raises(NeedsError, match=r"cut short or damaged\? it ends before its words or numbers do"):
        judged(replace(family, model=replace(family.model, path=str(tmp_path / "model.bin"))), "a text")
