"""Texts that the tokenizers of the tiny checkpoints are trained on, and the tokenizers."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any

LINES = """\
The harbour was quiet, and only two boats came back before dawn.
She paid 14.50 for the ticket; the change was 5.50.
In 1998 the village had 312 houses, a school and no bridge.
Nobody answered the phone, so I left a message.
Is the museum open on Mondays? No, it is closed.
Yes, the answer is correct: 7 + 5 = 12.
No, that is not what the contract says.
A small dog slept under the long wooden table.
The committee rejected the plan by 9 votes to 4.
Heavy rain is expected tomorrow in the north (up to 60 mm).
He wrote "I will return" on the last page of the book.
The patient was given 20 mg twice a day for 3 weeks.
Why did the engine stop? The fuel had run out.
First, wash the rice. Second, boil it for 11 minutes.
The two reports disagree about the cost of the new road.
Her summary left out the names of all three witnesses.
Researchers measured the temperature at 8 stations.
The train to Lisbon leaves at 17:45 from platform 6.
It is neither cheap nor useful, but it is beautiful.
Our teacher explains fractions with apples and knives.
Let x be 3; then x * x - 1 equals 8.
Step 1: add the numbers. Step 2: divide the sum by two.
So the area is 24 square metres, which is the answer.
The mayor of the city thanked the firemen on Friday.
Stop shouting at me, you stupid old fool!
What a wonderful evening, thank you so much!
I hate this film; the plot is dull and the sound is awful.
The soup was fine, the service slow, the bill too high.
def add(a, b): return a + b
Send the form to office@example.org, or call 555-0134.
The bank raised its rate from 2.25% to 2.5% in March.
Birds fly south because food is scarce in the winter.
An old map showed a river that no longer exists.
They won the match 3-2 after extra time.
Question: is this a fluent sentence? Document: the cat sat.
Is this a coherent summary to the document?
Claims that are not supported by the source are errors.
The letter, dated 4 May, never reached the minister.
You can borrow up to six books at a time.
Light travels about 300,000 kilometres in one second.
Der Zug nach Köln fährt heute von Gleis 12.
Ich habe das Buch gestern gelesen, aber nicht verstanden.
Die Straße ist wegen des Regens gesperrt.
Können Sie mir bitte sagen, wie spät es ist?
Das Mädchen spielt im Garten; der Hund schläft.
Nein, die Rechnung über 49,90 Euro ist falsch.
Am Montag wählt die Stadt eine neue Bürgermeisterin.
Größere Häuser kosten mehr als kleine Wohnungen.
今天下午北京有小雨。
我昨天买了三本书，一共六十元。
这个答案是正确的吗？不，是错误的。
她在图书馆学习中文和数学。
火车八点从上海出发。
谢谢你的帮助，我们明天见！
La réunion a été reportée à jeudi matin.
¿Dónde está la estación de autobuses?
Water boils at 100 degrees; ice melts at 0.
The jury believed the nurse, not the famous doctor.
Prices fell sharply, then rose again by the end of the week.
Every child received a pencil, an apple and a blue hat.
"""


def corpus() -> list[str]:
    """Return the sixty lines, alone, in lower case and in pairs: about four hundred lines of four languages."""
    lines = LINES.splitlines()
    pairs = [f"{one} {lines[(index + step) % len(lines)]}" for step in (7, 11, 23) for index, one in enumerate(lines)]
    return [*lines, *(line.lower() for line in lines), *pairs]


def sentences(count: int) -> list[str]:
    """Return `count` distinct texts of 1 to 3 sentences, of 5 to 50 words: the lengths rise and fall.

    No two texts are equal up to `count` = 180.
    """
    lines = LINES.splitlines()
    texts = []
    for index in range(count):
        start, length = index % len(lines), index % 3 + 1 + index // len(lines)
        texts.append(" ".join(lines[(start + 13 * step) % len(lines)] for step in range((length - 1) % 3 + 1)))
    return texts


def _frequent_pieces(tokenizer: Any, size: int, continuing: str) -> dict[str, int]:
    """Return all characters of the corpus and its most frequent pieces of words, with their counts.

    The trainers of WordPiece and Unigram in tokenizers 0.22.2 break ties by the order of a hash table: two processes
    would get two vocabularies, and no number could be repeated.
    """
    counts: Counter[str] = Counter()
    for line in corpus():
        for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(tokenizer.normalizer.normalize_str(line)):
            spans = itertools.combinations(range(len(word) + 1), 2)
            counts.update((continuing if start else "") + word[start:end] for start, end in spans if end - start <= 8)
    characters = [piece for piece in counts if len(piece.removeprefix(continuing)) == 1]
    longer = sorted(counts.keys() - set(characters), key=lambda piece: (-counts[piece] * len(piece), piece))
    return {piece: counts[piece] for piece in [*sorted(characters), *longer[: size - len(characters)]]}


def word_pieces(size: int = 1200, *, lower: bool = True) -> Any:
    """Return a WordPiece tokenizer as BERT's: `[CLS] a [SEP] b [SEP]`, the pad token is number 0."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    marks = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = Tokenizer(models.WordPiece({"[UNK]": 1}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lower)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    pieces = [*marks, *_frequent_pieces(tokenizer, size - len(marks), "##")]
    tokenizer.model = models.WordPiece({piece: number for number, piece in enumerate(pieces)}, unk_token="[UNK]")
    tokenizer.add_special_tokens(marks)
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return tokenizer


def byte_pairs(marks: list[str], size: int = 700) -> Any:
    """Return a byte-level BPE tokenizer as GPT-2's, the special tokens first: no text has an unknown token."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        corpus(),
        trainers.BpeTrainer(
            vocab_size=size, special_tokens=marks, initial_alphabet=sorted(alphabet), show_progress=False
        ),
    )
    return tokenizer


def roberta_pairs(size: int = 700) -> Any:
    """Return RoBERTa's byte-level BPE: `<s> a </s></s> b </s>`, the pad token is number 1."""
    from tokenizers import processors

    tokenizer = byte_pairs(["<s>", "<pad>", "</s>", "<unk>", "<mask>"], size)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    return tokenizer


def unigram(marks: list[str], answers: list[str], size: int = 1000) -> Any:
    """Return a Unigram tokenizer as T5's, with `answers` as single tokens; marks[:3] are pad, end and unknown."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    counts = _frequent_pieces(tokenizer, size, "")
    total = sum(counts.values())
    scores = {piece: math.log(count / total) for piece, count in counts.items()}
    scores.update(dict.fromkeys(answers, max(scores.values())))
    tokenizer.model = models.Unigram([*((mark, 0.0) for mark in marks), *scores.items()], 2)
    tokenizer.add_special_tokens(marks)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"$A {marks[1]}", pair=f"$A {marks[1]} $B {marks[1]}", special_tokens=[(marks[1], 1)]
    )
    return tokenizer


def spaced_pairs(marks: list[str], size: int = 700) -> Any:
    """Return Gemma's BPE: a space is a piece of its own kind, an unknown character falls back to its bytes."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    marks = [*marks, *(f"<0x{byte:02X}>" for byte in range(256))]
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.train_from_iterator(
        corpus(),
        trainers.BpeTrainer(vocab_size=size + 256, special_tokens=marks, show_progress=False),
    )
    return tokenizer


def pairs_of_texts(count: int) -> list[tuple[str, str]]:
    """Return `count` pairs of unequal texts; the order of lengths is reversed between outputs and references."""
    outputs = sorted(sentences(count), key=len)
    references = [
        f"{text} {end}" for text, end in zip(outputs, itertools.cycle(["Yes.", "No, 3.", "Ja!"]), strict=False)
    ]
    return list(zip(outputs, reversed(references), strict=True))
