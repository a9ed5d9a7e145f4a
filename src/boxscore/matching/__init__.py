"""From tables to :class:`~boxscore.matching.matches.Matches`."""

__all__: list[str] = []
