"""Give every reader what runs code, unpacks to more than the disk holds, or holds itself: it must be refused.

    python qa/attack/roads.py [--count 200] [--seed 0]

Pickles as files and as members of archives; zip and gzip bombs; YAML with aliases, loops and tags; Parquet with
nested types. Each is read as ground truth and as detections. Nothing may run, print a number, take ten seconds or
end in anything but a refusal. ``--count`` more of each road are drawn by ``--seed``; what is drawn may be sound,
and then a number is no fault.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import gzip
import io
import itertools
import os
import pickle
import random
import signal
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "src"))

from boxscore.cli import main as boxscore  # noqa: E402

__all__ = ["DRAWN", "RAN", "ROADS", "drawn", "fault_of"]

SAMPLE = HERE.parents[1] / "datasets" / "shapes_coco"
LIMIT = 10.0
"""Seconds of processor time that one refusal may take; waiting for a shared disk is not counted."""
WAITED = 120.0
"""Seconds on the clock after which a refusal is given up: it waits for what never comes."""
BLANK = 200_000_000
"""Bytes that a bomb unpacks to."""
RAN = "BOXSCORE_CODE_RAN"
Files = Iterator[tuple[str, bytes]]


class EndlessError(BaseException):
    """A refusal that did not come; no handler of errors may take it for one."""


@contextlib.contextmanager
def given_up(after: float) -> Iterator[None]:
    """Raise :class:`EndlessError` after so many seconds on the clock, where there is such an alarm."""

    def ring(*_: object) -> None:
        raise EndlessError

    if not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, after)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Pickled:
    """What runs code when it is read."""

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, (f"import os; os.environ[{RAN!r}] = '1'",)


def pickles() -> Files:
    """Return pickles under the names of other formats, and as members of archives of columns."""
    objects = np.empty(1, dtype=object)
    objects[0] = Pickled()
    for ending in ("pkl", "npz", "npy", "mat", "pt", "json", "parquet"):
        yield f"raw.{ending}", pickle.dumps(Pickled())
    array, archive = io.BytesIO(), io.BytesIO()
    np.save(array, objects, allow_pickle=True)
    yield "array.npy", array.getvalue()
    with zipfile.ZipFile(archive, "w") as file:
        for name in ("header.npy", "boxes.npy"):
            file.writestr(name, array.getvalue())
    yield "archive.npz", archive.getvalue()


def bombs() -> Files:
    """Return archives of blanks, and gzip in gzip."""
    blank = b"[" + b" " * BLANK + b"]"
    yield "bomb.json.gz", gzip.compress(blank)
    yield "bomb.csv.gz", gzip.compress(blank)
    yield "nested.json.gz", gzip.compress(gzip.compress(b"[]"))
    for ending in ("json", "csv", "jsonl", "xml", "yaml", "txt", "parquet", "npz"):
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr(f"bomb.{ending}", blank)
        yield f"{ending}.zip", archive.getvalue()
        if ending == "json":
            yield "bomb.npz", archive.getvalue()


def yaml_files() -> Files:
    """Return class lists that grow by aliases, hold themselves, nest deep or carry a tag of Python."""
    letters = "abcdefghijk"
    laughs = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{one}: &{one} [{','.join([f'*{before}'] * 10)}]\n" for before, one in itertools.pairwise(letters)
    )
    names = {
        "laughs": f"{laughs}names: *k\n",
        "itself": "names: &n [*n]\n",
        "merged": "a: &a {<<: *a, 0: x}\nnames: *a\n",
        "deep": "names: " + "[" * 20_000,
        "tag": "names: !!python/object/apply:os.getcwd []\n",
        "digits": f"names: {{{'9' * 6000}: x}}\n",
        "list as key": "names: {[a]: x}\n",
    }
    for name, text in names.items():
        yield f"{name}.yaml", f"{text}val: images\n".encode()


def parquet_files() -> Files:
    """Return tables whose boxes, classes or scores are of nested types."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        return
    boxes = {
        "lists of lists": [[[0.0, 0, 5, 5]], [[1.0, 1, 4, 4]]],
        "structs": [{"x": 0.0, "y": 1.0}] * 2,
        "structs in lists": [[{"bbox": [{"a": [1]}]}]] * 2,
        "short": [[0.0, 1], [1.0]],
        "nulls": [[0.0, 0, 5, None], None],
        "text": [["a"] * 4] * 2,
        "maps": pyarrow.array([[("a", 1.0)]] * 2, pyarrow.map_(pyarrow.string(), pyarrow.float64())),
    }
    plain = {"image_id": [1, 2], "category_id": [1, 1], "score": [0.5, 0.6], "bbox": [[0.0, 0, 5, 5]] * 2}
    tables = [(f"bbox {name}", {**plain, "bbox": values}) for name, values in boxes.items()]
    for column in ("image_id", "category_id", "score"):
        tables += [
            (f"{column} {name}", {**plain, column: boxes[name]}) for name in ("short", "structs", "maps")
        ]
    for name, columns in tables:
        file = io.BytesIO()
        parquet.write_table(pyarrow.table(columns), file)
        yield f"{name}.parquet", file.getvalue()


# ---------------------------------------------------------------- drawn by a seed

Draw = random.Random
MEMBERS = (
    "header",
    "image",
    "category",
    "boxes",
    "scores",
    "image_ids",
    "class_names",
    "columns",
    "allow_pickle",
)


def drawn_pickle(draw: Draw) -> tuple[str, bytes]:
    """A pickle of any protocol, as it is or packed, in place of any part of what a format reads."""
    payload = pickle.dumps(Pickled(), protocol=draw.randint(0, 5))
    array = io.BytesIO()
    objects = np.empty(draw.choice([(), (1,), (2, 2)]), dtype=object)
    objects[...] = Pickled()
    np.save(array, objects, allow_pickle=True)
    kind = draw.choice(["raw", "after a head", "npz", "torch", "gz", "parquet"])
    if kind == "raw":
        return (
            f"a.{draw.choice(['pkl', 'npy', 'npz', 'mat', 'pt', 'json', 'csv', 'xml', 'jsonl', 'txt'])}",
            payload,
        )
    if kind == "after a head":
        heads = {
            "npz": b"PK\x03\x04",
            "npy": b"\x93NUMPY\x01\x00",
            "mat": b"MATLAB 5.0 MAT-file",
            "parquet": b"PAR1",
        }
        ending = draw.choice(list(heads))
        return f"a.{ending}", heads[ending] + payload
    if kind == "gz":
        return f"a.{draw.choice(['json', 'csv', 'pkl'])}.gz", gzip.compress(payload)
    if kind == "parquet":
        return _parquet(
            {"image_id": [1, 2], "category_id": [payload] * 2, "score": [0.5] * 2, "bbox": [payload] * 2}
        )
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", draw.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])) as file:
        if kind == "torch":
            file.writestr("archive/data.pkl", payload)
            file.writestr("archive/version", "3")
            return f"a.{draw.choice(['pt', 'npz', 'zip'])}", archive.getvalue()
        sound = _sound_archive()
        names = draw.sample([*MEMBERS, *(name.removesuffix(".npy") for name in sound)], draw.randint(1, 4))
        for name, content in sound.items():
            if name.removesuffix(".npy") not in names:
                file.writestr(name, content)
        for name in names:
            file.writestr(f"{name}.npy", array.getvalue() if draw.random() < 0.8 else payload)
    return "a.npz", archive.getvalue()


@functools.cache
def _sound_archive() -> dict[str, bytes]:
    """The members of the sample's ground truth as columns."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()):
        path = Path(folder, "a.npz")
        assert boxscore(["convert", str(SAMPLE / "instances.json"), "--output", str(path)]) == 0
        with zipfile.ZipFile(path) as file:
            return {name: file.read(name) for name in file.namelist()}


@functools.cache
def _packed_blank(size: int) -> bytes:
    return gzip.compress(b"[" + b" " * size + b"]", compresslevel=1)


def drawn_bomb(draw: Draw) -> tuple[str, bytes]:
    """Blanks in gzip or zip, once or twice, many members, members of other folders, sizes that are not theirs."""
    ending = draw.choice(["json", "csv", "jsonl", "xml", "yaml", "txt", "parquet", "npz", "mat"])
    kind = draw.choice(["gz", "gz in gz", "cut gz", "zip", "many", "elsewhere", "zip in zip", "said smaller"])
    if "gz" in kind:
        content = _packed_blank(draw.choice([1_000, 1_000_000, BLANK]))
        content = gzip.compress(content) if kind == "gz in gz" else content
        return f"a.{ending}.gz", content[: draw.randrange(len(content))] if kind == "cut gz" else content
    archive, blank = io.BytesIO(), b"[" + b" " * draw.choice([10, 1_000_000, BLANK // 4]) + b"]"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        if kind == "many":
            for number in range(draw.choice([10, 1_000, 20_000])):
                file.writestr(f"{number}.{ending}", b"[]")
        elif kind == "elsewhere":
            file.writestr(
                draw.choice(["../a", "/tmp/boxscore-attack", "a/../../b", "C:\\a", "a\\..\\b"])
                + f".{ending}",
                blank,
            )
        elif kind == "zip in zip":
            inner = io.BytesIO()
            with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as second:
                second.writestr(f"a.{ending}", blank)
            file.writestr("a.zip", inner.getvalue())
        else:
            file.writestr(f"a.{ending}", blank)
    content = bytearray(archive.getvalue())
    if kind == "said smaller":
        at = content.rfind(b"PK\x01\x02")
        content[at + 24 : at + 28] = draw.randrange(1, 1000).to_bytes(4, "little")
    return f"a.{draw.choice(['zip', 'npz', ending + '.zip'])}", bytes(content)


def drawn_yaml(draw: Draw) -> tuple[str, bytes]:
    """A class list of random nodes: anchors, aliases also of themselves, merges, tags, blocks, damaged lines."""
    anchors: list[str] = []

    def node(depth: int) -> str:
        kind = draw.random()
        if depth == 0 or kind < 0.35:
            values = [
                "x",
                "1",
                "~",
                "",
                "0x1F",
                "1_0",
                "yes",
                ".inf",
                ".nan",
                "'a",
                '"\\x41"',
                "2001-01-01",
                "9" * 400,
            ]
            return draw.choice(
                [*values, "!!binary aGk=", "!!python/name:os.system", "!<x> y", "!!set {a}", "!!float a"]
            )
        if kind < 0.5 and anchors:
            return f"*{draw.choice(anchors)}"
        anchor = ""
        if kind < 0.7:
            anchors.append(f"a{len(anchors)}")
            anchor = f"&{anchors[-1]} "
        parts = [node(depth - 1) for _ in range(draw.randint(0, 4))]
        if draw.random() < 0.5:
            return f"{anchor}[{', '.join(parts)}]"
        keys = [draw.choice(["<<", "0", "1", "a", "[b]", "? c", "*a0"]) for _ in parts]
        return f"{anchor}{{{', '.join(f'{key}: {part}' for key, part in zip(keys, parts, strict=True))}}}"

    lines = [
        f"{draw.choice(['names', 'nc', 'a', 'train', 'path', 'names'])}: {node(draw.randint(0, 5))}"
        for _ in range(draw.randint(1, 5))
    ]
    lines += draw.choice(
        [[], ["- x"], ["%YAML 9.9"], ["---"], ["\tnames: x"], ["names:", "  0: a", "  1: b"]]
    )
    draw.shuffle(lines)
    text = "\n".join([*lines, "val: images", ""])
    return "a.yaml", text.encode(draw.choice(["utf-8", "utf-8-sig", "utf-16", "latin-1"]), "replace")


def drawn_parquet(draw: Draw) -> tuple[str, bytes]:
    """Columns of random nested types under the names that are read."""

    def value(depth: int) -> Any:
        kind = draw.randrange(8 if depth else 5)
        if kind < 5:
            return [draw.random() * 50, draw.randrange(300), "a", None, b"\xff"][kind]
        if kind == 5:
            return [value(depth - 1) for _ in range(draw.randint(0, 4))]
        return {
            key: value(depth - 1) for key in draw.sample(["bbox", "category", "x", "score", "image_id"], 2)
        }

    columns: dict[str, Any] = {
        "image_id": [101, 102],
        "category_id": [1, 2],
        "score": [0.5, 0.25],
        "bbox": [[1.0, 2, 30, 40]] * 2,
    }
    names = [*columns, "objects", "annotations", "segmentation", "mask", "width", "class", "image"]
    for name in draw.sample(names, draw.randint(1, 3)):
        one = value(draw.randint(0, 4))
        columns[name] = [one, draw.choice([one, None])]
    if draw.random() < 0.2:
        del columns[draw.choice(list(columns))]
    return _parquet(columns)


def _parquet(columns: dict[str, Any]) -> tuple[str, bytes]:
    import pyarrow
    from pyarrow import parquet

    file = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), file)
    return "a.parquet", file.getvalue()


DRAWN: dict[str, Callable[[Draw], tuple[str, bytes]]] = {
    "pickles": drawn_pickle,
    "bombs": drawn_bomb,
    "YAML": drawn_yaml,
    "nested Parquet": drawn_parquet,
}


def drawn(road: str, seed: int, count: int) -> Files:
    """Return cases of a road; those that pyarrow cannot write are drawn anew."""
    number = 0
    while count:
        draw = Draw(f"{road} {seed} {number}")
        number += 1
        try:
            yield DRAWN[road](draw)
        except (ValueError, TypeError, NotImplementedError):  # of pyarrow: values of two kinds
            continue
        count -= 1


ROADS: dict[str, Callable[[], Files]] = {
    "pickles": pickles,
    "bombs": bombs,
    "YAML": yaml_files,
    "nested Parquet": parquet_files,
}


def fault_of(path: Path, *, as_truth: bool, sound: bool = False) -> str:
    """Evaluate a file that must be refused; return what was wrong, empty for nothing.

    What may be sound may give a number as well.
    """
    given = [str(SAMPLE / "instances.json"), str(SAMPLE / "detections.json")]
    given[not as_truth] = str(path)
    output, errors, begun = io.StringIO(), io.StringIO(), time.process_time()
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors), given_up(WAITED):
            status = boxscore(["evaluate", *given])
    except EndlessError:
        return f"no end within {WAITED:.0f} s"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if os.environ.pop(RAN, ""):
        return "code ran"
    if sound and status == 0 and "Traceback" not in errors.getvalue():
        return ""
    if status != 2 or output.getvalue() or "error: " not in errors.getvalue():
        return f"exit status {status}: {errors.getvalue() or output.getvalue()}"
    took = time.process_time() - begun
    return f"{took:.0f} s" if took > LIMIT else ""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=200, help="drawn cases of each road (default: 200)")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    faults = 0
    for road, files in ROADS.items():
        tried, made = 0, [(False, *one) for one in files()]
        for sound, name, content in itertools.chain(
            made, ((True, *one) for one in drawn(road, chosen.seed, chosen.count))
        ):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder, name)
                path.write_bytes(content)
                for as_truth in (True, False):
                    tried += 1
                    if fault := fault_of(path, as_truth=as_truth, sound=sound):
                        faults += 1
                        print(f"{name}, {'ground truth' if as_truth else 'detections'}: {fault}", flush=True)
        print(f"{road}: {tried} tries", flush=True)
    print(f"{faults} faults")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
