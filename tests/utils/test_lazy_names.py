"""Names of a package that load when they are first used."""

from __future__ import annotations

import builtins
import importlib
import itertools
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import boxscore
from boxscore._utils.lazy import lazy_imports

NAMES = itertools.count()


@pytest.fixture
def face(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., ModuleType]:
    """Make a package of some modules, each given by its text, and a face of the text."""
    monkeypatch.syspath_prepend(tmp_path)

    def made(block: str, **modules: str) -> ModuleType:
        package = f"lazy_face_{next(NAMES)}"
        folder = tmp_path / package
        folder.mkdir()
        for name, text in modules.items():
            (folder / f"{name}.py").write_text(text)
        lines = [f"    {line}" for line in block.replace("PACKAGE", package).splitlines()]
        head = ["from boxscore._utils.lazy import lazy_imports", "with lazy_imports(__name__):"]
        (folder / "__init__.py").write_text("\n".join([*head, *lines]))
        importlib.invalidate_caches()
        return importlib.import_module(package)

    return made


def test_a_name_loads_when_it_is_first_used(face: Callable[..., ModuleType]) -> None:
    block = "from PACKAGE.decoder import Decoder as Decoder\nfrom PACKAGE.nowhere import nothing as nothing"
    package = face(block, decoder="class Decoder: pass")
    assert package.__all__ == ["Decoder", "nothing"]
    assert {"Decoder", "nothing", "__name__"} <= set(dir(package))
    assert not {"Decoder", "decoder", "nothing"} & set(vars(package))
    assert f"{package.__name__}.decoder" not in sys.modules
    assert package.Decoder is sys.modules[f"{package.__name__}.decoder"].Decoder
    assert "Decoder" in vars(package)
    with pytest.raises(ModuleNotFoundError, match="nowhere"):
        package.nothing  # noqa: B018
    with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'decodr'"):
        package.decodr  # noqa: B018


def test_modules(face: Callable[..., ModuleType]) -> None:
    package = face(
        "from PACKAGE import sax as sax\nfrom PACKAGE.dom import Node as Node", sax="", dom="Node = 1"
    )
    assert package.__all__ == ["Node", "sax"]
    assert package.sax is sys.modules[f"{package.__name__}.sax"]
    assert package.dom is sys.modules[f"{package.__name__}.dom"]  # a module that names come from is there too


@pytest.mark.parametrize("first", ["face.sweep", "import face.sweep", "from face.sweep import other"])
def test_a_module_never_shadows_the_name_that_it_gives(face: Callable[..., ModuleType], first: str) -> None:
    """The import system binds each submodule in its package, before or after the name was used."""
    package = face("from PACKAGE.sweep import sweep as sweep", sweep="def sweep(): pass\nother = 1")
    name = package.__name__
    exec(first.replace("face", name), {name: package})
    space: dict[str, object] = {}
    exec(f"from {name} import sweep", space)
    importlib.import_module(f"{name}.sweep")
    assert space["sweep"] is package.sweep is sys.modules[f"{name}.sweep"].sweep
    package.sweep = 2  # what a program sets stays
    assert package.sweep == 2


def test_capitals_come_first(face: Callable[..., ModuleType]) -> None:
    names = ", ".join(f"{name} as {name}" for name in ("b", "C", "__d__", "E_F"))
    assert face(f"from m import {names}").__all__ == ["C", "E_F", "__d__", "b"]


def test_imports_of_other_modules_run_meanwhile() -> None:
    """While one thread records a face's imports another imports as ever."""
    import_ = builtins.__import__
    module = ModuleType("lazy_face")
    sys.modules["lazy_face"] = module
    try:
        with lazy_imports("lazy_face"):
            found: list[ModuleType] = []
            thread = threading.Thread(target=lambda: found.append(__import__("json.decoder")))
            thread.start()
            thread.join()
        assert found == [sys.modules["json"]]
    finally:
        del sys.modules["lazy_face"]
    assert builtins.__import__ is import_


def test_what_loads_says_whose_it_is() -> None:
    assert boxscore.evaluate.__module__ == boxscore.Evaluation.__module__ == "boxscore"
    assert boxscore.diagnostics.tie_bounds.__module__ == "boxscore.extensions.diagnostics.ties"


def in_new_process(code: str) -> list[int]:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return [int(number) for number in done.stdout.split()]


def test_what_an_import_makes_is_old_to_the_collector() -> None:
    """Its next passes look at what is young, and would visit tens of thousands of objects that last."""
    frozen, young, old = in_new_process(
        "import gc; print(gc.get_freeze_count()); import boxscore; boxscore.evaluate; "
        "print(len(gc.get_objects(0)), len(gc.get_objects(2)))"
    )
    if frozen:
        pytest.skip("this Python freezes objects of its own, which are left alone")
    assert young < 2_000
    assert old > 20_000


def test_what_a_program_has_frozen_stays_so() -> None:
    frozen, later = in_new_process(
        "import gc, boxscore; gc.freeze(); print(gc.get_freeze_count()); boxscore.evaluate; print(gc.get_freeze_count())"
    )
    assert 0 < later <= frozen  # what was frozen may be freed
    assert later > 0.9 * frozen
