"""What a terminal shows: its width, its colors, silence; and that a pipe and a file get the same each time."""

from __future__ import annotations

import fcntl
import json
import os
import re
import struct
import sys
import termios
from pathlib import Path

import pytest

from boxscore._utils.text import display_width, text_table
from boxscore.cli import COMMANDS, main
from boxscore.cli.streams import Settings, say, signature_lines, terminal_width, using
from support.running import Run
from support.samples import DT, GT

COCO = ["evaluate", GT, DT]
SIGNATURE = re.compile(r"^boxscore\|.*\n", re.MULTILINE)
CALLS = {
    "evaluate": [GT, DT, "--per-class"],
    "slices": [GT, DT, "--by", "size"],
    "compare": ["--gt", GT, "--dt", DT, DT, "--resamples", "3"],
    "bootstrap": [GT, DT, "--per-class"],
    "explain": [GT, DT, "--from", "tide"],
    "check": [GT, DT, "--min", "AP=.5"],
    "confusion": [GT, DT, "--top", "9"],
    "stats": [GT],
    "protocols": [],
    "formats": [],
    "agreement": ["--gt", GT, GT],
    "fix": [GT, DT, "--top", "3", "--vetted", "tasks.json", "--output", "fixed.json"],
    "keypoint-errors": ["people.json", "found.json", "--protocol", "coco-keypoints"],
    "suite": ["suite.toml", "--resamples", "3"],
}
PRINTING = sorted(
    {*CALLS, *COMMANDS}
    - {
        "history",
        "merge",
        "convert",
        "nms",
        "fuse",
        "draw",
        "plot",
        "report",
        "run",
        "demo",
        "diff",
        "epochs",
        "decode",
        "panoptic",
        "semantic",
        "tiles",
    }
    - {"view"}
)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    """Write the files of ``CALLS`` that are no samples, where the commands run."""
    monkeypatch.chdir(tmp_path)
    run("suspects", GT, DT, "--top", "3", "--write", "tasks.json")
    person = {"image_id": 1, "category_id": 1, "keypoints": [5.0, 5.0, 2.0] * 17, "bbox": [0, 0, 20, 10]}
    truth = {
        "images": [{"id": 1, "width": 30, "height": 20}],
        "categories": [{"id": 1, "name": "person"}],
        "annotations": [{**person, "id": 1, "area": 200.0, "iscrowd": 0, "num_keypoints": 17}],
    }
    Path("people.json").write_text(json.dumps(truth))
    Path("found.json").write_text(json.dumps([{**person, "score": 0.9}]))
    suite = f"[models]\nmodel = {DT!r}\n[sets.shapes]\nground_truth = {GT!r}\n"
    Path("suite.toml").write_text(suite)


def printed(run: Run, *arguments: str) -> str:
    return run(*arguments, status=(0, 1)).out


# ---------------------------------------------------------------- width


@pytest.mark.parametrize("columns", [40, 60, 80, 160])
def test_a_table_is_as_wide_as_it_may_be(columns: int, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    output = SIGNATURE.sub("", printed(run, *COCO, "--per-class"))
    assert max(map(len, output.splitlines())) <= columns


@pytest.mark.long
@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("command", PRINTING)
def test_every_command_fits_80_columns(command: str, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    output = printed(run, command, *CALLS.get(command, [GT, DT]))
    lines = [line for line in SIGNATURE.sub("", output).splitlines() if len(line) > 80]
    assert lines == []


@pytest.mark.long
@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("command", PRINTING)
def test_a_pipe_loses_no_column(command: str, run: Run) -> None:
    call = [command, *CALLS.get(command, [GT, DT])]
    output = printed(run, *call)
    assert "Left out" not in output
    heads = [line for line in printed(run, *call, "--wide").splitlines() if "  " in line]
    assert [line for line in output.splitlines() if "  " in line] == heads or command == "validate"


def test_a_file_loses_no_column(tmp_path: Path, run: Run) -> None:
    assert run(*COCO, "--per-class", "--quiet", "--output", tmp_path / "result.txt").out == ""
    head = next(
        line for line in (tmp_path / "result.txt").read_text().splitlines() if line.startswith("class ")
    )
    assert len(head.split()) == 23


def test_what_is_left_out_is_said_and_wide_shows_it(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    narrow, wide = printed(run, *COCO, "--per-class"), printed(run, *COCO, "--per-class", "--wide")
    assert "Left out" not in wide
    match = re.search(
        r"Columns hidden to fit 80 characters \(--wide shows them\): (.*)\n\n", narrow, re.DOTALL
    )
    assert match
    names = re.split(r",\s+", match[1])
    assert names[:4] == ["ignored", "detections", "true_positives", "APl"]
    assert len(names) == 10
    head = next(line for line in wide.splitlines() if line.startswith("class ")).split()
    shown = narrow[: match.start()].splitlines()
    kept = next(line.split() for line in shown if line.startswith("circle"))
    whole = next(line.split() for line in wide.splitlines() if line.startswith("circle"))
    names += ["TP", "FP", "FN"]  # only on request
    assert kept == [cell for name, cell in zip(head, whole, strict=True) if name not in names]


def test_columns_leave_in_the_stated_order() -> None:
    columns = {name: [1.0] for name in ("first", "b", "c", "d", "e")}
    columns["first"] = ["x" * 30]  # type: ignore[list-item]

    def shown(width: int) -> str:
        return (
            text_table(columns, width=width, first_out=["d", ("b", "c")]).split("\n")[0].split(maxsplit=1)[1]
        )

    assert shown(70).split() == ["b", "c", "d", "e"]
    assert shown(60).split() == ["b", "c", "e"]
    assert shown(50).split() == ["e"]


def test_forms_for_programs_have_no_width(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    for form in ("json", "csv", "markdown", "latex"):
        call = [*COCO, "--per-class", "--output", form]
        usual = printed(run, *call)
        with monkeypatch.context() as narrow:
            narrow.setenv("COLUMNS", "40")
            narrow.setenv("FORCE_COLOR", "1")
            assert printed(run, *call) == usual


@pytest.mark.parametrize("width", [14, 20, 30])
def test_wide_and_combining_characters_line_up(width: int) -> None:
    names = ["猫犬鳥", "e\u0301te\u0301", "cat", "ネコ科", "한국어 이름"]
    lines = text_table({"class": names, "AP": [0.1, 0.2, 0.3, 0.4, 0.5]}, width=width).splitlines()
    if len(lines) > 6:  # a name was broken
        return
    assert len({display_width(line) for line in lines[1:]}) == 1
    assert [line.rsplit("  ", 1)[0].rstrip() for line in lines[1:]] == names


def test_widths_of_characters() -> None:
    assert [display_width(text) for text in ("cat", "猫", "e\u0301", "ﾈｺ", "ネコ", "\u200d", "")] == [
        3,
        2,
        1,
        2,
        4,
        0,
        0,
    ]


def test_texts_in_tables_lose_nothing() -> None:
    text = "crowd regions: delete -> iof, and then some more words than there is room for"
    lines = text_table({"change": [text], "delta": [1.0]}, width=40, longest=200).splitlines()
    assert all(len(line) <= 40 for line in lines)
    assert " ".join(" ".join(line.replace("1.0000", "").split()) for line in lines[1:]) == text


# ---------------------------------------------------------------- the signature


class Terminal:
    """A terminal of some columns in place of stdout."""

    def __init__(self, columns: int) -> None:
        self.main, self.side = os.openpty()
        fcntl.ioctl(self.side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.stream = os.fdopen(self.side, "w", encoding="utf-8")

    def close(self) -> None:
        self.stream.close()
        os.close(self.main)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    made: list[Terminal] = []

    def make(columns: int) -> Terminal:
        made.append(Terminal(columns))
        monkeypatch.setattr(sys, "stdout", made[-1].stream)
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_the_signature_is_one_line_but_on_a_terminal(terminal) -> None:  # type: ignore[no-untyped-def]
    signature = "boxscore|coco|iou:0.50:0.95/10|ap:101|maxdet:1,10,100|area:coco|crowd:iof|offset:0|v:0.1.0"
    assert signature_lines(signature) == signature
    terminal(60)
    assert terminal_width() == 60
    lines = signature_lines(signature).split("\n")
    assert len(lines) == 2
    assert "".join(lines) == signature
    assert all(len(line) <= 60 for line in lines)
    assert lines[0].endswith("|")
    with using(Settings(wide=True)):
        assert signature_lines(signature) == signature
    terminal(200)
    assert signature_lines(signature) == signature


def test_messages_are_one_line_but_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    path = "/a/path/that/is/longer/than/the/terminal/is/wide/and/stays/whole/instances.json"
    message = f"error: a message of many words that does not fit into a line of sixty columns, of {path}."
    one = Terminal(60)
    monkeypatch.setattr(sys, "stderr", one.stream)
    monkeypatch.setenv("NO_COLOR", "1")
    say(message, name="boxscore")
    lines = os.read(one.main, 10_000).decode().replace("\r\n", "\n").rstrip("\n").split("\n")
    one.close()
    assert " ".join(line.strip() for line in lines) == f"boxscore: {message}"
    assert [len(line) <= 60 for line in lines] == [True, True, False]
    assert lines[-1].strip() == f"{path}."


# ---------------------------------------------------------------- color


@pytest.mark.parametrize(
    ("environment", "colored"),
    [
        ({}, True),
        ({"NO_COLOR": "1"}, False),
        ({"TERM": "dumb"}, False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
    ],
)
def test_color_is_for_terminals(
    environment: dict[str, str], colored: bool, terminal, monkeypatch: pytest.MonkeyPatch
) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    one = terminal(100)
    assert main(["check", GT, DT, "--min", "AP=.9", "AR1=.1"]) == 1
    text = os.read(one.main, 100_000).decode()
    assert ("\x1b[31mFAILED\x1b[0m" in text) is colored
    assert ("\x1b[32mpassed\x1b[0m" in text) is colored
    assert ("\x1b" in text) is colored


def test_no_color_in_pipes_unless_it_is_asked_for(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    call = ["check", GT, DT, "--min", "AP=.9"]
    assert "\x1b" not in printed(run, *call)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[31mFAILED\x1b[0m" in printed(run, *call)


def test_color_does_not_move_columns(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    for call in (["check", GT, DT, "--min", "AP=.9"], ["sweep", GT, DT, "--iou-threshold", ".3", ".5"]):
        plain = printed(run, *call)
        with monkeypatch.context() as forced:
            forced.setenv("FORCE_COLOR", "1")
            text = printed(run, *call)
        assert text != plain
        assert re.sub("\x1b\\[[0-9]*m", "", text) == plain


# ---------------------------------------------------------------- quiet


def test_quiet_leaves_errors_alone(tmp_path: Path, run: Run) -> None:
    rows = json.loads(Path(DT).read_text())
    path = tmp_path / "dt.json"
    path.write_text(json.dumps([*rows, {**rows[0], "category_id": 77}]))
    call = ["evaluate", GT, str(path), "--output", "json"]
    loud = run(*call)
    assert loud.err.startswith("boxscore: warning: ")
    for option in ("-q", "--quiet"):
        assert run(*call, option) == (loud.out, "")
    assert run.error(*call, "-q", "--strict").startswith("boxscore: error: ")
    assert run("nms", path, "--output", tmp_path / "kept.json", "--iou-threshold", ".5", "-q") == ("", "")


# ---------------------------------------------------------------- --output


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "form"),
    [("a.txt", "text"), ("a.json", "json"), ("a.CSV", "csv"), ("a.b.md", "markdown"), ("a.tex", "latex")],
)
def test_output_writes_a_file_by_its_ending(
    name: str,
    form: str,
    tmp_path: Path,
    run: Run,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("boxscore.extensions.decisions.history.now", lambda: "2026-11-20T12:00:00Z")
    path = tmp_path / name
    path.write_text("old")
    for call in (COCO, ["check", GT, DT, "--min", "AP=.9"], ["errors", GT, DT], ["validate", GT, DT]):
        shown = printed(run, *call, "--output", form)
        status = main([*call, "-o", str(path)])
        assert status == main([*call, "--output", form])
        output, errors = capsys.readouterr()
        assert path.read_text(encoding="utf-8") == shown == output
        assert f"written to {path}\n" in errors


def test_a_failed_command_leaves_the_file(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "a.json"
    path.write_text("old")
    run("evaluate", GT, "missing.json", "--output", path, status=2)
    assert path.read_text() == "old"
    output, errors = run(*COCO, "--output", tmp_path / "no" / "a.json", status=2)
    assert output == ""
    assert "cannot be written" in errors


def test_the_file_of_a_run_configuration_is_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    config = tmp_path / "run.toml"
    config.write_text(
        f"[ground_truth]\npath = {GT!r}\n[detections]\npath = {DT!r}\n[output]\nform = 'result.json'\n"
    )
    monkeypatch.chdir("/")
    assert run("run", config).out == ""
    assert json.loads((tmp_path / "result.json").read_text())["protocol"] == "coco"


# ---------------------------------------------------------------- lists and paths


def test_lists_have_blanks_or_commas(run: Run) -> None:
    for name, blanks, commas in (
        ("evaluate", ["--max-detections", "1", "10"], ["--max-detections", "1,10"]),
        ("evaluate", ["--iou-thresholds", "0.5", "0.75"], ["--iou-thresholds", "0.5,0.75"]),
        (
            "bootstrap",
            ["--metrics", "AP", "AP50"],
            ["--metrics", "AP,AP50"],
        ),
        (
            "sweep",
            ["--method", "hard", "fast", "--iou-threshold", ".3", ".5"],
            ["--method", "hard,fast", "--iou-threshold", ".3,.5"],
        ),
        ("froc", ["--fppi", ".5", "1"], ["--fppi", ".5,", "1"]),
    ):
        assert printed(run, name, GT, DT, *blanks) == printed(run, name, GT, DT, *commas)


def test_paths_of_commands_with_one_side(tmp_path: Path, run: Run) -> None:
    one, two = tmp_path / "one.json", tmp_path / "two.json"
    for call in (
        ["nms", "{}", "--iou-threshold", ".5"],
        ["fuse", "{}", DT],
        ["convert", "{}"],
    ):
        option = {"convert": "--gt"}.get(call[0], "--dt")
        first = GT if option == "--gt" else DT
        paths = [first if word == "{}" else word for word in call]
        options = [call[0], option, *paths[1:]]
        run(*paths, "--output", one)
        run(*options, "--output", two)
        assert one.read_bytes() == two.read_bytes()


def test_confusion_counts_what_the_report_counts(run: Run) -> None:
    import boxscore

    truth = boxscore.load_ground_truth(GT)
    score = boxscore.evaluate(truth, boxscore.load_detections(DT, truth)).operating_score
    usual = printed(run, "confusion", GT, DT)
    assert usual.startswith(f"Confusion matrix at IoU 0.5 and score {score:.4g} (rows: truth)\n")
    assert usual == printed(run, "confusion", GT, DT, "--score-threshold", str(score))


def test_confusion_without_scores_names_none(run: Run) -> None:
    usual = printed(run, "confusion", GT, DT, "--scoreless")
    assert usual.startswith("Confusion matrix at IoU 0.5 (rows: truth)\n")


@pytest.mark.parametrize("more", [[], ["--curve"]])
def test_curves_of_errors_without_scores_are_refused(more: list[str], run: Run) -> None:
    assert run.error("error-curves", GT, DT, "--scoreless", *more) == (
        f"boxscore: error: the detections must have scores for this. Got none in {DT}; boxes without scores are "
        "counted, not ranked.\n"
    )


@pytest.mark.parametrize("command", ["confusion", "images"])
def test_a_score_threshold_without_scores_is_refused(command: str, run: Run) -> None:
    assert run.error(command, GT, DT, "--scoreless", "--score-threshold", "0.3") == (
        "boxscore: error: --score-threshold must be 0 or less if detections lack scores. Got 0.3; every "
        "detection counts then.\n"
    )
    usual = printed(run, command, GT, DT, "--scoreless").splitlines()[1:]
    assert printed(run, command, GT, DT, "--scoreless", "--score-threshold", "0").splitlines()[1:] == usual
