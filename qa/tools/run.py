"""Run every tool that a protocol imitates, each at its named version, and compare its numbers with ours.

    python qa/tools/run.py
    python qa/tools/run.py --tools globox tide --python /path/to/python
    python qa/tools/run.py --page docs/contributing/tools.md

Tools are fetched into a folder that is removed afterwards (``--folder`` keeps it): packages by pip, single files from
a clone of their repository (``--sources`` names a folder with ``OWNER/NAME`` clones). Each runs in a child process with
an interpreter of its own (``--python`` names one that has what they need, else one is set up). A tool that cannot be
had gives one line with the reason. A difference is looked at twice: on the data as it is, and on the same data with
equal scores parted, where no tool's unstable sort can decide. The status is 1 if one of the latter is above what the
tool's own arithmetic (single precision, say) explains.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import boxscore  # noqa: E402
from tools.data_sets import DATA_SETS  # noqa: E402

NUMPY = ("numpy",)
ULTRALYTICS = (
    *("numpy", "matplotlib", "opencv-python-headless", "pandas", "pillow", "psutil", "py-cpuinfo", "pyyaml"),
    *("requests", "scipy", "seaborn", "torch", "torchvision", "tqdm"),
)
TIME_LIMIT = 1200
LAST_BITS = 1e-12

Numbers = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Tool:
    """One tool at one version.

    Attributes
    ----------
    name, version : str
    adapter : str
        The function of ``adapters.py`` that runs it.
    protocols : mapping of str to str
        The protocol that each of its numbers is compared with; ``""`` stands for every number.
    package : str, optional
        What pip installs.
    repository, paths : str, tuple of str
        Or the repository whose files are taken, at ``version``.
    needs : tuple of str
        What else pip installs.
    allowed : float
        What its own arithmetic may differ by, without equal scores.
    rounds_scores : bool
        Whether it makes ties itself, so that only a stable sort parts them.
    skipped : tuple of str
        Data sets that take it too long.
    """

    name: str
    version: str
    adapter: str
    protocols: Mapping[str, str]
    package: str = ""
    repository: str = ""
    paths: tuple[str, ...] = ()
    needs: tuple[str, ...] = NUMPY
    allowed: float = LAST_BITS
    rounds_scores: bool = False
    skipped: tuple[str, ...] = ()

    @property
    def form(self) -> str:
        """Which data sets it takes."""
        return "voc" if "mAP" in self.protocols else "coco"

    @property
    def label(self) -> str:
        """Name and version, a commit in seven digits."""
        return f"{self.name} {self.version[:7] if self.repository else self.version}"


def voc(name: str) -> dict[str, str]:
    return {"mAP 11": f"{name}-voc2007", "mAP": f"{name}-voc2012"}


TOOLS = (
    Tool(
        "py-faster-rcnn",
        "781a917b378dbfdedb45b6a56189a31982da1b43",
        "py_faster_rcnn",
        voc("py-faster-rcnn"),
        repository="rbgirshick/py-faster-rcnn",
        paths=("lib/datasets/voc_eval.py",),
    ),
    Tool(
        "detectron2",
        "02b5c4e295e990042a714712c21dc79b731e8833",
        "detectron2",
        voc("detectron2"),
        repository="facebookresearch/detectron2",
        paths=("detectron2/evaluation/pascal_voc_evaluation.py",),
        allowed=5e-6,  # a score in single precision is rounded to the other side: 50 of 98,023
        rounds_scores=True,
    ),
    Tool(
        "Cartucho/mAP",
        "3605865a350859e60c7b711838d09c4e0012c774",
        "cartucho",
        {"mAP": "cartucho"},
        repository="Cartucho/mAP",
        paths=("main.py",),
    ),
    Tool(
        "chainercv",
        "7159616642e0be7c5b3ef380b848e16b7e99355b",
        "chainercv",
        voc("chainercv"),
        repository="chainer/chainercv",
        paths=("chainercv/evaluations/eval_detection_voc.py", "chainercv/utils/bbox/bbox_iou.py"),
        needs=("numpy", "six"),
    ),
    Tool(
        "Padilla, VOC",
        "2efe66d2c4b89e4fcc64e490d4caced2096f03aa",
        "padilla_voc",
        {"mAP 11": "padilla-voc2007", "mAP": "padilla-voc"},
        repository="rafaelpadilla/review_object_detection_metrics",
        paths=(
            "src/__init__.py",
            "src/bounding_box.py",
            "src/utils/__init__.py",
            "src/utils/enumerators.py",
            "src/utils/general_utils.py",
            "src/evaluators/pascal_voc_evaluator.py",
        ),
        needs=("numpy", "pandas"),
        skipped=("voc2007",),  # an hour
    ),
    Tool(
        "Padilla, COCO",
        "2efe66d2c4b89e4fcc64e490d4caced2096f03aa",
        "padilla_coco",
        {"": "padilla-coco"},
        repository="rafaelpadilla/review_object_detection_metrics",
        paths=(
            "src/__init__.py",
            "src/bounding_box.py",
            "src/utils/__init__.py",
            "src/utils/enumerators.py",
            "src/utils/general_utils.py",
            "src/evaluators/coco_evaluator.py",
        ),
    ),
    Tool(
        "FiftyOne",
        "1.22.1",
        "fiftyone",
        {"": "fiftyone"},
        package="fiftyone",
        needs=("numpy", "rtree", "scipy"),
    ),
    Tool(
        "globox",
        "2.9.0",
        "globox",
        {"": "globox"},
        package="globox",
        needs=("numpy", "pillow", "rich", "tqdm"),
    ),
    Tool(
        "TIDE (tidecv)",
        "1.0.1",
        "tide",
        {"": "tide"},
        package="tidecv",
        needs=(
            "numpy",
            "appdirs",
            "matplotlib",
            "opencv-python-headless",
            "pandas",
            "pycocotools",
            "seaborn",
            "setuptools",
        ),
    ),
    Tool(
        "torchmetrics",
        "1.9.0",
        "torchmetrics",
        {"": "torchmetrics"},
        package="torchmetrics",
        needs=("numpy", "lightning-utilities", "packaging", "pycocotools", "torch", "torchvision"),
        allowed=2e-7,
    ),
    Tool(
        "supervision",
        "0.31.2",
        "supervision",
        {"": "supervision"},
        package="supervision",
        needs=(
            "numpy",
            "av",
            "defusedxml",
            "matplotlib",
            "opencv-python-headless",
            "pandas",
            "pillow",
            "pydeprecate",
            "pyyaml",
            "requests",
            "scipy",
            "tqdm",
        ),
        allowed=1e-8,
    ),
    *(
        Tool("ultralytics", version, "ultralytics", {"": name}, package="ultralytics", needs=ULTRALYTICS)
        for version, name in {
            "8.3.0": "ultralytics-old",
            "8.4.100": "ultralytics-april2026",
            "8.4.190": "ultralytics",
        }.items()
    ),
    Tool(
        "mean-average-precision",
        "2024.1.5.0",
        "bes_dev",
        {"": "bes-dev"},
        package="mean-average-precision",
        needs=("numpy", "multiprocess", "pandas"),
        allowed=2e-7,
    ),
)


class NotHereError(Exception):
    """A tool cannot be had or does not run, with the reason."""


def command(*arguments: str | Path, **options: Any) -> str:
    """Run a command; what it printed, or :class:`NotHereError` with the last line of its complaint."""
    try:
        done = subprocess.run(
            [str(argument) for argument in arguments],
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT,
            check=False,
            **options,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotHereError(str(error)) from None
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise NotHereError(lines[-1].strip() if lines else f"{arguments[0]}: status {done.returncode}")
    return done.stdout


@dataclasses.dataclass
class Workshop:
    """Where tools lie, and the interpreter that runs them."""

    folder: Path
    python: str
    sources: Path | None

    own: bool = False

    @classmethod
    def set_up(cls, folder: Path, python: str | None, sources: Path | None) -> Workshop:
        """Take an interpreter, or make one of its own."""
        if python is not None:
            return cls(folder, python, sources)
        own = folder / "python" / "bin" / "python"
        if not own.exists():
            command(sys.executable, "-m", "venv", folder / "python")
        return cls(folder, str(own), sources, own=True)

    def files(self, tool: Tool) -> Path:
        """Return the folder of a tool's files; fetches them first."""
        place = self.folder / f"{tool.name} {tool.version}".replace("/", "-").replace(" ", "_")
        if place.exists():
            return place
        part = place.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        if self.own:
            index = ("--extra-index-url", "https://download.pytorch.org/whl/cpu")
            extra = index if "torch" in tool.needs else ()
            command(self.python, "-m", "pip", "install", "--quiet", *extra, *tool.needs)
        if tool.package:
            wanted = f"{tool.package}=={tool.version}"
            pip = (self.python, "-m", "pip", "install", "--quiet", "--no-deps", "--target", part, wanted)
            command(*pip)
        else:
            clone = self._clone(tool.repository)
            for path in tool.paths:
                text = command("git", "-C", clone, "show", f"{tool.version}:{path}")
                (part / path).parent.mkdir(parents=True, exist_ok=True)
                (part / path).write_text(text, encoding="utf-8")
        part.rename(place)
        return place

    def _clone(self, repository: str) -> Path:
        if self.sources is not None:
            return self.sources / repository
        clone = self.folder / "clones" / repository
        if not clone.exists():
            address = f"https://github.com/{repository}"
            command("git", "clone", "--quiet", "--bare", "--filter=blob:none", address, clone)
        return clone

    def run(self, tool: Tool, data: Path, *options: str) -> Numbers:
        """Return what the tool makes of a data set."""
        files = self.files(tool)
        with tempfile.TemporaryDirectory(dir=self.folder) as own:
            copied = Path(own) / "data"
            shutil.copytree(data, copied)  # tools write beside what they read
            environment = {**os.environ, "PYTHONPATH": str(files), "MPLBACKEND": "Agg"}
            arguments = (HERE / "adapters.py", tool.adapter, copied, files, Path(own) / "numbers", *options)
            command(self.python, *arguments, env=environment)
            numbers: Numbers = json.loads((Path(own) / "numbers").read_text(encoding="utf-8"))
        return numbers


def evaluation(data: Path, protocol: str) -> boxscore.Evaluation:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", boxscore.BoxscoreWarning)
        if (data / "instances.json").exists():
            truth = boxscore.load_ground_truth(data / "instances.json")
            found = boxscore.load_detections(data / "results.json", truth)
        else:
            truth = boxscore.load_ground_truth(data / "VOC2007", image_set="test")
            found = boxscore.load_detections(data / "results", truth)
        return boxscore.evaluate(truth, found, protocol=protocol)


@dataclasses.dataclass(frozen=True)
class Row:
    """One number of a tool on a data set, and ours; NaN where it was not asked for."""

    tool: Tool
    data_set: str
    metric: str
    theirs: float
    ours: float
    parted: float
    failed: tuple[str, ...]

    @property
    def difference(self) -> float:
        return self.ours - self.theirs


def pairs(tool: Tool, data: Path, numbers: Numbers) -> dict[str, tuple[float, float, float]]:
    """Each number, theirs and ours, and the largest difference of a class or of the number itself.

    Means are over the classes that both have.
    """
    compared = {}
    for key, protocol in tool.protocols.items():
        result = evaluation(data, protocol)
        for metric in [key] if key else ["AP", "AP50", "AP75"]:
            if metric not in numbers:
                continue
            name = "mAP" if key else metric
            classes = numbers.get("per_class", {}).get(metric, {})
            mine = result.per_class.set_index("class")[result.protocol.class_keys[name]]
            both = {
                label: (value, float(mine[label]))
                for label, value in classes.items()
                if not math.isnan(value) and not math.isnan(mine[label])
            }
            theirs, ours = float(numbers[metric]), float(result.metrics[name])
            if tool.form == "voc":
                theirs, ours = (sum(value) / len(both) for value in zip(*both.values(), strict=True))
            gaps = [abs(one - other) for one, other in [*both.values(), (theirs, ours)]]
            compared[metric] = theirs, ours, max(gaps)
    return compared


def compare(workshop: Workshop, tool: Tool, data_sets: Mapping[str, Path]) -> Iterable[Row]:
    for name, data in data_sets.items():
        numbers = workshop.run(tool, data)
        as_it_is = pairs(tool, data, numbers)
        parted = {metric: gap for metric, (_, _, gap) in as_it_is.items()}
        if max(parted.values()) > tool.allowed:
            other = data if tool.rounds_scores else data.with_name(f"{data.name}.parted")
            again = pairs(tool, other, workshop.run(tool, other, "--stable"))
            parted = {metric: gap for metric, (_, _, gap) in again.items()}
        for metric, (theirs, ours, _) in as_it_is.items():
            yield Row(tool, name, metric, theirs, ours, parted[metric], tuple(numbers.get("failed", ())))


def table(rows: Iterable[Row]) -> str:
    """Write rows as a Markdown table."""
    lines = [
        "| tool | protocol | data set | number | theirs | ours | difference | ties parted |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        if row.metric == "AP75":  # compared like the others
            continue
        protocol = row.tool.protocols.get(row.metric) or row.tool.protocols[""]
        cells = [
            row.tool.label,
            f"`{protocol}`",
            row.data_set,
            {"mAP 11": "mAP, 11 points", "mAP": "mAP, area"}.get(row.metric, row.metric),
            f"{row.theirs:.9f}",
            f"{row.ours:.9f}",
            _gap(abs(row.difference)),
            _gap(row.parted),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _gap(value: float) -> str:
    return "0" if value < LAST_BITS else f"{value:.0e}".replace("e-0", "e-")


START, END = "<!-- tools: qa/tools/run.py writes this table -->", "<!-- end of the table -->"


def write_page(page: Path, text: str) -> None:
    """Put the table between the two marks of a page."""
    before, rest = page.read_text(encoding="utf-8").split(START)
    page.write_text(f"{before}{START}\n\n{text}\n\n{END}{rest.split(END)[1]}", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--tools", nargs="+", metavar="NAME", help="only those whose name or protocol says so"
    )
    parser.add_argument("--data-sets", nargs="+", choices=DATA_SETS, default=list(DATA_SETS))
    parser.add_argument("--python", help="interpreter that has what the tools need")
    parser.add_argument("--sources", type=Path, help="folder of OWNER/NAME clones, instead of GitHub")
    parser.add_argument("--folder", type=Path, help="where tools are fetched to and kept")
    parser.add_argument("--page", type=Path, help="page whose table is rewritten")
    options = parser.parse_args()
    wanted = [
        tool
        for tool in TOOLS
        if not options.tools
        or any(word in (tool.name, tool.label, *tool.protocols.values()) for word in options.tools)
    ]
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.folder or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        workshop = Workshop.set_up(folder, options.python, options.sources)
        written: dict[str, Path] = {}
        for name in options.data_sets:
            try:
                data = DATA_SETS[name][1]()
            except FileNotFoundError as error:
                print(f"{name} is not here: {error.filename}")
                continue
            written[name] = Path(temporary) / "data" / name
            data.write(written[name])
            data.with_parted_ties().write(written[name].with_name(f"{name}.parted"))
        for tool in wanted:
            chosen = {
                name: path
                for name, path in written.items()
                if DATA_SETS[name][0] == tool.form and name not in tool.skipped
            }
            try:
                for row in compare(workshop, tool, chosen):
                    rows.append(row)
                    note = f"  no number for {', '.join(row.failed)}" if row.failed else ""
                    print(
                        f"{tool.label:36} {row.data_set:12} {row.metric:7} {row.theirs:.9f} {row.ours:.9f} "
                        f"{_gap(abs(row.difference)):>6} {_gap(row.parted):>6}{note}",
                        flush=True,
                    )
            except NotHereError as error:
                print(f"{tool.label:36} is not compared: {error}", flush=True)
    if options.page is not None:
        write_page(options.page, table(rows))
    wrong = [row for row in rows if row.parted > row.tool.allowed]
    for row in wrong:
        print(f"differs: {row.tool.label} on {row.data_set}, {row.metric}, by {row.parted}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
