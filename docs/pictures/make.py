"""Make the pictures of the README and the pages: ``python docs/pictures/make.py [NAME ...]``.

Each picture is the program's own output on the bundled samples. Run it again when that output changes,
and look at the pictures. The terminal is an SVG of what the program prints to a terminal of 80 columns;
reports are screenshots by headless Chromium (``apt-get install chromium``); plots are those of
``boxscore.plots``.
"""

from __future__ import annotations

import contextlib
import io
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from html import escape
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SHAPES = ROOT / "datasets" / "shapes_coco"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "COLUMNS": "80", "TERM": "xterm-256color"}
LARGEST = 150_000
"""Bytes of a picture at most."""

# ---------------------------------------------------------------- the terminal

CELL, LINE, MARGIN = 8.43, 19, 18
PAPER, INK, FAINT, PROMPT = "#0d1117", "#e6edf3", "#8b949e", "#7ee787"
COLORS = {
    31: "#ff7b72",
    32: "#7ee787",
    33: "#e3b341",
    34: "#79c0ff",
    35: "#d2a8ff",
    36: "#76e3ea",
    90: FAINT,
}
CODE = re.compile(r"\x1b\[([\d;]*)m")
OTHER_CODE = re.compile(r"\x1b\[[\d;?]*[A-Za-ln-z]|\x1b\][^\x07]*\x07")


def terminal_output(arguments: list[str], folder: Path) -> str:
    """Run boxscore on a terminal of 80 columns; return what it prints, with its colors."""
    parent, child = pty.openpty()
    command = [sys.executable, "-m", "boxscore", *arguments]
    with subprocess.Popen(command, stdout=child, stderr=child, cwd=folder, env=ENVIRONMENT) as process:
        os.close(child)
        chunks = []
        with contextlib.suppress(OSError):  # Linux says so when the other end is closed
            while chunk := os.read(parent, 65536):
                chunks.append(chunk)
    os.close(parent)
    if process.returncode:
        raise SystemExit(f"boxscore {' '.join(arguments)} ended with {process.returncode}")
    text = OTHER_CODE.sub("", b"".join(chunks).decode().replace("\r\n", "\n"))
    return "\n".join(line.rsplit("\r", 1)[-1] for line in text.rstrip("\n").split("\n"))


def styled(line: str, style: dict[str, str]) -> list[tuple[str, dict[str, str]]]:
    """Split a line into runs of one style; ``style`` is what the line before left, and is changed."""
    runs = []
    for number, part in enumerate(CODE.split(line)):
        if number % 2 == 0:
            if part:
                runs.append((part, dict(style)))
            continue
        for code in map(int, filter(None, (part or "0").split(";"))):
            if code == 0:
                style.clear()
            elif code == 1:
                style["font-weight"] = "bold"
            elif code == 2:
                style["fill"] = FAINT
            elif code == 22:
                style.pop("font-weight", None)
            elif code == 39:
                style.pop("fill", None)
            elif code in COLORS or code - 60 in COLORS:
                style["fill"] = COLORS.get(code) or COLORS[code - 60]
    return runs


def terminal_svg(command: str, output: str) -> str:
    """Draw a command and what it prints."""
    style: dict[str, str] = {}
    lines = [[("$ ", {"fill": PROMPT}), (command, {"font-weight": "bold"})]]
    lines += [styled(line, style) for line in output.split("\n")]
    widest = max(sum(len(text) for text, _ in runs) for runs in lines)
    width, height = round(widest * CELL + 2 * MARGIN), len(lines) * LINE + 2 * MARGIN
    body = []
    for row, runs in enumerate(lines):
        column, y = 0, MARGIN + LINE * row + 14
        for text, attributes in runs:
            if text.strip():
                said = " ".join(f'{name}="{value}"' for name, value in attributes.items())
                place = f'x="{MARGIN + column * CELL:.1f}" y="{y}" textLength="{len(text) * CELL:.1f}"'
                body.append(f"<text {place} {said}>{escape(text)}</text>".replace(" >", ">"))
            column += len(text)
    size = f'width="{width}" height="{height}"'
    font = "font: 14px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {width} {height}">',
            f"<style>text {{ {font}; white-space: pre }}</style>",
            f'<rect {size} rx="8" fill="{PAPER}"/>',
            f'<g fill="{INK}" xml:space="preserve">',
            *body,
            "</g>",
            "</svg>",
            "",
        ]
    )


def terminal() -> str:
    """Return the picture of an evaluation in a terminal."""
    command = ["evaluate", "instances.json", "detections.json"]
    return terminal_svg(" ".join(["boxscore", *command]), terminal_output(command, SHAPES))


# ---------------------------------------------------------------- pictures of pages


def small(picture: bytes, *, width: int) -> bytes:
    """Return a picture as WebP, at most so many pixels wide."""
    from PIL import Image

    image = Image.open(io.BytesIO(picture)).convert("RGB")
    if image.width > width:
        image = image.resize((width, round(image.height * width / image.width)), Image.Resampling.LANCZOS)
    written = io.BytesIO()
    image.save(written, "WEBP", quality=85, method=6)
    return written.getvalue()


def screenshot(page: Path, *, height: int) -> bytes:
    """Return the top of a page as Chromium shows it at 1440 pixels."""
    browser = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chromium-browser")
    if browser is None:
        raise SystemExit("the reports need Chromium: apt-get install chromium")
    with tempfile.TemporaryDirectory() as folder:
        shot = Path(folder) / "shot.png"
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        flags += [f"--user-data-dir={folder}/profile", f"--window-size=1440,{height}", f"--screenshot={shot}"]
        subprocess.run([browser, *flags, page.as_uri()], check=True, capture_output=True, timeout=120)
        return shot.read_bytes()


def reported(arguments: list[str], *, height: int) -> bytes:
    """Return the top of the page that a command writes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "report"
        command = [sys.executable, "-m", "boxscore", *arguments, "--report", str(folder)]
        subprocess.run(command, check=True, cwd=SHAPES, env=ENVIRONMENT, capture_output=True)
        page = min(folder.glob("*.html"), key=lambda path: (path.stem != "index", path.stem != "report"))
        return small(screenshot(page, height=height), width=1200)


def report() -> bytes:
    """Return the first screen of a report."""
    arguments = ["report", "--gt", "instances.json", "--dt", "detections.json", "--image-folder", "images"]
    return reported([*arguments, "--title", "shapes"], height=900)


def comparison() -> bytes:
    """Return the first screen of a comparison: the detections, and the same after suppression."""
    with tempfile.TemporaryDirectory() as folder:
        kept = f"{folder}/suppressed.json"
        arguments = ["nms", "--dt", "detections.json", "--output", kept, "--iou-threshold", "0.3"]
        command = [sys.executable, "-m", "boxscore", *arguments]
        subprocess.run(command, check=True, cwd=SHAPES, env=ENVIRONMENT, capture_output=True)
        arguments = ["compare", "--gt", "instances.json", "--dt", "detections.json", kept]
        return reported(arguments, height=900)


# ---------------------------------------------------------------- plots


def plot(draw: Callable[..., object]) -> Callable[[], bytes]:
    """Make a function that returns a plot of the bundled evaluation as a picture."""

    def picture() -> bytes:
        import boxscore

        truth = boxscore.load_ground_truth(SHAPES / "instances.json")
        result = boxscore.evaluate(truth, boxscore.load_detections(SHAPES / "detections.json", truth))
        figure: object = draw(result)
        written = io.BytesIO()
        figure.savefig(written, format="png", dpi=200, facecolor="white")  # type: ignore[attr-defined]
        return small(written.getvalue(), width=1000)

    return picture


def _boxes(result: object) -> object:
    from boxscore import plots

    picture = SHAPES / "images" / "000000000248.png"
    truth, found = result.ground_truth, result.detections  # type: ignore[attr-defined]
    return plots.draw_boxes(picture, truth, found, image_id=248, score_threshold=0.5)


def _pairs(result: object) -> object:
    from boxscore import plots

    picture = SHAPES / "images" / "000000000248.png"
    truth, found = result.ground_truth, result.detections  # type: ignore[attr-defined]
    return plots.draw_pairs(picture, truth, found, image_id=248, score_threshold=0.63)


def _sweep(result: object) -> object:
    from boxscore import diagnostics, plots

    truth, raw = result.ground_truth, result.detections  # type: ignore[attr-defined]
    thresholds = [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    return plots.sweep(diagnostics.sweep(truth, raw, methods=["hard", "diou"], iou_thresholds=thresholds))


def _plots() -> dict[str, Callable[[], bytes]]:
    import iou

    from boxscore import plots

    return {
        "iou-geometry.webp": plot(iou.geometry),
        "iou-conventions.webp": plot(iou.conventions),
        "iou-values.webp": plot(iou.values),
        "iou-small.webp": plot(iou.small),
        "iou-apart.webp": plot(iou.apart),
        "ap-curve.webp": plot(iou.average_precision),
        "per-class.webp": plot(plots.per_class),
        "pr-curve.webp": plot(lambda result: plots.pr_curve(result, iou_threshold=0.5)),
        "f1-curve.webp": plot(plots.f1_curve),
        "froc.webp": plot(plots.froc),
        "confusion-matrix.webp": plot(plots.confusion_matrix),
        "errors.webp": plot(plots.errors),
        "error-curves.webp": plot(plots.error_curves),
        "reliability.webp": plot(plots.reliability),
        "boxes.webp": plot(_boxes),
        "pairs.webp": plot(_pairs),
        "sweep.webp": plot(_sweep),
    }


def main() -> None:
    """Write the pictures named on the command line, or all."""
    sys.path.insert(0, str(ROOT / "src"))
    pictures: dict[str, Callable[[], str | bytes]] = {
        "terminal.svg": terminal,
        "report.webp": report,
        "comparison.webp": comparison,
        **_plots(),
    }
    for name in sys.argv[1:] or pictures:
        made = pictures[name]()
        content = made.encode() if isinstance(made, str) else made
        if len(content) > LARGEST:
            raise SystemExit(f"{name} has {len(content):,} bytes, more than {LARGEST:,}")
        (HERE / name).write_bytes(content)
        print(f"{name}: {len(content) / 1000:.0f} kB")


if __name__ == "__main__":
    main()
