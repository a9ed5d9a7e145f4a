"""Interpret pickles and files of torch.save without running anything that they name.

Goal
----
Reading an untrusted file never imports, calls or sets anything, and takes time and memory in proportion to
its size.

Conventions
-----------
- Values are lists, dictionaries with text keys, tuples, text, bytes, numbers, booleans, None, and the records
  of this module. There are no other objects, so no opcode can reach Python's.
- A name in a pickle (``GLOBAL``) is looked up in :data:`_CALLS`, and is an error if it is not there. Only
  ``REDUCE`` uses it, with functions of this module; ``BUILD`` applies to the two records of NumPy.
- Opcodes of protocols 2 to 5 that other values need are errors: ``INST``, ``OBJ``, ``NEWOBJ``, ``EXT``, sets,
  and the text opcodes of protocols 0 and 1.
- Sizes are compared with the bytes that follow before anything is allocated. Opcodes, and bytes decoded from
  text, share a limit over all pickles in a file.
- An array stays a view of the file. It must have as many bytes as its dtype and shape require; a tensor's
  strides must stay in its storage, and it has at most as many numbers as that.

References
----------
Python's ``pickletools``; ``torch/serialization.py`` and ``torch/_utils.py`` of PyTorch 2;
``numpy.core.multiarray._reconstruct``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_STEPS = 200_000_000
"""Maximum number of opcodes of a file: about eight million detections of detectron2."""

_MAGIC = 0x1950A86A20F9469CFC6C
"""The first pickle of a file that torch wrote before version 1.6."""

_DTYPES = {"f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "b1", "bool"}
_STORAGES = {
    "torch HalfStorage": "f2",
    "torch FloatStorage": "f4",
    "torch DoubleStorage": "f8",
    "torch CharStorage": "i1",
    "torch ShortStorage": "i2",
    "torch IntStorage": "i4",
    "torch LongStorage": "i8",
    "torch ByteStorage": "u1",
    "torch BoolStorage": "b1",
}


class UnreadableError(ValueError):
    """Raised for a pickle that is damaged, or has something that this module does not know."""


class DamagedError(UnreadableError):
    """Raised for a pickle that no program writes, or that is cut short."""


class UnknownNameError(UnreadableError):
    """Raised for the name of a class or function that this module does not know; ``name`` is that."""

    def __init__(self, name: str) -> None:
        super().__init__(f"an object of {name}")
        self.name = name


class Global:
    """A known name, which only ``REDUCE`` uses."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class DType:
    """A dtype of numbers, and its byte order."""

    __slots__ = ("code", "order")

    def __init__(self, code: str) -> None:
        self.code, self.order = code, "<"

    def build(self, state: object) -> None:
        """Set the byte order."""
        order = state[1] if isinstance(state, tuple) and len(state) > 1 else None
        if order not in ("<", ">", "|", "="):
            raise UnreadableError("a dtype that is not of numbers")
        self.order = "<" if order in ("|", "=") else str(order)

    @property
    def numpy(self) -> np.dtype[Any]:
        """The dtype."""
        return np.dtype(self.order + self.code.replace("bool", "b1"))


class Array:
    """A NumPy array, checked when it is built."""

    __slots__ = ("values",)
    values: NDArray[Any] | None

    def __init__(self) -> None:
        self.values = None

    def build(self, state: object) -> None:
        """Set shape, dtype and bytes."""
        if not isinstance(state, tuple) or len(state) != 5:
            raise UnreadableError("an array without a shape, dtype and bytes")
        _, shape, dtype, by_column, data = state
        self.values = _array(data, dtype, shape, "F" if by_column is True else "C")


class Storage:
    """The numbers of a tensor; ``data`` are bytes of the file, once they are known."""

    __slots__ = ("code", "count", "data")

    def __init__(self, code: str, count: int, data: memoryview | None = None) -> None:
        self.code, self.count, self.data = code, count, data

    @property
    def values(self) -> NDArray[Any]:
        """All numbers."""
        if self.data is None or self.count * np.dtype(self.code).itemsize != len(self.data):
            raise UnreadableError("a tensor whose count is not that of its bytes")
        return np.frombuffer(self.data, dtype="<" + self.code)


class Tensor:
    """A tensor of torch: a view of a storage."""

    __slots__ = ("_offset", "_shape", "_storage", "_strides")

    def __init__(
        self, storage: Storage, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]
    ) -> None:
        self._storage, self._offset, self._shape, self._strides = storage, offset, shape, strides

    @property
    def values(self) -> NDArray[Any]:
        """The numbers, a view of the file."""
        values = self._storage.values
        count, last = 1, self._offset
        for side, stride in zip(self._shape, self._strides, strict=True):
            count *= side
            last += max(side - 1, 0) * stride
        if count > len(values) or (count and last >= len(values)):
            raise UnreadableError("a tensor that is larger than its numbers")
        if not count:
            return np.empty(self._shape, dtype=values.dtype)
        step = values.itemsize
        strides = tuple(stride * step for stride in self._strides)
        return np.lib.stride_tricks.as_strided(values[self._offset :], self._shape, strides, writeable=False)


class _Limits:
    """The opcodes and bytes that the pickles of a file may still use."""

    def __init__(self, content: bytes) -> None:
        self.steps = MOST_STEPS
        self.decoded = len(content)


def is_pickle(head: bytes) -> bool:
    """Whether a file starts like a pickle of protocol 2 to 5: of a container, an object or torch's number."""
    if len(head) < 4 or head[0] != 0x80 or not 2 <= head[1] <= 5:
        return False
    # A frame has eight bytes of length, and at least four of content.
    return len(head) >= 15 if head[2] == 0x95 else head[2] in b"](}c\x8a"


def read_pickle(content: bytes, numbers_of: Callable[[str], bytes] | None = None) -> Any:
    """Return the value of a pickle, or of a file that torch wrote before version 1.6.

    ``numbers_of`` returns the bytes of a storage, for the pickle in a zip of torch.

    Raises
    ------
    UnreadableError
        If the pickle is damaged, or has anything but plain values, arrays and tensors.
    """
    try:
        return _Machine(content, _Limits(content), numbers_of).read()
    except UnreadableError:
        raise
    # The types of values in a hostile file are arbitrary.
    except (IndexError, KeyError, TypeError, ValueError, OverflowError, struct.error):
        raise DamagedError("a damaged pickle") from None


class _Machine:
    """Interprets the pickles of one file, one after another."""

    def __init__(
        self, content: bytes, limits: _Limits, numbers_of: Callable[[str], bytes] | None = None
    ) -> None:
        self.content, self.limits, self.at = content, limits, 0
        self.numbers_of = numbers_of
        self.storages: dict[str, Storage] | None = None if numbers_of is None else {}
        self.is_inner = False
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}

    def read(self) -> Any:
        """Return the value of a pickle, or of torch's old file of several."""
        first = self.load()
        if type(first) is not int or first != _MAGIC:
            self._check_end()
            return first
        # Version and system, the value, the keys of its storages, then the numbers of each after their count.
        _, system = self.load(), self.load()
        if not isinstance(system, dict) or system.get("little_endian") is not True:
            raise UnreadableError("numbers in another byte order")
        self.storages = {}
        value, keys = self.load(), self.load()
        if not isinstance(keys, list) or len(keys) != len(self.storages):
            raise UnreadableError("other numbers than the tensors use")
        for key in keys:
            if not isinstance(key, str):  # the hash of nested tuples recurses
                raise UnreadableError("other numbers than the tensors use")
            storage = self.storages[key]
            count = int.from_bytes(self.take(8), "little")
            size = count * np.dtype(storage.code).itemsize
            if count != storage.count or self.at + size > len(self.content):
                raise UnreadableError("a tensor whose count is not that of its bytes")
            storage.data = memoryview(self.content)[self.at : self.at + size]
            self.at += size
        self._check_end()
        return value

    def _check_end(self) -> None:
        if self.at != len(self.content):
            raise UnreadableError("more bytes after the pickle")

    def load(self) -> Any:
        """Interpret one pickle, up to its end, and return its value."""
        self.stack, self.marks, self.memo = [], [], {}
        content = self.content
        for number in range(self.limits.steps):
            code = content[self.at]
            self.at += 1
            if code == _STOP:
                self.limits.steps -= number
                if len(self.stack) != 1:
                    raise DamagedError("a damaged pickle")
                return self.stack.pop()
            _STEPS[code](self)
        raise UnreadableError(f"more than {MOST_STEPS:,} opcodes")

    def take(self, count: int) -> bytes:
        """Return the next bytes."""
        end = self.at + count
        if end > len(self.content):
            raise DamagedError("a pickle that is cut short")
        taken = self.content[self.at : end]
        self.at = end
        return taken

    def sized(self, bytes_of_size: int) -> bytes:
        """Return bytes that follow their number."""
        return self.take(int.from_bytes(self.take(bytes_of_size), "little"))

    def line(self) -> str:
        """Return the text up to the end of the line."""
        end = self.content.index(b"\n", self.at)
        text = self.content[self.at : end].decode()
        self.at = end + 1
        return text

    def marked(self) -> list[Any]:
        """Remove and return the values above the last mark."""
        mark = self.marks.pop()
        values = self.stack[mark:]
        del self.stack[mark:]
        return values

    def decode(self, text: object, encoding: object) -> bytes:
        """Return the bytes that protocol 2 writes as text."""
        if not isinstance(text, str) or encoding != "latin1":
            raise UnreadableError("text in an unknown encoding")
        self.limits.decoded -= len(text)
        if self.limits.decoded < 0:
            raise UnreadableError("more bytes than the file has")
        return text.encode("latin-1")

    def inner_storage(self, content: object) -> Storage:
        """Return the storage in a file of torch inside the pickle."""
        if self.is_inner or not isinstance(content, bytes):
            raise UnreadableError("a file of torch in another")
        machine = _Machine(content, self.limits)
        machine.is_inner = True
        storage = machine.read()
        if not isinstance(storage, Storage):
            raise UnreadableError("a tensor without numbers")
        return storage

    def storage(self, key: object) -> Storage:
        """Return the storage of a persistent id, ``("storage", type, key, device, count)``."""
        if (
            not isinstance(key, tuple)
            or len(key) not in (5, 6)
            or key[0] != "storage"
            or key[5:] not in ((), (None,))
        ):
            raise UnreadableError("a reference to something else than a tensor")
        kind, name, count = key[1], key[2], key[4]
        code = _STORAGES.get(kind.name) if isinstance(kind, Global) else None
        if code is None or self.storages is None or not isinstance(name, str) or not _is_count(count):
            raise UnreadableError("a reference to something else than a tensor")
        known = self.storages.get(name)
        if known is None:
            known = self.storages[name] = Storage(code, count)
            if self.numbers_of is not None:
                known.data = memoryview(self.numbers_of(name))
        if (known.code, known.count) != (code, count):
            raise UnreadableError("a tensor of two types")
        return known


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 40


def _counts(value: object) -> tuple[int, ...]:
    """Return a shape or strides of at most eight sides."""
    if not isinstance(value, tuple) or len(value) > 8 or not all(map(_is_count, value)):
        raise UnreadableError("an array whose shape is not a few numbers")
    return value


def _array(data: object, dtype: object, shape: object, order: object) -> NDArray[Any]:
    """Return an array whose bytes are all there."""
    if not isinstance(dtype, DType) or not isinstance(data, bytes) or order not in ("C", "F"):
        raise UnreadableError("an array of something else than numbers")
    sides, kind = _counts(shape), dtype.numpy
    count = 1
    for side in sides:
        count *= side
    if count * kind.itemsize != len(data):
        raise UnreadableError("an array whose shape is not that of its bytes")
    return np.frombuffer(data, dtype=kind).reshape(sides, order="F" if order == "F" else "C")


# ---------------------------------------------------------------- names, for REDUCE


def _dtype(machine: _Machine, code: object, *_: object) -> DType:
    if not isinstance(code, str) or code not in _DTYPES:
        raise UnreadableError("an array of something else than numbers")
    return DType(code)


def _new_array(machine: _Machine, kind: object, *_: object) -> Array:
    if not isinstance(kind, Global) or kind.name != "numpy ndarray":
        raise UnreadableError("an array of another class")
    return Array()


def _array_of_buffer(machine: _Machine, data: object, dtype: object, shape: object, order: object) -> Array:
    array = Array()
    array.values = _array(data, dtype, shape, order)
    return array


def _scalar(machine: _Machine, dtype: object, data: object) -> Any:
    return _array(data, dtype, (), "C").item()


def _tensor(
    machine: _Machine, storage: object, offset: object, shape: object, strides: object, *_: object
) -> Tensor:
    if not isinstance(storage, Storage) or not _is_count(offset):
        raise UnreadableError("a tensor without numbers")
    sides, steps = _counts(shape), _counts(strides)
    if len(sides) != len(steps):
        raise UnreadableError("a tensor whose strides are not those of its shape")
    return Tensor(storage, int(offset), sides, steps)  # type: ignore[call-overload]


_CALLS: dict[str, Callable[..., Any] | None] = {
    "_codecs encode": _Machine.decode,
    "__builtin__ bytes": lambda machine: b"",
    "builtins bytes": lambda machine: b"",
    "collections OrderedDict": lambda machine: {},
    "numpy dtype": _dtype,
    "numpy ndarray": None,
    "torch._utils _rebuild_tensor_v2": _tensor,
    "torch.storage _load_from_bytes": _Machine.inner_storage,
    **dict.fromkeys(_STORAGES),
}
"""The function that ``REDUCE`` calls for a name; None for names that are only arguments."""
for _package in ("numpy.core", "numpy._core"):
    _CALLS[f"{_package}.multiarray _reconstruct"] = _new_array
    _CALLS[f"{_package}.multiarray scalar"] = _scalar
    _CALLS[f"{_package}.numeric _frombuffer"] = _array_of_buffer


# ---------------------------------------------------------------- opcodes


def _protocol(machine: _Machine) -> None:
    if machine.take(1)[0] > 5:
        raise UnreadableError("a pickle of a newer protocol")


def _push(read: Callable[[_Machine], Any]) -> Callable[[_Machine], None]:
    return lambda machine: machine.stack.append(read(machine))


def _unpacked(form: str) -> Callable[[_Machine], None]:
    unpack, size = struct.Struct(form).unpack, struct.calcsize(form)
    return lambda machine: machine.stack.append(unpack(machine.take(size))[0])


def _long(machine: _Machine) -> int:
    digits = machine.sized(1)
    if len(digits) > 16:
        raise UnreadableError("a number of more than 128 bits")
    return int.from_bytes(digits, "little", signed=True)


def _tuple_of(count: int) -> Callable[[_Machine], None]:
    def step(machine: _Machine) -> None:
        stack = machine.stack
        if len(stack) < count:
            raise DamagedError("a damaged pickle")
        stack[-count:] = [tuple(stack[-count:])]

    return step


def _append(machine: _Machine) -> None:
    value = machine.stack.pop()
    _list_at_top(machine).append(value)


def _append_all(machine: _Machine) -> None:
    values = machine.marked()
    _list_at_top(machine).extend(values)


def _list_at_top(machine: _Machine) -> list[Any]:
    top = machine.stack[-1]
    if not isinstance(top, list):
        raise DamagedError("a damaged pickle")
    return top


def _set_item(machine: _Machine) -> None:
    value, key = machine.stack.pop(), machine.stack.pop()
    _set(machine, [key, value])


def _set_items(machine: _Machine) -> None:
    _set(machine, machine.marked())


def _set(machine: _Machine, pairs: list[Any]) -> None:
    # Only text: the hash of nested tuples recurses, and hashes of numbers can be made to collide.
    top, keys = machine.stack[-1], pairs[::2]
    if not isinstance(top, dict) or len(pairs) % 2:
        raise DamagedError("a damaged pickle")
    if not all(isinstance(key, str) for key in keys):
        raise UnreadableError("a dictionary whose keys are not text")
    top.update(zip(keys, pairs[1::2], strict=True))


def _put(size: int) -> Callable[[_Machine], None]:
    def step(machine: _Machine) -> None:
        machine.memo[int.from_bytes(machine.take(size), "little")] = machine.stack[-1]

    return step


def _memoize(machine: _Machine) -> None:
    machine.memo[len(machine.memo)] = machine.stack[-1]


def _get(size: int) -> Callable[[_Machine], None]:
    return lambda machine: machine.stack.append(machine.memo[int.from_bytes(machine.take(size), "little")])


def _global(machine: _Machine) -> Global:
    return _named(machine.line(), machine.line())


def _stack_global(machine: _Machine) -> None:
    name, module = machine.stack.pop(), machine.stack.pop()
    machine.stack.append(_named(module, name))


def _named(module: object, name: object) -> Global:
    if not isinstance(module, str) or not isinstance(name, str):
        raise DamagedError("a damaged pickle")
    full = f"{module} {name}"
    if full not in _CALLS:
        raise UnknownNameError(full.replace(" ", "."))
    return Global(full)


def _reduce(machine: _Machine) -> None:
    arguments, function = machine.stack.pop(), machine.stack.pop()
    call = _CALLS[function.name] if isinstance(function, Global) else None
    if call is None or not isinstance(arguments, tuple):
        raise UnreadableError("a call of something that is not a known function")
    machine.stack.append(call(machine, *arguments))


def _build(machine: _Machine) -> None:
    state, top = machine.stack.pop(), machine.stack[-1]
    if not isinstance(top, (DType, Array)):
        raise UnreadableError("the state of something that is not an array")
    top.build(state)


_STOP = ord(".")
_BY_BYTE: dict[int, Callable[[_Machine], None]] = {
    0x80: _protocol,
    0x95: lambda machine: machine.__setattr__("at", machine.at + 8),
    ord("("): lambda machine: machine.marks.append(len(machine.stack)),
    ord("0"): lambda machine: machine.stack.__delitem__(-1),
    ord("N"): _push(lambda machine: None),
    0x88: _push(lambda machine: True),
    0x89: _push(lambda machine: False),
    ord("J"): _unpacked("<i"),
    ord("K"): _unpacked("<B"),
    ord("M"): _unpacked("<H"),
    0x8A: _push(_long),
    ord("G"): _unpacked(">d"),
    0x8C: _push(lambda machine: machine.sized(1).decode()),
    ord("X"): _push(lambda machine: machine.sized(4).decode()),
    0x8D: _push(lambda machine: machine.sized(8).decode()),
    ord("C"): _push(lambda machine: machine.sized(1)),
    ord("B"): _push(lambda machine: machine.sized(4)),
    0x8E: _push(lambda machine: machine.sized(8)),
    0x96: _push(lambda machine: machine.sized(8)),
    ord(")"): _push(lambda machine: ()),
    0x85: _tuple_of(1),
    0x86: _tuple_of(2),
    0x87: _tuple_of(3),
    ord("t"): _push(lambda machine: tuple(machine.marked())),
    ord("]"): _push(lambda machine: []),
    ord("a"): _append,
    ord("e"): _append_all,
    ord("}"): _push(lambda machine: {}),
    ord("s"): _set_item,
    ord("u"): _set_items,
    ord("q"): _put(1),
    ord("r"): _put(4),
    0x94: _memoize,
    ord("h"): _get(1),
    ord("j"): _get(4),
    ord("c"): _push(_global),
    0x93: _stack_global,
    ord("R"): _reduce,
    ord("b"): _build,
    ord("Q"): lambda machine: machine.stack.append(machine.storage(machine.stack.pop())),
}
"""The function of each known opcode."""


def _unknown(machine: _Machine) -> None:
    raise UnreadableError("values of other kinds, or of an old protocol")


_STEPS = [_BY_BYTE.get(code, _unknown) for code in range(256)]
