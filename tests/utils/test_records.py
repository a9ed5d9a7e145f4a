"""``record`` beside the standard decorator: what one does with a class, the other does."""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import pickle
import typing
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from boxscore._utils.records import NamedTuple, record


def both(
    name: str, body: dict[str, Any], bases: tuple[tuple[type, ...], ...] = ((), ()), **options: Any
) -> Any:
    made = []
    for decorate, base in zip((dataclasses.dataclass, record), bases, strict=True):
        made.append(decorate(frozen=True, **options)(type(name, base, {**body, "__doc__": "A class."})))
    return made


def outcome(call: Any) -> Any:
    try:
        return call()
    except (TypeError, AttributeError) as error:
        return type(error)


PLAIN = {
    "__annotations__": {"a": "int", "b": "float", "c": "list[int]", "KIND": "ClassVar[str]"},
    "b": dataclasses.field(default=2.0, metadata={"unit": "pixels"}),
    "c": dataclasses.field(default_factory=lambda: [1], repr=False, compare=False),
    "KIND": "plain",
}


def checked(self: Any) -> None:
    object.__setattr__(self, "a", self.a * 2)


@pytest.mark.parametrize("options", [{}, {"eq": False}, {"repr": False}, {"kw_only": True}, {"init": False}])
@pytest.mark.parametrize("body", [PLAIN, {**PLAIN, "__post_init__": checked}])
def test_a_record_is_a_dataclass(options: dict[str, Any], body: dict[str, Any]) -> None:
    standard, ours = both("Both", body, **options)
    assert [(f.name, f.type, f.metadata) for f in dataclasses.fields(standard)] == [
        (f.name, f.type, f.metadata) for f in dataclasses.fields(ours)
    ]
    calls = [((), {}), ((1,), {}), ((1, 2.5), {}), ((), {"a": 3}), ((1, 2, [3]), {}), ((1, 2, [3], 4), {})]
    calls += [((1,), {"a": 1}), ((1,), {"d": 1}), ((), {"a": 1, "b": 3, "c": [4]})]
    if options.get("init", True):
        assert str(inspect.signature(standard)) == str(inspect.signature(ours))
        for values, given in calls:
            made = [outcome(functools.partial(kind, *values, **given)) for kind in (standard, ours)]
            if isinstance(made[0], type):
                assert made[0] is made[1], (values, given)
                continue
            assert vars(made[0]) == vars(made[1])
            assert list(vars(made[0])) == list(vars(made[1]))
            if options.get("repr", True):
                assert repr(made[0]) == repr(made[1])
            again = [outcome(functools.partial(kind, *values, **given)) for kind in (standard, ours)]
            assert (made[0] == again[0]) is (made[1] == again[1]) is options.get("eq", True)
            assert made[1] != made[0]
            if options.get("eq", True):
                assert hash(made[1]) == hash(again[1]) == hash(made[0])
            for one in made:
                with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'a'"):
                    one.a = 1
                with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'a'"):
                    del one.a
            if "__post_init__" not in body:
                assert vars(dataclasses.replace(made[1], b=9)) == vars(dataclasses.replace(made[0], b=9))
            assert vars(copy.copy(made[1])) == vars(made[1])


@record(frozen=True)
class Base:
    """A class of this module."""

    KIND: ClassVar[str] = "base"
    a: int
    b: int = 2


@record(frozen=True)
class Derived(Base):
    """One more field, and a value that is computed once."""

    c: int = 3

    @functools.cached_property
    def total(self) -> int:
        """The sum."""
        return self.a + self.b + self.c


def test_records_inherit_compute_and_pickle() -> None:
    one = Derived(1, c=5)
    assert (one.total, one.total, repr(one)) == (8, 8, "Derived(a=1, b=2, c=5)")
    assert one == Derived(1, 2, 5) != Derived(1)
    again = pickle.loads(pickle.dumps(one))
    assert again == one
    assert dataclasses.is_dataclass(Derived)
    assert Derived.__match_args__ == ("a", "b", "c")
    assert str(inspect.signature(Derived)) == "(a: 'int', b: 'int' = 2, c: 'int' = 3) -> None"
    with pytest.raises(TypeError, match=r"Derived.__init__\(\) missing 1 required argument: 'a'"):
        Derived()  # type: ignore[call-arg]


class Standard(typing.NamedTuple):
    """Three fields."""

    a: int
    b: list[int] | None = None
    c: float = 0.5

    def total(self) -> float:
        """The sum."""
        return self.a + self.c

    @property
    def double(self) -> int:
        """Twice ``a``."""
        return 2 * self.a

    @classmethod
    def of(cls, text: str) -> Standard:
        """Read ``a``."""
        return cls(int(text))

    def __repr__(self) -> str:
        return f"<{self.a}>"


class Ours(NamedTuple):
    """Three fields."""

    a: int
    b: list[int] | None = None
    c: float = 0.5

    def total(self) -> float:
        """The sum."""
        return self.a + self.c

    @property
    def double(self) -> int:
        """Twice ``a``."""
        return 2 * self.a

    @classmethod
    def of(cls, text: str) -> Ours:
        """Read ``a``."""
        return cls(int(text))

    def __repr__(self) -> str:
        return f"<{self.a}>"


class OursPlain(NamedTuple):
    """One field."""

    a: int


@pytest.mark.parametrize(
    "ask",
    [
        lambda kind: (kind._fields, kind._field_defaults, kind.__match_args__, kind.__doc__, kind.__module__),
        lambda kind: (kind.__mro__[1:], kind.__slots__, kind.total.__doc__, typing.get_type_hints(kind)),
        lambda kind: str(inspect.signature(kind)).replace("ForwardRef(", "").replace("')", "'"),
        lambda kind: (tuple(kind(1)), tuple(kind(1, c=2)), kind(1).total(), kind(2).double, kind.of("3").a),
        lambda kind: (repr(kind(4)), kind(1)._replace(b=[1])[1], kind(1)._asdict(), tuple(kind._make("abc"))),
        lambda kind: (type(pickle.loads(pickle.dumps(kind(1)))) is kind, copy.copy(kind(5)).a, hash(kind(1))),
        lambda kind: outcome(kind),
        lambda kind: outcome(lambda: kind(1, d=2)),
        lambda kind: outcome(lambda: setattr(kind(1), "a", 2)),
        lambda kind: kind(1) == (1, None, 0.5) and {*vars(kind)} - {"__orig_bases__"},
    ],
)
def test_a_named_tuple_is_the_standard_one(ask: Callable[[Any], Any]) -> None:
    standard, ours = ask(Standard), ask(Ours)
    assert ours == standard


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(TypeError, match=r"OursPlain.__new__\(\) missing 1 .* 'a'"):
        OursPlain()  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="unexpected field names: \\['b'\\]"):
        OursPlain(1)._replace(b=2)  # type: ignore[call-arg]


def test_a_plain_named_tuple_says_its_fields() -> None:
    assert repr(OursPlain(3)) == "OursPlain(a=3)"
    assert OursPlain.__qualname__ == "OursPlain"


def test_what_makes_a_tuple_is_not_replaced() -> None:
    with pytest.raises(AssertionError, match="_replace"):
        type(NamedTuple)("Wrong", (NamedTuple,), {"__module__": "a", "_replace": 1})
