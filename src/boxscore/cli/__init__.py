"""The command line: one subcommand, one file.

Conventions
-----------
- A subcommand is a module here with ``add_arguments(parser)`` and ``run(arguments) -> int``. Only the one
  that was asked for is imported, so that twelve numbers do not wait for pandas.
- Results go to stdout, messages, warnings and progress to stderr.
- Exit status: 0 done, 1 a check failed, 2 bad input, 130 interrupted.
"""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
import warnings
from collections.abc import Sequence

from boxscore._utils.allocator import keep_freed_memory
from boxscore._utils.text import printable
from boxscore._version import __version__
from boxscore.errors import BoxscoreError, BoxscoreWarning, VerificationError

__all__ = ["COMMANDS", "main"]

COMMANDS = {
    "evaluate": "score detections against ground truth",
    "validate": "find faults in ground truth and detections that a score does not show",
    "convert": "save ground truth or detections as columns that read in no time",
    "run": "run a configuration file",
    "nms": "turn raw detections into final ones: suppress, rescore or merge",
    "fuse": "one results file from those of several models",
    "sweep": "which suppression settings score best",
    "compare": "is one detector better than another? paired differences with intervals",
    "bootstrap": "how sure is each number? intervals over resampled images",
    "report": "write an HTML report, tables and plots of a result",
    "draw": "draw boxes over the worst images, or over chosen ones",
    "check": "a gate for pipelines: bounds, and no worse than a baseline",
    "explain": "why do two tools give two numbers? which tool gave this number?",
    "errors": "what each kind of mistake costs (TIDE)",
    "confusion": "what each class was taken for",
    "operating-points": "which confidence threshold to use",
    "calibration": "does a confidence of .8 mean four in five?",
    "lrp": "localisation-recall-precision errors",
    "slices": "scores by size, shape, crowdedness or any column",
    "ties": "how far the order of equal scores could move AP",
    "suspects": "labels that a confident detector contradicts",
    "protocols": "list the protocols, or print one as TOML",
}
"""Subcommands and what they do; a dash in a name is an underscore in its module's name."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        Without the program's name; ``sys.argv`` when not given.

    Returns
    -------
    int
        The exit status.
    """
    keep_freed_memory()
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if not given or given[0] not in COMMANDS:
            _top_level_parser().parse_args(given or ["--help"])
            return 2
        command = importlib.import_module(f"boxscore.cli.{given[0].replace('-', '_')}")
        parser = argparse.ArgumentParser(prog=f"boxscore {given[0]}", description=command.__doc__)
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        command.add_arguments(parser)
        parser.add_argument("--strict", action="store_true", help="treat warnings as errors")
        return _run(command.run, parser.parse_args(given[1:]))
    except SystemExit as stop:  # argparse: help or a usage error, already printed
        return stop.code if isinstance(stop.code, int) else 2


def _run(command: object, arguments: argparse.Namespace) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("error" if arguments.strict else "always", BoxscoreWarning)
        warnings.showwarning = _show_warning  # type: ignore[assignment]
        if isinstance(sys.stdout, io.TextIOWrapper):  # a name that the terminal cannot show is escaped
            sys.stdout.reconfigure(errors="backslashreplace")
        try:
            status = command(arguments)  # type: ignore[operator]
            sys.stdout.flush()
        except VerificationError as error:
            _say(str(error))
            return 1
        except (BoxscoreError, BoxscoreWarning) as error:
            _say(f"error: {error}")
            return 2
        except BrokenPipeError:  # the reader (head, less) has left
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        except OSError as error:
            name = f"{error.filename}: " if error.filename else ""
            _say(f"error: {name}{error.strerror or error}.")
            return 2
        except KeyboardInterrupt:
            print("boxscore: interrupted", file=sys.stderr)
            return 130
    return int(status)


def _say(text: str) -> None:
    """Print one line to stderr; what files call their classes must not steer the terminal."""
    print(f"boxscore: {printable(text)}", file=sys.stderr)


def _show_warning(
    warning: Warning | str, category: type[Warning], filename: str, lineno: int, *_: object
) -> None:
    if issubclass(category, BoxscoreWarning):
        _say(f"warning: {warning}")
    else:
        print(warnings.formatwarning(warning, category, filename, lineno), file=sys.stderr, end="")


def _top_level_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="boxscore",
        description="The box score for object detectors: exact COCO and VOC evaluation, NMS and reports.",
        epilog="boxscore COMMAND --help says more of each.",
    )
    parser.add_argument("--version", action="version", version=f"boxscore {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, text in COMMANDS.items():
        commands.add_parser(name, help=text, add_help=False)
    return parser
