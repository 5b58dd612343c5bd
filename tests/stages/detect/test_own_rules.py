"""A rule of a user's own: named by its folder in a study, found in findings, report and reference."""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml
from generated_studies import StudyMaker, Truth
from json_documents import read_document

from knobscope.cli import main
from knobscope.specs import SpecErrors, load_study, render_rules, shipped_rules
from knobscope.specs.models.rule import SHIPPED_RULES, read_rule
from knobscope.stages.detect import check_queries

ROOT = Path(__file__).parents[3]
GUIDE = (ROOT / "docs/how-to/adding-a-rule.md").read_text()
FILES = {"sql": "rule.sql", "yaml": "rule.yaml", "jinja": "sentence.j2"}


def write_rule_of_the_guide(folder: Path) -> None:
    """Write the last block of each kind in the guide: the rule that it builds."""
    folder.mkdir(parents=True)
    for language, name in FILES.items():
        blocks = re.findall(rf"^```{language}\n(.*?)^```$", GUIDE, flags=re.MULTILINE | re.DOTALL)
        (folder / name).write_text(blocks[-1])


def change_study(root: Path, **changes: Any) -> Path:
    path = root / "specs/studies/sim.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | changes, sort_keys=False))
    return path


def judge(maker: StudyMaker, study: Path) -> list[tuple[Any, ...]]:
    """Take a study through the commands of its last stages; returns its findings."""
    files = maker.files(load_study(study, maker.root, runnable=False))
    database, report = maker.root / "study.duckdb", maker.root / "report.html"
    common = ["--study", str(study), "--root", str(maker.root)]
    named = {"runs": files.runs, "plans": files.plans, "devices": files.devices}
    options = [word for name, paths in named.items() for word in (f"--{name}", *map(str, paths))]
    assert main(["detect", *common, *options, "--out", str(database)]) == 0
    assert main(["report", *common, "--database", str(database), "--out", str(report)]) == 0
    with duckdb.connect(str(database), read_only=True) as connection:
        return connection.execute("SELECT rule, knob, value, verdict, sentence FROM findings").fetchall()


@pytest.mark.slow
def test_a_folder_of_ones_own_is_a_rule(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    truth = {("ahead", "true"): Truth(cpu=0.6), ("page", "16"): Truth(cpu=0.6, throughput=0.5)}
    maker = StudyMaker(tmp_path, repeats=3, noise=0.01, truth=truth)
    maker.specs()
    write_rule_of_the_guide(tmp_path / "my-rules/wasted_cpu")
    study = change_study(tmp_path, rules=["intuition", "my-rules/wasted_cpu"], thresholds={"cpu_gap": 0.3})
    findings = judge(maker, study)
    assert {row[0] for row in findings} == {"intuition", "wasted_cpu"}
    ((_, knob, value, _, sentence),) = [row for row in findings if row[0] == "wasted_cpu" and row[3] == "mismatch"]
    assert (knob, value) == ("ahead", "true")
    assert re.match(
        r"Changing ahead from off to on takes [78]\d % more \(95 % interval \d\d % to \d\d %\) CPU per", sentence
    )
    page = " ".join((tmp_path / "report.html").read_text().replace("\u00a0", " ").split())
    assert sentence in page
    card = page[page.index('id="finding-1-wasted-cpu-ahead"') :].split("</article>")[0]
    assert "CPU for nothing" in card
    assert re.search(r"<dt>CPU per operation</dt><dd>[78]", card)
    assert "Sequential share and CPU" in card
    assert "<svg" in card
    capsys.readouterr()
    assert main(["rules", str(study), "--root", str(tmp_path)]) == 0
    reference = capsys.readouterr().out
    assert "## wasted_cpu" in reference
    assert "| `cpu_gap` | 0.2 | ratio - 1 | Growth of CPU per operation" in reference
    asked = [str(study), "--root", str(tmp_path), "--database", str(tmp_path / "study.duckdb"), "--json"]
    assert main(["finding", *asked]) == 0
    listed = read_document("finding", capsys.readouterr().out)
    ((finding,),) = (part["findings"] for part in listed["mismatches"])
    assert (finding["rule"], finding["sentence"]) == ("wasted_cpu", sentence)
    assert isinstance(finding["evidence"], dict)
    assert main(["finding", asked[0], "1", *asked[1:]]) == 0
    assert read_document("finding", capsys.readouterr().out) == {**listed, "readers": []}


def test_a_study_without_rules_has_a_report(tmp_path: Path) -> None:
    maker = StudyMaker(tmp_path)
    maker.specs()
    assert judge(maker, change_study(tmp_path, rules=[])) == []
    assert "The study requests no rule" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"rules": ["teer"]},
            r"sim.yaml:\d+: rules.0: found no rule 'teer'; expected one of access_pattern, .*, tier, or",
        ),
        ({"rules": ["mine/teer"]}, r"rules.0: found no rule 'mine/teer'; expected a folder .*mine/teer"),
        ({"rules": ["tier", "tier"]}, r"rules.1: found 'tier' a second time"),
        ({"rules": ["tier", "own/tier"]}, r"rules.1: found a second rule named 'tier'"),
        ({"rules": ["own/broken"]}, r"own/broken/rule.yaml:1: file: found no such file"),
        ({"thresholds": {"tier_gab": 0.3}}, r"thresholds.tier_gab: found a threshold .*expected tier_gap"),
        (
            {"thresholds": {"busy_share": 1.5}},
            r"thresholds.busy_share: found 1.5; expected a number from 0 to 1 \(share",
        ),
        ({"thresholds": {"tier_gap": "much"}}, r"thresholds.tier_gap: found 'much'; expected a number"),
        ({"rules": ["intuition"], "thresholds": {"tier_gap": 0.3}}, "a threshold that no rule of the study has"),
    ],
)
def test_wrong_rules_are_reported_with_their_location(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    StudyMaker(tmp_path).specs()
    (tmp_path / "own/broken").mkdir(parents=True)
    (tmp_path / "own/tier").symlink_to(SHIPPED_RULES / "tier")
    with pytest.raises(SpecErrors, match=said):
        load_study(change_study(tmp_path, **changes), tmp_path, runnable=False)


def test_who_reads_a_study_waits_for_no_query_or_sentence_of_a_shipped_rule() -> None:
    """Each job reads its study, and few judge."""
    code = "import sys; from pathlib import Path; from knobscope.specs import load_study\n"
    code += f"load_study(Path({str(ROOT / 'specs/studies/quickstart.yaml')!r}), Path({str(ROOT)!r}), runnable=False)\n"
    code += "print(*({'duckdb', 'jinja2'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"\n"


def test_validate_knows_the_names_in_a_query_before_any_run(tmp_path: Path, refuses: Callable[..., str]) -> None:
    StudyMaker(tmp_path).specs()
    rule = tmp_path / "mine/wasted_cpu"
    write_rule_of_the_guide(rule)
    study = change_study(tmp_path, rules=["mine/wasted_cpu"])
    assert main(["validate", str(study), "--root", str(tmp_path)]) == 0
    query = (rule / "rule.sql").read_text()
    lines = query.count("\n")
    for wrong, said in {
        "FROM caises": rf":{lines + 2}: file: found Catalog Error: Table with name caises .*cases",
        "FROM cases WHERE divice = 'v'": rf":{lines + 2}: file: found Binder Error: .*divice.*device",
        "FROM effects_onn('throughput_ops')": rf":{lines + 2}: file: found Catalog Error: .*effects_on",
        "FROM cases\nWHERE getvariable('gab') > 1": rf":{lines + 3}: file: found no threshold 'gab'; .*cpu_gap",
        "FROM read_text('/etc/passwd')": rf":{lines + 2}: file: found Permission Error",
        "FROM cases; SELECT error('it ran')": ":1: file: found 2 statements; expected one SELECT",
    }.items():
        (rule / "rule.sql").write_text(f"{query.replace('ORDER BY ALL', '')}UNION ALL BY NAME SELECT dbms\n{wrong}\n")
        assert re.search(rf"wasted_cpu/rule.sql{said}", refuses("validate", study, "--root", tmp_path))


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("{{ effect_words }}", "{{ efect_words }}", "no 'efect_words'; expected effect_words"),
        ("effect_of(", "effects_of(", "no 'effects_of'; expected effect_of"),
        ("evidence.throughput,", "evidence.troughput,", "no 'evidence.troughput'; expected evidence.throughput"),
    ],
)
def test_validate_knows_the_names_in_the_sentences_before_any_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], right: str, wrong: str, said: str
) -> None:
    StudyMaker(tmp_path).specs()
    rule = tmp_path / "mine/wasted_cpu"
    write_rule_of_the_guide(rule)
    study = change_study(tmp_path, rules=["mine/wasted_cpu"])
    before, _, after = (rule / "sentence.j2").read_text().partition(right)
    (rule / "sentence.j2").write_text(f"{before}{wrong}{after}")
    assert main(["validate", str(study), "--root", str(tmp_path)]) == 2
    line = before.count("\n") + 1
    assert f"mine/wasted_cpu/sentence.j2:{line}: file: found {said} (did you mean that?)" in capsys.readouterr().err


@pytest.mark.parametrize("name", shipped_rules())
def test_the_names_in_the_sentences_of_shipped_rules_are_known(tmp_path: Path, name: str) -> None:
    StudyMaker(tmp_path).specs()
    shutil.copytree(SHIPPED_RULES / name, tmp_path / "mine" / name)
    specs = load_study(change_study(tmp_path, rules=[f"mine/{name}"]), tmp_path, runnable=False)
    assert len(specs.own_rules) == 1
    check_queries(specs)


def test_the_name_of_a_rule_may_have_digits(tmp_path: Path) -> None:
    rule = tmp_path / "p99_of_io2"
    write_rule_of_the_guide(rule)
    for file in rule.iterdir():
        file.write_text(file.read_text().replace("wasted_cpu", rule.name))
    assert read_rule(rule).header[""].startswith("a value of a knob takes more CPU per operation")


def test_the_reference_is_current() -> None:
    rules = [read_rule(SHIPPED_RULES / name) for name in shipped_rules()]
    assert (ROOT / "docs/reference/rules.md").read_text() == render_rules(rules), "run `make docs`"
