"""Evaluate detections in tiles of large images, as SAHI and other tools cut them.

Conventions
-----------
- The name of a tile contains its position; :func:`locate_tiles` reads the names of SAHI, DOTA, mmrotate and
  ultralytics.
- Detections are mapped to the whole images and merged; ground truth is cut into tiles.
"""

from boxscore._utils.lazy import lazy_imports

with lazy_imports(__name__):
    from boxscore.extensions.tiles.cutting import cut_tiles as cut_tiles
    from boxscore.extensions.tiles.cutting import merge_tiles as merge_tiles
    from boxscore.extensions.tiles.cutting import shift_tiles as shift_tiles
    from boxscore.extensions.tiles.merging import Merged as Merged
    from boxscore.extensions.tiles.merging import merge_as as merge_as
    from boxscore.extensions.tiles.names import Tiles as Tiles
    from boxscore.extensions.tiles.names import locate_tiles as locate_tiles
    from boxscore.extensions.tiles.names import tile_grid as tile_grid
    from boxscore.extensions.tiles.names import tiles_of_grid as tiles_of_grid
    from boxscore.extensions.tiles.scores import TileScores as TileScores
    from boxscore.extensions.tiles.scores import tile_scores as tile_scores
