"""A model that finds the errors planted in ``examples/translations``, each with a chance of its own, and some more."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from faults import draw
from metricsmith.datasets.wmt_mqm import read_marked_ratings

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "translations"
FILES = (FOLDER / "notices.en.txt", FOLDER / "alpha.txt", FOLDER / "beta.txt", FOLDER / "gamma.txt")
DOCUMENTS = FOLDER / "notices.docs.txt"
GOLD = FOLDER / "gold.tsv"
FOUND, INVENTED = 0.8, 0.15  # chances of a planted error to be found, of a faultless text to be blamed
ASKED = ("type", "description")  # where no spans are asked for
FENCED = re.compile(r"\[\[ ## (source|translation) ## \]\]\n«begin (\w+)»\n(.*?)\n«end \2»", re.DOTALL)


class Reviser:
    """Answers for `AnnotateErrors`, or `NameErrors`: equal prompts get one each, by how often they were asked."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.asked: Counter[str] = Counter()
        self.planted: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for rating in read_marked_ratings(GOLD).ratings:
            known = self.planted.setdefault((rating.source, rating.target), [])
            for span in rating.spans:
                error = {
                    "span": span.text, "occurrence": 1, "in_source": span.side == "source", "type": span.category,
                    "description": f"a reviser would mend {span.text.strip()}", "severity": span.severity,
                }  # fmt: skip
                if not any(error["span"] == other["span"] for other in known):
                    known.append(error)

    def __call__(self, prompt: str) -> dict[str, Any]:
        """The errors of the last source and translation in the prompt."""
        texts = {name: text for name, _, text in FENCED.findall(prompt)}
        source, translation = texts["source"], texts["translation"]
        attempt = self.asked[translation]
        self.asked[translation] += 1
        lists: dict[str, list[dict[str, Any]]] = {"critical": [], "major": [], "minor": []}
        for error in self.planted.get((source, translation), []):
            if draw(f"{translation} {error['span']}", attempt, self.seed) < FOUND:
                grave = draw(f"grave {error['span']}", attempt, self.seed) < 0.2
                severity = "critical" if grave and error["severity"] == "major" else error["severity"]
                lists[severity].append({name: value for name, value in error.items() if name != "severity"})
        if draw(f"invented {translation}", attempt, self.seed) < INVENTED:
            word = translation.split()[0]
            lists["minor"].append({"span": word, "type": "style/awkward", "description": "sounds stiff"})
        if '"span"' not in prompt:
            lists = {severity: [{key: error[key] for key in ASKED} for error in own] for severity, own in lists.items()}
        return {"errors": json.dumps(lists)}


class Assessor(Reviser):
    """Answers for `AssessTranslation`: of 100 points planted errors take 30 each, minor ones 5."""

    def __call__(self, prompt: str) -> dict[str, Any]:
        """The points of the last source and translation in the prompt."""
        texts = {name: text for name, _, text in FENCED.findall(prompt)}
        severities = [error["severity"] for error in self.planted.get((texts["source"], texts["translation"]), [])]
        points = 100 - sum(5 if severity == "minor" else 30 for severity in severities)
        return {"reasoning": f"{len(severities)} faults.", "score": str(max(0, points))}
