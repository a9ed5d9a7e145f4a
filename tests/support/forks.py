"""Forks of a process that has imported thousands of tests."""

from __future__ import annotations

import functools
import os
import threading

from boxscore._utils import processes


def only_renew_locks_that_may_be_held() -> None:
    """Leave out looking for locks where no thread holds one: each child would touch every object of all tests.

    The threads of pytest-timeout and execnet, which every test has, wait and compute nothing.
    """
    if not hasattr(os, "register_at_fork"):
        return
    seen, renew = {"others": True}, processes._renew_locks

    def look() -> None:
        own = threading.current_thread()
        others = (one for one in threading.enumerate() if one is not own)
        seen["others"] = not all(isinstance(one, threading.Timer) for one in others)

    @functools.wraps(renew)
    def renew_if_needed() -> None:
        if seen["others"]:
            renew()

    os.register_at_fork(before=look)
    processes._renew_locks = renew_if_needed
