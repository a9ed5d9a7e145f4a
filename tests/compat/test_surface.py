"""Every public name and signature of the real modules is here, and the swap puts them in their place."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
import types
from typing import Any

import pycocotools.coco
import pycocotools.cocoeval
import pycocotools.mask
import pytest

import boxscore
from boxscore import compat
from boxscore.compat import pycocotools as drop_in
from support.each import each

MODULES = {
    "coco": (pycocotools.coco, drop_in.coco),
    "cocoeval": (pycocotools.cocoeval, drop_in.cocoeval),
    "mask": (pycocotools.mask, drop_in.mask),
}
NOT_INTERFACE = {"PYTHON_VERSION"}
"""Names that are left over in the reference's modules, like the modules it imports."""


def public(owner: Any) -> list[str]:
    return [
        name
        for name, value in vars(owner).items()
        if not name.startswith("__") and not isinstance(value, types.ModuleType) and name not in NOT_INTERFACE
    ]


def parameters(function: Any) -> list[tuple[str, Any, Any]]:
    return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]


FUNCTIONS = [(module, name) for module, (real, _) in MODULES.items() for name in public(real)]


@pytest.mark.parametrize(("module", "name"), FUNCTIONS)
def test_every_public_name_is_there(module: str, name: str) -> None:
    real, ours = (getattr(owner, name) for owner in MODULES[module])
    assert callable(ours) == callable(real)
    if not inspect.isclass(real) and callable(real):
        assert parameters(ours) == parameters(real)


CLASSES = [("coco", "COCO"), ("cocoeval", "COCOeval"), ("cocoeval", "Params")]


@each(
    [
        (module, name, method)
        for module, name in CLASSES
        for method, value in vars(getattr(MODULES[module][0], name)).items()
        if inspect.isfunction(value)
    ]
)
def test_every_method_has_the_same_parameters(module: str, name: str, method: str) -> None:
    real, ours = (getattr(getattr(owner, name), method) for owner in MODULES[module])
    assert parameters(ours) == parameters(real)


@pytest.mark.parametrize(("module", "name"), CLASSES)
def test_every_attribute_of_a_new_object_is_there(module: str, name: str) -> None:
    arguments = {"iouType": "bbox"} if module == "cocoeval" else {}
    real, ours = (getattr(owner, name)(**arguments) for owner in MODULES[module])
    for attribute, value in vars(real).items():
        assert type(getattr(ours, attribute)).__name__ == type(value).__name__, attribute


def test_module_like_access() -> None:
    assert boxscore.compat.pycocotools.coco.COCO is drop_in.COCO
    assert boxscore.compat.pycocotools.cocoeval.Params is drop_in.Params
    assert boxscore.compat.pycocotools.cocoeval.COCOeval is drop_in.COCOeval
    assert boxscore.compat.pycocotools.mask.iou is pycocotools.mask.iou


def test_the_swap_and_the_way_back() -> None:
    boxscore.init_as_pycocotools()
    try:
        boxscore.init_as_pycocotools()  # twice is once
        from pycocotools import mask
        from pycocotools.coco import COCO
        from pycocotools.cocoeval import COCOeval, Params

        assert (COCO, COCOeval, Params) == (drop_in.COCO, drop_in.COCOeval, drop_in.Params)
        assert mask is drop_in.mask
        assert importlib.import_module("pycocotools") is drop_in
        assert importlib.import_module("pycocotools._mask").__file__.endswith((".so", ".pyd"))
    finally:
        compat.restore_pycocotools()
    assert importlib.import_module("pycocotools.coco") is MODULES["coco"][0]
    assert importlib.import_module("pycocotools.mask") is MODULES["mask"][0]


SCRIPT = """
import sys, boxscore
assert not [name for name in sys.modules if name.startswith(("pycocotools", "matplotlib", "torch"))]
assert "boxscore.compat.pycocotools" not in sys.modules
boxscore.init_as_pycocotools()
import pycocotools.mask as mask_utils, pycocotools.cocoeval, pickle
from pycocotools.coco import COCO
assert COCO.__module__ == "boxscore.compat.pycocotools.coco"
assert pickle.loads(pickle.dumps(pycocotools.cocoeval.Params("bbox"))).maxDets == [1, 10, 100]
assert mask_utils.area(mask_utils.frPyObjects([[0, 0, 4, 0, 4, 4, 0, 4]], 8, 8)).tolist() == [16]
assert mask_utils._mask.__name__ == "pycocotools._mask"
import boxscore.extensions.masks.mask
"""


def test_the_swap_before_anything_else_is_imported() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
