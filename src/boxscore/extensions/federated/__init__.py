"""Support partially annotated data sets: LVIS and Open Images, image labels, hierarchies, groups."""
