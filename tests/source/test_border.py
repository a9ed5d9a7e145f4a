"""The core imports no extension, and an extension imports another only where the table below says so."""

from __future__ import annotations

import ast
import re

from support.border import CORE, FACES, extension_of
from support.imports import MODULES, imported, imports_of
from support.sources import nodes_of, tree_of

SOCKETS = {
    "boxscore._utils.given_paths",
    "boxscore.cli.commands",
    "boxscore.cli.sockets",
    "boxscore.data.hints",
    "boxscore.data.schema",
    "boxscore.data.tables",
    "boxscore.evaluation.result",
    "boxscore.formats.reading",
    "boxscore.formats.registry",
    "boxscore.protocols.summary",
    *(name for name in CORE if name.startswith("boxscore.protocols.tables.")),
    "boxscore.similarity.registry",
    "boxscore.suppression.suppressing",
}
"""Modules of the core whose tables name extensions in texts; nothing is imported before it is asked for."""

MAY_IMPORT: dict[str, set[str]] = {
    "crowds": {"diagnostics", "formats", "masks"},
    "data_tools": {"crowds", "diagnostics", "federated", "hints", "large", "masks", "training", "validation"},
    "decisions": {"diagnostics", "large", "pages", "shell", "validation", "weights"},
    "diagnostics": {"federated", "large", "pages", "scoreless", "shell", "validation", "weights"},
    "epochs": {"decisions", "diagnostics", "pages", "shell", "weights"},
    "federated": {"masks"},
    "formats": {"data_tools", "federated", "masks", "scoreless"},
    "fusion": {"formats", "large", "masks", "oriented"},
    "keypoints": {"diagnostics", "large"},
    "label_maps": {"masks", "pages", "shell", "training", "weights"},
    "labels": {"diagnostics", "federated", "formats", "scoreless", "shell", "validation", "weights"},
    "large": {
        "crowds",
        "data_tools",
        "federated",
        "formats",
        "fusion",
        "hints",
        "masks",
        "scoreless",
        "stores",
        "weights",
    },
    "oriented": {"tiles"},
    "pages": {
        "crowds",
        "decisions",
        "diagnostics",
        "epochs",
        "large",
        "masks",
        "oriented",
        "shell",
        "validation",
        "weights",
    },
    "parity": {"labels"},
    "raw_outputs": {"data_tools", "hints"},
    "regions": {"masks", "oriented"},
    "scoreless": {"federated", "formats"},
    "suite": {"decisions", "diagnostics", "hints", "pages", "shell", "weights"},
    "tiles": {"data_tools"},
    "training": {"data_tools", "federated", "hints", "large", "masks", "weights"},
    "validation": {"diagnostics", "federated", "hints", "large", "stores"},
}
"""Extensions that build on others."""


def test_there_is_a_core_and_something_beyond() -> None:
    assert len(CORE) > 80
    assert len({extension_of(name) for name in MODULES} - {""}) >= 10


def test_the_core_imports_no_extension() -> None:
    """Neither at the top of a module, nor in a function, nor for types."""
    arrows = []
    for module in CORE:
        nodes = [node for node in nodes_of(MODULES[module]) if not isinstance(node, ast.Constant)]
        targets = set(imported(nodes)).intersection(MODULES)
        arrows += [f"{module} -> {name}" for name in targets if extension_of(name)]
    assert sorted(arrows) == []


def test_only_sockets_name_an_extension() -> None:
    named = {
        module
        for module in CORE
        for node in nodes_of(MODULES[module])
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        # a reference in a docstring, :func:`~boxscore.extensions...`, names one as well
        if re.search(r"boxscore[./](extensions|compat|integrations)\b(?!\.verification)", node.value)
    }
    assert named - SOCKETS == set()
    assert {module for module in SOCKETS if not module.startswith("boxscore.protocols.")} <= named


def test_a_face_holds_nothing_but_names() -> None:
    for module in FACES - {"boxscore.formats"}:  # where readers of the core have their functions
        kinds = {type(node) for node in tree_of(MODULES[module]).body}
        assert kinds <= {ast.Expr, ast.Import, ast.ImportFrom, ast.With, ast.Assign}, module


def test_an_extension_imports_those_that_it_builds_on() -> None:
    arrows: dict[str, set[str]] = {}
    for module in MODULES:
        own = extension_of(module)
        if not own or own in ("compat", "integrations"):
            continue
        others = {extension_of(name) for name in imports_of(module) if name not in FACES} - {"", own}
        if others:
            arrows.setdefault(own, set()).update(others)
    assert arrows == MAY_IMPORT
