"""The wheel: what is in it, and that it works without the repository.

The wheel is built with hatchling directly, so that no network is needed. The last test, marked slow, installs
it with its dependencies into a new environment, as a user does.
"""

from __future__ import annotations

import email
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "datasets" / "shapes_coco"

pytest.importorskip("hatchling", reason="hatchling builds the wheel; it is in the test dependencies")


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the files that packaging reads, so that nothing is written into the repository."""
    folder = tmp_path_factory.mktemp("sources")
    for name in ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"):
        shutil.copy(ROOT / name, folder)
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "src", folder / "src", ignore=ignored)
    for name in ("tests", "qa"):
        (folder / name).mkdir()
        (folder / name / "file.py").touch()
    return folder


@pytest.fixture(scope="module")
def wheel(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=sources, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def contents(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def without_repository(**more: str) -> dict[str, str]:
    """An environment in which Python finds no source tree."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return {**kept, "PYTHONDONTWRITEBYTECODE": "1", **more}


def test_the_wheel_has_every_file_of_the_package_and_no_other(contents: list[str]) -> None:
    package = {name for name in contents if not name.split("/")[0].endswith(".dist-info")}
    source = {
        str(path.relative_to(ROOT / "src").as_posix())
        for path in (ROOT / "src" / "boxscore").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert package == source
    data = {".toml", ".typed", ".j2", ".css", ".js", ".json"}  # protocols; the report's page and schema
    assert {Path(name).suffix for name in package} <= {".py", *data}


def test_the_wheel_has_types_protocols_and_the_license(contents: list[str]) -> None:
    assert "boxscore/py.typed" in contents
    for protocol in ("coco", "voc2007", "voc2007-numpy", "voc2012", "lvis", "kitti"):
        assert any(path.endswith(f"/protocols/{protocol}.toml") for path in contents)
    assert {
        f"boxscore/extensions/data_tools/demo_samples/{name}.json" for name in ("instances", "detections")
    } <= {*contents}
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in contents)


def test_the_wheel_is_pure_python_and_states_what_it_needs(wheel: Path) -> None:
    assert wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = email.message_from_bytes(archive.read(name))
        scripts = archive.read(name.replace("METADATA", "entry_points.txt")).decode()
    assert metadata["Requires-Python"] == ">=3.10"
    assert metadata["License-Expression"] == "MIT"
    needed = [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
    names = {line.split(">")[0].split(";")[0].strip() for line in needed}
    plain = {"numpy", "pandas", "msgspec", "pycocotools", "tqdm", "jinja2", "tomli"}
    assert names == plain | {"pyyaml", "imagesize"}
    assert "boxscore = boxscore.__main__:main_program" in scripts


@pytest.mark.long
def test_the_wheel_works_without_the_repository(wheel: Path, tmp_path: Path) -> None:
    installed = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)
    shutil.copytree(SAMPLES, tmp_path / "samples")
    environment = without_repository(PYTHONPATH=str(installed))

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert Path(run("-c", "import boxscore; print(boxscore.__file__)").strip()).is_relative_to(installed)
    assert "voc2012" in run("-m", "boxscore", "protocols")
    files = ("--gt", "samples/instances.json", "--dt", "samples/detections.json")
    assert "AP      0.3399" in run("-m", "boxscore", "evaluate", *files)


@pytest.mark.long
def test_the_source_distribution_has_what_the_makefile_needs(
    sources: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("sdist")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--directory", str(folder)]
    subprocess.run(command, cwd=sources, check=True, capture_output=True)
    (built,) = folder.glob("*.tar.gz")
    shutil.unpack_archive(built, folder, filter="data")
    (unpacked,) = [path for path in folder.iterdir() if path.is_dir()]
    assert (unpacked / "src" / "boxscore" / "protocols" / "coco.toml").is_file()
    names = {path.name for path in unpacked.iterdir()}
    assert {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "tests"} <= names
    assert "qa" not in names


@pytest.mark.slow
def test_the_wheel_installs_into_a_new_environment(wheel: Path, tmp_path: Path) -> None:
    environment = without_repository()
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True, env=environment)
    programs = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin")
    installation = subprocess.run(
        [str(programs / "python"), "-m", "pip", "install", "--quiet", "--no-compile", str(wheel)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if "No matching distribution" in installation.stderr or "NewConnectionError" in installation.stderr:
        pytest.skip("no package index to install the dependencies from")
    assert installation.returncode == 0, installation.stderr
    shutil.copytree(SAMPLES, tmp_path / "samples")
    done = subprocess.run(
        [
            str(programs / "boxscore"),
            "evaluate",
            *("--gt", "samples/instances.json", "--dt", "samples/detections.json", "--verify"),
        ],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "AP      0.3399" in done.stdout
    assert "largest difference 0.0" in done.stdout
