"""Evaluate the small samples that ship with boxscore (no download), and suggest next commands.

Examples
--------
  boxscore demo
  boxscore demo --output samples
"""

from __future__ import annotations

import argparse
from pathlib import Path

from boxscore._utils.files import write_folder
from boxscore._utils.text import printable
from boxscore.cli.arguments import RESULTS_OUTPUT
from boxscore.cli.output import evaluation_text
from boxscore.cli.streams import show
from boxscore.evaluation import evaluate
from boxscore.formats import load_detections, load_ground_truth

SAMPLES = Path(__file__).parent / "demo_samples"
"""Made by ``datasets/make_demo.py``."""
_FILES = ("instances.json", "detections.json")

OPTIONS = (RESULTS_OUTPUT.but(help="copy the samples to this folder", metavar="DIR", required=False),)


def run(arguments: argparse.Namespace) -> int:
    """Evaluate, print; return the exit status."""
    # Use the samples where they are, or copy them first.
    folder = SAMPLES
    if arguments.output is not None:
        folder = arguments.output
        write_folder(folder, {name: (SAMPLES / name).read_bytes() for name in _FILES})
    # Evaluate them as any other files.
    truth, results = (folder / name for name in _FILES)
    ground_truth = load_ground_truth(truth)
    show(evaluation_text(evaluate(ground_truth, load_detections(results, ground_truth))))
    # Print their location and commands that run on them.
    shown = [printable(str(path)) for path in (truth, results)]
    show(f"\nground truth: {shown[0]}\ndetections:   {shown[1]}\n\nNext steps:\n")
    if arguments.output is None:
        folder = Path("samples")
        show("  # copy the two files to a folder\n  boxscore demo --output samples")
    truth, results = (folder / name for name in _FILES)
    files = f"{_quote(truth)} {_quote(results)}"
    for command, what in (
        (f"boxscore evaluate {files} --per-class", "AP of every class"),
        (f"boxscore validate {files}", "check the data for errors"),
        (f"boxscore errors {files}", "which errors cost AP"),
        (f"boxscore report {files} --report report", "an HTML report"),
        (f"boxscore stats {_quote(truth)}", "statistics of the data set"),
    ):
        show(f"  # {what}\n  {command}")
    return 0


def _quote(path: Path) -> str:
    """Return a path quoted for a shell, without terminal control characters."""
    import shlex

    return shlex.quote(printable(str(path)))
