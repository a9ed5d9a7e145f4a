"""Crowds, streets and faces: CrowdHuman, Caltech, CityPersons, WIDER FACE, VisDrone, Cityscapes, KITTI."""
