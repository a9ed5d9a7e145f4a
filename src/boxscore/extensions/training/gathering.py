"""The shares of all processes, by ``torch.distributed``."""

from __future__ import annotations

from typing import Any

from boxscore.errors import MissingDependencyError


def gather_with_torch(share: Any) -> list[Any]:
    """Collect every process's share with ``torch.distributed``; alone where it is not initialised."""
    try:
        from torch import distributed
    except ImportError:
        raise MissingDependencyError("gather_with_torch needs torch: pip install torch.") from None
    if not (distributed.is_available() and distributed.is_initialized()):
        return [share]
    shares: list[Any] = [None] * distributed.get_world_size()
    distributed.all_gather_object(shares, share)
    return shares
