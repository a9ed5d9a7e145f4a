"""Lists: --images, --classes and --groups, on the command line and in files."""

from __future__ import annotations

import random
import re
from pathlib import Path

from attack.engine import hostile, trees
from attack.engine.acceptance import compare_coco, metrics_of, read_json
from attack.engine.mutant import Judged, Mutant, Reader
from attack.readers import coco

__all__ = ["READERS"]

WORDS = [
    *(
        "1",
        "2",
        "3",
        "cat",
        "dog",
        "0",
        "-1",
        "01",
        "000001",
        "1.0",
        "1e0",
        "+1",
        "1 2",
        "1,2",
        "cat,dog",
        "cat, 2",
    ),
    *(
        "1.jpg",
        "٢",
        "²",
        "\uff11",
        "--1",
        "-",
        "1_0",
        "9" * 19,
        "9" * 400,
        "9" * 5000,
        "-" + "9" * 5000,
        "Cat",
        "cat ",
    ),
]


def _word(rng: random.Random) -> str:
    return rng.choice(WORDS) if rng.random() < 0.85 else hostile.text(rng)


def _make(rng: random.Random) -> Mutant:
    truth, results = coco.seeds("coco", rng)
    if rng.random() < 0.2:
        for record in (*truth["annotations"], *results):
            record["image_id"] = f"{record['image_id']:06d}"
        for record in truth["images"]:
            record["id"] = f"{record['id']:06d}"
    option = rng.choice(["--images", "--classes", "--groups"])
    words = [rng.choice(WORDS[:5]) if rng.random() < 0.6 else _word(rng) for _ in range(rng.randint(1, 4))]
    end = rng.choice(["\n", "\n", "\n", "\r\n", "\r", "\x0b", "\x85", "\u2028", "\n\n", ",", "\t"])
    data = (rng.choice(["", "", "", "\ufeff", "# a\n"]) + end.join(words) + end).encode(
        "utf-8", "surrogatepass"
    )
    if rng.random() < 0.2:
        data = hostile.damaged(data, rng)
    files = {"gt.json": trees.as_json(truth), "dt.json": trees.as_json(results), "list.txt": data}
    if option == "--groups":
        arguments: tuple[str, ...] = (
            "nms",
            "--dt",
            "dt.json",
            "--output",
            "out.json",
            "--iou-threshold",
            "0.5",
        )
        return Mutant(files, (*arguments, option, "list.txt"), compare=False)
    given = ("list.txt",) if rng.random() < 0.7 else tuple(words)
    return Mutant(files, ("evaluate", *coco.INPUT, "--output", "json", option, *given))


def oracle(folder: Path, mutant: Mutant, output: str) -> Judged:
    """Read the list strictly, and ask pycocotools for what it names."""
    truth, results = read_json(folder / "gt.json"), read_json(folder / "dt.json")
    option = next(word for word in mutant.arguments if word in ("--images", "--classes"))
    words = list(mutant.arguments[mutant.arguments.index(option) + 1 :])
    if words == ["list.txt"]:
        try:
            lines = mutant.files["list.txt"].decode("utf-8-sig").splitlines()
        except UnicodeDecodeError:
            return Judged("laxer", "a list that is not UTF-8")
        words = [line.strip() for line in lines if line.strip()]
    if any("," in word or word.startswith(("[", "{")) for word in words):
        return Judged("unknown", "several ids on a line")
    records = truth["images" if option == "--images" else "categories"]
    known = {str(record["id"]): record["id"] for record in records}
    known = {str(int(text)): value for text, value in known.items() if text.isdecimal()} | known
    if option == "--classes":
        known |= {record["name"]: record["id"] for record in records}
    else:
        known |= {record["file_name"]: record["id"] for record in records if record.get("file_name")}
    chosen = []
    for word in map(str.strip, words):
        number = str(int(word)) if re.fullmatch(r"-?[0-9]{1,400}", word) else word
        if word not in known and number not in known:
            return Judged("laxer", f"a list with {word[:20]!r}")
        chosen.append(known.get(word, known.get(number)))
    names = {"images": chosen} if option == "--images" else {"classes": chosen}
    return compare_coco(truth, results, metrics_of(output), **names)


READERS = {"lists": Reader(_make, oracle, 1.0)}
