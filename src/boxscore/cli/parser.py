"""Parse the arguments of a command: argparse with positional paths and its own errors and help.

An error has two lines: the problem and a remedy, without the usage of all options.
"""

from __future__ import annotations

import argparse
import functools
import inspect
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from boxscore._utils.given_paths import path_of, together, without_secrets
from boxscore.cli.arguments import DETECTIONS, GROUND_TRUTH, Option, declared
from boxscore.cli.streams import say, show
from boxscore.errors import InputError, shortened

_KINDS = {"int": "a whole number", "float": "a number"}


def add_options(parser: ArgumentParser, options: Iterable[Option]) -> None:
    """Add options to a parser; options without a loaded declaration have the value None."""
    groups: dict[str, Any] = {}
    for option in options:
        parser.options.append(option)
        if option.declared:
            parser.set_defaults(**{option.dest: None})
            continue
        if option.instead:  # parsed from the paths
            continue
        if option.exclusive and option.exclusive not in groups:
            groups[option.exclusive] = parser.add_mutually_exclusive_group()
        _add(groups.get(option.exclusive, parser), option)


def _add(parser: Any, option: Option) -> None:
    is_told = option.default is not None and option.kind is not bool
    how: dict[str, Any] = {"help": option.help + option.default_text if is_told else option.help}
    if option.kind is bool:
        how |= {"action": "store_false" if option.default else "store_true"}
    else:
        how |= {"type": _items(option.kind) if option.commas else _read(option.kind)}
        how |= {"default": option.default, "metavar": option.metavar or None}
        if not option.commas:
            how["choices"] = _Known(option) if callable(option.choices) else tuple(option.choices) or None
        if option.many:
            how |= {"nargs": "+", "action": _Extend}
        elif option.kind is path_of:
            how["action"] = _Combine
        elif option.positional and not option.required:
            how["nargs"] = "?"
    if option.positional:
        parser.add_argument(option.dest, **how)
    else:
        parser.add_argument(*option.flags, dest=option.dest, required=option.required, **how)


class _HelpAll(argparse.Action):
    """Print the help with all options, and exit."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        show(parser.format_help_all().removesuffix("\n"))
        parser.exit()


class _Known(Collection[str]):
    """Choices from a function, which is called only to check a value."""

    def __init__(self, option: Option) -> None:
        self._option = option

    def __contains__(self, value: object) -> bool:
        return value in self._option.known()

    def __iter__(self) -> Iterator[str]:
        return iter(self._option.known())

    def __len__(self) -> int:
        return len(self._option.known())


class _Combine(argparse.Action):
    """Combine the files of a repeated option to one input."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        before = getattr(namespace, self.dest, self.default)
        setattr(namespace, self.dest, values if before is self.default else together(before, values))


class _Extend(argparse.Action):
    """Collect the values of a repeated option; the first one replaces the default."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        before = getattr(namespace, self.dest, self.default)
        setattr(namespace, self.dest, list(values) if before is self.default else [*before, *values])


def _read(kind: Callable[[str], Any]) -> Callable[[str], Any]:
    """Wrap a converter so that argparse shows its error message."""
    if kind in (str, int, float, Path):
        return kind

    def read(text: str) -> Any:
        try:
            return kind(text)
        except InputError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return read


def _items(kind: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return a converter of values separated by commas."""

    def items(text: str) -> list[Any]:
        return [kind(item.strip()) for item in text.split(",") if item.strip()]

    items.__name__ = kind.__name__
    return items


def _numbers(paths: Sequence[str]) -> list[float] | None:
    """Convert words to numbers; None unless there are more than two and all are numbers."""
    try:
        return [float(path) for path in paths] if len(paths) > 2 else None
    except ValueError:
        return None


class ArgumentParser(argparse.ArgumentParser):
    """Parser of a command; ground truth and detections may be given without ``--gt`` and ``--dt``."""

    def __init__(self, name: str, description: str, without: Mapping[str, str] | None = None) -> None:
        super().__init__(
            prog=f"boxscore {name}",
            description=description,
            allow_abbrev=False,
            # argparse makes one for each option; without a width, it asks the terminal each time.
            formatter_class=functools.partial(argparse.HelpFormatter, width=80),
        )
        self.options: list[Option] = []
        self.without = without or {}
        self.command = name
        self._sides: Sequence[argparse.Action] = ()
        self.add_argument(
            "--help-all", action=_HelpAll, nargs=0, dest=argparse.SUPPRESS, default=argparse.SUPPRESS
        )

    # ------------------------------------------------------------ help and errors

    def format_help(self) -> str:
        """Return the short help."""
        from boxscore.cli.help import command_help

        return command_help(self.command, self.description or "", declared(self.options), sides=self.sides)

    def format_help_all(self) -> str:
        """Return the help with all options."""
        from boxscore.cli.help import command_help

        options = declared(self.options)
        return command_help(self.command, self.description or "", options, sides=self.sides, every=True)

    def error(self, message: str) -> NoReturn:
        """Print the problem and a remedy, shortened and without control characters, and exit."""
        text, more = self._explain(without_secrets(message))
        say(f"error: {shortened(text)}", name="boxscore", color="red", quiet=False)
        say(shortened(more or f"See boxscore {self.command} --help for its options."), quiet=False)
        raise SystemExit(2)

    def _explain(self, message: str) -> tuple[str, str]:
        """Rewrite an error of argparse; return it with a remedy, or "" for a reference to the help."""
        # Match complete messages of argparse, to leave those of other versions unchanged.
        if match := re.fullmatch("unrecognized arguments: (.*)", message, re.DOTALL):
            return self._unknown(match[1])
        if match := re.fullmatch("the following arguments are required: (.*)", message, re.DOTALL):
            names = match[1].split(", ")
            first = [one.known()[0] for one in self.options if one.positional and one.known()]
            words = [*first, *self.sides, *self._format_missing(names)]
            calls = f"For example: boxscore {self.command} {' '.join(words)}" if self.sides else ""
            return f"{self.command} needs {match[1].replace(', ', ' and ')}.", (
                f"{calls}. See boxscore {self.command} --help." if calls else ""
            )
        if match := re.fullmatch("argument ([^:]*): (.*)", message, re.DOTALL):
            name, rest = match[1].split("/")[0], match[2]
            if rest.startswith("expected"):
                return f"{name} needs {'a value' if 'one argument' in rest else 'one or more values'}.", ""
            if kind := re.fullmatch("invalid (int|float) value: (.*)", rest, re.DOTALL):
                return f"{name} must be {_KINDS[kind[1]]}. Got {kind[2]}.", ""
            if chosen := re.match("invalid choice: ('.*') \\(choose from", rest, re.DOTALL):
                return self._explain_choice(name, chosen[1])
            if rest.startswith("not allowed with argument"):
                other = rest.rsplit(" ", 1)[-1].split("/")[0]
                return f"{name} and {other} cannot be used together.", ""
            return (rest if rest.startswith(name) else f"{name}: {rest}"), ""
        return message, ""

    def _format_missing(self, names: Sequence[str]) -> list[str]:
        """Format missing options with sample values, without those that paths can replace."""
        missing = [name.split("/")[0].removeprefix("--") for name in names]
        return [
            f"--{option.name} {(option.known() or (option.metavar or option.name.upper(),))[0]}"
            for option in self.options
            if option.name in missing and option.dest not in (GROUND_TRUTH.dest, DETECTIONS.dest)
        ]

    def _unknown(self, words: str) -> tuple[str, str]:
        from boxscore._utils.checks import nearest

        word = words.split(" ")[0].split("=")[0]
        if not word.startswith("-"):
            takes_results = DETECTIONS.dest in [option.dest for option in self.options]
            only_truth = takes_results and self.sides == ["GT ..."]
            hint = f"; did you mean --dt {word}?" if only_truth else "."
            return f"{self.command} does not take the argument {words!r}{hint}", ""
        options = [option for option in self.options if not option.positional]
        names = ["-h", "--help", "--help-all", *(name for option in options for name in option.flags)]
        if word in self.without:
            return f"{self.command} does not take {word}: it {self.without[word]}.", ""
        begun = [f"--{option.name}" for option in self.options if word in option.mistyped_as]
        begun += [name for name in names if name.startswith(word)] if len(word) > 3 else []
        hint = f"did you mean {' or '.join(begun)}?" if begun else nearest(word, names).replace("'", "")
        return f"{self.command} does not take {word}{('; ' + hint if hint else '.')}", ""

    def _explain_choice(self, name: str, got: str) -> tuple[str, str]:
        from boxscore._utils.checks import nearest

        (option,) = (option for option in self.options if name in (f"--{option.name}", option.metavar))
        known = option.known()
        begun = [choice for choice in known if choice.startswith(got.strip("'") + "-")]
        near = f"did you mean {' or '.join(begun)}?" if len(begun) > 1 else nearest(got.strip("'"), known)
        if len(known) > 8:
            text = f"{name} does not take {got}"
            return f"{text}{'; ' + near if near else '.'}", f"Possible values: {', '.join(known)}."
        text = f"{name} must be one of {', '.join(known)}. Got {got}"
        return f"{text}{'; ' + near if near else '.'}", ""

    # ------------------------------------------------------------ paths

    @property
    def sides(self) -> list[str]:
        """Placeholders of positional paths, in order."""
        words = {GROUND_TRUTH.dest: "GT", DETECTIONS.dest: "DT"}
        return [words[side.dest] + (" ..." if side.nargs else "") for side in self._sides]

    def take_paths(self) -> None:
        """Accept positional paths: ground truth, then detections, if the command has these options."""
        by_dest = {action.dest: action for action in self._actions if action.option_strings}
        sides = [by_dest[side.dest] for side in (GROUND_TRUTH, DETECTIONS) if side.dest in by_dest]
        if not sides:
            return
        # If there may be several paths of ground truth, those of detections cannot be told apart.
        self._sides = sides[:1] if sides[0].nargs else sides
        self.add_argument("paths", nargs="*", metavar=" ".join(self.sides), help="instead of --gt and --dt")

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse; positional paths are the ground truth, then the detections, unless given by options."""
        parsed = self._parsed(args, namespace) if self._sides else super().parse_args(args, namespace)
        for option in self.options:
            if option.commas and (given := getattr(parsed, option.dest)) is not option.default:
                setattr(parsed, option.dest, [item for items in given for item in items])
        return parsed

    def _parsed(self, args: Any, namespace: Any) -> Any:
        # Paths may replace options, so argparse must not require them.
        needed = [action for action in self._sides if action.required]
        for action in needed:
            action.required = False
        try:
            parsed = self.parse_intermixed_args(args, namespace)
        finally:
            for action in needed:
                action.required = True
        # Some commands accept numbers instead of paths.
        paths = parsed.__dict__.pop("paths") or []
        for option in self.options:
            if option.instead:
                setattr(parsed, option.dest, numbers := _numbers(paths))
                if numbers is not None:
                    return parsed
        # Assign each path to the next option without a value.
        kinds = {option.dest: option.kind for option in self.options}
        for action in self._sides:
            if paths and getattr(parsed, action.dest) is None:
                taken = len(paths) if action.nargs else 1
                try:
                    given = [kinds[action.dest](path) for path in paths[:taken]]
                except InputError as error:  # an invalid URL
                    self.error(str(error))
                setattr(parsed, action.dest, given if action.nargs else given[0])
                paths = paths[taken:]
        if paths:
            self.error(f"unrecognized arguments: {' '.join(paths)}")
        # Report missing options in the words of argparse.
        missing = [
            "/".join(action.option_strings) for action in needed if getattr(parsed, action.dest) is None
        ]
        if missing:
            self.error(f"the following arguments are required: {', '.join(missing)}")
        return parsed


def documentation(described: ModuleType | Callable[..., Any]) -> str:
    """Return a docstring; under ``python -OO``, read it from the source if available."""
    text = inspect.getdoc(described)
    if text is None:
        import ast
        import textwrap

        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(described)))
        except OSError:
            return ""
        text = ast.get_docstring(tree if inspect.ismodule(described) else tree.body[0])  # type: ignore[arg-type]
    return text or ""
