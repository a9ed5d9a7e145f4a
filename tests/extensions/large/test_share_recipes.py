"""The recipes of the page for shares, run as they are printed: a loop, ssh, Slurm and Kubernetes are stubs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from boxscore.cli import main

pytest.importorskip("pyarrow", reason="needs boxscore[tables]")

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "how-to" / "large-data.md").read_text(encoding="utf-8")
SECTION = PAGE.split("## Shards on several machines: Slurm, Kubernetes, ssh")[1].split("\n## ")[0]
SCRIPTS = re.findall(r"^```bash\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)
JOBS = re.findall(r"^```yaml\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)

BOXSCORE = f"""#!/bin/sh
exec {sys.executable} -m boxscore "$@"
"""

SSH = """#!/bin/sh
host=$1; shift
echo "$host" >> hosts
exec sh -c "$*"
"""

SBATCH = """#!/bin/sh
for word in "$@"; do
    case $word in
        --array=*) range=${word#--array=} ;;
        --wait) waits=yes ;;
        --mem=*) ;;
        --wrap) ;;
        -*) echo "sbatch: unrecognized option $word" >&2; exit 1 ;;
        *) command=$word ;;
    esac
done
test "$waits" = yes || exit 1
for task in $(seq "${range%-*}" "${range#*-}"); do
    SLURM_ARRAY_TASK_ID=$task sh -c "$command" || exit 1
done
"""
"""What Slurm makes of an array: the command, once for each number of the range."""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """Write the sample as Parquet, and stubs of programs that are not here."""
    shapes = ROOT / "datasets" / "shapes_coco"
    truth = ["convert", "--gt", str(shapes / "instances.json"), "--lossy"]
    assert main([*truth, "--output", str(tmp_path / "truth.parquet")]) == 0
    found = ["--dt", str(shapes / "detections.json"), "--to", "parquet", "--partitions", "4"]
    assert main([*truth, *found, "--output", str(tmp_path / "detections")]) == 0
    (tmp_path / "bin").mkdir()
    for name, text in {"boxscore": BOXSCORE, "ssh": SSH, "sbatch": SBATCH, "pip": "#!/bin/sh\n"}.items():
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    return tmp_path


def run(script: str, here: Path, **environment: str) -> str:
    """Run a script of a shell in a folder, with the stubs first on the path."""
    path = f"{here / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=here,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT / "src"), **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def expected(here: Path) -> str:
    return run("boxscore evaluate truth.parquet detections --memory-limit 2GB", here)


def test_every_recipe_is_known() -> None:
    assert [next(word for word in ("sbatch", "ssh", "for k") if word in one) for one in SCRIPTS] == [
        "for k",
        "sbatch",
        "ssh",
    ]
    assert len(JOBS) == 1


@pytest.mark.long
@pytest.mark.parametrize("number", range(3), ids=["loop", "sbatch", "ssh"])
def test_shares_give_the_output_of_one_evaluation(number: int, here: Path) -> None:
    script = SCRIPTS[number].replace("/shared/data", str(here))  # the folder that all hosts see
    whole = expected(here)
    assert run(script, here).endswith(whole)
    if number == 2:
        assert sorted((here / "hosts").read_text().split()) == ["alpha", "beta", "delta", "gamma"]


@pytest.mark.long
def test_the_job_of_kubernetes(here: Path) -> None:
    """Its indices count from 0; each makes its share, and all of them merge."""
    job = yaml.safe_load(JOBS[0])
    spec = job["spec"]
    assert (job["apiVersion"], job["kind"], spec["completionMode"]) == ("batch/v1", "Job", "Indexed")
    assert spec["parallelism"] <= spec["completions"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    assert {one["name"] for one in container["volumeMounts"]} == {one["name"] for one in pod["volumes"]}
    assert pod["restartPolicy"] in ("Never", "OnFailure")
    assert container["command"] == ["sh", "-c"]
    (script,) = container["args"]
    shutil.copytree(here, here / "data", ignore=shutil.ignore_patterns("data"))
    for index in range(spec["completions"]):
        run(script.replace("/data/", f"{here}/data/"), here, JOB_COMPLETION_INDEX=str(index))
    assert f"/{spec['completions']} " in script
    assert run(f"boxscore merge {here}/data/part-*.npz --memory-limit 2GB", here) == expected(here)
