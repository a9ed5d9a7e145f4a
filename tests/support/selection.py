"""Which files of tests ``make test`` runs: those of the core, and of each extension what has changed since main.

A file that no extension claims belongs to the core, so that a new one always runs. CI runs all of them.
"""

from __future__ import annotations

import ast
import subprocess
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]


class Extension(NamedTuple):
    """What an extension claims outside of its folder in tests/extensions."""

    tests: str = ""
    """Patterns of files of tests, below tests or qa; ``{a,b}`` is either."""
    sources: str = ""
    """Places outside of src/boxscore/extensions: all its tests run if a file below has changed."""


EXTENSIONS = {
    "formats": Extension("data/test_image_names"),
    "large": Extension(
        "formats/test_{parquet_dictionaries,json_pieces} data/test_statistics_in_parts"
        " suppression/test_nms_{in_parts,large} cli/test_{in_parts,the_host}",
        "src/boxscore/distributed.py",
    ),
    "diagnostics": Extension(sources="src/boxscore/diagnostics.py"),
    "validation": Extension(sources="src/boxscore/validation.py"),
    "pages": Extension("cli/test_view", "src/boxscore/reports"),
    "suite": Extension(sources="src/boxscore/suite.py"),
    "training": Extension(sources="src/boxscore/evaluator.py"),
    "compat": Extension("compat/test_[!v]*", "src/boxscore/compat"),
    "label maps": Extension(sources="src/boxscore/label_maps.py"),
    "integrations": Extension("integrations/*", "src/boxscore/integrations"),
    "docs": Extension("docs/*", "docs README.md CONTRIBUTING.md CHANGELOG.md"),
    "packaging": Extension("packaging/* typing/*", "pyproject.toml Makefile"),
    "faults of the machine": Extension("faults/* limits/*"),
    "qa": Extension("attack/* fuzz/* mutation/* tools/* real/*"),
}
"""What is not of the core, besides the folders of tests/extensions, each of which is an extension."""


class Selection(NamedTuple):
    """Files of tests that run, those that do not by extension, and what was compared with."""

    base: str
    selected: frozenset[Path]
    changed: dict[str, int]
    """How many files of each extension run since something has changed."""
    left: dict[str, int]

    def header(self) -> str:
        """Say what is run."""
        return f"tests of the core, and of what changed since {self.base}: {_counted(self.changed) or 'nothing else'}"

    def summary(self) -> str:
        """Say what is not run."""
        total = sum(self.left.values())
        return f"left to CI: {total} files of unchanged extensions ({_counted(self.left)}); make test ALL=1 runs them"


def select(root: Path = ROOT) -> Selection | None:
    """Compare with main and choose; None where there is no main to compare with, and everything has to run."""
    compared = _compared(root)
    if compared is None:
        return None
    base, changed = compared
    files = [*(root / "tests").rglob("test_*.py"), *(root / "qa").rglob("test_*.py")]
    files = [path for path in files if "node_modules" not in path.parts]
    reached = _reached(root, changed)
    selected, runs, left = set(), Counter[str](), Counter[str]()
    for path in files:
        name = extension_of(path.relative_to(root))
        if name is None or _has_changed(path.relative_to(root), name, changed) or reached(path):
            selected.add(path)
            runs[name or ""] += 1
        else:
            left[name] += 1
    assert runs[""] > 50, "hardly a test of the core was found"
    del runs[""]
    return Selection(base, frozenset(selected), dict(runs), dict(left))


def extension_of(path: Path) -> str | None:
    """Return the extension that a file of tests belongs to; None of the core."""
    if path.parts[:2] == ("tests", "extensions"):
        return path.parts[2].replace("_", " ")
    place = Path(*path.parts[1:]).with_suffix("").as_posix()
    names = (name for name, row in EXTENSIONS.items() if any(fnmatch(place, p) for p in patterns_of(row)))
    return next(names, None)


def patterns_of(extension: Extension) -> list[str]:
    """Return its patterns, without braces."""
    found = []
    for pattern in extension.tests.split():
        start, opened, rest = pattern.partition("{")
        inner, _, end = rest.partition("}")
        found += [start + word + end for word in inner.split(",")] if opened else [pattern]
    return found


def _compared(root: Path) -> tuple[str, frozenset[str]] | None:
    """Return what was compared with and the files that differ from it, committed or not."""

    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
        except OSError:
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    for base in ("origin/main", "main"):
        common = git("merge-base", "HEAD", base)
        if common:
            different = git("diff", "--name-only", "--no-renames", common)
            new = git("ls-files", "--others", "--exclude-standard")
            if different is not None and new is not None:
                return base, frozenset([*different.splitlines(), *new.splitlines()])
    return None


def _has_changed(path: Path, name: str, changed: Collection[str]) -> bool:
    """Whether the file, a helper in its folder or the source of its extension has changed."""
    further = EXTENSIONS.get(name, Extension())
    places = (*further.sources.split(), f"src/boxscore/extensions/{name.replace(' ', '_')}")
    if path.parts[0] == "qa":
        places = (*places, Path(*path.parts[:2]).as_posix())
    folders = {path.parent, path.parents[1] if path.parts[1] == "extensions" else path.parent}
    helpers = {other for other in changed if Path(other).parent in folders and "test_" not in other}
    return (
        path.as_posix() in changed
        or bool(helpers)
        or any(other == place or other.startswith(f"{place}/") for other in changed for place in places)
    )


def _reached(root: Path, changed: Iterable[str]) -> Callable[[Path], bool]:
    """Return whether a file imports a changed module, or helpers of tests that have changed."""
    modules = {
        ".".join(Path(other).with_suffix("").parts[1:]).removesuffix(".__init__")
        for other in changed
        if other.endswith(".py") and other.startswith(("src/boxscore/", "tests/support/", "tests/oracles/"))
    }
    stems = {module.rpartition(".")[2] for module in modules}

    def imports_one(path: Path) -> bool:
        text = path.read_text(encoding="utf-8")
        return any(stem in text for stem in stems) and not modules.isdisjoint(_imported(ast.parse(text)))

    return imports_one


def _imported(tree: ast.Module) -> Iterable[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())
