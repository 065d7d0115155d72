"""The source of a code metric in the report: readable, and unable to act on page, Markdown or terminal."""

from __future__ import annotations

import ast
import re
from dataclasses import replace

import pytest

from chromium import Chromium, found
from metricsmith.bank.code import CodeMetric
from metricsmith.formats import visible
from metricsmith.report.blocks import Code
from metricsmith.report.induction.document import RunDocument
from metricsmith.report.render import markdown_lines, render_html, render_markdown, render_terminal

PLAIN = """import re


def score(output):
    words = re.findall(r"\\w+", output)
    return sum(len(word) > 6 and word != "<b>" for word in words)
"""
HOSTILE = '''def score(output):
    a = "</code></pre><script>alert(1)</script><img src=x onerror='alert(2)'>"
    b = "{{ 7 * 7 }} &lt; &amp; \\x1b[2J"  # \x1b]0;title\x07\x1b[31m red
    c = """
```
# A heading
[a link](javascript:alert(3))
````python
<b>bold</b>
"""
    d = "\u202e\u2066 turned \u200b\u00a0\ufeff \u2028 שלום"
    return len(a)  # x\x0c\x85
'''


@pytest.fixture
def record_of(make_record):
    """The realistic run with a code component that has this source."""

    def make(source):
        own = make_record().components
        card = CodeMetric(source, name="long_words", meaning="Words of more than six letters.").card
        code = replace(own[1], name="long_words", kind="code", card=card)
        return make_record(components=(own[0], code, *own[2:]), usage={})

    return make


def test_the_page_shows_the_source_and_that_it_costs_nothing(record_of, read):
    page = read(render_html(RunDocument(record_of(PLAIN))))
    assert not page.mismatched
    assert PLAIN.rstrip() in page.inside("pre", class_="code")
    (card,) = [text for text in page.inside("details", class_="card") if "Long words" in text or "long_words" in text]
    assert "function that the sandbox runs" in card
    assert "nothing: the sandbox runs it on this machine, and no model is asked" in card
    assert "extra:code" in card
    assert "Formula" not in card
    assert page.text.count("function that the sandbox runs") == 2  # what was induced, and the card


def test_markdown_shows_the_source_between_fences_below_the_components(record_of):
    text = render_markdown(RunDocument(record_of(PLAIN)))
    told = (
        "long\\_words is this function. It costs nothing: the sandbox runs it on this machine, and no model is asked."
    )
    place = text.index(f"{told}\n\n```python\n{PLAIN}```\n")
    assert text.index("What was induced") < place < text.index("Agreement with the raters")
    assert "| long\\_words | function that the sandbox runs |" in text
    assert "pip install 'metricsmith[code]'" in text


def test_the_terminal_lists_the_first_lines(record_of):
    text = render_terminal(RunDocument(record_of(PLAIN)))
    assert "\n  | def score(output):\n  |     words = re.findall(" in text
    long = PLAIN + "".join(f"\n\ndef more{n}():\n    return {n}\n" for n in range(30))
    text = render_terminal(RunDocument(record_of(long)))
    assert text.count("\n  | ") == 31
    assert "\n  | … 96 more lines in the report\n" in text


def test_a_record_without_code_speaks_of_none(make_record):
    document = RunDocument(make_record(usage={}))
    for text in (render_html(document), render_markdown(document), render_terminal(document)):
        assert "sandbox" not in text


def test_a_hostile_source_stays_text_on_the_page(record_of, read):
    page = read(render_html(RunDocument(record_of(HOSTILE))))
    assert not page.mismatched
    assert not page.turning
    assert not {tag for tag, _ in page.elements} & {"script", "img", "b"}
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
    assert visible(HOSTILE).rstrip() in page.inside("pre", class_="code")
    assert "{{ 7 * 7 }}" in page.text


def test_a_hostile_source_cannot_close_its_fence(record_of):
    text = render_markdown(RunDocument(record_of(HOSTILE)))
    lines = text.splitlines()
    start = lines.index("`````python")
    end = lines.index("`````", start)
    inside = lines[start + 1 : end]
    assert "\n".join(inside) == visible(HOSTILE).rstrip()
    assert "# A heading" in inside
    assert "# A heading" not in lines[:start] + lines[end:]


@pytest.mark.parametrize("ticks", [0, 1, 3, 4, 50])
def test_the_fence_is_longer_than_any_run_of_backticks(ticks):
    first, *inside, last, _ = markdown_lines([Code(f"a\n{'`' * ticks}\nb")])
    assert (first, last) == ("`" * max(3, ticks + 1) + "python", "`" * max(3, ticks + 1))
    assert inside == [f"a\n{'`' * ticks}\nb"]


@pytest.mark.parametrize("render", [render_html, render_markdown, render_terminal])
def test_nothing_unseen_and_nothing_that_turns_texts_is_written(record_of, render):
    text = render(RunDocument(record_of(HOSTILE)))
    assert not re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069\u2028\ufeff]", text)
    for shown in ("\\x1b]0;title\\x07\\x1b[31m red", "\\u202e\\u2066 turned \\u200b\\xa0\\ufeff \\u2028 שלום"):
        assert shown in text


def test_what_is_shown_is_the_same_program_and_a_hidden_line_is_a_line():
    source = "def score():\n    return len('\u202e\u200b\u2066é')  # a comment\r    hidden = 1\r\n    return 2"
    assert ast.dump(ast.parse(visible(source))) == ast.dump(ast.parse(source))
    assert visible(source).splitlines()[2:] == ["    hidden = 1", "    return 2"]
    assert visible(PLAIN) == PLAIN


@pytest.mark.browser
def test_a_browser_shows_the_source_line_by_line_and_runs_nothing(record_of, tmp_path):
    program = found() or pytest.skip("no Chromium on this machine")
    (tmp_path / "page.html").write_text(render_html(RunDocument(record_of(HOSTILE))), "utf-8")
    with Chromium(program, tmp_path) as browser:
        browser.open(tmp_path / "page.html")
        card = "[...document.querySelectorAll('details.card')].find(one => one.querySelector('pre'))"
        browser.run(f"{card}.open = true")
        assert browser.run(f"{card}.querySelector('pre').innerText") == visible(HOSTILE).rstrip()
        assert browser.run("document.querySelectorAll('script, img').length") == 0
        assert browser.run("document.documentElement.scrollWidth <= window.innerWidth") is True
