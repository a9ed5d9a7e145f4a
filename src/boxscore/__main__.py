"""Run the command line: ``boxscore``, or ``python -m boxscore``.

This module changes process-wide settings, which a library must not do. Signals come first, before heavy
imports.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys

from boxscore._utils.memory import OUT_OF_MEMORY, is_out_of_memory, keep_freed_memory, require_room

LEAST_MEMORY = 96 << 20
"""Bytes; with less, NumPy's OpenBLAS ends the process with its own exit status."""

COLLECTED_AFTER = 100_000
"""Objects; imports allocate tens of thousands, none of them garbage."""


def main_program() -> int:
    """Run the command line, and exit immediately if no caller waits for a return.

    Python would free every object first, which takes as long as the evaluation of a small file.
    """
    status = program()
    if _is_whole_process():
        import atexit

        atexit._run_exitfuncs()
        os._exit(_flushed(status))
    return status


def _is_whole_process() -> bool:
    """Whether this program is the whole process: not called by a debugger, profiler or host."""
    names, frame = [], sys._getframe(1).f_back
    while frame is not None:
        names.append(frame.f_code.co_name)
        frame = frame.f_back
    return names in (["<module>"], ["<module>", "_run_code", "_run_module_as_main"]) and not sys.flags.inspect


def program() -> int:
    """Run the command line on ``sys.argv``; return the exit status."""
    _leave_on_signals()
    _open_closed_streams()
    if gc.isenabled() and gc.get_threshold()[0] < COLLECTED_AFTER:
        gc.set_threshold(COLLECTED_AFTER, *gc.get_threshold()[1:])
    try:
        status = _run()
    except (MemoryError, ImportError, OSError) as error:  # raised by imports; main handles its own
        if not is_out_of_memory(error):
            raise
        status = OUT_OF_MEMORY
        _write_error("boxscore: error: not enough memory to start.\n")
    return _flushed(status)


def _run() -> int:
    import io

    require_room(LEAST_MEMORY)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # no matrix products here: a faster start

    from boxscore.cli import main

    keep_freed_memory()
    os.environ.setdefault("MPLBACKEND", "Agg")  # figures are written, never shown
    if isinstance(sys.stdout, io.TextIOWrapper):  # escape names that the terminal cannot show
        sys.stdout.reconfigure(errors="backslashreplace")
    return main()


# ---------------------------------------------------------------- signals


def _leave_on_signals() -> None:
    """Exit immediately on a signal, without half-written files or running children.

    An exception is not enough: raised inside an import or a callback, it is swallowed or replaced. A signal
    that is ignored, as under nohup, stays ignored.
    """
    own = os.getpid()

    # Remove half-written files; a child process leaves that to its parent.
    def leave(number: int, _: object) -> None:
        if os.getpid() == own:  # not in a child
            files = sys.modules.get("boxscore._utils.files")
            if files is not None and hasattr(files, "end_all"):  # its import may have just begun
                files.end_all()
            if number == signal.SIGINT:
                _write_error("boxscore: interrupted\n")
        os._exit(128 + number)

    # Only replace default handlers.
    defaults = (signal.SIG_DFL, signal.default_int_handler)
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) in defaults:
            signal.signal(number, leave)


# ---------------------------------------------------------------- streams


def _open_closed_streams() -> None:
    """Redirect closed streams to the null device: otherwise the next opened file would take their place.

    For stdout it is opened for reading, so that writing a result is an error.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(
                os.devnull, os.O_RDONLY if name == "stdout" else os.O_RDWR
            )  # takes the lowest free number
        if getattr(sys, name) is None:
            stream = os.fdopen(number, "r" if name == "stdin" else "w", encoding="utf-8", closefd=False)
            setattr(sys, name, stream)


def _write_error(text: str) -> None:
    with contextlib.suppress(OSError):
        os.write(2, text.encode())


def _flushed(status: int) -> int:
    """Flush the streams while the exit status can still change; drop output that nothing can read."""
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        try:
            stream.flush()
        except OSError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
            if number == 1 and not isinstance(error, BrokenPipeError):  # readers (head, less) may exit early
                status = status or 2
    return status


if __name__ == "__main__":
    sys.exit(main_program())
