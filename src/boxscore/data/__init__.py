"""Store ground truth and detections as tables of columns with vocabularies of images and classes."""

__all__: list[str] = []
