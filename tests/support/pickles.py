"""Write pickles as MMDetection, detectron2 and torch do, without them."""

from __future__ import annotations

import pickle
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["STORAGES", "in_zip", "named", "old_file", "plain", "reference", "tensor", "whole"]

MAGIC = 0x1950A86A20F9469CFC6C
SYSTEM = {"protocol_version": 1001, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}}
STORAGES = {"f2": "HalfStorage", "f4": "FloatStorage", "f8": "DoubleStorage", "i8": "LongStorage"}


def plain(value: Any, protocol: int = 2) -> bytes:
    """Return the opcodes of a value, to stand in another pickle."""
    return pickle.dumps(value, protocol)[2:-1]


def named(name: str) -> bytes:
    """Return the opcodes of ``module name``."""
    return f"c{name.replace(' ', chr(10))}\n".encode()


def whole(opcodes: bytes) -> bytes:
    """Return a pickle."""
    return b"\x80\x02" + opcodes + b"."


def reference(values: np.ndarray[Any, Any], key: str = "7") -> bytes:
    """Return the opcodes of a persistent id of a storage."""
    kind = named(f"torch {STORAGES[values.dtype.str[1:]]}")
    return b"(" + plain("storage") + kind + plain(key) + plain("cpu") + plain(values.size) + b"tQ"


def old_file(value: bytes, storages: dict[str, np.ndarray[Any, Any]], system: Any = None) -> bytes:
    """Return a file as torch wrote it before version 1.6, of a value as opcodes."""
    head = b"".join(pickle.dumps(one, 2) for one in (MAGIC, 1001, SYSTEM if system is None else system))
    numbers = b"".join(struct.pack("<q", one.size) + one.tobytes() for one in storages.values())
    return head + whole(value) + pickle.dumps(list(storages), 2) + numbers


def tensor(values: np.ndarray[Any, Any], storage: bytes | None = None, **other: Any) -> bytes:
    """Return the opcodes of a tensor, by default with its numbers in an old file of torch within."""
    if storage is None:
        inner = old_file(reference(values), {"7": values})
        storage = named("torch.storage _load_from_bytes") + plain(inner) + b"\x85R"
    shape = other.get("shape", values.shape)
    strides = other.get("strides", tuple(step // values.itemsize for step in values.strides))
    hooks = named("collections OrderedDict") + b")R"
    where = plain(other.get("offset", 0)) + plain(shape) + plain(strides) + b"\x89"
    return named("torch._utils _rebuild_tensor_v2") + b"(" + storage + where + hooks + b"tR"


def in_zip(path: Path, value: bytes, **members: bytes) -> Path:
    """Write a file as torch does since version 1.6, of a value as opcodes."""
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("archive/data.pkl", whole(value))
        file.writestr("archive/byteorder", members.pop("byteorder", b"little"))
        for name, content in members.items():
            file.writestr(f"archive/data/{name.removeprefix('k')}", content)
    return path
