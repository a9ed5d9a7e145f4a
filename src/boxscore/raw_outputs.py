"""Decode the output tensors of exported networks into detections."""

from boxscore._utils.lazy import lazy_imports

with lazy_imports(__name__):
    from boxscore.extensions.raw_outputs.decoding import decode_outputs as decode_outputs
    from boxscore.extensions.raw_outputs.layouts import Layout as Layout
    from boxscore.extensions.raw_outputs.layouts import Listed as Listed
    from boxscore.extensions.raw_outputs.layouts import layout_of as layout_of
    from boxscore.extensions.raw_outputs.resizing import Resizing as Resizing
    from boxscore.extensions.raw_outputs.resizing import letterbox as letterbox
