"""Which modules are the core, which are of an extension, and which are faces of extensions."""

from __future__ import annotations

from support.imports import MODULES

EXTENSIONS = "boxscore.extensions."
PUBLIC_EXTENSIONS = ("boxscore.compat", "boxscore.integrations")
"""Extensions whose modules users import by these paths."""

CORE_OF_PUBLIC = {"boxscore.compat.verification"}
"""Verification against pycocotools belongs to the core."""

FACES = {
    "boxscore",
    "boxscore.diagnostics",
    "boxscore.distributed",
    "boxscore.epochs",
    "boxscore.evaluator",
    "boxscore.formats",
    "boxscore.label_maps",
    "boxscore.parity",
    "boxscore.raw_outputs",
    "boxscore.regions",
    "boxscore.reports",
    "boxscore.reports.plots",
    "boxscore.suite",
    "boxscore.suppression",
    "boxscore.tiles",
    "boxscore.validation",
}
"""Public import paths that list names of extensions, which load on first use."""


def extension_of(module: str) -> str:
    """Return the extension that a module belongs to; empty for the core."""
    if module.startswith(EXTENSIONS):
        return module.removeprefix(EXTENSIONS).split(".")[0]
    if module in CORE_OF_PUBLIC:
        return ""
    return next((name.split(".")[1] for name in PUBLIC_EXTENSIONS if f"{module}.".startswith(f"{name}.")), "")


CORE = sorted(
    name
    for name in MODULES
    if not extension_of(name)
    and name not in FACES
    and name not in ("boxscore.extensions", "boxscore.__main__")
)
"""Modules of the core."""
