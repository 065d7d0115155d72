"""Time per row of every bank metric beside the same metric of autometrics-ai 0.1.0.

::

    python benchmarks/bank_vs_reference.py --reference-python OTHER/bin/python [--data simpeval.csv]

OTHER is an environment of its own with ``autometrics-ai==0.1.0 rouge-score textstat beautifulsoup4``. The
script starts itself there as a child and sends it rows through a pipe, one metric at a time, in turn with
ours, so that both sides see the same load of the machine. Both compute numbers from lists of texts in one
batch call; the last column adds our judgement records. The child's result cache is off, and every pass over
the bank gets texts that neither side has seen. As in a real run, all metrics of a pass read the same texts,
which our tokeniser splits once; with ``--separate`` each metric gets texts of its own. Without an environment
only our times show.

Where the child lacks NLTK's data files (they would be downloaded) it runs with substitutes, marked ``*``:
sentences split by a regular expression, an empty WordNet, syllables by hyphenation only.
"""

from __future__ import annotations

import argparse
import ast
import csv
import importlib
import json
import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO, Any

# This file also runs in the child's interpreter, where metricsmith is absent: it is imported where needed.

_STRINGS = "reference_based.StringSimilarity"
_ROUGE = [f"{kind}_{part}" for kind in ("rouge1", "rouge2", "rouge_l", "rouge_lsum") for part in "prf"]


@dataclass(frozen=True)
class Rows:
    """n rows of text."""

    inputs: list[str]
    outputs: list[str]
    references: list[list[str]]

    def tagged(self, tag: str) -> Rows:
        """The same rows with one more word at the end of each text."""
        return Rows(
            [f"{text} {tag}" for text in self.inputs],
            [f"{text} {tag}" for text in self.outputs],
            [[f"{text} {tag}" for text in texts] for texts in self.references],
        )


@dataclass(frozen=True)
class Contest:
    """One metric on both sides: the other's module and class, whether it reads NLTK's data, our outputs."""

    module: str
    name: str
    outputs: list[str]
    reads_data: bool = False


CONTESTS = [
    Contest(_STRINGS, "LevenshteinDistance", ["levenshtein_distance"]),
    Contest(_STRINGS, "LevenshteinRatio", ["indel_ratio"]),
    Contest(_STRINGS, "HammingDistance", ["hamming_distance"]),
    Contest(_STRINGS, "JaroSimilarity", ["jaro_similarity"]),
    Contest(_STRINGS, "JaroWinklerSimilarity", ["jaro_winkler_similarity"]),
    Contest(_STRINGS, "JaccardDistance", ["jaccard_distance"]),
    Contest("reference_based.CharCut", "CharCut", ["charcut"]),
    Contest("reference_based.BLEU", "BLEU", ["bleu"]),
    Contest("reference_based.IBLEU", "IBLEU", ["ibleu"]),
    Contest("reference_based.GLEU", "GLEU", ["gleu"], reads_data=True),
    Contest("reference_based.NIST", "NIST", ["nist"]),
    Contest("reference_based.CHRF", "CHRF", ["chrf"]),
    Contest("reference_based.TER", "TER", ["ter"]),
    Contest("reference_based.METEOR", "METEOR", ["meteor"], reads_data=True),
    Contest("reference_based.ROUGE", "ROUGE", _ROUGE),
    Contest("reference_based.CIDEr", "CIDEr", ["cider"]),
    Contest("reference_based.SARI", "SARI", ["sari"], reads_data=True),
    Contest("reference_based.UpdateROUGE", "UpdateROUGE", ["update_rouge1", "update_rouge2", "update_rouge_lsum"]),
    Contest("reference_based.PseudoPARENT", "PseudoPARENT", ["pseudo_parent"]),
    Contest("reference_free.SelfBLEU", "SelfBLEU", ["self_bleu"], reads_data=True),
    Contest("reference_free.DistinctNGram", "DistinctNGram", [f"distinct_{n}" for n in range(1, 5)], reads_data=True),
    Contest("reference_free.FKGL", "FKGL", ["fkgl"], reads_data=True),
]


def serve(requests: IO[str], answers: IO[str]) -> None:
    """The child: read rows, then one request per line, and answer each with seconds or an error."""
    rows = Rows(**json.loads(requests.readline()))
    forbid_downloads()
    lacking = data_is_missing()
    if lacking:
        substitute_data()
    metrics: dict[str, Any] = {}
    for line in requests:
        request = json.loads(line)
        contest, tagged = CONTESTS[request["contest"]], rows.tagged(request["tag"])
        try:
            if contest.name not in metrics:
                module = importlib.import_module(f"autometrics.metrics.{contest.module}")
                metrics[contest.name] = getattr(module, contest.name)(use_cache=False)
            start = time.perf_counter()
            metrics[contest.name].calculate_batched(tagged.inputs, tagged.outputs, tagged.references)
            answer = {"seconds": time.perf_counter() - start, "substituted": lacking and contest.reads_data}
        except Exception as error:  # whatever the other package raises is its result
            answer = {"error": f"{type(error).__name__}: {str(error).strip().splitlines()[0][:60]}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def forbid_downloads() -> None:
    """NLTK's downloader would try the network at each call."""
    import nltk

    nltk.download = lambda *_args, **_options: False


def data_is_missing() -> bool:
    """True if NLTK lacks any file that these metrics read."""
    import nltk

    try:
        for name in ("tokenizers/punkt_tab", "corpora/wordnet", "corpora/cmudict"):
            nltk.data.find(name)
    except LookupError:
        return True
    return False


def substitute_data() -> None:
    """Stand-ins for the files that NLTK and textstat would download."""
    import nltk
    import nltk.tokenize

    nltk.tokenize.sent_tokenize = nltk.sent_tokenize = lambda text, *_args: re.split(r"(?<=[.!?])\s+", text)
    nltk.corpus.wordnet.synsets = lambda *_args, **_options: []
    try:
        syllables = importlib.import_module("textstat.backend.counts._count_syllables")
    except ModuleNotFoundError:
        return
    syllables.get_cmudict = lambda _lang: None


class Peer:
    """The child process."""

    def __init__(self, python: str, rows: Rows) -> None:
        offline = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
        self._process = subprocess.Popen(
            [python, "-W", "ignore", __file__, "--serve"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, encoding="utf-8", env=os.environ | offline,
        )  # fmt: skip
        self._send(vars(rows))

    def time(self, place: int, tag: str) -> dict[str, Any]:
        """Ask for one pass."""
        self._send({"contest": place, "tag": tag})
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{self._process.args[0]} ended: is autometrics-ai 0.1.0 installed there?")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End the child."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()


def timed(action: Callable[[], object]) -> float:
    """Seconds that one call takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def time_ours(contest: Contest, rows: Rows) -> tuple[float, float]:
    """Seconds for numbers from texts, and for judgement records from rows."""
    from metricsmith.bank.base import TextBatch, judge_family
    from metricsmith.bank.catalogue import default_bank
    from metricsmith.metric import make_row

    metrics = [default_bank().get(name) for name in contest.outputs]
    fresh = rows.tagged("numbers")
    batch = TextBatch(fresh.outputs, fresh.inputs, fresh.references)
    numbers = timed(lambda: metrics[0].family.compute(batch, contest.outputs))
    fresh = rows.tagged("records")
    examples = [
        make_row(output, input=source, references=references)
        for output, source, references in zip(fresh.outputs, fresh.inputs, fresh.references, strict=True)
    ]
    return numbers, timed(lambda: judge_family(metrics, examples))


def read_rows(path: str | None, count: int) -> Rows:
    """The first rows of a CSV with columns original, simple and references, or of the embedded data."""
    if path is None:
        from metricsmith.datasets.plain_notices import load

        examples = load()[1][:count]
        return Rows(
            [row.input for row in examples],
            [row.output for row in examples],
            [list(row.references) for row in examples],
        )
    with open(path, encoding="utf-8", newline="") as file:
        records = list(csv.DictReader(file))[:count]
    return Rows(
        [record["original"] for record in records],
        [record["simple"] for record in records],
        [ast.literal_eval(record["references"]) for record in records],
    )


@dataclass
class Result:
    """The fastest pass of each side, in seconds; `note` says what the other's number lacks."""

    ours: float = math.inf
    records: float = math.inf
    theirs: float = math.inf
    note: str = ""

    def add(self, ours: tuple[float, float], answer: dict[str, Any]) -> None:
        """Take in one repetition."""
        self.ours, self.records = min(self.ours, ours[0]), min(self.records, ours[1])
        self.theirs = min(self.theirs, answer.get("seconds", math.inf))
        self.note = f"cannot run: {answer['error']}" if "error" in answer else "*" * answer.get("substituted", False)


def measure(rows: Rows, peer: Peer | None, repetitions: int, separate: bool) -> list[Result]:
    """Both sides in turn, metric by metric; the first repetition loads backends and is not counted."""
    results = [Result() for _ in CONTESTS]
    for repetition in range(repetitions + 1):
        for place, contest in enumerate(CONTESTS):
            tag = f"pass{repetition}x{place if separate else 0}"
            answer = peer.time(place, tag) if peer else {}
            ours = time_ours(contest, rows.tagged(tag))
            if repetition:
                results[place].add(ours, answer)
    return results


def show(results: Sequence[Result], rows: int) -> None:
    """Print milliseconds per row, ratios and their geometric mean."""
    print(f"{'metric':22} {'theirs':>9} {'ours':>9} {'ratio':>8} {'records':>9}   ms per row, {rows} rows")
    ratios = []
    for contest, result in zip(CONTESTS, results, strict=True):
        theirs, ours, records = (1000 * seconds / rows for seconds in (result.theirs, result.ours, result.records))
        shown, ratio = ("-", "-")
        if math.isfinite(theirs):
            ratios.append(theirs / ours)
            shown, ratio = f"{theirs:.4f}", f"{theirs / ours:.1f}"
        print(f"{contest.name:22} {shown:>9} {ours:9.4f} {ratio:>8} {records:9.4f}   {result.note}")
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        slower = [
            contest.name for contest, result in zip(CONTESTS, results, strict=True) if result.theirs < result.ours
        ]
        print(f"geometric mean of {len(ratios)} ratios: {mean:.1f}; not faster: {', '.join(slower) or 'none'}")


def main() -> None:
    """Run as the parent, or with ``--serve`` as the child."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reference-python", help="interpreter that has autometrics-ai 0.1.0")
    parser.add_argument("--data", help="CSV with columns original, simple, references; default: embedded notices")
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--separate", action="store_true", help="no text is read by two metrics")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)  # what the other package prints must not reach the pipe
        serve(sys.stdin, answers)
        return
    rows = read_rows(options.data, options.rows)
    peer = Peer(options.reference_python, rows) if options.reference_python else None
    show(measure(rows, peer, options.repetitions, options.separate), len(rows.outputs))
    if peer:
        peer.close()


if __name__ == "__main__":
    main()
