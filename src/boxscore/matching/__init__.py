"""Match detections to ground truths: tables in, :class:`~boxscore.matching.matches.Matches` out."""

__all__: list[str] = []
