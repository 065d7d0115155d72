"""Twenty metrics that a model might write, and texts of many kinds: the sandbox computes what CPython does."""

from __future__ import annotations

FUNCTIONS = {
    "words per sentence": """
import re
def score(output, input, references):
    sentences = [s for s in re.split(r"[.!?]+\\s*", output) if s.strip()]
    return len(output.split()) / len(sentences) if sentences else 0.0
""",
    "type-token ratio": """
import re
def score(output, input, references):
    words = re.findall(r"[^\\s.,;:!?]+", output.lower())
    return len(set(words)) / len(words) if words else 0.0
""",
    "Jaccard with references": """
def score(output, input, references):
    mine = set(output.lower().split())
    best = 0.0
    for reference in references:
        theirs = set(reference.lower().split())
        if mine | theirs:
            best = max(best, len(mine & theirs) / len(mine | theirs))
    return best
""",
    "digits": """
import re
def score(output, input, references):
    return len(re.findall(r"\\d", output)) + 0.5 * len(re.findall(r"\\b\\d{4}\\b", output))
""",
    "valid JSON": """
import json
def score(output, input, references):
    try:
        value = json.loads(output)
    except ValueError:
        return 0.0
    return 2.0 if isinstance(value, dict) else 1.0
""",
    "letters by category": """
import collections, unicodedata
def score(output, input, references):
    counts = collections.Counter(unicodedata.category(c)[0] for c in output)
    return sum(weight * counts[kind] for kind, weight in zip("LNPSZMC", (1, 2, 3, 5, 7, 11, 13)))
""",
    "readability": """
import re
def score(output, input, references):
    words = re.findall(r"[a-z]+", output.lower())
    sentences = max(1, len(re.findall(r"[.!?]+", output)))
    if not words:
        return 0.0
    syllables = sum(max(1, len(re.findall(r"[aeiouy]+", word))) for word in words)
    return 206.835 - 1.015 * len(words) / sentences - 84.6 * syllables / len(words)
""",
    "brackets": """
def score(output, input, references):
    pairs = {")": "(", "]": "[", "}": "{"}
    stack = []
    wrong = 0
    for letter in output:
        if letter in "([{":
            stack.append(letter)
        elif letter in pairs:
            if stack and stack[-1] == pairs[letter]:
                stack.pop()
            else:
                wrong += 1
    return -(wrong + len(stack))
""",
    "entropy of letters": """
import collections, math
def score(output, input, references):
    counts = collections.Counter(output)
    total = sum(counts.values())
    return -sum(n / total * math.log2(n / total) for n in counts.values()) if total else 0.0
""",
    "edit distance to the input": """
def score(output, input, references):
    a, b = output[:60], input[:60]
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        row, before = [i], row
        for j, y in enumerate(b, 1):
            row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (x != y)))
    return row[-1] / max(1, len(a), len(b))
""",
    "longest common subsequence": """
def score(output, input, references):
    def length(a, b):
        row = [0] * (len(b) + 1)
        for x in a:
            last = 0
            for j, y in enumerate(b):
                last, row[j + 1] = row[j + 1], last + 1 if x == y else max(row[j + 1], row[j])
        return row[-1]
    words = output.split()
    return max((2 * length(words, r.split()) / max(1, len(words) + len(r.split())) for r in references), default=0)
""",
    "bigram precision": """
from collections import Counter
def score(output, input, references):
    def grams(text):
        words = text.lower().split()
        return Counter(zip(words, words[1:]))
    mine = grams(output)
    if not mine or not references:
        return 0.0
    shares = []
    for theirs in map(grams, references):
        shares.append(sum(min(n, theirs[g]) for g, n in mine.items()) / sum(mine.values()))
    return max(shares)
""",
    "spread of sentence lengths": """
import math, re
def score(output, input, references):
    lengths = [len(s.split()) for s in re.split(r"(?<=[.!?])\\s+", output.strip())]
    mean = math.fsum(lengths) / len(lengths)
    return math.sqrt(sum((n - mean) ** 2 for n in lengths) / len(lengths))
""",
    "jargon": """
import re
JARGON = ["pursuant", "herein", "aforementioned", "notwithstanding", "commence"]
PATTERN = re.compile(r"\\b(" + "|".join(map(re.escape, JARGON)) + r")\\w*", re.IGNORECASE)
def score(output, input, references):
    return -100 * len(PATTERN.findall(output)) / (1 + len(output.split()))
""",
    "capital letters": """
def score(output, input, references):
    letters = [c for c in output if c.isalpha()]
    return sum(c.isupper() for c in letters) / len(letters) if letters else 0.0
""",
    "copied numbers": """
import re
def score(output, input, references):
    asked = re.findall(r"-?\\d+(?:\\.\\d+)?", input)
    given = {float(n) for n in re.findall(r"-?\\d+(?:\\.\\d+)?", output)}
    return sum(float(n) in given for n in asked) / len(asked) if asked else 1.0
""",
    "lists and headings": """
import re
def score(output, input, references):
    bullets = re.findall(r"^\\s*(?:[-*+]|\\d+[.)])\\s+", output, re.M)
    headings = re.findall(r"^#{1,6}\\s", output, flags=re.MULTILINE)
    return len(bullets) + 0.1 * len(headings) + 0.01 * output.count("\\n")
""",
    "cosine of letters": """
import math
from collections import Counter
def score(output, input, references):
    a, b = Counter(output.casefold()), Counter(input.casefold())
    norm = math.sqrt(sum(v * v for v in a.values()) * sum(v * v for v in b.values()))
    return sum(a[k] * b[k] for k in a) / norm if norm else 0.0
""",
    "repeated runs": """
import itertools
def score(output, input, references):
    runs = [len(list(group)) for _, group in itertools.groupby(output.split())]
    return max(runs, default=0) + 0.001 * sum(n * n for n in runs)
""",
    "without accents": """
import re, unicodedata
def score(output, input, references):
    plain = "".join(c for c in unicodedata.normalize("NFKD", output) if not unicodedata.combining(c))
    words = re.findall(r"[A-Za-z]+", plain)
    match len(words):
        case 0:
            return -1.0
        case n if n < 3:
            return 0.25
        case n:
            return round(math_mean([len(w) for w in words]), 6) + (n % 7) / 7
def math_mean(values):
    return sum(values) / len(values)
""",
}

TEXTS = (
    "",
    " ",
    "The council will close this road. Buses stop at the town hall! Is that clear?",
    "The council will close this road at noon (see 12.5).",
    "Pursuant to section 4, the aforementioned works shall commence on 2026-11-23; notwithstanding (b) [c].",
    '{"a": [1, 2.5, null], "b": {"c": "d"}}',
    "[1, 2, 3]",
    '{"a": 1,}',
    "# Heading\n\n- one\n* two\n1. three\n2) four\n\n## Other\n+ five",
    "Zażółć gęślą jaźń. Ça va très bien, naïve Straße ŒUVRE.",
    "東京は日本の首都です。人口は約1400万人。",
    "Привет, мир! Это проверка — длинная.",
    "🙂🙃 emoji 👩‍👩‍👧 and flags 🇩🇪🇫🇷",
    "a a a b b c c c c a",
    "((a) [b {c}] d)) e]",
    "1 -2 3.5 1000000 0.001 2026 1e5",
    "tab\tand\r\nlines\x0b\x0cand\u2028more\u00a0space\x00end",
    "WORD Word word WoRd",
    "e\u0301 é Å \u212b ﬁ ½ ² Ⅷ",
    "x" * 500,
    "The cat sat on the mat. " * 20,
)
ROWS = tuple(
    {"output": text, "input": TEXTS[place - 3], "references": list(TEXTS[place - 2 : place])}
    for place, text in enumerate(TEXTS)
)
