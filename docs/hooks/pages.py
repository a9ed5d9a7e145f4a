"""What mkdocs cannot know by itself: the order of the pages, and the pages that are made from the code.

- The navigation lists the pages named in ``ORDER`` first, then every other page of the same folder by name.
  A new page appears by being there.
- ``reference/python/`` gets one page per task with the public names that it needs, and an index of all names.
- In ``reference/cli.md`` the line ``<!-- commands -->`` becomes every option of every subcommand, and in
  ``how-to/run-configurations.md`` the line ``<!-- keys -->`` every key of a run configuration.
- In ``reference/refused-input.md`` the line ``<!-- cases -->`` becomes every case of ``tests/bad_input``.
- In ``reference/label-map-rules.md`` the lines ``<!-- semantic rules -->`` and the like become the rules that
  ship, and their fields.
- In ``reference/protocols.md`` the line ``<!-- fields -->`` becomes every field of a protocol,
  ``<!-- words -->`` every part of a signature, and ``<!-- protocols -->`` the list of those that ship.
- ``notebooks/*.ipynb`` become pages, with the outputs that are stored in them.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import functools
import importlib
import inspect
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
sys.path.insert(0, str(SOURCE))

ORDER: dict[str, list[str] | dict[str, list[str]]] = {
    "Tutorial": ["your-own-data", "python", "first-evaluation", "/notebooks/evaluate"],
    "How-to": {
        "Your data": [
            "your-data",
            "evaluate-coco",
            "yolo",
            "evaluate-voc",
            "evaluate-lvis",
            "evaluate-open-images",
            "vision-language-models",
            "arrays-and-dataframes",
            "masks-and-keypoints",
            "dota-and-obb",
            "pedestrians-and-faces",
            "more-benchmarks",
            "label-maps",
            "convert",
            "read-model-answers",
            "anchors",
            "validate",
        ],
        "Understand a score": [
            "recipes",
            "per-class-reports",
            "reports",
            "browse-images",
            "confidence-intervals",
            "compare-exports",
            "latex-table",
            "error-types",
            "confusion-matrix",
            "score-threshold",
            "guaranteed-threshold",
            "froc",
            "calibration",
            "slices",
            "regions",
            "label-errors",
            "suite",
            "annotator-agreement",
            "explain",
        ],
        "NMS": ["nms", "nms-commands", "nms-free-detectors", "tiles", "raw-outputs"],
        "In your project": [
            "training-loop",
            "epochs",
            "inside-your-framework",
            "notebook",
            "large-data",
            "continuous-integration",
            "run-configurations",
            "own-protocol",
        ],
        "From other tools": [
            "switch-from-pycocotools",
            "migrate",
            "ultralytics-and-coco",
            "troubleshooting",
        ],
    },
    "Reference": [
        "cli",
        "diagnostics",
        "protocols",
        "label-map-rules",
        "file-formats",
        "tool-formats",
        "model-outputs",
        "json-output",
        "report-files",
        "errors-and-warnings",
        "checks",
        "refused-input",
        "limits",
        "nms-libraries",
        "python/index",
    ],
    "Explanation": [
        "iou",
        "ap-by-hand",
        "protocols-compared",
        "why-tools-differ",
        "exactness",
        "other-evaluators",
        "glossary",
    ],
    "Contributing": [
        "architecture",
        "testing",
        "tools",
        "benchmarks",
        "benchmark-comparisons",
        "interval-coverage",
        "speed",
        "beyond-one-machine",
        "decisions",
        "decisions-nms",
        "decisions-reports",
    ],
}
"""Sections of the navigation, one of them in groups. A page is in the section's folder, the section's name in
small letters, or has its path from ``docs`` after a slash."""

COMMON = 6
"""An option that so many commands have, in the same words, is described once."""


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages and build the navigation."""
    from mkdocs.structure.files import File

    for name, content in python_pages().items():
        files.append(File.generated(config, f"reference/python/{name}.md", content=content))
    for name, content in notebook_pages().items():
        files.append(File.generated(config, f"notebooks/{name}.md", content=content))
    pages = [file.src_uri for file in files.documentation_pages()]
    config.nav = navigation(pages)
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Fill in what is made from the command line's own parsers and the protocol's own classes."""
    # Search finds short answers first, and pages for contributors last.
    uri = page.file.src_uri
    if uri == "how-to/recipes.md" or uri.startswith("contributing/"):
        page.meta["search"] = {"boost": 0.3 if uri.startswith("contributing/") else 2}
    if page.file.src_uri == "reference/cli.md":
        return markdown.replace("<!-- commands -->", command_reference())
    if page.file.src_uri == "how-to/run-configurations.md":
        return markdown.replace("<!-- keys -->", run_configuration_keys())
    if page.file.src_uri == "reference/protocols.md":
        markdown = markdown.replace("<!-- protocols -->", protocol_list())
        markdown = markdown.replace("<!-- words -->", signature_reference())
        return markdown.replace("<!-- fields -->", protocol_reference())
    if page.file.src_uri == "reference/label-map-rules.md":
        for kind in ("semantic", "panoptic"):
            markdown = markdown.replace(f"<!-- {kind} rules -->", label_map_rules(kind))
            markdown = markdown.replace(f"<!-- {kind} fields -->", label_map_fields(kind))
        return markdown
    if page.file.src_uri == "reference/refused-input.md":
        return markdown.replace("<!-- cases -->", bad_input_table())
    return markdown


def label_map_rules(kind: str) -> str:
    """Make the table of the shipped rules of label maps of a kind."""
    rules = importlib.import_module("boxscore.label_maps")
    load = getattr(rules, f"load_{kind}_rules")
    lines = ["| rules | what they are | signature |", "|---|---|---|"]
    for name in getattr(rules, f"{kind}_rule_names")():
        chosen = load(name)
        names = ", ".join(f"`{each}`" for each in (name, *chosen.aliases))
        signature = chosen.signature().replace("|", "\\|")
        lines.append(f"| {names} | {chosen.title} | `{signature}` |")
    return "\n".join(lines)


def label_map_fields(kind: str) -> str:
    """Make the table of the fields of rules of a kind."""
    rules = importlib.import_module("boxscore.label_maps")
    lines = ["| key | values | default | what it says |", "|---|---|---|---|"]
    for field in dataclasses.fields(getattr(rules, f"{kind.capitalize()}Rules")):
        rule = field.metadata["rule"]
        default = list(field.default) if isinstance(field.default, tuple) else field.default
        lines.append(f"| `{field.name}` | {rule.check.values} | `{default!r}` | {rule.doc} |")
    return "\n".join(lines)


def navigation(pages: Iterable[str]) -> list[Any]:
    """Order the pages, given as paths relative to ``docs``."""
    left = sorted(pages)
    nav: list[Any] = []

    def take(page: str) -> list[str]:
        if page not in left:
            return []
        left.remove(page)
        return [page]

    nav += take("index.md") + take("install.md")
    for section, order in ORDER.items():
        folder = section.lower()
        entries: list[Any] = []
        if isinstance(order, dict):
            for group, names in order.items():
                if taken := [entry for name in names for entry in take(_path(folder, name))]:
                    entries.append({group: taken})
        else:
            entries += [entry for name in order for entry in take(_path(folder, name))]
        entries += [entry for page in list(left) if page.startswith(f"{folder}/") for entry in take(page)]
        modules = [entry for entry in entries if "/python/" in entry]
        others = [entry for entry in entries if entry not in modules]
        if entries:
            nav.append({section: [*others, {"Python": modules}] if modules else others})
    return nav + left


def _path(folder: str, name: str) -> str:
    return f"{name[1:]}.md" if name.startswith("/") else f"{folder}/{name}.md"


# ---------------------------------------------------------------- notebooks


def notebook_pages() -> dict[str, str]:
    """Make the text of every page under ``notebooks``, by page name, from the notebooks and their outputs."""
    return {path.stem: _notebook(path) for path in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))}


def _notebook(path: Path) -> str:
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
        else:
            parts += [f"```python\n{source}\n```", *map(_cell_output, cell["outputs"])]
    title, rest = "\n\n".join(parts).split("\n", 1)
    return f"{title}\n\n[Download this notebook]({path.name})\n{rest}\n"


def _cell_output(output: Mapping[str, Any]) -> str:
    data = {name: "".join(content) for name, content in output.get("data", {}).items()}
    if "image/png" in data:
        return f'<img alt="{data["text/plain"].strip("<>")}" src="data:image/png;base64,{data["image/png"]}">'
    if "text/html" in data:  # a blank line would end the block of HTML
        html = re.sub(r"<style.*?</style>", "", " ".join(data["text/html"].split("\n")))
        return "<div>" + html.replace('<table border="1" class="dataframe">', "<table>") + "</div>"
    return f"```text\n{''.join(output.get('text', '')) or data['text/plain']}".rstrip() + "\n```"


# ---------------------------------------------------------------- Python


TASKS: dict[str, tuple[str, dict[str, str]]] = {
    "evaluate": (
        "Evaluate",
        {
            "boxscore": "evaluate Evaluation Evaluator scan",
            "boxscore.protocols": "*",
            "boxscore.evaluator": "*",
        },
    ),
    "tables": (
        "Read, convert and change data",
        {
            "boxscore": "GroundTruth Detections Masks ImageLabels Answer parse_answer box_convert "
            "rotated_convert filter_objects merge_tables remap_classes sample_images split_images "
            "expand_classes Hierarchy table_anchors Anchors table_statistics TableStatistics",
            "boxscore.formats": "*",
        },
    ),
    "nms": ("NMS and fusion", {"boxscore": "merge_patches", "boxscore.suppression": "*"}),
    "overlap": (
        "IoU and other overlaps",
        {
            "boxscore": "box_area box_iou box_iof generalized_box_iou distance_box_iou complete_box_iou "
            "rotated_box_iou quadrilateral_iou probiou mask_area mask_iou mask_iof mask_to_box mask_boundary "
            "boundary_iou object_keypoint_similarity",
        },
    ),
    "diagnostics": ("Analyze and compare detectors", {"boxscore.diagnostics": "*"}),
    "reports": ("Reports and plots", {"boxscore.reports": "*", "boxscore.reports.plots": "*"}),
    "validation": ("Validate data", {"boxscore.validation": "*"}),
    "suites": ("Many data sets", {"boxscore.suite": "*"}),
    "raw-outputs": ("Raw outputs of networks", {"boxscore.raw_outputs": "*"}),
    "epochs": ("Epochs of a training run", {"boxscore.epochs": "*"}),
    "tiles": ("Tiles of large images", {"boxscore.tiles": "*"}),
    "regions": ("Regions of images", {"boxscore.regions": "*"}),
    "parity": ("Is the export the same?", {"boxscore.parity": "*"}),
    "large-data": ("Larger than memory", {"boxscore.distributed": "*"}),
    "label-maps": ("Panoptic and semantic label maps", {"boxscore.label_maps": "*"}),
    "drop-ins": ("Replace pycocotools and others", {"boxscore.compat": "*"}),
    "errors": (
        "Errors and warnings",
        {
            "boxscore": "BoxscoreError BoxscoreWarning FileFormatError FindingWarning InputError "
            "MissingDependencyError ProtocolError VerificationError"
        },
    ),
}
"""Pages of the Python reference: the title, and the names by face; ``*`` means all names of a face."""

FRAMEWORKS = "boxscore.integrations"
"""The package with one module per framework; each module is public as a whole."""


def names_of(face: str) -> dict[str, str]:
    """Return the public names of a face, each with where it is defined."""
    module = importlib.import_module(face)
    names = getattr(module, "__all__", None) or sorted(_imported(face))
    objects = [name for name in names if not name.startswith("__")]
    return {name: _defined(face, name) for name in objects if not inspect.ismodule(getattr(module, name))}


@functools.cache
def _imported(module: str) -> dict[str, tuple[str, str]]:
    """Return what a module imports by name: the module and the name there."""
    path = Path(str(importlib.import_module(module).__file__))
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
    return {
        alias.asname or alias.name: (str(node.module), alias.name) for node in imports for alias in node.names
    }


def _defined(module: str, name: str) -> str:
    """Follow a name through faces to the module that defines it."""
    while name in _imported(module):
        module, name = _imported(module)[name]
    return f"{module}.{name}"


def python_pages() -> dict[str, str]:
    """Make the text of every page under ``reference/python``, by page name: public names only, by task."""
    placed: set[str] = set()
    pages, rows = {}, []
    for page, (title, faces) in TASKS.items():
        parts = [f"{_LAST_IN_SEARCH}# {title}\n"]
        for face, chosen in faces.items():
            known = names_of(face)
            for name in known if chosen == "*" else chosen.split():
                where = known[name]
                if where not in placed:
                    placed.add(where)
                    shown = (
                        f"boxscore.{name}" if names_of("boxscore").get(name) == where else f"{face}.{name}"
                    )
                    parts.append(
                        f"## {shown} {{ #{where} }}\n\n::: {where}\n    options:\n      heading_level: 3\n"
                    )
                    rows.append((shown, page, where))
        pages[page] = "\n".join(parts)
    package = importlib.import_module(FRAMEWORKS)
    modules = sorted(path.stem for path in Path(str(package.__file__)).parent.glob("[a-z]*.py"))
    pages["frameworks"] = "\n".join(
        [f"{_LAST_IN_SEARCH}# Inside training frameworks\n"]
        + [
            f"## {FRAMEWORKS}.{name}\n\n::: {FRAMEWORKS}.{name}\n    options:\n      heading_level: 3\n"
            for name in modules
        ]
    )
    missing = sorted(set(names_of("boxscore").values()) - placed)
    assert not missing, f"docs/hooks/pages.py, TASKS: no page has {missing}"
    return {**pages, "index": _index(rows)}


_LAST_IN_SEARCH = "---\nsearch:\n  boost: 0.3\n---\n\n"
"""A how-to that has the word comes before the reference that has it."""


def _index(rows: Iterable[tuple[str, str, str]]) -> str:
    """List every public name under the title of its page."""
    lines = [
        "# Python interface",
        "",
        "Every public name, by task. Data are positional arguments, options are keywords. Names right after",
        "`boxscore.` come with `import boxscore`.",
    ]
    by_page: dict[str, list[tuple[str, str]]] = {}
    for shown, page, where in rows:
        by_page.setdefault(page, []).append((shown, where))
    for page, names in by_page.items():
        lines += ["", f"## {TASKS[page][0]}", "", "| name | what it does |", "|---|---|"]
        for shown, where in names:
            text = _first_line(where).replace("|", chr(92) + "|")
            lines.append(f"| [`{shown}`]({page}.md#{where}) | {text} |")
    lines += ["", "Adapters for frameworks have [a page of their own](frameworks.md)."]
    return "\n".join([*lines, ""])


def _first_line(where: str) -> str:
    """Return the first line of a docstring; that of a constant is the text below it."""
    module, name = where.rsplit(".", 1)
    value = getattr(importlib.import_module(module), name)
    text = inspect.getdoc(value) or ""
    if not callable(value):
        body = ast.parse(inspect.getsource(importlib.import_module(module))).body
        # The statement after the assignment is its docstring.
        at = next(at for at, each in enumerate(body) if name in ast.unparse(each).split("=")[0].split(":")[0])
        text = ast.literal_eval(body[at + 1].value) if isinstance(body[at + 1], ast.Expr) else ""
    return re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text.split("\n", 1)[0])


# ---------------------------------------------------------------- protocols


def bad_input_table() -> str:
    """List every case of tests/bad_input with what the program says of it."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    text = (ROOT / "tests" / "bad_input" / "cases.toml").read_text(encoding="utf-8")
    registry = importlib.import_module("boxscore.formats.registry")
    names = registry.format_names(auto=False)
    with_sets = [name for name in names if "image_set" in registry.format_named(name).takes]
    text = text.replace("{formats}", ", ".join(map(repr, registry.format_names())))
    text = text.replace("{formats that take image_set}", ", ".join(with_sets))
    lines = ["| case | what the program says |", "|---|---|"]
    for case in tomllib.loads(text)["case"]:
        said = [case["message"]] if "message" in case else [*case["warnings"], case.get("digest", "")]
        shown = "<br>".join(f"`{_shortened(part)}`" for part in said if part)
        lines.append(f"| {case['name'].replace('|', chr(92) + '|')} | {shown or 'nothing: it is legal'} |")
    return "\n".join(lines)


def _shortened(text: str) -> str:
    """Write a message into a cell of a table."""
    printable = "".join(character if character.isprintable() else "?" for character in text)
    short = printable if len(printable) <= 300 else printable[:300] + "..."
    return short.replace("|", "\\|").replace("`", "'")


def protocol_list() -> str:
    """List the protocols that ship."""
    protocols = importlib.import_module("boxscore.protocols")
    lines = ["| name | what it is | other names for `boxscore explain` |", "|---|---|---|"]
    for name in protocols.protocol_names():
        protocol = protocols.load_protocol(name)
        aliases = ", ".join(f"`{alias}`" for alias in protocol.aliases)
        lines.append(f"| `{name}` | {protocol.title} | {aliases} |")
    return "\n".join(lines)


def protocol_reference() -> str:
    """Write every field of a protocol, table by table, with the values of three that ship."""
    load = importlib.import_module("boxscore.protocols").load_protocol
    summary = importlib.import_module("boxscore.protocols.protocol").SummaryRow
    shown = [load(name) for name in ("coco", "voc2007", "voc2012")]
    tables = {
        field.name: value
        for field in dataclasses.fields(shown[0])
        if dataclasses.is_dataclass(value := getattr(shown[0], field.name))
    }
    parts = [_fields(type(shown[0]), shown, leave_out={*tables, "summary"})]
    for name, table in tables.items():
        parts.append(f"## [{name}]\n\n" + _fields(type(table), [getattr(value, name) for value in shown]))
    parts.append("## [[summary]]\n\n" + _fields(summary, []))
    return "\n\n".join(parts)


def _fields(kind: type, values: list[Any], *, leave_out: Iterable[str] = ()) -> str:
    heads = ["field", "values", "meaning", *(["coco", "voc2007", "voc2012"] if values else ["default"])]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for field in dataclasses.fields(kind):
        if field.name in leave_out:
            continue
        rule = field.metadata["rule"]
        default = "" if field.default is dataclasses.MISSING else f"`{_written(field.default)}`"
        cells = [f"`{_written(getattr(value, field.name))}`" for value in values] or [default]
        cells = [f"`{field.name}`", rule.check.values, rule.doc, *cells]
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(lines)


def signature_reference() -> str:
    """Write every part of a signature, in the order of the line."""
    fields = importlib.import_module("boxscore.protocols.fields")
    first = importlib.import_module("boxscore.protocols.protocol").FIRST_WORDS
    coco = importlib.import_module("boxscore.protocols").load_protocol("coco")
    rows = {
        word.key: f"| `{word.key}` | `{field.path}` | {_word(word, fields.ALWAYS)} |"
        for field in fields.all_fields(coco)
        if (word := field.rule.word) is not None
    }
    rows = {**dict.fromkeys(first), **rows, "v": "| `v` | | the version of boxscore |"}
    return "\n".join(["| part | field | values |", "|---|---|---|", *map(str, rows.values())])


def _word(word: Any, always: Any) -> str:
    if word.note:
        return str(word.note)
    return "always there" if word.silent is always else f"left out for `{_written(word.silent)}`"


def _written(value: Any) -> str:
    """Write a value shortly, the way TOML has it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple) and len(value) > 3 and all(isinstance(item, float) for item in value):
        return f"{len(value)} from {value[0]:g} to {value[-1]:g}"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_written, value))}]"
    if value is None or value == {}:
        return "none"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} = {_written(item)}" for key, item in value.items())
    if isinstance(value, float):
        return f"{value:.12g}"
    return '""' if value == "" else str(value)


# ---------------------------------------------------------------- command line


def command_reference() -> str:
    """Write the options that many commands share, then every command with its own, as Markdown."""
    cli = importlib.import_module("boxscore.cli")
    parsers = {name: cli.command_parser(name, cli.load_command(name)) for name in cli.COMMANDS}
    rows = {name: _rows(parser) for name, parser in parsers.items()}
    counts = Counter(row for each in rows.values() for row in each.values())
    common = {row for row, count in counts.items() if count >= COMMON}
    parts = ["## Common options", "", "Each command below says which of these it has.", ""]
    parts += [*_TABLE, *(row for row in counts if row in common)]
    for name, text in cli.COMMANDS.items():
        own = [row for row in rows[name].values() if row not in common]
        shared = [option for option, row in rows[name].items() if row in common]
        parts += ["", f"## boxscore {name}", "", f"{text[0].upper()}{text[1:]}.", ""]
        if examples := _examples(parsers[name].description or ""):
            parts += ["```console", *(f"$ {line}" for line in examples), "```", ""]
        if own:
            parts += [*_TABLE, *own, ""]
        if shared:
            parts.append(
                f"And the [common options](#common-options) {', '.join(map('`{}`'.format, shared))}."
            )
    return "\n".join([*parts, *_other_names()])


def _other_names() -> list[str]:
    """Write the names of commands that people guess, with what each runs or prints."""
    names = importlib.import_module("boxscore.cli.other_names")
    lines = ["", "## Other names", "", "Names that other tools use, and what to type for them.", ""]
    lines += ["| you type | boxscore |", "|---|---|"]
    by_call: dict[str, list[str]] = {}
    for name, call in names.SYNONYMS.items():
        by_call.setdefault(call, []).append(f"`{name}`")
    lines += [f"| {', '.join(typed)} | runs `boxscore {call}` |" for call, typed in by_call.items()]
    by_hint: dict[tuple[str, ...], list[str]] = {}
    for name, hints in names.HINTS.items():
        by_hint.setdefault(tuple(hints), []).append(f"`{name}`")
    for name in ("coco2yolo", "yolo2coco", "voc2coco", "coco2voc", "voc2yolo"):
        by_hint.setdefault(tuple(names.hints_for([name])), []).append(f"`{name}`")
    for hints, typed in by_hint.items():
        shown = "<br>".join(f"{what}: `{call}`" for what, _, call in (hint.partition(": ") for hint in hints))
        lines.append(f"| {', '.join(typed)} | {shown} |")
    return lines


_TABLE = ["| argument | meaning |", "|---|---|"]


def _rows(parser: argparse.ArgumentParser) -> dict[str, str]:
    """Return the row of each argument, by the name that is shown for it."""
    actions = [action for action in parser._actions if not isinstance(action, argparse._HelpAction)]
    rows = {}
    for action in actions:
        if action.help == argparse.SUPPRESS:
            continue
        name = "`, `".join(action.option_strings) or str(action.metavar or action.dest)
        rows[name] = f"| {_argument(action)} | {_meaning(action, parser.prog)} |"
    return rows


def _examples(description: str) -> list[str]:
    """Return the commands under ``Examples`` of a description, each on one line."""
    lines = description.split("Examples\n")[-1].splitlines() if "Examples\n" in description else []
    text = re.sub(r"\s*\\\n\s*>?\s*", " ", "\n".join(lines))
    return [line.strip() for line in text.splitlines() if line.strip().startswith("boxscore ")]


def run_configuration_keys() -> str:
    """Write every key that a run configuration may have as Markdown."""
    lines = ["| table | key | value | meaning |", "|---|---|---|---|"]
    for table, options in (
        importlib.import_module("boxscore.extensions.shell.run_command").known_keys().items()
    ):
        shown = f"`{table}`"
        for key, option in options.items():
            words = {bool: "`true` or `false`", int: "a whole number", Path: "a path"}
            value = ", ".join(f'`"{choice}"`' for choice in option.known())
            value = value or ("a list" if option.many else words.get(option.kind, "a text"))
            value += f", a path if it ends in `{option.ending}`" if option.ending else ""
            meaning = option.help + option.default_text + (" (required)" if option.required else "")
            if option.kind is bool:
                meaning += f" (default: {str(option.default).lower()})"
            meaning = meaning.replace("|", "\\|").replace("<", "&lt;")
            lines.append(f"| {shown} | `{key}` | {value} | {meaning} |")
            shown = ""
    return "\n".join(lines)


def _argument(action: argparse.Action) -> str:
    if not action.option_strings:
        value = action.metavar or action.dest
        return f"`{value}`"
    value = ""
    if action.nargs != 0:
        value = str(action.metavar or action.dest.upper())
        if action.choices is not None and action.metavar is None:
            value = "{" + ",".join(map(str, action.choices)) + "}"
        value = f" {value}" + (" ..." if action.nargs in ("+", "*") else "")
    return "<br>".join(f"`{option}{value}`" for option in action.option_strings)


def _meaning(action: argparse.Action, prog: str) -> str:
    text = (
        (action.help or "") % {**vars(action), "prog": prog} if "%(" in (action.help or "") else action.help
    )
    text = (text or "").replace("%%", "%").replace("|", "\\|").replace("<", "&lt;")
    if action.required and action.option_strings:
        text += " (required)"
    return text
