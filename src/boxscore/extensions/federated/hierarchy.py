"""A hierarchy of classes, and data sets expanded along it: a man is a person too.

Conventions
-----------
- The form is Open Images': ``{"LabelName": ..., "Subcategory": [...]}``, nested. Other keys (``Part``) are
  not followed, and the root is no class.
- A class may occur several times: its ancestors are those of every occurrence.
- Nothing is removed: an object that is annotated as a child and as its parent becomes two objects of the
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
"""How deep a hierarchy may be; the 600 classes of Open Images have 5 levels."""


@record(frozen=True)
class Hierarchy:
    """Which classes stand above and below each class, by name.

    Attributes
    ----------
    ancestors, descendants : mapping of str to tuple of str
        Of each class, sorted.
    """

    ancestors: Mapping[str, tuple[str, ...]]
    descendants: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, tree: Any, *, source: str = "the hierarchy") -> Hierarchy:
        """Read a nested hierarchy, as JSON holds it.

        Parameters
        ----------
        tree : mapping
            ``LabelName`` and ``Subcategory``, a list of the same.
        source : str
            Names it in messages.

        Returns
        -------
        Hierarchy

        Raises
        ------
        InputError
            When it has another form, or a class stands below itself.

        Examples
        --------
        >>> tree = {"LabelName": "Entity", "Subcategory": [
        ...     {"LabelName": "Person", "Subcategory": [{"LabelName": "Man"}]}]}
        >>> Hierarchy.of(tree).ancestors
        {'Person': (), 'Man': ('Person',)}
        """
        # A class may be at several places: it has the ancestors of all of them.
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
        # Reverse it, and refuse a class that is above and below another.
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
        """Refuse classes that the hierarchy does not have.

        Parameters
        ----------
        names : iterable of str
        source : str
            Names the data in messages.

        Raises
        ------
        InputError
            When one is unknown.
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
    """Yield every class below the root, each time it occurs, with the classes above it."""
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
    """Add a copy of every row for each class above its class, after the row.

    Labels of whole images are expanded too: a present class adds the classes above it, an absent class those
    below it.

    Parameters
    ----------
    table : GroundTruth or Detections
        Every class must be in the hierarchy.
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
    # Find, for each class, the rows of the classes above and below it in a vocabulary that has them all.
    old = _as_labelled(table.categories, hierarchy)
    names = old.names.tolist()
    hierarchy.check_names(names, source=table.source)
    labels = table.image_labels if isinstance(table, GroundTruth) else None
    wider = _with_relatives(old, hierarchy, with_descendants=labels is not None)
    class_rows = wider.rows(old.ids).tolist()
    above = _relatives(names, class_rows, hierarchy.ancestors, wider)
    below = _relatives(names, class_rows, hierarchy.descendants, wider)
    # Copy each row once for every class above its own; the copies follow the row.
    rows, category = _copies(table.category, above)
    expanded = table.take(rows).replaced(categories=wider, category=category)
    if not isinstance(expanded, GroundTruth):
        return expanded
    # A copy is a row with the same source as the row before it, and gets a new id.
    copies = np.flatnonzero(np.append(False, rows[1:] == rows[:-1]))
    expanded = expanded.replaced(ids=_new_ids(expanded.ids, copies))
    if labels is None:
        return expanded
    # Expand labels of whole images: an absent class implies that the classes below it are absent, a present
    # one the classes above it.
    parts = []
    for kind in IMAGE_LABEL_KINDS:
        of_kind = labels.of(kind)
        rows, classes = _copies(of_kind.category, below if kind == "negative" else above)
        parts.append(ImageLabels(of_kind.image[rows], classes, of_kind.kind[rows]))
    return expanded.replaced(image_labels=ImageLabels.joined(parts))


def _as_labelled(categories: Categories, hierarchy: Hierarchy) -> Categories:
    """Return the classes by the names that the hierarchy has: their names, else their ids."""
    ids = categories.ids.tolist()
    if all(name in hierarchy.ancestors for name in categories.names.tolist()):
        return categories
    if all(identifier in hierarchy.ancestors for identifier in ids):
        return Categories.build(ids)
    return categories


def _with_relatives(categories: Categories, hierarchy: Hierarchy, *, with_descendants: bool) -> Categories:
    """Return the classes and those above them, and below them where labels need them."""
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
    """Return the rows that each class stands for in the wider vocabulary, its row there first."""
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
    """Return the row behind each row of the expanded table, and its class."""
    counts = np.array([len(classes) for classes in relatives], dtype=np.int64)
    starts = np.cumsum(counts) - counts
    flat = np.array([relative for classes in relatives for relative in classes], dtype=np.int32)
    times = counts[category] if len(category) else np.zeros(0, dtype=np.int64)
    rows = np.repeat(np.arange(len(category)), times)
    # The number of each copy among those of its row, which is its position in the row's list of relatives.
    nth = np.arange(len(rows)) - np.repeat(np.cumsum(times) - times, times)
    return rows, flat[starts[category][rows] + nth] if len(rows) else np.zeros(0, dtype=np.int32)


def _new_ids(ids: NDArray[Any], copies: NDArray[np.intp]) -> NDArray[Any]:
    """Give copies ids that no row has; number all rows again where ids are texts."""
    if ids.dtype == object:
        return np.arange(1, len(ids) + 1)
    new = ids.copy()
    new[copies] = int(ids.max(initial=0)) + 1 + np.arange(len(copies))
    return new
