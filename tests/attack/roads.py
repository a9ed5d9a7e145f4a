"""Give every reader what runs code, unpacks to more than the disk holds, or holds itself: it must be refused.

    python tests/attack/roads.py

Pickles as files and as members of archives; zip and gzip bombs; YAML with aliases, loops and tags; Parquet with
nested types. Each is read as ground truth and as detections. Nothing may run, print a number, take ten seconds or
end in anything but a refusal.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import itertools
import os
import pickle
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

__all__ = ["RAN", "ROADS", "fault_of"]

SAMPLE = HERE.parents[1] / "datasets" / "shapes_coco"
LIMIT = 10.0
"""Seconds that one refusal may take."""
BLANK = 200_000_000
"""Bytes that a bomb unpacks to."""
RAN = "BOXSCORE_CODE_RAN"
Files = Iterator[tuple[str, bytes]]


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


ROADS: dict[str, Callable[[], Files]] = {
    "pickles": pickles,
    "bombs": bombs,
    "YAML": yaml_files,
    "nested Parquet": parquet_files,
}


def fault_of(path: Path, *, as_truth: bool) -> str:
    """Evaluate a file that must be refused; return what was wrong, empty for nothing."""
    given = [str(SAMPLE / "instances.json"), str(SAMPLE / "detections.json")]
    given[not as_truth] = str(path)
    output, errors, begun = io.StringIO(), io.StringIO(), time.monotonic()
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            status = boxscore(["evaluate", *given])
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if os.environ.pop(RAN, ""):
        return "code ran"
    if status != 2 or output.getvalue() or "error: " not in errors.getvalue():
        return f"exit status {status}: {errors.getvalue() or output.getvalue()}"
    took = time.monotonic() - begun
    return f"{took:.0f} s" if took > LIMIT else ""


def main() -> int:
    faults = 0
    for road, files in ROADS.items():
        tried = 0
        for name, content in files():
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder, name)
                path.write_bytes(content)
                for as_truth in (True, False):
                    tried += 1
                    if fault := fault_of(path, as_truth=as_truth):
                        faults += 1
                        print(f"{name}, {'ground truth' if as_truth else 'detections'}: {fault}", flush=True)
        print(f"{road}: {tried} tries", flush=True)
    print(f"{faults} faults")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
