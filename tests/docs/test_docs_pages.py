"""What the documentation must mention, compared with the code."""

from __future__ import annotations

import dataclasses
import importlib.util
import re
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

import boxscore
from boxscore.cli import COMMANDS
from boxscore.evaluation import evaluate
from boxscore.extensions.shell.run_command import known_keys
from boxscore.protocols import protocol_names
from boxscore.reports.text import as_dict
from support.running import Run

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SOURCE = ROOT / "src" / "boxscore"


@pytest.fixture(scope="module")
def pages() -> ModuleType:
    """The mkdocs hook that makes pages from the code; it needs no mkdocs for that."""
    spec = importlib.util.spec_from_file_location("docs_pages", DOCS / "hooks" / "pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("command", COMMANDS)
def test_the_reference_has_every_option_that_help_prints(command: str, pages: ModuleType, run: Run) -> None:
    lines = [line for line in run(command, "--help-all").out.splitlines() if line.startswith("  -")]
    options = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", "\n".join(lines))) - {"--help", "--help-all"}
    assert "--strict" in options
    reference = pages.command_reference()
    section = reference[reference.index(f"## boxscore {command}\n") :].split("\n## ")[0]
    assert {option for option in options if f"`{option}" not in section} == set()


def test_the_reference_describes_an_option_that_many_commands_have_once(pages: ModuleType) -> None:
    reference = pages.command_reference()
    assert reference.count("| `--iou-thresholds T ...` |") == 1
    assert reference.count("`--iou-thresholds`") >= 6
    assert "$ boxscore evaluate " in reference


def test_pictures_are_small_shown_and_described() -> None:
    shown: dict[Path, str] = {}
    for page in (ROOT / "README.md", *DOCS.rglob("*.md")):
        for text, target in re.findall(r"!\[([^]]*)\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
            shown[(page.parent / target).resolve()] = text
    pictures = [path for path in (DOCS / "pictures").iterdir() if path.suffix in {".svg", ".webp"}]
    assert [path.name for path in pictures if path not in shown] == []
    assert [path for path, text in shown.items() if not path.exists() or len(text) < 20] == []
    assert [path.name for path in pictures if path.stat().st_size > 150_000] == []


def test_a_notebook_becomes_a_page(pages: ModuleType) -> None:
    page = pages.notebook_pages()["evaluate"]
    assert page.startswith(
        "# Evaluate a detector in a notebook\n\n[Download this notebook](evaluate.ipynb)\n"
    )
    assert "```python\nimport boxscore\n" in page
    assert 'src="data:image/png;base64,' in page
    assert not re.search(r"<div>[^\n]*\n\n[^\n]*</div>", page)


def test_the_reference_has_every_public_name_once_and_no_other(pages: ModuleType) -> None:
    reference = pages.python_pages()
    index = reference.pop("index")
    shown = re.findall(r"^## (boxscore\.[\w.]+) \{", "\n".join(reference.values()), re.MULTILINE)
    assert len(set(shown)) == len(shown)
    faces = [face for _, faces in pages.TASKS.values() for face in faces]
    public = {where for face in faces for where in pages.names_of(face).values()}
    assert set(re.findall(r"^::: ([\w.]+)$", "\n".join(reference.values()), re.MULTILINE)) - public == {
        f"boxscore.integrations.{path.stem}" for path in (SOURCE / "integrations").glob("[a-z]*.py")
    }
    assert [name for name in shown if f"| [`{name}`](" not in index] == []
    assert [line for line in index.splitlines() if line.endswith("|  |")] == []


@pytest.mark.parametrize("kind", ["semantic", "panoptic"])
def test_the_reference_has_every_rule_of_label_maps(kind: str, pages: ModuleType) -> None:
    from boxscore import label_maps

    fields, rules = pages.label_map_fields(kind), pages.label_map_rules(kind)
    kinds = {"semantic": label_maps.SemanticRules, "panoptic": label_maps.PanopticRules}
    assert [name for name in kinds[kind].__dataclass_fields__ if f"| `{name}` |" not in fields] == []
    assert [name for name in getattr(label_maps, f"{kind}_rule_names")() if f"| `{name}`" not in rules] == []


@pytest.mark.long
def test_the_reference_has_every_field_of_a_protocol(pages: ModuleType) -> None:
    protocol = boxscore.load_protocol("coco")
    reference = pages.protocol_reference()
    for table in dataclasses.fields(protocol):  # not vars: a protocol remembers what it was asked for
        value = getattr(protocol, table.name)
        inner = dataclasses.fields(value) if dataclasses.is_dataclass(value) else [table]
        for field in (field.name for field in inner):
            if field != "summary":
                row = next((line for line in reference.splitlines() if line.startswith(f"| `{field}` |")), "")
                assert row, f"{table.name}.{field} is missing"
    assert all(f"`{name}`" in pages.protocol_list() for name in protocol_names())


def test_the_page_on_refused_input_has_every_case(pages: ModuleType) -> None:
    cases = (ROOT / "tests" / "bad_input" / "cases.toml").read_text(encoding="utf-8")
    rows = pages.bad_input_table().splitlines()[2:]
    assert len(rows) == cases.count("[[case]]") >= 250
    assert all(len(re.split(r"(?<!\\)\|", row)) == 4 for row in rows)
    assert not any("{formats" in row for row in rows)
    assert "<!-- cases -->" in (DOCS / "reference" / "refused-input.md").read_text(encoding="utf-8")


def test_the_page_on_protocols_has_every_part_of_a_signature(pages: ModuleType) -> None:
    assert "<!-- words -->" in (DOCS / "reference" / "protocols.md").read_text(encoding="utf-8")
    text = pages.signature_reference()
    assert "None" not in text
    signatures = [boxscore.load_protocol(name).signature() for name in protocol_names()]
    parts = {part.split(":")[0] for signature in signatures for part in signature.split("|")[2:]}
    assert [part for part in sorted(parts) if f"| `{part}` |" not in text] == []


def test_the_page_on_json_has_every_key() -> None:
    truth = boxscore.GroundTruth.from_arrays([1], ["cat"], [[0, 0, 9, 9]])
    found = boxscore.Detections.from_arrays([1], ["cat"], [[0, 0, 9, 9]], [0.5])
    form = as_dict(evaluate(truth, found, protocol="voc2007"))
    text = (DOCS / "reference" / "json-output.md").read_text(encoding="utf-8")
    keys = [*form, *form["counts"], *form["per_class"][0]]
    assert [key for key in keys if f"`{key}`" not in text] == []


def test_the_page_on_run_configurations_has_every_key(pages: ModuleType) -> None:
    table = pages.run_configuration_keys()
    keys = [key for keys in known_keys().values() for key in keys]
    assert [key for key in keys if f"| `{key}` |" not in table] == []
    page = SimpleNamespace(file=SimpleNamespace(src_uri="how-to/run-configurations.md"))
    text = (DOCS / page.file.src_uri).read_text(encoding="utf-8")
    assert table in pages.on_page_markdown(text, page)


def test_the_navigation_orders_known_pages_and_takes_new_ones(pages: ModuleType) -> None:
    found = ["explanation/glossary.md", "how-to/zebra.md", "how-to/evaluate-coco.md", "index.md", "other.md"]
    assert pages.navigation(found) == [
        "index.md",
        {"How-to": [{"Your data": ["how-to/evaluate-coco.md"]}, "how-to/zebra.md"]},
        {"Explanation": ["explanation/glossary.md"]},
        "other.md",
    ]
    files = [*DOCS.rglob("*.md"), *DOCS.rglob("*.ipynb")]
    existing = {str(page.relative_to(DOCS).with_suffix("")) for page in files}
    for section, order in pages.ORDER.items():
        for name in (
            [name for names in order.values() for name in names] if isinstance(order, dict) else order
        ):
            path = pages._path(section.lower(), name).removesuffix(".md")
            assert path in existing or name == "python/index"


def test_the_page_on_testing_shows_how_the_tests_end() -> None:
    """The line is copied from a run in which everything passed; until there is one, ``...`` stands there."""
    text = (DOCS / "contributing" / "testing.md").read_text(encoding="utf-8")
    block = text[text.index("$ make test\n") :].split("```")[0]
    last = block.rstrip().splitlines()[-1]
    form = r"=* ?\d+ passed(, \d+ (skipped|deselected))* in [\d.]+s( \([\d:]+\))? ?=*"
    assert last == "..." or re.fullmatch(form, last)


def test_links_between_files_of_the_readme_hold() -> None:
    for page in (
        *("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"),
        *("datasets/README.md", "qa/README.md"),
    ):
        path = ROOT / page
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text(encoding="utf-8")):
            if not target.startswith(("http:", "https:")):
                assert (path.parent / target).exists(), f"{page}: {target}"


def test_the_index_links_every_tutorial_and_how_to() -> None:
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    pages = [f"{kind}/{path.name}" for kind in ("tutorial", "how-to") for path in (DOCS / kind).glob("*.md")]
    assert sorted(name for name in ["install.md", *pages] if f"({name})" not in text) == []


def test_the_readme_has_ten_links_and_the_two_commands_of_a_clone() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(re.findall(r"(?<!!)\[[^]]*\]\([^)]+\)", text)) <= 10
    assert all(f"`make {target}`" in text for target in ("demo", "test"))


def test_every_page_has_its_place_in_the_navigation(pages: ModuleType) -> None:
    """No page is left to the end of its section, below the heading of another group."""
    placed = {
        pages._path(section.lower(), name)
        for section, order in pages.ORDER.items()
        for names in (order.values() if isinstance(order, dict) else [order])
        for name in names
    }
    written = {str(path.relative_to(DOCS)) for path in DOCS.glob("*/*.md")}
    assert sorted(written - placed) == []
    nav = pages.navigation(["contributing/benchmarks.md", "install.md", "index.md", "how-to/dota-and-obb.md"])
    assert nav == [
        "index.md",
        "install.md",
        {"How-to": [{"Your data": ["how-to/dota-and-obb.md"]}]},
        {"Contributing": ["contributing/benchmarks.md"]},
    ]


def test_the_citation_has_the_version_and_workflows_run_what_there_is() -> None:
    import yaml

    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == boxscore.__version__
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        jobs = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]
        text = path.read_text(encoding="utf-8")
        assert all("timeout-minutes" in job for job in jobs.values()), path.name
        assert set(re.findall(r"make ([a-z]+)", text)) <= targets, path.name


def test_the_site_is_built_so_that_strict_counts() -> None:
    """mkdocs counts the warnings that it shows: with ``--quiet`` a broken link passes."""
    recipes = (ROOT / "Makefile").read_text(encoding="utf-8")
    builds = re.findall(r"mkdocs build.*", recipes)
    assert len(builds) == 2
    assert all("--strict" in build and "--quiet" not in build.split("#")[0] for build in builds)
