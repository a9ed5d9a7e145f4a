"""The tables of a protocol, one file each: its fields in order, with all that is said of them."""

__all__: list[str] = []
