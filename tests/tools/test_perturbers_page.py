from __future__ import annotations

from pathlib import Path

import pytest

from metricsmith.programs.perturbers.base import Perturber
from metricsmith.programs.perturbers.catalogue import BUILTIN
from perturbers_page import main, perturbers_page

PAGE = Path(__file__).parents[2] / "docs" / "perturbers.md"


def test_the_committed_page_is_fresh() -> None:
    fresh = PAGE.read_text(encoding="utf-8") == perturbers_page(BUILTIN.values())
    assert fresh, "docs/perturbers.md is not what the cards say: run `python tools/perturbers_page.py`"


def test_every_perturber_has_a_line_under_its_effect() -> None:
    sections = perturbers_page(BUILTIN.values()).split("\n## ")[1:]
    told = {section.split(":")[0].lower(): section for section in sections}
    for perturber in BUILTIN.values():
        (line,) = [line for line in told[perturber.effect].splitlines() if line.startswith(f"| `{perturber.name}` |")]
        assert line.replace("\\|", "").count("|") == 7


def test_marks_of_markdown_in_a_card_stay_text() -> None:
    own = Perturber("own", "same", "Writes a|b as **.", "It is.", lambda source, strength, random: source.output)
    page = perturbers_page([own])
    assert "Writes a\\|b as \\*\\*." in page
    assert "## Worse" not in page
    assert page.startswith("# Perturbers\n\n1 small functions")


def test_the_entry_writes_the_file_named(tmp_path: Path) -> None:
    main([str(tmp_path / "page.md")])
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == perturbers_page(BUILTIN.values())


def test_a_folder_that_is_not_there_ends_with_the_way_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main([str(tmp_path / "nowhere" / "page.md")])
    assert stop.value.code == 2
    assert "run this in the project's root" in capsys.readouterr().err
