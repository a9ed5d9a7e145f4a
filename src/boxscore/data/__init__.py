"""Hold ground truth and detections: tables of columns, their vocabularies, and how they are made."""

__all__: list[str] = []
