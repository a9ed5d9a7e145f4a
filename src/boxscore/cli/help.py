"""Format the help of the program and of its commands.

Conventions
-----------
- Usage and description come first, then the command's own options, then shared options by heading. Each
  option ends with its default, if any.
- ``--help`` shows the options that most people need, in one line each if possible; options shared with
  ``evaluate`` are only listed by name. ``--help-all`` explains all options, those with a topic last.
- Lines fit the terminal; long calls in examples are continued with a backslash.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from boxscore._utils.text import counted, wrapped
from boxscore.cli.arguments import HEADINGS, INPUT, INPUTS, NOT_IN_FILES, OUTPUT_GROUP, TOPICS, Option
from boxscore.cli.streams import colored, terminal_width

COLUMN, SHORT_COLUMN = 24, 28
"""Column of the texts of options, in the full and the short help."""
WIDEST = 100
"""Maximum line width, for readability."""
LONGEST_CHOICES, SHORT_CHOICES = 40, 20
"""Maximum length of choices next to the option, in the full and the short help."""
ALL_OF = "evaluate"
"""The command whose help explains the options of input and protocol."""


def _width() -> int:
    return min(terminal_width(), WIDEST)


def program_help(groups: Mapping[str, Sequence[str]], summaries: Mapping[str, str]) -> str:
    """Return the help of the program, with the commands by task."""
    lines = [
        "usage: boxscore COMMAND ...",
        "",
        "The box score for object detectors: exact COCO and VOC evaluation, NMS and reports.",
    ]
    for heading, names in groups.items():
        lines += ["", colored(heading, "bold")]
        for name in names:
            lines += _entry(name, summaries[name], column=20)
    lines += [
        "",
        colored("options", "bold"),
        *_entry("-h, --help", "print this help; boxscore COMMAND --help explains a command", column=20),
        *_entry("-V, --version", "print the version", column=20),
        *_entry(
            "--print-completion SHELL",
            "print shell completion for bash or zsh; its first lines tell you how to install it",
            column=20,
        ),
        "",
        "Names that other tools use lead to these commands: boxscore tide runs errors, and boxscore soft-nms "
        "prints what to type.",
        "If boxscore is not on your PATH, use python -m boxscore.",
    ]
    return "\n".join(wrapped(line, _width()) if not line.startswith(" ") else line for line in lines) + "\n"


def command_help(
    name: str, description: str, options: Sequence[Option], *, sides: Sequence[str], every: bool = False
) -> str:
    """Return the help of a command, with the options that most people need, or with ``every`` one."""
    # Usage: required arguments in order.
    paragraphs, examples = _parts(description)
    call = ["usage: boxscore", name]
    call += [*(_call(option) for option in options if option.required and option.positional), *sides]
    names = ("ground_truth", "detections")
    needed = [o for o in options if o.required and not o.positional and not (sides and o.dest in names)]
    call += [f"--{option.name} {_value(option)}" for option in needed]
    lines = [wrapped(" ".join([*call, "[options]"]), _width(), indent="    ")]
    for paragraph in paragraphs:
        lines += ["", wrapped(paragraph, _width())]
    # Description, examples, and the meaning of the two files.
    if examples:
        lines += ["", colored("examples", "bold"), *(line for each in examples for line in _example(each))]
    if sides:
        what = {"GT": "ground truth", "DT": "detections"}
        words = " and ".join(what[side.split(" ")[0]] for side in sides)
        instead = " and ".join(f"--{side.split(' ')[0].lower()}" for side in sides)
        column = COLUMN if every else SHORT_COLUMN
        lines += ["", *_entry(" ".join(sides), f"{words}, or {instead}", column=column)]
    # Options by group; --help only counts those with a topic.
    asked = dict.fromkeys(option.topic for option in options if option.topic)
    topics = sorted(asked, key=lambda topic: TOPICS.index(topic) if topic in TOPICS else len(TOPICS))
    shown = [option for option in options if not option.topic]
    lines += _full_options(shown, topics) if every else _short_options(name, shown)
    if every:
        for topic in topics:
            lines += ["", colored(topic, "bold")]
            for option in options:
                if option.topic == topic:
                    lines += _entry(_call(option), _explanation(option))
    elif topics:
        count = counted(len(options) - len(shown), "more option")
        more = f"{count} in boxscore {name} --help-all: {'; '.join(topics)}."
        lines += ["", wrapped(more, _width())]
    return "\n".join(lines) + "\n"


def _full_options(options: Sequence[Option], topics: Sequence[str]) -> Iterator[str]:
    """Explain options by heading."""
    for heading, chosen in _by_heading(options):
        yield from ("", colored(heading, "bold"))
        for option in chosen:
            yield from _entry(_call(option), _explanation(option))
        if heading == OUTPUT_GROUP:
            yield from _entry("-h, --help", "print this help")
            yield from _entry("--help-all", "print every option") if topics else ()


def _short_options(name: str, options: Sequence[Option]) -> Iterator[str]:
    """Explain each option in one line if possible; only list names of those that ``evaluate`` explains."""
    inputs = [option.but(short="") for option in INPUTS] if name != ALL_OF else []
    shared = [option for option in options if option.but(short="") in inputs]
    # Merge options for missing information into the input options, for fewer headings.
    listed = [
        option.but(group=INPUT) if option.group == NOT_IN_FILES else option
        for option in options
        if option not in shared
    ]
    for heading, chosen in _by_heading(listed):
        yield from ("", colored(heading, "bold"))
        for option in chosen:
            text = option.brief or _explanation(option, longest=SHORT_CHOICES)
            yield from _entry(_call(option, longest=SHORT_CHOICES), text, column=SHORT_COLUMN)
        if heading == OUTPUT_GROUP:
            yield from _entry("-h, --help", "print this help", column=SHORT_COLUMN)
            yield from _entry("--help-all", "print every option", column=SHORT_COLUMN)
    if shared:
        flags = ", ".join(f"--{option.name}" for option in shared)
        yield from ("", wrapped(f"Same as in boxscore {ALL_OF} --help: {flags}.", _width()))


def _by_heading(options: Sequence[Option]) -> Iterator[tuple[str, list[Option]]]:
    """Yield options by heading: the command's own, those under its own headings, then shared ones."""
    own = dict.fromkeys(option.group for option in options if option.group not in ("", *HEADINGS))
    for heading in ("", *own, *HEADINGS):
        if chosen := [option for option in options if option.group == heading]:
            yield heading or "options", chosen


def _parts(description: str) -> tuple[list[str], list[str]]:
    """Split a docstring into paragraphs, each in one line, and the calls in its examples."""
    text, _, rest = description.strip().partition("\n\nExamples\n--------\n")
    calls = rest.rstrip().replace("\n  ... ", " ").splitlines()
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n", text)], calls


def _example(line: str) -> Iterator[str]:
    """Break a long call before its options."""
    width = _width() - 2
    shown = ""
    for part in re.split(r" (?=--)", line):
        if shown and len(shown) + 1 + len(part) > width:
            yield f"{shown} \\"
            shown = f"      {part}"
        else:
            shown = f"{shown} {part}" if shown else part
    yield shown


def _entry(head: str, text: str, *, column: int = COLUMN) -> Iterator[str]:
    """Format a term with its explanation next to it, or below if the term is long."""
    body = wrapped(text, max(_width() - column, 20)).split("\n")
    if len(head) + 4 > column:
        yield f"  {head}"
    else:
        yield f"  {head}".ljust(column) + body.pop(0)
    for line in body:
        yield " " * column + line


def _call(option: Option, *, longest: int = LONGEST_CHOICES) -> str:
    if option.positional:
        return (option.metavar or option.dest.upper()) + (" ..." if option.many else "")
    # A second long name is for users of another program; the short help omits it.
    known = [option.short] if option.short and (longest == LONGEST_CHOICES or option.short[1] != "-") else []
    return f"{', '.join([*known, f'--{option.name}'])} {_value(option, longest=longest)}".rstrip()


def _value(option: Option, *, longest: int = LONGEST_CHOICES) -> str:
    """Return the placeholder of an option's value, or its choices if there are few."""
    if option.kind is bool:
        return ""
    listed = "|".join(option.known()) if not option.metavar else ""
    word = option.metavar or (listed if 0 < len(listed) <= longest else option.dest.upper())
    return f"{word} ..." if option.many else word


def _explanation(option: Option, *, longest: int = LONGEST_CHOICES) -> str:
    text = option.help
    known = option.known()
    if known and not option.metavar and len("|".join(known)) > longest:
        text += f": {', '.join(known)}"
    return text + option.default_text
