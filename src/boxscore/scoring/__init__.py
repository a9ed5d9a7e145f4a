"""From matches to numbers."""

__all__: list[str] = []
