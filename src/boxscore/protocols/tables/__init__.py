"""Define the tables of a protocol: their fields in order, with everything about each field."""

__all__: list[str] = []
