"""Run the examples of one page, top to bottom, in the folder this is started in; see test_docs_examples.py.

Reads a list of blocks as JSON from stdin and writes one output a command or Python block as JSON to stdout.
"""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
import traceback


def run_python(block: dict, page: str, namespace: dict) -> str:
    output = io.StringIO()
    code = "\n" * (block["line"] - 1) + block["code"]  # so that tracebacks name the page's line
    with contextlib.redirect_stdout(output):
        exec(compile(code, page, "exec"), namespace)
    return output.getvalue()


def run_command(command: str, status: int) -> tuple[str, int]:
    script = f"(exit {status})\n{command}"
    done = subprocess.run(
        ["bash", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return done.stdout, done.returncode


def main() -> None:
    job = json.load(sys.stdin)
    namespace: dict = {"__name__": "__main__"}
    results, status = [], 0
    for block in job["blocks"]:
        if block["kind"] == "python":
            try:
                results.append({"output": run_python(block, job["page"], namespace)})
            except Exception:
                results.append({"error": traceback.format_exc()})
        else:
            output, status = run_command(block["code"], status)
            results.append({"output": output})
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
