"""Documents in, segments out."""

from __future__ import annotations

import json

import pytest

from metricsmith.datasets.segments import read_translations, translation_rows
from metricsmith.datasets.wmt_mqm import read_wmt_mqm
from metricsmith.errors import DataError, OptionError
from reviser import DOCUMENTS, FILES, GOLD


def write(path, *lines):
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def table(tmp_path, *rows):
    return write(tmp_path / "rows.jsonl", *map(json.dumps, rows))


def row(source="One.", target="Eins.", **labels):
    return {"source": source, "target": target, **labels}


def test_each_line_is_a_row_with_the_whole_document():
    rows = translation_rows("One.\n\nTwo.", "Eins.\n\nZwei.", document="d", system="s")
    assert [row.toDict() for row in rows] == [
        {
            "output": output, "input": source, "context": "One.\n\nTwo.", "id": f"s|d:{number}", "group": f"d:{number}",
            "system": "s", "doc": "d", "segment": number,
        }
        for number, source, output in ((1, "One.", "Eins."), (3, "Two.", "Zwei."))
    ]  # fmt: skip


def test_documents_of_different_length_do_not_fit():
    with pytest.raises(DataError, match="has 2 lines and its translation by 'system' 1"):
        translation_rows("One.\nTwo.", "Eins.")


def test_files_with_documents_agree_with_gold_ratings_on_groups():
    read = read_translations(FILES[0], FILES[1:], documents=DOCUMENTS)
    gold = read_wmt_mqm(GOLD)
    assert {(row.system, row.group, row.output) for row in read.rows} == {
        (row.system, row.group, row.output) for row in gold.rows
    }
    assert read.systems == ("alpha", "beta", "gamma")
    assert read.documents == ("library", "water", "pool")
    first = read.rows[5]
    assert (first.id, first.segment) == ("alpha|water:2", 2)
    assert first.context.splitlines()[0] == "The water will be turned off in Mill Street on 4 May."
    assert "library" not in first.context.casefold()


def test_without_documents_all_lines_are_one(tmp_path):
    source = write(tmp_path / "s.txt", "One.", "Two.")
    read = read_translations(source, [write(tmp_path / "t.de.txt", "Eins.", "Zwei.")])
    assert [(row.doc, row.system, row.segment) for row in read.rows] == [("s", "t.de", 1), ("s", "t.de", 2)]
    assert "all 2 lines of s.txt are taken for one document" in read.notes


def test_blank_lines_keep_their_number_and_are_no_rows(tmp_path):
    source = write(tmp_path / "s.txt", "One.", "", "", "Four.", "Five.")
    read = read_translations(source, [write(tmp_path / "t.txt", "Eins.", " ", "Drei.", "", "Fünf.")])
    assert [(row.segment, row.get("input"), row.output) for row in read.rows] == [
        (1, "One.", "Eins."), (3, None, "Drei."), (4, "Four.", ""), (5, "Five.", "Fünf."),
    ]  # fmt: skip
    assert any("1 segments have a translation and no source" in note for note in read.notes)
    assert any("1 translations are empty" in note for note in read.notes)


def test_document_names_may_follow_a_domain(tmp_path):
    source = write(tmp_path / "s.txt", "One.", "Two.", "Three.")
    labels = write(tmp_path / "docs.txt", "news a", "news\tb", "news  b")
    read = read_translations(source, [write(tmp_path / "t.txt", "1", "2", "3")], documents=labels)
    assert [row.group for row in read.rows] == ["a:1", "b:1", "b:2"]


def test_names_that_end_alike_stay_apart(tmp_path):
    source = write(tmp_path / "s.txt", "One.", "Two.", "Three.")
    labels = write(tmp_path / "docs.txt", "Annual report", "Monthly report", "Monthly report")
    read = read_translations(source, [write(tmp_path / "t.txt", "1", "2", "3")], documents=labels)
    assert [row.group for row in read.rows] == ["Annual report:1", "Monthly report:1", "Monthly report:2"]


def test_a_table_with_systems_and_documents(tmp_path):
    path = table(
        tmp_path,
        row("One.", "Eins.", doc="d", system="A", doc_seg_id=1),
        row("Two.", "Zwei.", doc="d", system="A", doc_seg_id=2),
        row("Two.", "Zwo.", doc="d", system="B", doc_seg_id=2, reference="Zwei."),
    )
    read = read_translations(path)
    assert [(row.id, row.context) for row in read.rows] == [
        ("A|d:1", "One.\nTwo."), ("A|d:2", "One.\nTwo."), ("B|d:2", "One.\nTwo."),
    ]  # fmt: skip
    assert read.rows[2].references == ["Zwei."]
    assert read.rows[0].get("references") is None


def test_ratings_of_one_translation_are_one_row(tmp_path):
    path = table(tmp_path, *[row(doc="d", system="A", doc_seg_id=1, rater=name) for name in "xyz"])
    read = read_translations(path)
    assert len(read) == 1
    assert "2 rows repeat a translation and are taken once" in read.notes


def test_rows_that_may_be_ratings_of_one_translation_are_told(tmp_path):
    path = table(tmp_path, *[row(doc="d", system="A", rater=name) for name in "xyz"], row(doc="d", system="B"))
    read = read_translations(path)
    assert len(read) == 4
    (note,) = read.notes
    assert note.startswith("2 rows have the source and translation of an earlier one")
    assert "--column segment=" in note


def test_numbers_of_segments_decide_their_order_and_that_of_the_document(tmp_path):
    path = table(tmp_path, *[row(f"{n}.", f"{n}!", doc="d", segment=n) for n in (30, 4, 12)])
    read = read_translations(path)
    assert [(row.segment, row.id, row.output) for row in read.rows] == [
        (4, "rows|d:4", "4!"), (12, "rows|d:12", "12!"), (30, "rows|d:30", "30!"),
    ]  # fmt: skip
    assert {row.context for row in read.rows} == {"4.\n12.\n30."}


def test_segments_that_are_no_numbers_are_counted(tmp_path):
    path = table(tmp_path, *[row(f"{name}.", name, doc="d", segment=name) for name in ("x", "7", "z")])
    assert [row.segment for row in read_translations(path).rows] == [1, 2, 3]


def test_columns_may_have_names_of_their_own(tmp_path):
    path = table(tmp_path, {"English": "One.", "German": "Eins."})
    read = read_translations(path, columns={"source": "English", "translation": "German"})
    assert (read.rows[0].input, read.rows[0].output, read.systems) == ("One.", "Eins.", ("rows",))


@pytest.mark.parametrize(
    ("rows", "columns", "message"),
    [
        ([{"text": "x", "target": "y"}], {}, "no column for the source"),
        ([row()], {"translation": "traget"}, r"no column 'traget'.*'target'"),
        (
            [row(doc="d", segment=1), row("Other.", doc="d", segment=1, system="B")],
            {},
            "has another source than before",
        ),
        ([row(segment=1), row(target="Anders.", segment=1)], {}, "translated segment 1 of 'rows' before, otherwise"),
        ([row("", "")], {}, "holds no segment"),
        ([row(), row(target="Zwei <v>Türen</v>.", segment=2)], {}, r"row 2.*'target': an error is marked.*ratings"),
        ([row("Is it <v>all</v>?", "Ist es?")], {}, r"row 1.*'source': an error is marked"),
    ],
)
def test_tables_that_cannot_be_used(tmp_path, rows, columns, message):
    with pytest.raises(DataError, match=message):
        read_translations(table(tmp_path, *rows), columns=columns)


def test_a_bracket_is_no_mark(tmp_path):
    assert read_translations(table(tmp_path, row(target="Es gilt u <v> w."))).rows[0].output == "Es gilt u <v> w."


def test_a_folder_is_no_source(tmp_path):
    with pytest.raises(OptionError, match="is a folder; the source is one file"):
        read_translations(tmp_path)


def test_options_that_do_not_fit(tmp_path):
    path = table(tmp_path, row())
    with pytest.raises(OptionError, match=r"no role 'sauce'.*'source'"):
        read_translations(path, columns={"sauce": "source"})
    with pytest.raises(OptionError, match="the column 'source' is named for source, translation"):
        read_translations(path, columns={"source": "source", "translation": "source"})
    with pytest.raises(OptionError, match="names its documents in a column"):
        read_translations(path, documents=DOCUMENTS)
    with pytest.raises(OptionError, match="leave them out"):
        read_translations(FILES[0], FILES[1:], columns={"source": "x"})
    with pytest.raises(OptionError, match="is no table"):
        read_translations(FILES[0])
    with pytest.raises(DataError, match="has 12 lines, the source has 1"):
        read_translations(write(tmp_path / "s.txt", "One."), FILES[1:2])


def test_the_checksum_is_of_all_files(tmp_path):
    source, target = write(tmp_path / "s.txt", "One."), write(tmp_path / "t.txt", "Eins.")
    before = read_translations(source, [target]).checksum
    assert read_translations(source, [target]).checksum == before
    write(target, "Zwei.")
    assert read_translations(source, [target]).checksum != before
