"""Structured mutants of annotation formats: no traceback, no hang, bounded memory.

Run as ``python tests/fuzz/annotations.py [COUNT [FORMAT ...]]``; it prints a line per format and every mutant
that failed.
"""

from __future__ import annotations

import copy
import gzip
import io
import json
import random
import re
import resource
import sys
import tempfile
import time
import warnings
import zipfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from boxscore.errors import InputError
from boxscore.formats import detect_format, load_detections, load_ground_truth
from support.annotations import FORMATS

ODD: list[Any] = [
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        2**31,
        2**63,
        -(2**70),
        0.5,
        -1e308,
        1e308,
        "",
        " ",
        "a",
        "0",
        "-1",
        "1e400",
    ),
    *(
        [],
        {},
        [[]],
        [None],
        {"a": 1},
        [1, 2, 3, 4],
        "é\u0000",
        "../../x",
        "x" * 5000,
        [0] * 50,
        {"x": {"y": []}},
    ),
]
WORDS = [
    "",
    "nan",
    "inf",
    "-1",
    "0",
    "1e999",
    "99999999999999999999",
    "x",
    "é",
    "1_0",
    "\0",
    "../..",
    "<a>",
    "&lt;",
]


def mutate(text: bytes, name: str, draw: random.Random) -> bytes:
    """Return a mutant of a file, in the manner of its kind."""
    if draw.random() < 0.2 or name.endswith((".tfrecord", ".gz", ".zip")):
        return _bytes(text, draw)
    if name.endswith(".json"):
        return _json(json.loads(text), draw)
    if name.endswith(".manifest"):
        lines = text.splitlines()
        number = draw.randrange(len(lines))
        lines[number] = _json(json.loads(lines[number]), draw)
        return b"\n".join(lines)
    return _words(text.decode(), draw).encode("utf-8", errors="surrogatepass")


def _bytes(text: bytes, draw: random.Random) -> bytes:
    content = bytearray(text)
    for _ in range(draw.choice((1, 1, 2, 5))):
        if not content:
            break
        start = draw.randrange(len(content))
        kind = draw.random()
        if kind < 0.5:
            content[start] = draw.choice((0, 1, 0x7F, 0x80, 0xFF, draw.randrange(256)))
        elif kind < 0.7:
            del content[start : start + draw.choice((1, 4, 100))]
        elif kind < 0.9:
            piece = content[start : start + draw.choice((1, 8, 50))]
            content[start:start] = piece * draw.choice((1, 2, 50))
        else:
            del content[start:]
    return bytes(content)


def _json(content: Any, draw: random.Random) -> bytes:
    for _ in range(draw.choice((1, 1, 2, 4))):
        places: list[tuple[Any, Any]] = []
        stack = [content]
        while stack:
            node = stack.pop()
            inner = (
                node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
            )
            for key, value in inner:
                places.append((node, key))
                stack.append(value)
        if not places:
            break
        node, key = draw.choice(places)
        kind = draw.random()
        if kind < 0.6:
            node[key] = copy.deepcopy(draw.choice(ODD))
        elif kind < 0.75:
            del node[key]
        elif kind < 0.85 and isinstance(node, list):
            node.extend(copy.deepcopy(node[key]) for _ in range(draw.choice((1, 20))))
        elif isinstance(node, dict):
            node[draw.choice(["x", "", "é", "bbox", str(key).upper()])] = node.pop(key)
    text = json.dumps(content)
    if draw.random() < 0.02:
        text = text.replace("0.5", "NaN", 1)
    if draw.random() < 0.01:
        text = text.replace("null", "[" * 5000 + "]" * 5000, 1)
    return text.encode()


def _words(text: str, draw: random.Random) -> str:
    for _ in range(draw.choice((1, 1, 2, 4))):
        words = list(re.finditer(r"[^\s\"'<>=]+", text))
        if not words:
            break
        word = draw.choice(words)
        kind = draw.random()
        new = draw.choice(WORDS) if kind < 0.6 else draw.choice(words)[0] if kind < 0.85 else ""
        text = text[: word.start()] + new + text[word.end() :]
    return text


def _packed(kind: str) -> tuple[str, dict[str, str | bytes]]:
    text = FORMATS["datumaro"][1]["datumaro.json"]
    content = text.encode() if isinstance(text, str) else text
    if kind == "gzip":
        return "d.json.gz", {"d.json.gz": gzip.compress(content)}
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("top/d.json", content)
        archive.writestr("top/x/readme.md", "x" * 1000)
    return "d.zip", {"d.zip": memory.getvalue()}


def run(kind: str, count: int) -> int:
    """Read mutants of one format and return how many failed."""
    path, files = _packed(kind) if kind in ("gzip", "zip") else FORMATS[kind]
    draw = random.Random(kind)
    failed = read = 0
    slowest = 0.0
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for file in files:
            (root / file).parent.mkdir(parents=True, exist_ok=True)
        contents = {name: text.encode() if isinstance(text, str) else text for name, text in files.items()}
        for number in range(count):
            chosen = draw.choice(list(contents))
            for name, text in contents.items():
                (root / name).write_bytes(mutate(text, name, draw) if name == chosen else text)
            start = time.perf_counter()
            for load in (load_ground_truth, _detections):
                named = draw.random() < 0.5 and kind in FORMATS
                options = {"box_format": "xyxy"} if kind == "text" and named else {}
                try:
                    load(root / path, format=kind.split()[0] if named else "auto", **options)
                    read += 1
                except InputError as error:
                    if "\n" in str(error):
                        failed += 1
                        print(f"{kind} {number}: a message of several lines: {error!r}"[:400])
                except Exception as error:
                    failed += 1
                    if failed < 8:
                        import traceback

                        last = traceback.extract_tb(error.__traceback__)[-1]
                        where = f"{Path(last.filename).name}:{last.lineno}"
                        print(f"{kind} {number}: {type(error).__name__} {error!s:.150} at {where}")
            slowest = max(slowest, time.perf_counter() - start)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{kind}: {count} mutants, {read} read, {failed} failed, {slowest:.2f} s at most, {memory:.0f} MB",
        flush=True,
    )
    return failed


def _detections(path: Path, **options: Any) -> Any:
    detect_format(path)
    truth = load_ground_truth(TRUTH)
    return load_detections(path, truth, **options)


TRUTH = Path(tempfile.gettempdir()) / "boxscore-annotations-gt.json"


def write_truth() -> None:
    """Write the ground truth that detections are read for."""
    TRUTH.write_text(
        json.dumps(
            {
                "images": [
                    {"id": 1, "file_name": "a.jpg", "width": 200, "height": 100},
                    {"id": 2, "file_name": "b.c.jpg", "width": 40, "height": 30},
                ],
                "annotations": [],
                "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}],
            }
        )
    )


def main() -> int:
    """Read mutants of all formats, or of those named."""
    warnings.simplefilter("ignore")
    write_truth()
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    kinds = sys.argv[2:] or [*FORMATS, "gzip", "zip"]
    return sum(run(kind, count) for kind in kinds)


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
