"""``record`` beside the standard decorator: what one does with a class, the other does."""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import pickle
from typing import Any, ClassVar

import pytest

from boxscore._utils.records import record


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
