"""Read ``metadata.jsonl``, ``.csv`` or ``.parquet`` of Hugging Face's image folders.

Conventions
-----------
- A row is an image: its ``file_name``, relative to the metadata, and ``objects``, either lists of one length
  (``bbox``, ``categories`` or ``category``, ``area``, ``iscrowd``, ...) or a list of objects. They are the
  columns of tables, whose rules for the form of boxes apply.
- Class numbers count from 0 into the names of the feature in the README.md of the data set, if it has them.
- A split is a folder with its own metadata, or the first folder of every ``file_name``.

References
----------
https://huggingface.co/docs/datasets/image_dataset, https://huggingface.co/docs/autotrain
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

import msgspec
import numpy as np

from boxscore._utils.files import is_file, read_text, write_atomically, write_folder
from boxscore._utils.memory import paused_collector
from boxscore.data.column_names import column_parts, is_box
from boxscore.data.tables import BoxTable, GroundTruth
from boxscore.data.vocabulary import Id
from boxscore.errors import FileFormatError, InputError
from boxscore.extensions.formats._gathered import LARGEST, chosen_split
from boxscore.extensions.formats._record_tables import RecordTable, decoded_lines
from boxscore.extensions.formats._writing import plain_side, rows_of_images
from boxscore.formats._format import ReadOptions
from boxscore.formats._label_files import refuse_shared_names
from boxscore.formats._sniffer import Sniffer
from boxscore.formats._tables import Table, TableFormat
from boxscore.formats._yaml import names_of, read_yaml_text
from boxscore.formats.parquet import ArrowTable, read_files

if TYPE_CHECKING:
    import pyarrow as pa

_NAMES = ("metadata.jsonl", "metadata.csv", "metadata.parquet")
_SPLITS = ("train", "training", "val", "valid", "validation", "dev", "test", "testing")
_FILE, _OBJECTS = "file_name", "objects"
_ABOVE = 2
"""Number of folders above the metadata in which README.md may be."""


class HuggingFaceFormat(TableFormat):
    """Metadata of Hugging Face's image folders."""

    name = "huggingface"
    takes = TableFormat.takes | {"image_set"}
    holds: ClassVar[Mapping[str, frozenset[str]]] = {
        "ground truth": frozenset({"areas", "crowd", "sizes", "file names"})
    }

    def detect(self, sniffer: Sniffer) -> str | None:
        """Detect metadata by its name or its first record, or a folder with metadata."""
        if sniffer.is_folder:
            return "a folder with metadata of Hugging Face" if _files_in(sniffer.path) else None
        is_named = sniffer.path.name in _NAMES
        if sniffer.head.startswith(b"PAR1"):
            return "metadata of Hugging Face" if is_named else None
        if sniffer.is_json:
            try:
                first = msgspec.json.decode(sniffer.first_line, type=dict[str, Any])
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                return None
        else:
            # Only tables whose cells hold objects; any other CSV file is a table of boxes.
            try:
                head = next(csv.reader([sniffer.first_line[:100_000]]), [])
            except csv.Error:  # binary data
                return None
            first = dict.fromkeys(head) if sniffer.suffix == ".csv" else {}
        if not any(_is_file_name(key) for key in first):
            return None
        in_lists = isinstance(first.get(_OBJECTS), dict) or (_OBJECTS in first and not sniffer.is_json)
        of_images = _OBJECTS in first or not any(map(is_box, first))
        return "metadata of Hugging Face" if in_lists or (is_named and of_images) else None

    @paused_collector()
    def table(self, path: Path, options: ReadOptions) -> Table:
        """Read the images of a split."""
        file, split = path, None if options.image_set is None else str(options.image_set)
        if path.is_dir():
            files = _files_in(path)
            name = chosen_split(split if "" not in files else None, list(files), path) or ""
            # A single file in the folder itself may hold several splits.
            file, split = files[name], split if name == "" else None
        table: Table
        if file.suffix == ".parquet":
            table = ArrowTable(str(file), _of_split(read_files([file])[0], split, file), options.columns)
        else:
            table = _record_table(file, split, options)
        parts = column_parts(table.names, place=table.source, column_map=options.columns)
        label = parts.class_name if parts.class_id is None else parts.class_id
        if label is not None and table.class_list is None and options.classes is None:
            numbered = all(isinstance(value, int) for value in table.distinct(label).values)
            table.class_list = _names_in_readme(file, label) if numbered else None
        return table

    def class_ids(self, table: BoxTable) -> list[Id]:
        """Return the names of classes, which are their ids."""
        names: list[Id] = table.categories.names.tolist()
        return names

    def save(self, table: BoxTable, path: Path, *, like: Path | None = None) -> None:
        """Write ``metadata.jsonl``, one line per image; ``path`` is the file or its folder."""
        refuse_shared_names(table)
        records = [msgspec.json.encode(record) + b"\n" for record in _records_of(cast(GroundTruth, table))]
        is_file_name = path.suffix != "" and not path.is_dir()
        if is_file_name and path.name != _NAMES[0]:
            rule = f"be {_NAMES[0]} or a folder, as Hugging Face's datasets look for it"
            raise InputError("the output of Hugging Face metadata", rule, got=repr(path.name))
        if is_file_name:
            write_atomically(path, records)
        else:
            write_folder(path, {_NAMES[0]: b"".join(records)})


FORMAT = HuggingFaceFormat()


def _records_of(table: GroundTruth) -> Iterator[dict[str, Any]]:
    """Yield the record of each image."""
    columns: dict[str, list[Any]] = {
        "bbox": np.hstack([table.boxes[:, :2], table.sizes]).tolist(),
        "categories": table.categories.names[table.category].tolist(),
    }
    if (table.area != table.sizes.prod(axis=1)).any():
        columns["area"] = table.area.tolist()
    if table.crowd.any():
        columns["iscrowd"] = table.crowd.astype(int).tolist()
    rows, images = rows_of_images(table), table.images
    for image, (name, size) in enumerate(zip(images.file_names.tolist(), images.sizes.tolist(), strict=True)):
        if name is None:
            rule, got = "have a file name in Hugging Face metadata", f"none for {images.ids[image]!r}"
            raise InputError("an image", rule, got=got, place=table.source)
        record: dict[str, Any] = {"file_name": name}
        if size[0] == size[0]:
            record |= {"width": plain_side(size[0]), "height": plain_side(size[1])}
        objects = {key: [values[row] for row in rows[image]] for key, values in columns.items()}
        yield record | {"objects": objects}


def _is_file_name(key: str) -> bool:
    return key == _FILE or key.endswith(f"_{_FILE}")


def _files_in(folder: Path) -> dict[str, Path]:
    """Return the metadata of each split in a folder; "" is the folder itself."""
    own = next((folder / name for name in _NAMES if is_file(folder / name)), None)
    if own is not None:
        return {"": own}
    found: dict[str, Path] = {}
    for split in _SPLITS:
        file = next((folder / split / name for name in _NAMES if is_file(folder / split / name)), None)
        if file is not None:
            found[split] = file
    return found


def _record_table(file: Path, split: str | None, options: ReadOptions) -> RecordTable:
    """Return the table of a file of JSON lines or CSV."""
    # The first folder of every image may be its split.
    records = list(decoded_lines(file) if file.suffix != ".csv" else _csv_records(file))
    keys = {key for _, record in records for key in record if _is_file_name(key)}
    if len(keys) != 1:
        got = ", ".join(sorted(keys)) or "none"
        raise FileFormatError("metadata", f"have one column {_FILE}", got=got, place=str(file))
    key = keys.pop()
    names = [str(record.get(key)) for _, record in records]
    records = [records[row] for row in _rows_of_split(names, split, file)]
    # Captions and labels of images have the same file, without objects.
    if not any(_OBJECTS in record or any(map(is_box, record)) for _, record in records):
        got = f"only {', '.join(list(records[0][1])[:8])}" if records else "no images"
        cause = "boxscore evaluates detection; are these captions, or labels of whole images?"
        raise FileFormatError("metadata", "have objects with bbox", got=got, place=str(file), cause=cause)
    table = RecordTable(file, options.columns)
    for line, record in records:
        objects = record.get(_OBJECTS)
        rest = {_FILE if name == key else name: value for name, value in record.items() if name != _OBJECTS}
        if isinstance(objects, dict):
            if not any(is_box(name) and isinstance(value, list) for name, value in objects.items()):
                rule, place = "have a list bbox", f"line {line} of {file}"
                raise FileFormatError(_OBJECTS, rule, got=", ".join(objects)[:60], place=place)
            wrong = next((name for name, value in objects.items() if not isinstance(value, list)), None)
            if wrong is not None:
                rule, place = "be lists of one length", f"line {line} of {file}"
                raise FileFormatError(_OBJECTS, rule, got=f"another value for {wrong!r}"[:80], place=place)
            table.add(line, {**rest, **objects}, "lists")
        else:
            table.add(line, {**rest, _OBJECTS: objects}, _OBJECTS)
    return table


def _rows_of_split(names: Sequence[str], split: str | None, file: Path) -> list[int]:
    """Return the rows of the images of a split; all, without splits."""
    splits = [name.partition("/")[0] for name in names]
    if split is None and not (set(splits) <= set(_SPLITS) and len(set(splits)) > 1):
        return [*range(len(names))]
    wanted = chosen_split(split, splits, file)
    return [row for row, of_image in enumerate(splits) if of_image == wanted]


def _of_split(table: pa.Table, split: str | None, file: Path) -> pa.Table:
    """Return the rows of a Parquet table that are of a split."""
    keys = [name for name in table.column_names if _is_file_name(name)]
    if len(keys) != 1:
        return table
    rows = _rows_of_split([str(name) for name in table[keys[0]].to_pylist()], split, file)
    return table if len(rows) == len(table) else table.take(rows)


def _csv_records(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the rows of a CSV file whose cells are text or JSON."""
    reader = csv.DictReader(io.StringIO(read_text(file, "a CSV file", largest=LARGEST)))
    try:
        for row in reader:
            record: dict[str, Any] = {}
            for name, cell in row.items():
                try:
                    value = msgspec.json.decode(cell) if name and not _is_file_name(name) else cell
                except (msgspec.MsgspecError, RecursionError, TypeError, UnicodeError):
                    value = cell
                if name == _OBJECTS and not isinstance(value, (dict, list)) and cell:
                    rule, cause = "be JSON", "write metadata.jsonl instead"
                    place = f"line {reader.line_num} of {file}"
                    raise FileFormatError(_OBJECTS, rule, got=cell[:60], place=place, cause=cause)
                if name is None:
                    rule, place = "have a cell for each column", f"line {reader.line_num} of {file}"
                    raise FileFormatError("a row", rule, got="more cells", place=place)
                if name:
                    record[name] = value if cell else None
            yield reader.line_num, record
    except csv.Error as error:
        place = f"line {reader.line_num} of {file}"
        raise FileFormatError("a row", "be CSV", got=str(error)[:60], place=place) from None


# ---------------------------------------------------------------- class names


def _names_in_readme(file: Path, label: str) -> list[str] | None:
    """Return the class names of a feature in the README.md of the data set; None without any."""
    home = file.absolute().parent
    for folder in (home, *home.parents[:_ABOVE]):
        readme = folder / "README.md"
        if not is_file(readme):
            continue
        # The YAML part is between two lines of dashes.
        text = read_text(readme, "README.md", largest=LARGEST)
        start, _, rest = text.partition("---")
        content, end, _ = rest.partition("\n---")
        if start.strip() or not end:
            return None
        info = read_yaml_text(content, readme).get("dataset_info")
        lists = [names for names in _class_labels(info, label, readme, 0) if names]
        if any(names != lists[0] for names in lists[1:]):
            rule, cause = f"name the classes of {label} once", "pass the class list with --gt-classes"
            raise FileFormatError("README.md", rule, got="different names", place=str(readme), cause=cause)
        return lists[0] if lists else None
    return None


def _class_labels(node: Any, label: str, readme: Path, depth: int) -> Iterator[list[str] | None]:
    """Yield the names of each class label of a feature with this name."""
    if isinstance(node, Mapping) and depth < 20:
        if node.get("name") == label:
            yield from _names_below(node, readme, depth)
            return
        for value in node.values():
            yield from _class_labels(value, label, readme, depth + 1)
    elif isinstance(node, list) and depth < 20:
        for value in node:
            yield from _class_labels(value, label, readme, depth + 1)


def _names_below(node: Any, readme: Path, depth: int) -> Iterator[list[str] | None]:
    if not isinstance(node, Mapping) or depth > 20:
        return
    names = node.get("class_label")
    if isinstance(names, Mapping) and isinstance(names.get("names"), Mapping):
        numbered = {int(key) if str(key).isdecimal() else key: name for key, name in names["names"].items()}
        yield names_of({"names": numbered}, readme)
    elif isinstance(names, Mapping):
        yield names_of(names, readme)
    for key in ("dtype", "sequence", "list", "feature"):
        yield from _names_below(node.get(key), readme, depth + 1)
