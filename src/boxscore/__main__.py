"""Run the command line as a program of its own: ``boxscore``, or ``python -m boxscore``.

What a program may do to its process, and a library must not, is done here, signals first: little is imported
before them.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys

from boxscore._utils.memory import OUT_OF_MEMORY, is_out_of_memory, keep_freed_memory, require_room

LEAST_MEMORY = 96 << 20
"""Bytes; NumPy's OpenBLAS ends the process, with a status of its own choice, where it gets less."""

COLLECTED_AFTER = 100_000
"""Objects; imports make tens of thousands, of which none is garbage."""


def main_program() -> int:
    """Run the command line, and end the process at once where nobody waits for it to return.

    Python would free every object first, which takes as long as the evaluation of a small file.
    """
    status = program()
    if _is_whole_process():
        import atexit

        atexit._run_exitfuncs()
        os._exit(_flushed(status))
    return status


def _is_whole_process() -> bool:
    """Whether this is all that the process does: no debugger, profiler or host called it."""
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
    except (MemoryError, ImportError, OSError) as error:  # of the imports; main has its own
        if not is_out_of_memory(error):
            raise
        status = OUT_OF_MEMORY
        _write_error("boxscore: error: not enough memory to start.\n")
    return _flushed(status)


def _run() -> int:
    import io

    require_room(LEAST_MEMORY)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # no matrices are multiplied here: a faster start

    from boxscore.cli import main

    keep_freed_memory()
    os.environ.setdefault("MPLBACKEND", "Agg")  # nothing is shown, only written
    if isinstance(sys.stdout, io.TextIOWrapper):  # a name that the terminal cannot show is escaped
        sys.stdout.reconfigure(errors="backslashreplace")
    return main()


# ---------------------------------------------------------------- signals


def _leave_on_signals() -> None:
    """End at once when told to, with nothing half-written and no child left.

    An exception would not do: raised inside an import or a callback it is swallowed or turned into another. A
    signal that is ignored, as under nohup, stays ignored.
    """
    own = os.getpid()

    # End what is half written; a child of this process leaves that to it.
    def leave(number: int, _: object) -> None:
        if os.getpid() == own:  # not in a child
            files = sys.modules.get("boxscore._utils.files")
            if files is not None and hasattr(files, "end_all"):  # its import may have just begun
                files.end_all()
            if number == signal.SIGINT:
                _write_error("boxscore: interrupted\n")
        os._exit(128 + number)

    # Take over only the signals that have their usual handler.
    defaults = (signal.SIG_DFL, signal.default_int_handler)
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) in defaults:
            signal.signal(number, leave)


# ---------------------------------------------------------------- streams


def _open_closed_streams() -> None:
    """Lead closed streams nowhere: else the next file that is opened takes their place."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
        if getattr(sys, name) is None:
            stream = os.fdopen(number, "r" if name == "stdin" else "w", encoding="utf-8", closefd=False)
            setattr(sys, name, stream)


def _write_error(text: str) -> None:
    with contextlib.suppress(OSError):
        os.write(2, text.encode())


def _flushed(status: int) -> int:
    """Empty the streams while there is a status to change; what nobody can read is dropped."""
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        try:
            stream.flush()
        except OSError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
            if number == 1 and not isinstance(error, BrokenPipeError):  # the reader (head, less) may leave
                status = status or 2
    return status


if __name__ == "__main__":
    sys.exit(main_program())
