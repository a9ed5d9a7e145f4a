"""Write completion scripts for shells; pressing Tab does not start Python.

zsh reads the script of bash, by its ``bashcompinit``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from boxscore.cli.arguments import Option
from boxscore.errors import InputError

SHELLS = ("bash", "zsh")

_HEAD = """\
# Completion of boxscore for {shell}. To have it in every new shell:
#   {install}
"""
_INSTALL = {
    "bash": "boxscore --print-completion bash > ~/.local/share/bash-completion/completions/boxscore",
    "zsh": "boxscore --print-completion zsh > ~/.boxscore.zsh; echo '. ~/.boxscore.zsh' >> ~/.zshrc",
}
_ZSH = "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n"

_BODY = """\
_boxscore() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} last= command= options= values= at
    COMPREPLY=()
    if [ "$COMP_CWORD" -le 1 ]; then
        COMPREPLY=($(compgen -W "{commands} --help --version --print-completion" -- "$word"))
        return
    fi
    command=${{COMP_WORDS[1]}}
    case "$command" in
{synonyms}
    esac
    for ((at = COMP_CWORD - 1; at > 1; at--)); do
        case "${{COMP_WORDS[at]}}" in -*) last=${{COMP_WORDS[at]}}; break ;; esac
    done
    case "$command" in
{options}
    esac
    case "$command $last" in
{values}
    esac
    case "$word" in
        -*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;;
        *) COMPREPLY=($(compgen -W "$values" -- "$word") $(compgen -f -- "$word")) ;;
    esac
}}
complete -o filenames -F _boxscore boxscore
"""


def completion_script(
    shell: str, commands: Mapping[str, tuple[Option, ...]], synonyms: Mapping[str, Sequence[str]]
) -> str:
    """Write the script for a shell, from the options of each command and the synonyms that are not listed."""
    if shell not in SHELLS:
        raise InputError("--print-completion", f"be followed by {' or '.join(SHELLS)}", got=repr(shell))
    options, values = [], []
    for name, those in commands.items():
        words = [word for option in those if not option.positional for word in option.flags]
        options.append(f'        {name}) options="{" ".join([*words, "--help", "--help-all"])}" ;;')
        for option in those:
            known = option.known()
            if known and not option.positional:
                calls = "|".join(f'"{name} {word}"' for word in option.flags)
                values.append(f'        {calls}) values="{" ".join(known)}" ;;')
    renamed = [f"        {'|'.join(names)}) command={name} ;;" for name, names in synonyms.items()]
    body = _BODY.format(
        commands=" ".join(commands),
        synonyms="\n".join(renamed),
        options="\n".join(options),
        values="\n".join(values),
    )
    head = _HEAD.format(shell=shell, install=_INSTALL[shell])
    return head + (_ZSH if shell == "zsh" else "") + body.removesuffix("\n")
