"""Speed of the metrics with weights: the engines beside a plain forward pass, the metrics beside their own packages.

::

    python benchmarks/model_metrics.py [--pairs 512] [--device cuda] [--local bertscore=PATH ...]
                                       [--reference-python OTHER/bin/python]

Without ``--local`` the networks have random weights and base size (12 layers of width 768). One thread. The pairs have
20 to 200 tokens. A plain pass is what the same network takes for the very batches that the engine gave it, recorded
with a hook and played again; passes take turns. What a metric does beside its network (transport, distances,
tokenizing) is timed by itself, with all encodings known.

Packages are called pair by pair, as their pages show it, on fewer pairs. OTHER is an environment with
``autometrics-ai==0.1.0 pyemd parascore bert-score``; the script starts itself there as a child.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# This file also runs in the child's interpreter, where metricsmith is absent: it is imported where needed.

ENGINES = {  # a metric of each engine, and the tiny checkpoint that lends its tokenizer and architecture
    "bertscore": ("encoder", "roberta"),
    "toxicity": ("classifier", "roberta_toxicity"),
    "bartscore": ("seq2seq", "bart"),
    "perplexity": ("causal", "gpt2"),
    "grm_reward": ("reward", "llama_reward"),
}
ARITHMETIC = {"bertscore": "roberta", "parascore": "bert_masked", "yisi2": "mbert", "moverscore": "distilbert"}
ERRORS = (ImportError, RuntimeError, ValueError, TypeError, AttributeError, LookupError, OSError)
PACKAGES = ("bertscore", "parascore", "moverscore")
BASE = {
    "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072,
    "hidden_dim": 3072, "encoder_layers": 6, "decoder_layers": 6, "encoder_ffn_dim": 3072, "decoder_ffn_dim": 3072,
    "decoder_attention_heads": 12, "num_key_value_heads": 12, "head_dim": 64, "max_position_embeddings": 1026,
}  # fmt: skip


def base_size(tiny: Path, folder: Path) -> Path:
    """A random checkpoint of base size with the tokenizer of a tiny one."""
    import torch
    import transformers

    config = transformers.AutoConfig.from_pretrained(tiny)
    for name, value in BASE.items():
        if hasattr(config, name):
            setattr(config, name, value)
    shutil.copytree(tiny, folder, ignore=shutil.ignore_patterns("*.safetensors", "config.json"))
    settings = json.loads((folder / "tokenizer_config.json").read_text("utf-8"))
    settings["model_max_length"] = BASE["max_position_embeddings"] - 2  # packages cut texts there
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), "utf-8")
    torch.manual_seed(0)
    getattr(transformers, config.architectures[0])(config).save_pretrained(folder)
    return folder


def texts(path: Path, count: int, seed: int) -> list[str]:
    """Texts of 20 to 200 tokens of the tokenizer that lies at `path`."""
    import numpy as np
    from transformers import AutoTokenizer

    import tiny_texts

    words = " ".join(tiny_texts.corpus()).split()
    tokenizer = AutoTokenizer.from_pretrained(path)
    per_word = len(tokenizer(" ".join(words[:500]))["input_ids"]) / 500
    random = np.random.default_rng(seed)
    lengths = (random.integers(20, 201, count) / per_word).astype(int)
    return [" ".join(random.choice(words, max(length, 1))) for length in lengths]


@contextmanager
def calls_recorded(module: Any) -> Iterator[list[tuple[tuple[Any, ...], dict[str, Any]]]]:
    """The arguments of the module's calls inside."""
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
    hook = module.register_forward_pre_hook(lambda _, *given: calls.append(given), with_kwargs=True)
    try:
        yield calls
    finally:
        hook.remove()


def timed(action: Callable[[], object]) -> float:
    """Seconds that one call takes, until the accelerator is done where there is one."""
    import torch

    wait = torch.cuda.synchronize if torch.cuda.is_available() else torch.cpu.synchronize
    wait()
    start = time.perf_counter()
    action()
    wait()
    return time.perf_counter() - start


def engine_share(family: Any, batch: Any, rounds: int) -> tuple[float, float]:
    """Median over rounds of plain seconds by ours, and our median seconds for the batch."""
    from metricsmith.bank.models.engine.loader import computing, network

    names = [output.name for output in family.card.outputs]
    module = network(family.model).module
    with calls_recorded(module) as calls:
        family.compute(batch, names)

    def plain() -> None:
        with computing():
            for places, names_given in calls:
                module(*places, **names_given)

    pairs = []
    for _ in range(rounds):
        ours = timed(lambda: family.compute(batch, names))
        pairs.append((timed(plain) / ours, ours))
    return statistics.median(share for share, _ in pairs), statistics.median(ours for _, ours in pairs)


def own_arithmetic(family: Any, batch: Any) -> float:
    """Seconds of a metric with all its encodings known."""
    from metricsmith.bank.models.engine import encoder

    names = [output.name for output in family.card.outputs]
    encoder.KEPT_BYTES = 1 << 33
    with encoder.encodings_kept():
        family.compute(batch, names)
        return min(timed(lambda: family.compute(batch, names)) for _ in range(3))


def serve() -> None:
    """The child: for each line a metric of autometrics-ai, a checkpoint and rows; answers with seconds or an error."""
    import importlib

    for line in sys.stdin:
        request = json.loads(line)
        try:
            seconds = _theirs(importlib.import_module, **request)
            answer: dict[str, Any] = {"seconds": seconds}
        except ERRORS as error:  # whatever the other package raises is its result
            answer = {"error": f"{type(error).__name__}: {str(error).strip().splitlines()[0][:70]}"}
        sys.__stdout__.write(json.dumps(answer) + "\n")  # type: ignore[union-attr]
        sys.__stdout__.flush()  # type: ignore[union-attr]


def _theirs(load: Callable[[str], Any], name: str, path: str, layers: int, rows: list[list[str]]) -> float:
    import torch

    torch.set_num_threads(1)
    sys.stdout = sys.stderr
    for package in ("bert_score", "parascore"):
        utils = load(f"{package}.utils")
        utils.model2layers[path] = layers
    folder = "autometrics.metrics.reference_based"
    if name == "bertscore":
        metric = load(f"{folder}.BERTScore").BERTScore(model=path, use_cache=False)
    elif name == "moverscore":
        metric = load(f"{folder}.MOVERScore").MOVERScore(model_name=path, device="cpu", use_cache=False)
    else:
        metric = load(f"{folder}.ParaScore").ParaScore(model_type=path, num_layers=layers, use_cache=False)
    return timed(lambda: [metric.calculate(source, output, [reference]) for source, output, reference in rows])


def package_seconds(name: str, path: Path, layers: int, rows: list[tuple[str, str, str]], device: str) -> float | None:
    """Seconds of a metric's own package, its scorer made once, pair by pair; None where there is none to install."""
    if name == "bertscore":
        from bert_score import BERTScorer

        scorer = BERTScorer(model_type=str(path), num_layers=layers, device=device)
        return timed(lambda: [scorer.score([output], [[reference]]) for _, output, reference in rows])
    if name == "parascore":
        from parascore import ParaScorer

        scorer = ParaScorer(model_type=str(path), num_layers=layers, device=device)
        return timed(lambda: [scorer.base_score([output], [source], [[ref]]) for source, output, ref in rows])
    return None


def main() -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=512)
    parser.add_argument("--package-pairs", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--local", action="append", default=[], metavar="NAME=PATH")
    parser.add_argument("--reference-python")
    parser.add_argument("--serve", action="store_true")
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    os.environ |= {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
    with tempfile.TemporaryDirectory() as folder:
        measure(options, Path(folder), dict(pair.split("=", 1) for pair in options.local))


def measure(options: argparse.Namespace, folder: Path, local: dict[str, str]) -> None:
    """All three tables."""
    import torch

    import tiny_models
    from metricsmith.bank.base import TextBatch
    from metricsmith.bank.weighted import model_family

    torch.set_num_threads(1)

    def at(name: str, tiny: str) -> tuple[Any, TextBatch]:
        path = Path(local[name]) if name in local else folder / f"base_{tiny}"
        if not path.exists():
            base_size(tiny_models.build(tiny, folder), path)
        spec = model_family(name).model
        assert spec is not None
        settings = {} if name in local or spec.layer is None else {"layer": min(spec.layer, 12)}
        family = model_family(name, path=str(path), device=options.device, settings=settings)
        left, right, source = (texts(path, options.pairs, seed) for seed in range(3))
        return family, TextBatch(left, source, [[text] for text in right], model=family.model)

    print(f"{options.pairs} pairs of 20 to 200 tokens, one thread, {options.device}\n")
    print("engine      metric       plain forward / ours    ours, seconds")
    for name, (engine, tiny) in ENGINES.items():
        share, seconds = engine_share(*at(name, tiny), options.rounds)
        print(f"{engine:11} {name:12} {share:20.2f} {seconds:16.1f}", flush=True)
    print("\nmetric       its own arithmetic, ms a pair")
    for name, tiny in ARITHMETIC.items():
        family, batch = at(name, tiny)
        print(f"{name:12} {1000 * own_arithmetic(family, batch) / options.pairs:10.2f}", flush=True)
    peer = _peer(options.reference_python)
    print(f"\n{options.package_pairs} pairs, seconds: ours in one batch, others pair by pair")
    print("metric            ours    package   times    autometrics-ai   times")
    for name in PACKAGES:
        family, batch = at(name, ARITHMETIC[name])
        part = batch.part(range(options.package_pairs))
        names = [output.name for output in family.card.outputs]
        family.compute(part, names)
        ours = timed(lambda family=family, part=part, names=names: family.compute(part, names))
        rows = list(zip(part.inputs, part.outputs, (texts[0] for texts in part.references), strict=True))
        layers = family.model.layer or 12
        package = package_seconds(name, Path(family.model.path), layers, rows, options.device)
        request = {"name": name, "path": family.model.path, "layers": layers, "rows": rows}
        theirs = _asked(peer, request) if peer else {"error": "no --reference-python"}
        print(f"{name:12} {ours:9.2f} {_against(package, ours)} {_against(theirs.get('seconds'), ours)} "
              f"{theirs.get('error', '')}", flush=True)  # fmt: skip


def _against(seconds: float | None, ours: float) -> str:
    return f"{'-':>10} {'-':>7}" if seconds is None else f"{seconds:10.2f} {seconds / ours:7.1f}"


def _peer(python: str | None) -> subprocess.Popen[str] | None:
    if python is None:
        return None
    command = [python, "-W", "ignore", __file__, "--serve"]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )


def _asked(peer: subprocess.Popen[str], request: dict[str, Any]) -> dict[str, Any]:
    assert peer.stdin is not None
    assert peer.stdout is not None
    peer.stdin.write(json.dumps(request) + "\n")
    peer.stdin.flush()
    answer: dict[str, Any] = json.loads(peer.stdout.readline())
    return answer


if __name__ == "__main__":
    main()
