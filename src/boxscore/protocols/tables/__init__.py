"""Define the tables of a protocol, with their fields in order."""

__all__: list[str] = []
