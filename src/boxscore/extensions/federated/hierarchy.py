"""Read a hierarchy of classes, and expand data sets by it: a man is also a person.

Conventions
-----------
- The format is that of Open Images: nested ``{"LabelName": ..., "Subcategory": [...]}``. Other keys
  (``Part``) are ignored, and the root is not a class.
- A class may occur several times; it has the ancestors of all occurrences.
- Nothing is removed: an object annotated both as a child class and as its parent becomes two objects of the
  parent, as in the reference.

References
----------
The TensorFlow Object Detection API, ``oid_hierarchical_labels_expansion.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.records import record
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.vocabulary import Categories, Id
from boxscore.errors import InputError
from boxscore.extensions.federated.image_labels import IMAGE_LABEL_KINDS, ImageLabels

Table = TypeVar("Table", GroundTruth, Detections)

MOST_LEVELS = 500
"""Maximum depth of a hierarchy; the 600 classes of Open Images have 5 levels."""


@record(frozen=True)
class Hierarchy:
    """The ancestors and descendants of each class, by name.

    Attributes
    ----------
    ancestors, descendants : mapping of str to tuple of str
        Sorted names per class.
    """

    ancestors: Mapping[str, tuple[str, ...]]
    descendants: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, tree: Any, *, source: str = "the hierarchy") -> Hierarchy:
        """Build a hierarchy from nested mappings, as in its JSON file.

        Parameters
        ----------
        tree : mapping
            ``LabelName`` and ``Subcategory``, a list of such mappings.
        source : str
            Name in messages.

        Returns
        -------
        Hierarchy

        Raises
        ------
        InputError
            When the format is wrong, or a class is its own ancestor.

        Examples
        --------
        >>> tree = {"LabelName": "Entity", "Subcategory": [
        ...     {"LabelName": "Person", "Subcategory": [{"LabelName": "Man"}]}]}
        >>> Hierarchy.of(tree).ancestors
        {'Person': (), 'Man': ('Person',)}
        """
        # A class may occur several times: collect the ancestors of all occurrences.
        above: dict[str, set[str]] = {}
        for name, path in _paths(tree, source):
            if name in path:
                raise InputError(
                    "a class of a hierarchy",
                    "not be its own ancestor",
                    got=" > ".join([*path, name])[:200],
                    place=source,
                )
            above.setdefault(name, set()).update(path)
        # Reverse the mapping, and reject cycles.
        below: dict[str, set[str]] = {name: set() for name in above}
        for name, names in above.items():
            for ancestor in names:
                below[ancestor].add(name)
        circle = next((name for name, names in above.items() if names & below[name]), None)
        if circle is not None:
            other = sorted(above[circle] & below[circle])[0]
            got = f"{circle!r} below {other!r} and above it"
            raise InputError("a class of a hierarchy", "not be its own ancestor", got=got, place=source)
        return cls(*({name: tuple(sorted(names)) for name, names in side.items()} for side in (above, below)))

    def check_names(self, names: Iterable[str], *, source: str) -> None:
        """Raise an error for classes that the hierarchy lacks.

        Parameters
        ----------
        names : iterable of str
        source : str
            Name of the data in messages.

        Raises
        ------
        InputError
            When a class is unknown.
        """
        unknown = [name for name in names if name not in self.ancestors]
        if unknown:
            raise InputError(
                "a class",
                "be in the hierarchy",
                got=repr(unknown[0]),
                place=source,
                cause=f"{len(unknown):,} such classes; does one side use label ids (/m/01g317) alone?",
            )


def _paths(tree: Any, source: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield every occurrence of a class below the root, with its ancestors."""
    _name_of(tree, source)
    waiting: list[tuple[Any, tuple[str, ...]]] = [(child, ()) for child in reversed(_children(tree, source))]
    while waiting:
        node, path = waiting.pop()
        name = _name_of(node, source)
        yield name, path
        if len(path) > MOST_LEVELS:
            raise InputError("a hierarchy", f"have at most {MOST_LEVELS} levels", got="more", place=source)
        waiting += [(child, (*path, name)) for child in reversed(_children(node, source))]


def _name_of(node: Any, source: str) -> str:
    if not isinstance(node, Mapping) or not isinstance(node.get("LabelName"), str):
        rule = 'be an object with "LabelName", a string, and perhaps "Subcategory", a list'
        raise InputError("a class of a hierarchy", rule, got=repr(node)[:80], place=source)
    return str(node["LabelName"])


def _children(node: Mapping[str, Any], source: str) -> Sequence[Any]:
    children = node.get("Subcategory", [])
    if not isinstance(children, list):
        raise InputError("Subcategory", "be a list", got=repr(children)[:80], place=source)
    return children


def expand_classes(table: Table, hierarchy: Hierarchy) -> Table:
    """Add a copy of every row for each ancestor of its class, after the row.

    Image labels are expanded too: a present class adds its ancestors, an absent class its descendants.

    Parameters
    ----------
    table : GroundTruth or Detections
        All classes must be in the hierarchy.
    hierarchy : Hierarchy

    Returns
    -------
    GroundTruth or Detections
        Copies of ground truths have new ids.

    Raises
    ------
    InputError
        When a class is not in the hierarchy.

    Examples
    --------
    >>> tree = {"LabelName": "Entity", "Subcategory": [
    ...     {"LabelName": "Person", "Subcategory": [{"LabelName": "Man"}]}]}
    >>> men = Detections.from_arrays(["a"], ["Man"], [[0, 0, 9, 9]], [0.9])
    >>> expand_classes(men, Hierarchy.of(tree)).to_pandas()[["class", "score"]].values.tolist()
    [['Man', 0.9], ['Person', 0.9]]
    """
    # Find the rows of each class's ancestors and descendants in a vocabulary that has them all.
    old = _by_hierarchy_names(table.categories, hierarchy)
    names = old.names.tolist()
    hierarchy.check_names(names, source=table.source)
    labels = table.image_labels if isinstance(table, GroundTruth) else None
    wider = _with_relatives(old, hierarchy, with_descendants=labels is not None)
    class_rows = wider.rows(old.ids).tolist()
    above = _relatives(names, class_rows, hierarchy.ancestors, wider)
    below = _relatives(names, class_rows, hierarchy.descendants, wider)
    # Copy each row once per ancestor of its class; the copies follow the row.
    rows, category = _copies(table.category, above)
    expanded = table.take(rows).replaced(categories=wider, category=category)
    if not isinstance(expanded, GroundTruth):
        return expanded
    # A row with the same source as the previous one is a copy, and gets a new id.
    copies = np.flatnonzero(np.append(False, rows[1:] == rows[:-1]))
    expanded = expanded.replaced(ids=_new_ids(expanded.ids, copies))
    if labels is None:
        return expanded
    # Expand image labels: an absent class implies absent descendants, a present one present ancestors.
    parts = []
    for kind in IMAGE_LABEL_KINDS:
        of_kind = labels.of(kind)
        rows, classes = _copies(of_kind.category, below if kind == "negative" else above)
        parts.append(ImageLabels(of_kind.image[rows], classes, of_kind.kind[rows]))
    return expanded.replaced(image_labels=ImageLabels.joined(parts))


def _by_hierarchy_names(categories: Categories, hierarchy: Hierarchy) -> Categories:
    """Return the classes under the names of the hierarchy: their names or their ids."""
    ids = categories.ids.tolist()
    if all(name in hierarchy.ancestors for name in categories.names.tolist()):
        return categories
    if all(identifier in hierarchy.ancestors for identifier in ids):
        return Categories.build(ids)
    return categories


def _with_relatives(categories: Categories, hierarchy: Hierarchy, *, with_descendants: bool) -> Categories:
    """Return the classes with their ancestors, and optionally their descendants."""
    names = categories.names.tolist()
    known = set(names)
    more: dict[str, None] = {}
    for name in names:
        relatives = hierarchy.ancestors[name] + (hierarchy.descendants[name] if with_descendants else ())
        more |= dict.fromkeys(relative for relative in relatives if relative not in known)
    if not more:
        return categories
    ids: list[Id] = categories.ids.tolist()
    numbers = [identifier for identifier in ids if isinstance(identifier, int)]
    named = len(numbers) < len(ids)
    new_ids: list[Id] = list(more) if named else [max(numbers, default=0) + 1 + n for n in range(len(more))]
    return Categories.build([*ids, *new_ids], names=[*names, *more])


def _relatives(
    names: Sequence[str], class_rows: Sequence[int], relatives: Mapping[str, Sequence[str]], wider: Categories
) -> list[list[int]]:
    """Return the rows of each class and its relatives in the wider vocabulary, its own row first."""
    rows = wider.rows_of_names()
    every = (relative for name in names for relative in relatives[name])
    several = next((relative for relative in every if len(rows.get(relative, ())) > 1), None)
    if several is not None:
        wider.refuse_several(several, what="a class of the hierarchy")
    return [
        [row, *(rows[relative][0] for relative in relatives[name] if relative in rows)]
        for row, name in zip(class_rows, names, strict=True)
    ]


def _copies(
    category: NDArray[np.int32], relatives: Sequence[Sequence[int]]
) -> tuple[NDArray[np.intp], NDArray[np.int32]]:
    """Return the original row of each row of the expanded table, and its class."""
    counts = np.array([len(classes) for classes in relatives], dtype=np.int64)
    starts = np.cumsum(counts) - counts
    flat = np.array([relative for classes in relatives for relative in classes], dtype=np.int32)
    times = counts[category] if len(category) else np.zeros(0, dtype=np.int64)
    rows = np.repeat(np.arange(len(category)), times)
    # Number the copies of each row: the position in the row's list of relatives.
    nth = np.arange(len(rows)) - np.repeat(np.cumsum(times) - times, times)
    return rows, flat[starts[category][rows] + nth] if len(rows) else np.zeros(0, dtype=np.int32)


def _new_ids(ids: NDArray[Any], copies: NDArray[np.intp]) -> NDArray[Any]:
    """Give copies unused ids; renumber all rows if ids are texts."""
    if ids.dtype == object:
        return np.arange(1, len(ids) + 1)
    new = ids.copy()
    new[copies] = int(ids.max(initial=0)) + 1 + np.arange(len(copies))
    return new
