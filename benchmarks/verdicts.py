"""Are the verdicts true? A DBMS on modelled devices: what rules say, against the cause that changed devices show.

Run `python benchmarks/verdicts.py [--devices nvme-consumer sata-ssd-plp ...] [--repeats 3]` as root, in an empty
folder, on an idle machine; `make verdicts` runs it for one device. What was measured stays in the folder: a second call
measures what is missing. For each device the study in `benchmarks/verdicts/DBMS.yaml` is run, with its rules. Then
every swept value, mismatch or not, is measured again on the device and on what-if devices without the cost of
flushes, without a write unit, and without any cost: that is the truth of a case. A rule is right to find something
where the property that it blames removes half of the effect or more. Beside it stand naive rules of fixed thresholds,
on the same runs. Cases whose truth is not clear are counted apart. The time that a device took goes to stderr.

Naive rules: 10 % slower with 10 % more of what is blamed, without noise, device or time: flushes per operation; share
of writes that are not whole multiples of the preferred size (Drishti flags a file from 10 % of misaligned requests on);
CPU per operation with a larger sequential share.
"""

import argparse
import json
import math
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import duckdb

from knobscope.explain.answering import answer_questions
from knobscope.explain.causes import Answer
from knobscope.explain.experiment import Bench
from knobscope.explain.properties import what_if_devices
from knobscope.explain.questions import Question, ask_questions
from knobscope.specs import load_study

ROOT = Path(__file__).parents[1]
#: Rule -> properties whose change has to remove the effect.
BLAMED = {"flush": ("flush", "rotation"), "io_size": ("write_unit",), "io_sequentiality": ()}
TRIED = ("everything", "flush", "write_unit", "rotation")
NAIVE = {
    "flush": "f.estimate * sign(-t.estimate) > 0.1 * greatest(f.reference, 1e-9)",
    "io_size": "u.estimate * sign(-t.estimate) > 0.1",
    "io_sequentiality": "c.estimate * sign(-t.estimate) > 0.1 AND w.estimate * sign(-t.estimate) > 0.1",
}
_CASES = """
    SELECT t.dbms, t.device, t.workload, t.knob, t.value, 1.0 AS penalty, 'mismatch' AS verdict, '{{}}' AS evidence,
        {naive}
    FROM effects t
    LEFT JOIN effects f ON f.metric = 'flushes_per_op' AND (f.device, f.knob, f.value) = (t.device, t.knob, t.value)
    LEFT JOIN effects u
        ON u.metric = 'unaligned_write_share' AND (u.device, u.knob, u.value) = (t.device, t.knob, t.value)
    LEFT JOIN effects c ON c.metric = 'cpu_s_per_op' AND (c.device, c.knob, c.value) = (t.device, t.knob, t.value)
    LEFT JOIN effects w
        ON w.metric = 'write_sequential_share' AND (w.device, w.knob, w.value) = (t.device, t.knob, t.value)
    WHERE t.metric = 'throughput_ops' ORDER BY ALL
"""


def run_study(file: Path) -> Path:
    """Run a study to its report; return its results."""
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "--cores", "2"]
    command += ["--profile", str(ROOT / "profiles/default"), "--config", f"study={file}"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return Path("results") / file.stem


def write_study(dbms: str, device: str) -> Path:
    """Write the study of a DBMS for a device into this folder's `specs`, which are those of the checkout."""
    for kind in ("dbms", "devices", "workloads", "generators"):
        (Path("specs") / kind).parent.mkdir(exist_ok=True)
        if not (Path("specs") / kind).exists():
            (Path("specs") / kind).symlink_to(ROOT / "specs" / kind)
    name = f"verdicts-{dbms}-{device}"
    file = Path("specs/studies") / f"{name}.yaml"
    file.parent.mkdir(exist_ok=True)
    text = (ROOT / "benchmarks/verdicts" / f"{dbms}.yaml").read_text()
    file.write_text(f"name: {name}\ndevices: [{device}]\n{text}")
    return file


def judge(file: Path, repeats: int) -> Iterator[tuple[Answer, dict[str, str], dict[str, bool]]]:
    """Yield for each swept value its truth, the verdicts of the rules, and what the naive rules say."""
    results, specs = run_study(file), load_study(file, Path.cwd())
    naive = ", ".join(f"abs(t.estimate) > 0.1 AND {condition} AS {name}" for name, condition in NAIVE.items())
    with duckdb.connect(str(results / "study.duckdb"), read_only=True) as connection:
        cases = connection.execute(_CASES.format(naive=naive)).df().to_dict("records")
        questions = ask_questions(cases, specs, connection, most=len(cases))
        verdicts = connection.execute("SELECT rule, knob, value, verdict, confirmed FROM findings").fetchall()
    device = specs.devices[questions[0].case.device]
    profiles = {device.name: results / "devices" / f"{device.name}.json"}
    bench = Bench(specs, Path.cwd(), results / "store", profiles, repeats)
    what_ifs = {name: one for name, one in what_if_devices(device).items() if name in TRIED}
    for answer in answer_questions(bench, device, what_ifs, questions)[0]:
        asked: Question = answer.question
        said = {
            rule: "withdrawn" if confirmed == "no" else verdict
            for rule, knob, value, verdict, confirmed in verdicts
            if (knob, value) == (asked.knob, asked.value)
        }
        yield answer, said, {name: bool(cases[asked.findings[0]][name]) for name in NAIVE}


def truth_of(answer: Answer, rule: str) -> bool | None:
    """Whether a rule is right to find something; None where the what-if devices leave it open."""
    if not answer.is_reproduced:
        return False  # no effect beyond noise, so nothing to find
    if rule == "io_sequentiality":  # needs an effect that is none of the device's doing; that it is order, nobody shows
        return None if answer.conclusion == "not_the_device" else False
    shares = [answer.shares[name] for name in BLAMED[rule] if name in answer.shares]
    if any(share.is_most for share in shares):
        return True
    return False if answer.conclusion == "not_the_device" or all(one.is_less_than_half for one in shares) else None


def score(rows: list[tuple[bool, bool]]) -> str:
    """Return precision and recall of (found, true) as text; '-' where nothing was found, or was to be found."""
    counts = Counter(rows)
    hits, wrong, missed = counts[True, True], counts[True, False], counts[False, True]
    precision = f"{hits / (hits + wrong):.2f}" if hits + wrong else "-"
    recall = f"{hits / (hits + missed):.2f}" if hits + missed else "-"
    return f"{precision:>9} {recall:>6}"


def main() -> None:
    """Print the truth of each case, then precision and recall per rule."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dbms", nargs="+", default=["sqlite"])
    parser.add_argument("--devices", nargs="+", default=["nvme-consumer", "sata-ssd-plp"])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path, help="where to write the cases")
    args = parser.parse_args()
    known: dict[str, list[tuple[bool, bool, bool]]] = {rule: [] for rule in BLAMED}
    unclear, rows = Counter[str](), []
    for file in [write_study(dbms, device) for dbms in args.dbms for device in args.devices]:
        began = time.monotonic()
        for answer, said, naive in judge(file, args.repeats):
            case, question = answer.question.case, answer.question
            print(f"{case.device} {question.knob}={question.value}: {answer.conclusion} {said}", answer.describe())
            shares = {name: share.estimate for name, share in answer.shares.items() if math.isfinite(share.estimate)}
            rows.append({"device": case.device, "knob": question.knob, "value": question.value, "rules": said,
                         "naive": naive, "conclusion": answer.conclusion, "shares": shares})  # fmt: skip
            for rule in BLAMED:
                truth = truth_of(answer, rule)
                if truth is None:
                    unclear[rule] += 1
                else:
                    known[rule].append((said.get(rule) == "mismatch", naive[rule], truth))
        print(f"{file.stem}: {(time.monotonic() - began) / 60:.1f} minutes", file=sys.stderr)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1))
    print(f"\n{'rule':17} cases  true unclear   precision recall   naive: precision recall")
    for rule, found in known.items():
        mine, theirs = score([(a, t) for a, _, t in found]), score([(b, t) for _, b, t in found])
        print(f"{rule:17} {len(found):5} {sum(t for *_, t in found):5} {unclear[rule]:7}   {mine}            {theirs}")


if __name__ == "__main__":
    main()
