"""Prevent outputs from overwriting inputs: given files, and files in folders that are read.

Conventions
-----------
- Outputs are the paths of options with ``writes``; all other existing paths are inputs. This includes words
  that are file names, as in ``--classes``, and folders and lists that a ``data.yaml`` refers to.
- Paths are the same if device and inode are the same, which includes links and other spellings. Pipes and
  terminals are ignored.
- All known output files are checked before anything is read, and every file again when it is replaced.
- A file in an input folder is an input if the format reads files with its ending in folders. So an old
  ``result.json`` next to YOLO labels is not an input. A new file that would become one is rejected too.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from boxscore._utils.files import guarded, refuse_replacing
from boxscore._utils.given_paths import files_of
from boxscore._utils.records import NamedTuple
from boxscore.cli.arguments import Form, Option
from boxscore.errors import BoxscoreError, InputError

if TYPE_CHECKING:
    from boxscore.formats._format import Format, Opened

PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff")
DESCRIPTIONS = (".yaml", ".yml", ".data", ".txt")
"""Endings of files that refer to the folders of a data set."""
ITSELF = "."
"""Value in ``writes`` of an option for the path itself."""

CONFIG = Option("config", kind=Path)


class _Named(NamedTuple):
    """A path and its option."""

    option: Option
    name: str
    path: Path


@contextlib.contextmanager
def inputs_protected(
    options: Sequence[Option], arguments: argparse.Namespace, *, config: Path | None = None
) -> Iterator[None]:
    """Reject outputs that are inputs or equal to each other, and protect inputs within this context.

    Given the run configuration of the arguments, messages show its keys instead of options.
    """
    # Return early without outputs.
    keys = config is not None
    outputs = list(_paths(options, arguments, written=True, keys=keys))
    if not outputs:
        yield
        return
    named = list(_paths(options, arguments, written=False, keys=keys))
    inputs = _Inputs([*named, *([] if config is None else [_Named(CONFIG, "the configuration", config)])])
    # Check outputs before the command reads, and guard all later writes.
    with guarded(inputs.replaced):
        for output in outputs:
            for pattern in output.option.writes:
                if pattern == ITSELF:
                    refuse_replacing(output.name, output.path)
                    inputs.refuse_joining(output, output.path)
                    continue
                if "*" not in pattern:
                    inputs.refuse_joining(output, output.path / pattern)
                for path in sorted(output.path.glob(pattern)):
                    refuse_replacing(f"a file in {output.name}", path)
        for first, second in itertools.permutations(outputs, 2):
            _refuse_same(first, second)
        yield


def _paths(
    options: Iterable[Option], arguments: argparse.Namespace, *, written: bool, keys: bool
) -> Iterator[_Named]:
    """Yield the paths in the arguments, of outputs or of all others."""
    for option in options:
        value = getattr(arguments, option.dest, None)
        if bool(option.writes) != written or value is None or (value is option.default and not written):
            continue
        name = option.typed(key=keys)
        for item in value if isinstance(value, list | tuple) else [value]:
            path = item.path if isinstance(item, Form) else item
            if isinstance(path, Path) and "\0" not in str(path):  # with NUL, opening the path raises
                for one in files_of(path):
                    yield _Named(option, name, one)
            elif isinstance(path, str) and not (option.choices or written) and _is_file(Path(path)):
                yield _Named(option, name, Path(path))


class _Inputs:
    """The files and folders to read."""

    def __init__(self, paths: Iterable[_Named]) -> None:
        self._files: dict[tuple[int, int], _Named] = {}
        self._folders: dict[tuple[int, int], _Named] = {}
        for named in itertools.chain.from_iterable(map(_with_references, paths)):
            status = _state(named.path)
            if status is not None and _is_regular(status):
                self._files.setdefault(_identity(status), named)
            elif status is not None and stat.S_ISDIR(status.st_mode):
                self._folders.setdefault(_identity(status), named)

    def replaced(self, path: Path, status: os.stat_result) -> str | None:
        """Return the input that an existing path refers to, or None."""
        same = {**self._files, **self._folders}.get(_identity(status))
        if same is not None:
            return "" if str(same.path) == str(path) else f"{same.name} {same.path}"
        for within, format_ in self._around(path) if _is_regular(status) else ():
            endings = () if format_ is None else format_.folder_endings
            if not endings or path.suffix.lower() in (*endings, *PICTURES):
                return f"a file in {within.name} {within.path}"
        return None

    def refuse_joining(self, output: _Named, path: Path) -> None:
        """Reject a new file that the next run would read with the files of an input folder."""
        if _state(path) is not None:
            return
        for within, format_ in self._around(path):
            if format_ is not None and _joins(format_, within.path, path):
                rule = f"be outside {within.name} {str(within.path)!r}"
                read = "it" if path == output.path else f"its {path.name}"
                cause = f"the next run would read {read} as input"
                raise InputError(output.name, rule, got=repr(str(output.path)), cause=cause)

    def _around(self, path: Path) -> Iterator[tuple[_Named, Format | None]]:
        """Yield the input folders around a path, each with its format, or None if that is unknown."""
        for folder in Path(os.path.realpath(path)).parents if self._folders else ():
            state = _state(folder)
            within = None if state is None else self._folders.get(_identity(state))
            if within is not None:
                yield within, _format_of(within.path)


def _with_references(named: _Named) -> Iterator[_Named]:
    """Yield an input and the paths it refers to, such as the folders in a ``data.yaml``."""
    yield named
    status = _state(named.path)
    is_folder = status is not None and stat.S_ISDIR(status.st_mode)
    if not is_folder and named.path.suffix.lower() not in DESCRIPTIONS:
        return
    from boxscore.formats.registry import open_at

    with contextlib.suppress(BoxscoreError, OSError):  # the command reports unreadable inputs
        opened = open_at(named.path)
        for path in [*(each.path for each in opened.files), *_references(opened)]:
            yield named._replace(path=path)


def _references(opened: Opened) -> list[Path]:
    """List the files and folders that an input refers to, and that are read too."""
    from boxscore.formats.registry import capability

    if opened.files:
        return [path for each in opened.files for path in _references(each)]
    read_elsewhere = capability(opened.format, "read_elsewhere") if opened.is_direct else None
    return [] if read_elsewhere is None else list(read_elsewhere(opened.path))


def _format_of(folder: Path) -> Format | None:
    """Return the format of a folder that is read as it is; None if that is unknown."""
    from boxscore.formats.registry import open_at

    try:
        opened = open_at(folder)
    except BoxscoreError:  # a folder of images or of an unknown format
        return None
    return opened.format if opened.is_direct else None


def _joins(format_: Format, folder: Path, file: Path) -> bool:
    """Whether a new file would be read in a folder of a format."""
    from boxscore.formats.registry import capability

    if file.suffix.lower() not in format_.folder_endings:
        return False
    joins = capability(format_, "joins")
    return joins is None or bool(joins(*(Path(os.path.realpath(path)) for path in (folder, file))))


def _refuse_same(output: _Named, other: _Named) -> None:
    """Reject two outputs that are the same file, or if one is inside the other's output folder."""
    if ITSELF not in output.option.writes:
        return
    first, second = (Path(os.path.realpath(named.path)) for named in (output, other))
    states = _state(first), _state(second)
    if any(status is not None and not _is_regular(status) for status in states[:1]):
        return
    same = first == second or (None not in states and _identity(states[0]) == _identity(states[1]))
    inside = second in first.parents and any(
        first.relative_to(second).match(pattern) for pattern in other.option.writes if pattern != ITSELF
    )
    if same or inside:
        rule = f"differ from {other.name}" if same else f"differ from the files that {other.name} writes"
        raise InputError(output.name, rule, got=repr(str(output.path)))


def _state(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except (OSError, ValueError):  # missing, too long, or with NUL
        return None


def _is_file(path: Path) -> bool:
    return _is_regular(_state(path))


def _is_regular(status: os.stat_result | None) -> bool:
    return status is not None and stat.S_ISREG(status.st_mode)


def _identity(status: os.stat_result | None) -> tuple[int, int]:
    assert status is not None
    return status.st_dev, status.st_ino
