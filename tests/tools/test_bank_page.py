from __future__ import annotations

from pathlib import Path

import pytest

from bank_page import bank_page, main
from metricsmith.bank.catalogue import MetricBank, full_bank

PAGE = Path(__file__).parents[2] / "docs" / "bank.md"


def test_the_committed_page_is_fresh() -> None:
    fresh = PAGE.read_text(encoding="utf-8") == bank_page(full_bank("all"))
    assert fresh, "docs/bank.md is not what the cards say: run `python tools/bank_page.py`"


def test_every_family_has_an_overview_line_whose_link_leads_to_its_card() -> None:
    lines = bank_page(full_bank("all")).splitlines()
    headings = {
        "#" + "".join(c for c in line[3:].lower().replace(" ", "-") if c.isalnum() or c in "-_")
        for line in lines
        if line.startswith("## ")
    }
    links = {line.split("](")[1].split(")")[0] for line in lines if line.startswith("| [")}
    assert links == headings
    assert len(links) == len(full_bank("all").families)


def test_a_family_whose_outputs_point_both_ways_says_so() -> None:
    (line,) = [line for line in bank_page(full_bank("all")).splitlines() if line.startswith("| [Levenshtein]")]
    assert line.endswith("| references | lower or higher |")


def test_an_empty_bank_gives_a_page_without_cards() -> None:
    page = bank_page(MetricBank(()))
    assert "0 families" in page
    assert "\n## " not in page


def test_the_entry_writes_the_file_named(tmp_path: Path) -> None:
    target = tmp_path / "page.md"
    main([str(target)])
    assert target.read_text(encoding="utf-8") == bank_page(full_bank("all"))


def test_a_folder_that_is_not_there_ends_with_the_way_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main([str(tmp_path / "nowhere" / "page.md")])
    assert stop.value.code == 2
    assert "run this in the project's root" in capsys.readouterr().err
