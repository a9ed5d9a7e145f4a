"""From tables to :class:`~boxscore.matching.greedy.greedy.Matches`."""

__all__: list[str] = []
