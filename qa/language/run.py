"""Count phrases that the language rules forbid, and draw sentences at random for a person to judge.

``python qa/language/run.py`` prints the counts for the source, its messages and the pages.
``python qa/language/run.py --draw 50 --seed 1`` prints sentences from printed output, pages and docstrings.
``python qa/language/run.py --list RULE`` prints every sentence that breaks a rule.
"""

from __future__ import annotations

import argparse
import ast
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from support.language import OPENING, PROJECT, RULES, SOURCE, Text, faults_of, sentences_of, texts_of_page
from support.language import texts_of_source as source_texts

PAGES = [PROJECT / "README.md", *sorted((PROJECT / "docs").rglob("*.md"))]


def all_texts() -> Iterator[Text]:
    """Yield every text of the source and of the pages."""
    for path in sorted(SOURCE.rglob("*.py")):
        yield from source_texts(path)
    for path in PAGES:
        yield from texts_of_page(path)


def counts() -> dict[str, Counter[str]]:
    """Count broken rules by kind of text."""
    counted: dict[str, Counter[str]] = {rule: Counter() for rule in RULES}
    for text in all_texts():
        for rule, _ in faults_of(text):
            counted[rule][text.kind] += 1
    return counted


def openings() -> list[str]:
    """Return the module docstrings that begin with a question word."""
    paths = sorted(SOURCE.rglob("*.py"))
    docstrings = {
        path: ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "" for path in paths
    }
    return [path.relative_to(PROJECT).as_posix() for path, text in docstrings.items() if OPENING.match(text)]


def drawn(count: int, seed: int) -> list[tuple[Text, str]]:
    """Draw sentences: a third each from messages, pages and docstrings."""
    by_kind: dict[str, list[tuple[Text, str]]] = {}
    for text in all_texts():
        for sentence in sentences_of(text.text):
            if len(sentence.split()) >= 5:
                by_kind.setdefault(text.kind, []).append((text, sentence))
    generator = random.Random(seed)
    kinds = ("message", "page", "docstring")
    return [
        one
        for at, kind in enumerate(kinds)
        for one in generator.sample(by_kind[kind], count // 3 + (at < count % 3))
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draw", type=int, metavar="N", help="draw so many sentences")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--list", metavar="RULE", help="list the sentences that break a rule, by a part of its name"
    )
    options = parser.parse_args(arguments)
    if options.draw:
        for text, sentence in drawn(options.draw, options.seed):
            print(f"{text.kind:9} {text.place}\n    {sentence}")
    elif options.list:
        for text in all_texts():
            for rule, sentence in faults_of(text):
                if options.list in rule:
                    print(f"{text.place} ({text.kind}): {sentence}")
    else:
        print(f"{'source':>7} {'printed':>8} {'pages':>6}  rule")
        for rule, counted in counts().items():
            source = counted["docstring"] + counted["comment"] + counted["message"]
            print(f"{source:7} {counted['message']:8} {counted['page']:6}  {rule}")
        print(f"{len(openings()):7} {'':8} {'':6}  a module docstring that begins with a question word")
        words = sum(len(path.read_text(encoding="utf-8").split()) for path in PAGES[1:])
        print(f"{words:,} words in {len(PAGES) - 1} pages")


if __name__ == "__main__":
    main()
