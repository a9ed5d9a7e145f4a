"""Define protocols: the rules of an evaluation as data, and functions that load them."""

from boxscore._utils.lazy import lazy_imports

with lazy_imports(__name__):
    from boxscore.protocols.changing import changed_protocol as changed_protocol
    from boxscore.protocols.changing import without_scores as without_scores
    from boxscore.protocols.loading import IOU_TYPES as IOU_TYPES
    from boxscore.protocols.loading import load_protocol as load_protocol
    from boxscore.protocols.loading import protocol_names as protocol_names
    from boxscore.protocols.loading import protocol_of_type as protocol_of_type
    from boxscore.protocols.loading import protocol_toml as protocol_toml
    from boxscore.protocols.loading import read_toml as read_toml
    from boxscore.protocols.protocol import Protocol as Protocol
