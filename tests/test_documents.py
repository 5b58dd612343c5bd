"""What documents say can be done: shell blocks, examples of the help, links, words of the glossary."""

import re
import runpy
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from exported_tables import write_example_tables
from shipped_specs import ROOT, shipped_dbms

import knobscope
from knobscope.cli import build_parser, main
from knobscope.examples import EXAMPLES
from knobscope.specs import Device, load_study, read_knob_catalogue, read_spec
from knobscope.workflow.forecast import describe_study

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
TEXTS = ("src", "docs", "rules", "probes")
SUFFIXES = {".py", ".md", ".sql", ".yaml", ".j2", ".smk", ".c", ".h"}


def shell_lines(page: Path) -> Iterator[str]:
    """Yield the lines of the shell blocks of a page, without comments."""
    for block in re.findall(r"```sh\n(.*?)```", page.read_text(), re.DOTALL):
        for line in block.splitlines():
            if command := re.sub(r"\s+#.*", "", line).strip():
                yield command


def quoted_lines(page: Path) -> Iterator[str]:
    """Yield the commands between backticks in the text of a page."""
    yield from re.findall(r"`(\.venv/bin/(?:knobscope|snakemake) [^`]+)`", page.read_text())


COMMANDS = sorted({(page.name, line) for page in PAGES for line in [*shell_lines(page), *quoted_lines(page)]})


@pytest.mark.parametrize(("page", "line"), COMMANDS)
def test_a_command_of_a_page_exists_with_its_options(page: str, line: str) -> None:
    program, *arguments = shlex.split(line)
    if Path(program).name == "knobscope":
        build_parser(arguments[0]).parse_args(arguments)  # ends the test where a command or option is unknown
    elif program == "make":
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert set(arguments) <= set(targets)
    elif "/" in program:
        assert (ROOT / program).exists() or Path(program).parent.name == "bin", f"{page}: no {program}"
    for argument in arguments:
        if argument.startswith("study=specs/"):
            assert (ROOT / argument.removeprefix("study=")).is_file(), f"{page}: {argument}"


def benchmark_lines(page: Path) -> Iterator[str]:
    """Yield the calls of benchmarks of a page: in blocks of any kind, or in the text between backticks."""
    text = page.read_text()
    lines = [re.sub(r"\s+#.*", "", line).strip() for line in text.splitlines()]
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    for line in [*lines, *(" ".join(quoted.split()) for quoted in re.findall(r"`([^`]+)`", prose))]:
        if re.match(r"(\.venv/bin/)?(python )?benchmarks/[\w.]+( |$)", line):
            yield line


BENCHMARKS = sorted({(page.name, line) for page in PAGES for line in benchmark_lines(page)})


@pytest.mark.parametrize(("page", "line"), BENCHMARKS)
def test_a_benchmark_of_a_page_exists_with_its_options(page: str, line: str) -> None:
    file, *arguments = shlex.split(line.split("python ", 1)[-1])
    path = ROOT / file
    sources = [path] if path.is_file() else sorted(path.glob("*.py"))
    known = set(re.findall(r'"(--[a-z-]+)"', "".join(source.read_text() for source in sources)))
    assert sources, f"{page}: no {file}"
    assert {argument.split("=")[0] for argument in arguments if argument.startswith("--")} <= known, line


def test_the_benchmarks_of_the_pages_were_found() -> None:
    assert len(BENCHMARKS) > 30


def test_every_command_has_examples_that_can_be_parsed() -> None:
    for name, lines in EXAMPLES.items():
        ours = [shlex.split(line)[1:] for line in lines if line.startswith("knobscope ")]
        assert ours, name
        for arguments in ours:
            assert arguments[0] == name
            build_parser(name).parse_args(arguments)


def test_help_ends_with_the_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["rank", "--help"])
    assert capsys.readouterr().out.endswith("\n".join(f"  {line}" for line in EXAMPLES["rank"]) + "\n")


def test_no_command_is_without_examples() -> None:
    (commands,) = (action for action in build_parser()._actions if action.dest == "==SUPPRESS==" or action.choices)
    assert set(commands.choices or ()) == set(EXAMPLES)


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [
        pytest.param(line, marks=pytest.mark.long if "replay" in line else ())
        for line in re.findall(r"`\S+/(knobscope (?:rank|replay|trace) .*?)`", (ROOT / "README.md").read_text())
    ],
)
def test_readme_commands_on_files_work(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_example_tables(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(line)[1:]) == 0


def test_every_rule_file_of_the_pipeline_has_the_name_of_a_package_and_of_its_rules() -> None:
    for file in sorted((ROOT / "rules").glob("*.smk")):
        assert any((ROOT / "src/knobscope").glob(f"*/{file.stem}")), file.name
        rules = re.findall(r"^(?:rule|checkpoint) (\w+):", file.read_text(), re.MULTILINE)
        assert rules, file.name
        assert all(rule.split("_")[0] == file.stem for rule in rules), (file.name, rules)


def test_no_job_computes_while_another_case_is_measured() -> None:
    """Those that take no machine come when all cases have been measured."""
    text = "\n".join(file.read_text() for file in sorted((ROOT / "rules").glob("*.smk")))
    bodies = dict(re.findall(r"^(?:rule|checkpoint) (\w+):\n(.*?)(?=\n\n|\Z)", text, re.MULTILINE | re.DOTALL))
    assert {name for name, body in bodies.items() if "machine=1," not in body} == {
        *("detect", "remeasure_all", "imitate_all", "report")
    }


def anchors(page: Path) -> set[str]:
    """Return the anchors of the headings of a page, as GitHub and the site form them."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    return {
        re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in re.findall(r"^#+ (.*)", text, re.MULTILINE)
    }


def test_links_between_pages_arrive() -> None:
    for page in [*PAGES, ROOT / "CHANGELOG.md"]:
        for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", page.read_text()):
            path = page.parent / target if target else page
            assert path.exists(), f"{page.name}: {target}"
            assert not anchor or anchor in anchors(path), f"{page.name}: {target}#{anchor}"


def test_the_drawing_of_the_architecture_is_current() -> None:
    draw = runpy.run_path(str(ROOT / "setup/architecture.py"))["draw"]
    assert (ROOT / "docs/architecture.svg").read_text() == draw(), "run `make docs`"


def test_every_page_is_in_the_navigation_once() -> None:
    listed = re.findall(r"^ +- .*: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    pages = [str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")]
    assert sorted(listed) == sorted([*pages, "index.md", "CONTRIBUTING.md", "CHANGELOG.md"])


def test_every_shipped_workload_is_on_the_page_of_studies() -> None:
    page = (ROOT / "docs/how-to/run-a-study.md").read_text()
    assert [file.stem for file in (ROOT / "specs/workloads").glob("*.yaml") if f"`{file.stem}`" not in page] == []


def test_readme_fits_a_page() -> None:
    assert len((ROOT / "README.md").read_text().split()) <= 900


def test_where_to_change_what_names_twenty_changes_and_their_files() -> None:
    """That the paths exist is tested for all pages, see `test_paths_in_backticks_exist`."""
    table = (ROOT / "CONTRIBUTING.md").read_text().split("| to change | look in |\n|---|---|\n")[1].split("\n\n")[0]
    answers = [re.findall(r"`([\w./-]+/[\w./-]*)`", row.split("|")[2]) for row in table.splitlines()]
    assert len(answers) == 20
    assert all(answers)


def test_package_and_citation_have_the_version_at_the_top_of_the_changelog() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text()
    headings = re.findall(r"^## (\d+)\.(\d+)\.(\d+)(, unreleased)?$", changelog, re.MULTILINE)
    releases = [tuple(map(int, numbers)) for *numbers, _ in headings]
    assert releases == sorted(releases, reverse=True)
    assert not any(unreleased for *_, unreleased in headings[1:])
    (*numbers, unreleased) = headings[0]
    (cited,) = re.findall(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert knobscope.__version__ == cited == ".".join(numbers) + (".dev0" if unreleased else "")


def test_every_picture_is_made_by_a_command_that_its_page_names() -> None:
    known = {picture.file: picture for picture in runpy.run_path(str(ROOT / "benchmarks/pictures.py"))["PICTURES"]}
    shown = {
        (Path(target).name, page)
        for page in PAGES
        for target in re.findall(r"!\[[^\]]*\]\(([^)]+\.png)\)", page.read_text())
    }
    assert {name for name, _ in shown} == set(known) == {path.name for path in (ROOT / "docs/images").iterdir()}
    for name, page in shown:
        assert all(line in page.read_text() for line in known[name].commands), f"{page.name}: {name}"


_PLANNED = r"^\| `(specs/studies/[\w-]+\.yaml)` \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$"
PLANNED = re.findall(_PLANNED, (ROOT / "docs/evidence/introspect.md").read_text(), re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize(("study", "knobs", "varied", "left_out", "runs"), PLANNED)
def test_planned_runs_are_what_the_pipeline_says(study: str, knobs: str, varied: str, left_out: str, runs: str) -> None:
    told = describe_study(load_study(ROOT / study, ROOT, runnable=False))
    assert f" at most {runs} runs, " in told
    assert f"{varied} knobs are varied; `all` leaves out {left_out} of {knobs}," in told


def test_the_table_of_planned_runs_was_found() -> None:
    assert len(PLANNED) == len(list((ROOT / "specs/studies").glob("*-all.yaml"))) > 0


_COUNTED = r"^\| [\w .]+ \| (\d+) \| (\d+) \| (\d+) \| [\d ]*\| [\d ]*\|$"


def test_the_counted_knobs_are_those_of_catalogues_and_specs() -> None:
    rows = re.findall(_COUNTED, (ROOT / "docs/evidence/introspect.md").read_text(), re.MULTILINE)
    counted = []
    for path in sorted((ROOT / "specs/dbms/catalogue").glob("*.json")):
        catalogue = read_knob_catalogue(path)
        assert catalogue is not None
        knobs = shipped_dbms(path.stem).knobs.values()
        settings = len(catalogue.knobs) + sum(map(len, catalogue.left_out.values()))
        counted.append((settings, len(catalogue.knobs), sum(not knob.control for knob in knobs)))
    assert sorted(tuple(map(int, row)) for row in rows) == sorted(counted)


def test_relatives_agree_about_as_many_knobs_as_the_page_says() -> None:
    text = " ".join((ROOT / "docs/how-to/introspect.md").read_text().split())
    for a, b, names in (
        ("postgresql", "postgresql18", "PostgreSQL 15 and 18 agree about"),
        ("redis", "valkey", "Redis and Valkey about"),
        ("mariadb", "mysql", "MariaDB and MySQL about"),
    ):
        first, second = (read_knob_catalogue(ROOT / f"specs/dbms/catalogue/{name}.json") for name in (a, b))
        assert first is not None
        assert second is not None
        both = first.knobs.keys() & second.knobs.keys()
        same = sum(first.knobs[name].mechanism == second.knobs[name].mechanism for name in both)
        assert f"{names} {f'all {same}' if same == len(both) else f'{same} of {len(both)}'}" in text


def test_the_table_of_devices_has_every_shipped_one() -> None:
    table = (ROOT / "docs/how-to/devices.md").read_text().split("## Shipped devices")[1].split("\n## ")[0]
    named = re.findall(r"^\| `([\w-]+)` \|", table, re.MULTILINE)
    shipped = [read_spec(path, Device, None)[1] for path in (ROOT / "specs/devices").glob("*.yaml")]
    assert sorted(named) == sorted(device.name for device in shipped if device.renamed is None)


def test_messages_that_the_page_of_failures_quotes_are_printed_by_the_program() -> None:
    """What the first columns of its tables have between quotes; `...` stands for what differs."""
    printed = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    rows = re.findall(r"^\| ([^|]*\"[^|]*) \|", (ROOT / "docs/how-to/troubleshooting.md").read_text(), re.MULTILINE)
    quoted = [part.strip() for row in rows for text in re.findall(r'"([^"]+)"', row) for part in text.split("...")]
    assert len(quoted) >= 4
    assert [text for text in quoted if text.removesuffix(" results/") not in printed] == []


def test_stages_have_no_numbers() -> None:
    """A stage is called by its name: a number is wrong as soon as another stage is added."""
    files = [path for folder in TEXTS for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES]
    numbered = re.compile(r"\bstage \d|\b(seven|eight|nine|ten|eleven|\d+) stages\b", re.IGNORECASE)
    assert [
        path for path in [*files, ROOT / "README.md", ROOT / "Snakefile"] if numbered.search(path.read_text())
    ] == []


def test_words_that_are_out_stay_out() -> None:
    glossary = (ROOT / "docs/reference/glossary.md").read_text()
    rows = glossary.split("## Words that are out")[1].split("|---|---|")[1].strip().splitlines()
    out = [word for row in rows if "," not in (word := row.split("|")[1].strip())]  # what is out in one sense is below
    assert len(out) >= 8
    pattern = re.compile(rf"\b({'|'.join(map(re.escape, out))})\b", re.IGNORECASE)
    files = [path for folder in TEXTS for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES]
    files += [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    found = [
        f"{path.relative_to(ROOT)}:{number}: {match[0]}"
        for path in files
        if path.name != "glossary.md"
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if (match := pattern.search(line))
    ]
    assert found == [], "docs/reference/glossary.md says what to write instead"


def test_paths_in_backticks_exist() -> None:
    """Words in capitals stand for any name, as in `specs/dbms/NAME.yaml`; a module may be named without its suffix."""
    folders = {path.name for path in ROOT.iterdir() if path.is_dir()} - {"results"}
    found = [
        f"{page.relative_to(ROOT)}: {text}"
        for page in PAGES
        for text in re.findall(r"`([\w./-]+/[\w./-]*)`", page.read_text())
        if text.split("/")[0] in folders
        for pattern in [re.sub(r"\b[A-Z]+\b", "*", text.rstrip("/"))]
        if not any(ROOT.glob(pattern)) and not any(ROOT.glob(f"{pattern}.*"))
    ]
    assert found == [], "the repository has no such path"
