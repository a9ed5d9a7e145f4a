"""Every notebook of the documentation runs, and its cells print what the file says.

A cell is run as Jupyter runs it, without Jupyter: a line ``!command`` goes to the shell, and the value of a last
expression is shown. Texts are compared, pictures are not.

``python tests/docs/test_notebooks.py`` writes what the cells print and draw into the notebooks. Read the difference
before you commit it.
"""

from __future__ import annotations

import ast
import json
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
from test_docs_examples import ROOT, Block, Runner, prepare

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
MARK = "\x1eshown "
SHOW = f"""
import base64, io, json, subprocess

def _shell(command):
    done = subprocess.run(command, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(done.stdout, end="")

def _show(value):
    if value is None:
        return
    bundle = {{"text/plain": repr(value)}}
    if hasattr(value, "_repr_html_"):
        bundle["text/html"] = value._repr_html_()
    if PICTURES and hasattr(value, "savefig"):
        picture = io.BytesIO()
        value.savefig(picture, format="png", dpi=80, bbox_inches="tight")
        bundle["image/png"] = base64.b64encode(picture.getvalue()).decode()
    print({MARK!r} + json.dumps({{name: data for name, data in bundle.items() if data is not None}}))
"""


def cells_of(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def as_python(source: str) -> str:
    """A cell as plain Python: shell commands and the last value become calls."""
    source = re.sub(r"^!(.+)$", lambda found: f"_shell({found[1]!r})", source, flags=re.MULTILINE)
    tree = ast.parse(source)
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr) and not source.rstrip().endswith(";"):
        if isinstance(last.value, ast.Call) and getattr(last.value.func, "id", "") == "_shell":
            return source
        last.value = ast.Call(ast.Name("_show", ast.Load()), [last.value], [])
        return ast.unparse(ast.fix_missing_locations(tree))
    return source


def run(
    notebook: dict[str, Any], folder: Path, runner: Runner, *, pictures: bool
) -> list[list[dict[str, Any]]]:
    """The outputs of every code cell, as notebooks store them."""
    sources = [f"PICTURES = {pictures}\n{SHOW}", *("".join(cell["source"]) for cell in cells_of(notebook))]
    steps: list[Block] = [
        {"kind": "python", "code": as_python(source), "line": 1, "expected": None} for source in sources
    ]
    job = {"page": "notebook", "blocks": steps, "folder": str(folder), "environment": prepare(folder)}
    answers = runner.answer(job)
    for source, answer in zip(sources, answers, strict=True):
        assert "error" not in answer, f"{source}\n{answer['error']}"
    return [outputs_of(answer["output"], number) for number, answer in enumerate(answers[1:], 1)]


def outputs_of(printed: str, number: int) -> list[dict[str, Any]]:
    before, mark, shown = printed.partition(MARK)
    outputs: list[dict[str, Any]] = []
    if before:
        outputs.append({"name": "stdout", "output_type": "stream", "text": before.splitlines(True)})
    if mark:
        data = {
            name: content if name == "image/png" else content.splitlines(True)
            for name, content in sorted(json.loads(shown).items())
        }
        outputs.append(
            {"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"}
        )
    return outputs


def texts(outputs: list[dict[str, Any]]) -> list[str]:
    return ["".join(output.get("text") or output["data"]["text/plain"]) for output in outputs]


@pytest.mark.long
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebooks_run_and_print_what_they_say(path: Path, tmp_path: Path, runner: Runner) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    outputs = run(notebook, tmp_path, runner, pictures=False)
    for cell, found in zip(cells_of(notebook), outputs, strict=True):
        assert texts(found) == texts(cell["outputs"]), "".join(cell["source"])


def test_a_cell_shows_its_last_value_and_runs_commands() -> None:
    assert as_python("x = 1\nx + 1") == "x = 1\n_show(x + 1)"
    assert as_python("x + 1;") == "x + 1;"
    assert as_python("!ls a") == "_shell('ls a')"
    assert texts(outputs_of(f'hello\n{MARK}{{"text/plain": "2"}}\n', 1)) == ["hello\n", "2"]


def main() -> None:
    """Write the outputs into the notebooks."""
    runner = Runner()
    for path in NOTEBOOKS:
        notebook = json.loads(path.read_text(encoding="utf-8"))
        with tempfile.TemporaryDirectory() as folder:
            outputs = run(notebook, Path(folder), runner, pictures=True)
        for number, (cell, found) in enumerate(zip(cells_of(notebook), outputs, strict=True), 1):
            cell["outputs"], cell["execution_count"] = found, number
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    runner.close()


if __name__ == "__main__":
    main()
