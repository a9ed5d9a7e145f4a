"""Data sets that are not annotated in full: LVIS and Open Images, image labels, hierarchies, groups."""
