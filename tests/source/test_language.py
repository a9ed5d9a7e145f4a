"""Reject phrases that the language rules forbid in the source, the README and the pages."""

from __future__ import annotations

import ast

from support.language import OPENING, PROJECT, SOURCE, faults_of, texts_of_page, texts_of_source
from support.sources import FILES, tree_of

PAGES = [PROJECT / "README.md", *sorted((PROJECT / "docs").rglob("*.md"))]

EXCEPTIONS = {
    "Read the Parquet footers; ``beside`` is a ground-truth file in another format.": "names a parameter",
    'Signatures keep the spelling "centre", so that signatures in published tables stay valid.': "quotes a value",
}
"""Sentences that keep a forbidden phrase, and why."""


def test_no_sentence_breaks_a_language_rule() -> None:
    """The failure prints each sentence with its place and the rule."""
    texts = [text for path in sorted(SOURCE.rglob("*.py")) for text in texts_of_source(path)]
    texts += [text for path in PAGES for text in texts_of_page(path)]
    found = [(text.place, rule, sentence) for text in texts for rule, sentence in faults_of(text)]
    faults = [
        f"{place} ({rule}): {sentence}" for place, rule, sentence in found if sentence not in EXCEPTIONS
    ]
    assert not faults, "\n".join(["", *faults])
    assert EXCEPTIONS.keys() <= {sentence for _, _, sentence in found}


def test_no_module_docstring_begins_with_a_question_word() -> None:
    """A module docstring says in a verb what the module does."""
    openings = {f"src/boxscore/{file}": ast.get_docstring(tree_of(file)) for file in FILES}
    assert not [f"{place}: {text}" for place, text in openings.items() if OPENING.match(text or "")]


def test_few_sentences_are_excepted() -> None:
    """At most 40, each with a reason."""
    assert len(EXCEPTIONS) <= 40
    assert all(EXCEPTIONS.values())
