"""A small test set in the layout of mt-metrics-eval."""

from __future__ import annotations

from pathlib import Path

SOURCES = ("One.", "Two.", "Three.", "Four.")
OUTPUTS = {"A": ("Eins.", "Zwo.", "", "Vier. "), "B": ("Eins", "Zwei", "Drei", "Fier"), "refA": ("1", "2", "3", "4")}
DOCUMENTS = ("news d1", "news d1", "talk\td2", "talk  d2")


def write_eval_set(folder: Path) -> Path:
    texts = {
        "sources/en-de.txt": SOURCES,
        "documents/en-de.docs": DOCUMENTS,
        "references/en-de.refA.txt": OUTPUTS["refA"],
        "references/en-de.refB.txt": ("I", "II", "III", "IV"),
        "references/en-cs.refA.txt": ("x",),
        **{f"system-outputs/en-de/{name}.txt": lines for name, lines in OUTPUTS.items()},
    }
    for name, lines in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return folder
