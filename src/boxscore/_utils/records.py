"""Define frozen dataclasses and named tuples without compiling code for each class, and pickle them.

This speeds up imports. Compiling the methods of the thirty dataclasses needed before the first file is read
took as long as matching the detections of 5,000 images; here, methods are closures. For classes with very
many instances, use the standard decorator. For a named tuple, the standard library compiles a constructor,
and ``typing`` the type of each field too; here, all with the same number of fields share one constructor's
code. The resulting tuples are standard ones.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, BinaryIO

__all__ = ["ALIGNED", "NamedTuple", "PicklesFields", "mapped_pickle", "record", "write_pickle"]

if TYPE_CHECKING:  # type checkers see the standard ones
    from dataclasses import dataclass as record
    from typing import NamedTuple
else:
    import collections
    import functools
    import types

    class _NamedTuples(type):
        """Metaclass that converts classes to named tuples."""

        def __new__(mcs, name, bases, namespace):
            """Create the same class as ``typing.NamedTuple``."""
            if not bases:
                return super().__new__(mcs, name, bases, namespace)
            assert bases == (NamedTuple,)
            hints = namespace.pop("__annotations__", {})
            defaults = {field: namespace.pop(field) for field in hints if field in namespace}
            kind = _tuple_kind(name, tuple(hints), defaults, namespace.pop("__module__"))
            kind.__annotations__ = kind.__new__.__annotations__ = hints
            for key, value in namespace.items():
                assert key in ("__doc__", "__repr__") or key not in vars(kind), key
                setattr(kind, key, value)
            return kind

    def _tuple_kind(name, fields, defaults, module):
        """Create the same class as ``collections.namedtuple``, with other names for its fields."""
        like = _standard_of(len(fields))
        body = {key: value for key, value in vars(like).items() if key not in like._fields}
        body |= {field: vars(like)[given] for field, given in zip(fields, like._fields, strict=True)}
        # The names of arguments are all that differs in the code of the constructor.
        code = like.__new__.__code__.replace(co_varnames=("_cls", *fields))
        values = tuple(defaults.values()) or None
        new = types.FunctionType(code, like.__new__.__globals__, "__new__", values)
        new.__qualname__ = f"{name}.__new__"  # in messages
        body |= {"_fields": fields, "__match_args__": fields, "_field_defaults": defaults, "__new__": new}
        body |= {"__doc__": f"{name}({', '.join(fields)})", "__module__": module, "__repr__": _repr_of_tuple}
        body |= dict.fromkeys(body.keys() & {"_replace", "__replace__"}, _replace)
        return type(name, (tuple,), body)

    @functools.cache
    def _standard_of(count):
        """Return a standard named tuple with so many fields; compiling its constructor is the slow part."""
        return collections.namedtuple("Standard", [f"field_{number}" for number in range(count)])

    def _repr_of_tuple(self):
        values = zip(self._fields, self, strict=True)
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in values)})"

    def _replace(self, /, **given):
        values = [given.pop(name, value) for name, value in zip(self._fields, self, strict=True)]
        if given:
            raise ValueError(f"Got unexpected field names: {list(given)!r}")
        return self._make(values)

    class NamedTuple(metaclass=_NamedTuples):
        """Base of named tuples, whose fields are the annotations of the class."""

    def record(*, frozen, init=True, repr=True, eq=True, kw_only=False):  # noqa: A002
        """Create the same frozen class as ``dataclasses.dataclass`` with these options."""
        assert frozen

        # Let dataclasses create the fields, and add methods that are closures instead of compiled text.
        def made(kind):
            annotations = kind.__annotations__
            # dataclasses parses string annotations three times, so replace them in the meantime.
            kind.__annotations__ = {
                name: annotation if "ClassVar" in str(annotation) else object
                for name, annotation in annotations.items()
            }
            kind = dataclasses.dataclass(kind, init=False, repr=False, eq=False, kw_only=kw_only)
            kind.__annotations__ = annotations
            # Restore the annotations.
            fields = dataclasses.fields(kind)
            for field in fields:
                field.type = annotations.get(field.name, field.type)
            # Add methods that the class does not define.
            methods = _frozen(kind, {field.name for field in fields})
            if init:
                methods |= {"__init__": _init(kind, fields), "__signature__": _Signature()}
            if repr:
                methods["__repr__"] = _repr(tuple(field.name for field in fields if field.repr))
            if eq:
                methods |= _eq(tuple(field.name for field in fields if field.compare))
            for name in methods.keys() - vars(kind).keys():
                setattr(kind, name, methods[name])
            return kind

        return made

    def _init(kind, fields):
        # Prepare everything that does not depend on the instance.
        assert all(field.init for field in fields)
        positional = tuple(field.name for field in fields if not field.kw_only)
        names = frozenset(field.name for field in fields)
        missing = dataclasses.MISSING
        required = tuple(
            field.name for field in fields if field.default is missing and field.default_factory is missing
        )
        has_more = hasattr(kind, "__post_init__")
        called = f"{kind.__qualname__}.__init__()"

        # Raise errors with the same text as the generated __init__ of dataclasses.
        def __init__(self, /, *values, **given):  # noqa: N807
            if len(values) > len(positional):
                most, given_count = len(positional) + 1, len(values) + 1
                raise TypeError(f"{called} takes {most} positional arguments but {given_count} were given")
            # Positional values follow the order of the fields.
            for name, value in zip(positional, values, strict=False):
                if name in given:
                    raise TypeError(f"{called} got multiple values for argument {name!r}")
                given[name] = value
            for name in given:
                if name not in names:
                    raise TypeError(f"{called} got an unexpected keyword argument {name!r}")
            absent = [repr(name) for name in required if name not in given]
            if absent:
                listed, s = " and ".join(absent), "s" * (len(absent) > 1)
                raise TypeError(f"{called} missing {len(absent)} required argument{s}: {listed}")
            # The class is frozen, so bypass its __setattr__.
            for field in fields:
                name = field.name
                if name in given:
                    value = given[name]
                else:
                    value = field.default if field.default is not missing else field.default_factory()
                object.__setattr__(self, name, value)
            if has_more:
                self.__post_init__()

        return __init__

    class _Signature:
        """The signature of a class, created lazily for ``help`` and ``inspect``."""

        def __get__(self, instance, kind):
            import inspect

            parameters = []
            for field in dataclasses.fields(kind):
                default = field.default
                if field.default_factory is not dataclasses.MISSING:
                    default = dataclasses._HAS_DEFAULT_FACTORY
                parameter = inspect.Parameter
                passing = parameter.KEYWORD_ONLY if field.kw_only else parameter.POSITIONAL_OR_KEYWORD
                value = parameter.empty if default is dataclasses.MISSING else default
                parameters.append(parameter(field.name, passing, default=value, annotation=field.type))
            parameters.sort(key=lambda parameter: parameter.kind)
            return inspect.Signature(parameters, return_annotation=None)

    def _repr(names):
        import reprlib

        @reprlib.recursive_repr()
        def __repr__(self):  # noqa: N807
            values = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
            return f"{type(self).__qualname__}({values})"

        return __repr__

    def _eq(names):
        def values(record):
            return tuple([getattr(record, name) for name in names])

        def __eq__(self, other):  # noqa: N807
            return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

        def __hash__(self):  # noqa: N807
            return hash(values(self))

        return {"__eq__": __eq__, "__hash__": __hash__}

    def _frozen(kind, names):
        def __setattr__(self, name, value):  # noqa: N807
            if type(self) is kind or name in names:
                raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
            super(kind, self).__setattr__(name, value)

        def __delattr__(self, name):  # noqa: N807
            if type(self) is kind or name in names:
                raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
            super(kind, self).__delattr__(name)

        return {"__setattr__": __setattr__, "__delattr__": __delattr__}


# ---------------------------------------------------------------- pickles


ALIGNED = 64
"""Alignment of arrays in bytes."""


class PicklesFields:
    """A dataclass that only pickles its fields, not cached values."""

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}  # type: ignore[arg-type]

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)


def write_pickle(value: object, file: BinaryIO) -> None:
    """Write a pickle, followed by its arrays in their memory layout."""
    import pickle

    arrays: list[pickle.PickleBuffer] = []
    pickled = pickle.dumps(value, protocol=5, buffer_callback=arrays.append)
    contents = [memoryview(pickled), *(array.raw() for array in arrays)]
    pickle.dump([content.nbytes for content in contents], file)
    for content in contents:
        file.write(bytes(-file.tell() % ALIGNED))
        file.write(content)
    file.flush()


def mapped_pickle(file: BinaryIO) -> object:
    """Load a pickle from :func:`write_pickle` of the same run, with memory-mapped arrays."""
    import mmap
    import pickle

    file.seek(0)
    sizes: list[int] = pickle.load(file)
    content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    start, parts = file.tell(), []
    for size in sizes:
        start += -start % ALIGNED
        parts.append(content[start : start + size])
        start += size
    return pickle.loads(parts[0], buffers=parts[1:])
