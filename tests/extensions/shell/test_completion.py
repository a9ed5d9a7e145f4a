"""What a shell offers after Tab."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from boxscore.cli import COMMANDS, load_command, main
from boxscore.cli.arguments import EVERYWHERE


def completed(script: Path, *words: str) -> set[str]:
    """What bash offers for the last word."""
    line = f'. {script}; COMP_WORDS=({" ".join(map(shlex.quote, words))}); COMP_CWORD={len(words) - 1}; _boxscore; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(
        ["bash", "-c", line], capture_output=True, text=True, check=True, timeout=60, cwd=script.parent
    )
    assert done.stderr == ""
    return set(done.stdout.split())


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_completion(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--print-completion", "bash"]) == 0
    script = tmp_path / "boxscore.bash"
    script.write_text(capsys.readouterr().out)
    assert completed(script, "boxscore", "") == {*COMMANDS, "--help", "--version", "--print-completion"}
    assert completed(script, "boxscore", "conf") == {"confusion"}
    options = {
        flag
        for option in (*load_command("nms").options, *EVERYWHERE)
        for flag in option.flags
        if flag[1] == "-"
    }
    assert completed(script, "boxscore", "nms", "--") == {
        *options,
        "--help",
        "--help-all",
        "--gt",
        "--dt",
    } & {
        *options,
        "--help",
        "--help-all",
        "--dt",
    }
    assert completed(script, "boxscore", "evaluate", "--output", "") == {
        "boxscore.bash",
        "text",
        "json",
        "csv",
        "markdown",
        "latex",
    }
    assert completed(script, "boxscore", "evaluate", "--format", "co") == {"coco", "columns"}
    assert completed(script, "boxscore", "evaluate", "box") == {"boxscore.bash"}
    assert main(["--print-completion", "zsh"]) == 0
    assert "bashcompinit" in capsys.readouterr().out
    assert main(["--print-completion", "fish"]) == 2
    assert "bash or zsh" in capsys.readouterr().err
