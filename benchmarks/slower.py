"""Do delays tell what a DBMS waits for? Shares by making requests slower, against those by taking their cost away.

Run `python benchmarks/slower.py [--studies redis ...] [--repeats 3]` as root, in an empty folder, on an idle machine;
what was measured stays there, and a second call measures what is missing.

On modelled devices both experiments can be done. Each effect is measured there and without the cost of flushes (units
that these fill included) or of reads and writes, and without any cost: the shares that are gone are the truth. Then the
same device counts as a real one, of which nothing can be taken away: a file on it stands behind the program that delays
requests, and what is waited for is reckoned from that (`remeasure/delays.py`). Printed are both, of effects and of the
time that the reference configuration takes.
"""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verdicts import link_specs

from knobscope.devices import bring_up, load_device, take_down
from knobscope.durable_files import write_sealed
from knobscope.specs import Case, Device, StudySpecs, load_study
from knobscope.stages.remeasure.answering import answer_questions, answer_with_delays
from knobscope.stages.remeasure.causes import Answer
from knobscope.stages.remeasure.delays import DelayedAnswer
from knobscope.stages.remeasure.experiment import Bench
from knobscope.stages.remeasure.properties import EVERYTHING, what_if_devices
from knobscope.stages.remeasure.questions import Question
from knobscope.stages.remeasure.shares import Share


@dataclass(frozen=True)
class Tried:
    """Values of a DBMS against a reference configuration."""

    dbms: str
    reference: dict[str, Any]
    values: dict[str, Any]
    waited: str = "flush"
    device: str = "nvme-consumer"
    workload: str = "ycsb-a"
    records: int = 2000
    threads: int = 4
    measure_s: int = 2  # long enough for some hundred operations: fewer are no fair sample of reads and updates


STUDIES = {
    "sqlite": Tried("sqlite", {}, {"synchronous": "off", "journal_mode": "wal"}, threads=1, measure_s=5),
    "redis": Tried("redis", {"appendfsync": "always"}, {"appendfsync": "everysec", "io-threads": 2}),
    "postgresql": Tried("postgresql", {}, {"synchronous_commit": "off", "commit_delay": 2000}),
    "mariadb": Tried("mariadb", {}, {"innodb_flush_log_at_trx_commit": "0", "innodb_doublewrite": False}),
    "mariadb-reads": Tried(
        "mariadb",
        {"innodb_buffer_pool_size": 8 << 20},
        {"innodb_buffer_pool_size": 128 << 20},
        waited="read",
        device="slow-reads",
        workload="ycsb-c",
        records=40000,
    ),
}


def main() -> None:
    """Print a row for each effect and each kind of request."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", nargs="+", default=list(STUDIES), choices=list(STUDIES))
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    link_specs()
    print(f"{'study':14} {'device':14} {'setting':38} {'waiting':8} {'taken away':>24} {'delayed':>24}")
    for study in options.studies:
        compare(study, STUDIES[study].device, options.repeats)


def compare(study: str, name: str, repeats: int) -> None:
    """Measure the questions of a study in both ways, and print the shares."""
    device = load_device(name, Path())
    with counted_as_real(device) as real:
        specs = write_study(study, name, real)
        for device_name in (name, real.name):
            write_sealed(Path(f"{device_name}.json"), {"preferred_write_bytes": 4096, "tier": device.tier})
        profiles = {device_name: Path(f"{device_name}.json") for device_name in (name, real.name)}
        bench = Bench(specs, Path(), Path("store"), profiles, repeats)
        delayed, _ = answer_with_delays(bench, real, ask(study, real.name))
        answers, _ = answer_questions(bench, device, without_costs(device, STUDIES[study].waited), ask(study, name))
    for delayed_answer, true in zip(delayed, answers, strict=True):
        print_shares(study, name, true, delayed_answer)


def without_costs(device: Device, waited: str) -> dict[str, Device]:
    """Return the device without the cost of what is waited for, and without any."""
    what_ifs = what_if_devices(device)
    cheaper = what_ifs["latency" if waited == "read" else "flush"]
    if waited == "flush" and "write_unit" in what_ifs:  # a flush also fills units
        change = {**cheaper.change, **what_ifs["write_unit"].change}
        content = cheaper.model_dump(mode="json")
        content["emulate"]["model"] |= change
        cheaper = Device.model_validate({**content, "change": change})
    return {waited: cheaper, EVERYTHING: what_ifs[EVERYTHING]}


@contextmanager
def counted_as_real(device: Device) -> Iterator[Device]:
    """Yield a device that is a directory on the modelled one, and nothing else as far as anybody knows."""
    mount = bring_up(device, Path())
    name = f"{device.name}-as-real"
    content = f"name: {name}\ndescription: {device.name}\ntier: {device.tier}\ndedicated: true\npath: {mount}\n"
    file = Path("specs/devices") / f"{name}.yaml"
    file.write_text(content)
    try:
        yield load_device(name, Path())
    finally:
        take_down(device, Path())


def write_study(study: str, name: str, real: Device) -> StudySpecs:
    """Return the study of both devices."""
    case = STUDIES[study]
    file = Path(f"specs/studies/slower-{study}-{name}.yaml")
    file.parent.mkdir(exist_ok=True)
    file.write_text(
        f"name: slower-{study}-{name}\ndescription: shares in two ways\ndbms: [{case.dbms}]\n"
        f"devices: [{name}, {real.name}]\nworkloads:\n  {case.workload}: "
        f"{{records: {case.records}, threads: {case.threads}, warmup_s: 0.5, measure_s: {case.measure_s}}}\n"
        f"knobs:\n  {case.dbms}:\n" + "".join(f"    {knob}:\n" for knob in case.values)
    )
    return load_study(file, Path())


def ask(study: str, device: str) -> list[Question]:
    """Return the questions of a study: what makes up each effect, and the time of the reference configuration."""
    tried = STUDIES[study]
    case = Case(tried.dbms, device, tried.workload)
    effects = [
        Question(case, knob, str(value), {**tried.reference, knob: value}, tried.reference, (number,))
        for number, (knob, value) in enumerate(tried.values.items())
    ]
    whole = Question(case, None, None, tried.reference, tried.reference, (len(effects),), is_level=True)
    return [*effects, whole]


def print_shares(study: str, device: str, true: Answer, delayed_answer: DelayedAnswer) -> None:
    """Print a row for what the study is about, and one for all waiting."""
    question = true.question
    setting = "reference" if question.knob is None else f"{question.knob}={question.value}"
    waited = STUDIES[study].waited
    rows = {
        waited: (true.shares.get(waited), delayed_answer.shares.get(f"{waited}_delay")),
        "all": (true.shares.get(EVERYTHING), delayed_answer.whole),
    }
    if not true.is_reproduced:
        print(f"{study:14} {device:14} {setting:38} no effect")
        return
    for waited, (true_share, delayed) in rows.items():
        print(f"{study:14} {device:14} {setting:38} {waited:8} {show(true_share):>24} {show(delayed):>24}", flush=True)


def show(share: Share | None) -> str:
    """Return a share with its interval."""
    return "-" if share is None else f"{share.estimate:.2f} ({share.low:.2f} to {share.high:.2f})"


if __name__ == "__main__":
    main()
