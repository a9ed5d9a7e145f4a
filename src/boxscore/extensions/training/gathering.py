"""Gather the shares of all processes with ``torch.distributed``."""

from __future__ import annotations

from typing import Any

from boxscore.errors import MissingDependencyError


def gather_with_torch(share: Any) -> list[Any]:
    """Collect the shares of all processes with ``torch.distributed``, if it is initialized."""
    try:
        from torch import distributed
    except ImportError:
        raise MissingDependencyError("gather_with_torch needs torch: pip install torch.") from None
    if not (distributed.is_available() and distributed.is_initialized()):
        return [share]
    shares: list[Any] = [None] * distributed.get_world_size()
    distributed.all_gather_object(shares, share)
    return shares
