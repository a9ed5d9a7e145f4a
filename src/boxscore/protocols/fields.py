"""Define a field of a protocol: check, doc, signature word, waterfall step and scope.

Conventions
-----------
- A table of a protocol is a subclass of :class:`Rules`, in a file of ``tables``; :func:`rule` makes its
  fields. The signature, the waterfall of :func:`boxscore.diagnostics.explain`, the reference page, the TOML
  reader and the protocol's scope all iterate over the fields.
- A comment in a table names the rule that the fields below it form. A rule may continue further down, or in
  another table: the order of fields is fixed, because signatures follow it.
- A check takes a value as given in Python or TOML, and its name for messages. It returns the value to compute
  with.
- Words and steps are in the order of the fields; steps stage by stage.
- An error about another tool's name for a protocol or a field suggests the name used here.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, get_args

from boxscore._utils import checks
from boxscore._utils.records import NamedTuple
from boxscore.errors import InputError, ProtocolError
from boxscore.protocols.acting import UNSAID, Acts, Does, ExtraColumn, Refusal
from boxscore.protocols.grids import grid, number_text

OTHER_PROTOCOLS = {
    **dict.fromkeys(
        ("voc", "pascal", "pascalvoc", "voc0712", "voc07", "voc12", "vocdevkit"), ("voc2007", "voc2012")
    ),
    **dict.fromkeys(("mscoco", "cocodetection", "cocobox", "cocobbox", "bbox", "pycocotools"), ("coco",)),
    **dict.fromkeys(("segm", "cocoseg", "cocomask", "cocoinstances"), ("coco-segm",)),
    **dict.fromkeys(("boundary", "boundaryiou"), ("coco-boundary",)),
    **dict.fromkeys(("keypoints", "pose", "cocopose", "cocokpt", "oks"), ("coco-keypoints",)),
    **dict.fromkeys(
        ("openimages", "openimage", "oid", "oidv4", "oidv6", "oidv7"),
        ("openimages-v2", "openimages-challenge"),
    ),
    **dict.fromkeys(("yolo", "yolov5", "yolov8", "yolo11", "yolov11"), ("ultralytics", "ultralytics-old")),
    **dict.fromkeys(("obb", "yoloobb", "yolov8obb"), ("ultralytics-obb", "dota")),
    **dict.fromkeys(("dota15", "dota20", "dota2", "dotav2", "dotav20"), ("dota-v1.5",)),
    **dict.fromkeys(("voc2010", "voc2011"), ("voc2012",)),
    **dict.fromkeys(("voc2005", "voc2006", "voc2008", "voc2009"), ("voc2007",)),
    **dict.fromkeys(("wider", "wideface"), ("widerface",)),
    **dict.fromkeys(("padilla",), ("padilla-voc", "padilla-coco")),
    **dict.fromkeys(("detectron2",), ("coco", "detectron2-voc2007", "detectron2-voc2012")),
    **dict.fromkeys(("torchvision", "mmdetection", "mmdet"), ("coco",)),
    **dict.fromkeys(("rotated",), ("dota", "coco-rotated")),
}
"""Other names, in lower-case letters and digits only, without a year or version at the end."""

OTHER_NAMES = {
    **dict.fromkeys(
        ("maxDets", "max_dets", "max_detection_thresholds", "maxdets", "caps"), "matching.max_detections"
    ),
    **dict.fromkeys(("iouThrs", "iou_thrs", "iou_thresholds", "iou_thres"), "matching.iou_thresholds"),
    **dict.fromkeys(("recThrs", "rec_thrs", "rec_thresholds"), "ap.recall_points"),
    **dict.fromkeys(("areaRng", "area_rng", "area_ranges", "areaRngLbl"), "ignore.area_ranges"),
    **dict.fromkeys(("useCats", "use_cats", "average"), "matching.per_class"),
    **dict.fromkeys(("iouType", "iou_type"), "similarity"),
    **dict.fromkeys(("kpt_oks_sigmas", "sigmas"), "keypoints.sigmas"),
    **dict.fromkeys(
        ("conf", "conf_thres", "confidence_threshold", "score_threshold"), "matching.score_threshold"
    ),
    **dict.fromkeys(("use_07_metric", "interpolation"), "ap.interpolation"),
}


def meant_protocols(name: str, known: Sequence[str]) -> list[str]:
    """Return the known protocols that a name may mean: other spellings, or names that other tools use."""
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    spelled = [one for one in known if re.sub(r"[^a-z0-9]", "", one) == plain]
    if spelled:
        return spelled
    for short in (plain, re.sub(r"(v?\d{1,2}|20[012]\d)$", "", plain)):
        names = [one for one in known if re.sub(r"[^a-z0-9]", "", one) == short]
        if names or short in OTHER_PROTOCOLS:
            return names or list(OTHER_PROTOCOLS[short])
    return []


if TYPE_CHECKING:
    from typing_extensions import Self, dataclass_transform
else:

    def dataclass_transform(**_):
        """Do nothing: only type checkers read it."""
        return lambda kind: kind


ALWAYS = object()
"""Replaces a silent value: the word is always printed."""

Stage = Literal["tables", "ranking", "overlaps", "thresholds", "matching", "scoring"]
"""The stages of an evaluation, in the order of a waterfall."""

Text = Mapping[Any, str] | Callable[[Any], str] | None
"""Turns a value into text: by name, by a function of the whole protocol, or unchanged."""


class Check(NamedTuple):
    """A rule for a value, and its wording on the reference page."""

    values: str
    apply: Callable[[Any, str], Any]

    def __call__(self, value: Any, name: str) -> Any:
        """Return the value to compute with, or raise an error that names it."""
        return self.apply(value, name)


class Word(NamedTuple):
    """A field's word in the signature.

    Attributes
    ----------
    key : str
        The word before the colon.
    silent : object
        The value (COCO's) at which the signature omits the word. A function ``text`` omits it by returning an
        empty string.
    text : mapping, callable or None
        Turns the value into text.
    note : str
        The note on the reference page; made from ``silent`` when empty.
    """

    key: str
    silent: Any = ALWAYS
    text: Text = None
    note: str = ""


class Step(NamedTuple):
    """A field's step in a waterfall from one protocol to another.

    Attributes
    ----------
    title : str
    stage : Stage
        The stage of an evaluation in which the choice acts.
    text : mapping, callable or None
        Turns the value into text.
    """

    title: str
    stage: Stage
    text: Text = None


class Reads(NamedTuple):
    """The keys or columns that a rule reads from files, in addition to those of every protocol.

    Attributes
    ----------
    of : {"rows", "images"}
        The table that has the keys or columns.
    names : callable
        Takes the protocol and returns their names.
    """

    of: Literal["rows", "images"]
    names: Callable[[Any], Sequence[str]]


class Rule(NamedTuple):
    """The metadata of a field.

    Attributes
    ----------
    check : Check
    doc : str
    word : Word, optional
    step : Step or str, optional
        A step, or the field whose step it shares.
    scope : Acts
        The rule's effect and scope; required for every field of a protocol.
    replaces : bool
        Whether a protocol that extends another replaces a table instead of adding to it.
    refuses : sequence of Refusal
        Ways of computing that some values rule out.
    columns : sequence of ExtraColumn
        Columns of matches that only this field asks for.
    reads : Reads, optional
        Keys of files to read.
    does : sequence of Does
        Functions that act on matching, in addition to COCO's rules.
    """

    check: Check
    doc: str
    word: Word | None = None
    step: Step | str | None = None
    scope: Acts = UNSAID
    replaces: bool = False
    refuses: Sequence[Refusal] = ()
    columns: Sequence[ExtraColumn] = ()
    reads: Reads | None = None
    does: Sequence[Does] = ()


def rule(
    default: Any = dataclasses.MISSING,
    *,
    check: Check,
    doc: str,
    word: Word | None = None,
    step: Step | str | None = None,
    scope: Acts = UNSAID,
    replaces: bool = False,
    refuses: Sequence[Refusal] = (),
    columns: Sequence[ExtraColumn] = (),
    reads: Reads | None = None,
    does: Sequence[Does] = (),
) -> Any:
    """Make a field of a protocol from its declarations; see :class:`Rule`."""
    metadata = {"rule": Rule(check, doc, word, step, scope, replaces, refuses, columns, reads, does)}
    if isinstance(default, dict):
        return dataclasses.field(default_factory=default.copy, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def _attribute(field: dataclasses.Field[Any]) -> list[str]:
    rule: Rule = field.metadata["rule"]
    return [f"{field.name} : {rule.check.values}", f"    {rule.doc}"]


class _Signature:
    """The signature of a table, made lazily when ``help`` or ``inspect`` asks for it."""

    def __get__(self, instance: object, kind: type[Rules]) -> inspect.Signature:
        parameters = []
        for field in dataclasses.fields(kind):
            default = field.default
            if field.default_factory is not dataclasses.MISSING:
                default = dataclasses._HAS_DEFAULT_FACTORY  # type: ignore[attr-defined]
            elif default is dataclasses.MISSING:
                default = inspect.Parameter.empty
            parameters.append(
                inspect.Parameter(
                    field.name,
                    inspect.Parameter.POSITIONAL_OR_KEYWORD,
                    default=default,
                    annotation=field.type,
                )
            )
        return inspect.Signature(parameters, return_annotation=None)


@dataclass_transform(frozen_default=True)
class Rules:
    """A table of a protocol: a frozen dataclass whose fields are checked, and named in errors as in TOML.

    Subclasses become dataclasses without a decorator and share these methods: the standard decorator compiles
    six methods per class, which took longer than everything else that a protocol needs.
    """

    PREFIX: ClassVar[str] = ""
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]
    __signature__: ClassVar[Any] = _Signature()
    _required: ClassVar[frozenset[str]]

    def __init_subclass__(cls) -> None:
        """Collect the fields and append their docs to the docstring."""
        dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
        fields = dataclasses.fields(cls)
        cls._required = frozenset(
            field.name for field in fields if field.default is field.default_factory is dataclasses.MISSING
        )
        lines = [line for field in fields for line in _attribute(field)]
        cls.__doc__ = "\n".join([f"{cls.__doc__}".rstrip(), "", "Attributes", "----------", *lines, ""])

    def __init__(self, *values: Any, **given: Any) -> None:
        fields = self.__dataclass_fields__
        if values or not given.keys() <= fields.keys() or not self._required <= given.keys():
            given = self.__signature__.bind(*values, **given).arguments  # raises TypeError for bad arguments
        own = vars(self)
        for name, field in fields.items():
            if name in given:
                own[name] = given[name]
            elif field.default_factory is dataclasses.MISSING:
                own[name] = field.default
            else:
                own[name] = field.default_factory()
        # Check only the caller's values: defaults have passed their checks already.
        self._check([name for name in fields if name in given and given[name] is not fields[name].default])

    def replaced(self, **changes: Any) -> Self:
        """Return the table with some values changed; only these are checked again."""
        fields = self.__dataclass_fields__
        if not changes.keys() <= fields.keys():
            self.__signature__.bind_partial(**changes)  # raises TypeError for unknown fields
        kept = {name: getattr(self, name) for name in fields}  # without cached properties
        made = object.__new__(type(self))
        vars(made).update(kept | changes)
        made._check([name for name in fields if name in changes and changes[name] is not kept[name]])
        return made

    def _check(self, names: Sequence[str]) -> None:
        """Check some fields in their order, then the rules that involve several fields."""
        own = vars(self)
        try:
            for name in names:
                check: Check = self.__dataclass_fields__[name].metadata["rule"].check
                own[name] = check.apply(own[name], self._label(name))
            self._check_together()
        except ProtocolError:
            raise
        except InputError as error:
            parts = {key: getattr(error, key) for key in ("got", "place", "cause")}
            raise ProtocolError(error.name, error.rule, **parts) from None

    def _label(self, name: str) -> str:
        return f"{self.PREFIX}{name}"

    def _check_together(self) -> None:
        """Check rules that involve several fields."""

    def _values(self) -> tuple[Any, ...]:
        return tuple([getattr(self, name) for name in self.__dataclass_fields__])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Rules) or type(other) is not type(self):
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        values = zip(self.__dataclass_fields__, self._values(), strict=True)
        return f"{type(self).__qualname__}({', '.join(f'{name}={value!r}' for name, value in values)})"

    def __setattr__(self, name: str, value: Any) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


R = TypeVar("R")


def read(kind: type[R], values: Any, *, name: str) -> R:
    """Build a table from TOML values; reject unknown keys.

    The fields check the values, so that Python and TOML share one set of rules and messages.
    """
    if isinstance(values, kind):
        return values
    if not isinstance(values, Mapping):
        raise ProtocolError(name, "be a table", got=repr(values))
    prefix = f"{name}." if name else ""
    fields = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    for key in values:
        if key not in fields:
            raise ProtocolError(_unknown(prefix, key, fields))
    for key, field in fields.items():
        required = field.default is field.default_factory is dataclasses.MISSING
        if required and key not in values:
            raise ProtocolError(f"{prefix}{key}", "be given", got="none")
    return kind(**values)


def _unknown(prefix: str, key: str, fields: Mapping[str, Any]) -> str:
    """Return the message for an unknown key; for a key of another tool, suggest the name used here."""
    name = OTHER_NAMES.get(key)
    if name is None or name == f"{prefix}{key}":
        return checks.unknown_key(f"{prefix}{key}", key, fields)
    table, _, field = name.rpartition(".")
    place = f"{field} in the table [{table}]" if table else f"{field}, at the top"
    return str(InputError("a key", "be known", got=f"{prefix}{key}", cause=f"here it is {place}"))


# ---------------------------------------------------------------- checks


def choice(kind: Any) -> Check:
    """Accept the names of a ``Literal``, or the keys of a table."""
    known = get_args(kind) or tuple(kind)
    return Check(
        ", ".join(f'"{name}"' for name in known), lambda value, name: checks.one_of(value, known, name=name)
    )


def number(low: float, high: float, *, open_low: bool = False) -> Check:
    """Accept a number in [low, high], or (low, high]."""
    return Check(
        "number" if low == -high else f"number in {'(' if open_low else '['}{low:g}, {high:g}]",
        lambda value, name: checks.number_between(value, low, high, name=name, open_low=open_low),
    )


def whole(low: int) -> Check:
    """Accept a whole number that is at least ``low``."""
    return Check(f"whole number >= {low}", lambda value, name: checks.whole_number(value, low, name=name))


def list_of(item: Check, what: str, *, ordered: bool = False) -> Check:
    """Accept a list and make it a tuple; ``ordered`` sorts it and drops duplicates."""

    def apply(value: Any, name: str) -> tuple[Any, ...]:
        if not isinstance(value, (list, tuple)):
            raise ProtocolError(name, f"be {what}", got=repr(value))
        items = [item(each, name) for each in value]
        return tuple(sorted(set(items)) if ordered else items)

    return Check(f"list: {item.values}", apply)


def grid_of(*, most: int, open_low: bool = False) -> Check:
    """Accept a grid in any of its forms."""

    def apply(value: Any, name: str) -> tuple[float, ...]:
        values = grid(value, name=name)
        if open_low:
            checks.number_between(values[0], 0, 1, name=name, open_low=True)
        if len(values) > most:
            raise ProtocolError(name, f"have at most {most} values", got=len(values))
        return values

    return Check(f"grid in {'(' if open_low else '['}0, 1]", apply)


def table(kind: type[Rules]) -> Check:
    """Accept a table, or a mapping of its values."""
    return Check("table", lambda value, name: read(kind, value, name=name))


def _flag(value: Any, name: str) -> bool:
    if not isinstance(value, bool):
        raise ProtocolError(name, "be true or false", got=repr(value))
    return value


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise ProtocolError(name, "be a string", got=repr(value))
    if not value.isprintable():  # it is printed on the terminal, in signatures, headers and titles
        raise ProtocolError(name, "not contain control characters", got=repr(value))
    return value


flag = Check("true, false", _flag)
text = Check("string", _text)


# ---------------------------------------------------------------- fields of a whole protocol


class Field(NamedTuple):
    """A field of a protocol with its name in TOML; ``table`` is empty at the top level."""

    table: str
    name: str
    rule: Rule

    @property
    def path(self) -> str:
        """``table.name``."""
        return f"{self.table}.{self.name}" if self.table else self.name

    def of(self, protocol: Any) -> Any:
        """Return the field's value in a protocol."""
        return getattr(getattr(protocol, self.table) if self.table else protocol, self.name)

    def written(self, protocol: Any, text: Text) -> str:
        """Format the field's value as text."""
        if callable(text):
            return text(protocol)
        value = self.of(protocol)
        if text is not None and value in text:
            return text[value]
        return number_text(value) if isinstance(value, float) else str(value)


def all_fields(protocol: Any) -> tuple[Field, ...]:
    """Return the fields of a protocol or its class, with each table replaced by its fields."""
    return _all_fields(protocol if isinstance(protocol, type) else type(protocol))


@functools.cache
def _all_fields(kind: Any) -> tuple[Field, ...]:
    fields: list[Field] = []
    for top in dataclasses.fields(kind):
        if dataclasses.is_dataclass(top.default):
            inner = dataclasses.fields(top.default)
            fields += [Field(top.name, field.name, field.metadata["rule"]) for field in inner]
        else:
            fields.append(Field("", top.name, top.metadata["rule"]))
    return tuple(fields)
