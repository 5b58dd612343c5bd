"""Settings of the device's queue become knobs: what is planned with them, and what is refused."""

from pathlib import Path

import pytest

from knobscope.plan import case_space
from knobscope.search_space import search_space
from knobscope.specs import Case, SpecErrors, StudySpecs, load_study, split_queue

STUDY = """name: varied
description: x
dbms: [server]
devices: [DEVICE]
workloads: {mix: }
knobs:
  server:
    flush:
factors:
  queue: {QUEUE}
"""


def load(shelf: Path, queue: str, device: str = "image") -> StudySpecs:
    (shelf / "studies/varied.yaml").write_text(STUDY.replace("QUEUE", queue).replace("DEVICE", device))
    return load_study(shelf / "studies/varied.yaml", shelf, runnable=False)


def problems(shelf: Path, queue: str, device: str = "image") -> list[str]:
    with pytest.raises(SpecErrors) as raised:
        load(shelf, queue, device)
    return [f"{one.key}: found {one.found}; expected {one.expected}" for one in raised.value.problems]


def test_the_first_value_is_the_default(shelf: Path) -> None:
    specs = load(shelf, "scheduler: [none, mq-deadline], read_ahead_kb: [128, 4096, 0]")
    space = case_space(specs, Case("server", "image", "mix"))
    assert space.levels["queue.scheduler"] == ["none", "mq-deadline"]
    assert space.levels["queue.read_ahead_kb"] == [0, 128, 4096]
    assert space.default == {"flush": True, "queue.scheduler": "none", "queue.read_ahead_kb": 128}


def test_a_configuration_is_split_into_queue_and_the_rest() -> None:
    configuration = {"flush": False, "queue.scheduler": "bfq", "workload.threads": 2, "queue.read_ahead_kb": 0}
    assert split_queue(configuration) == (
        {"scheduler": "bfq", "read_ahead_kb": 0},
        {"flush": False, "workload.threads": 2},
    )


def test_the_dbms_is_tuned_to_the_queue_and_not_the_queue_to_the_dbms(shelf: Path) -> None:
    specs = load(shelf, "read_ahead_kb: [128, 0]")
    space = search_space(specs, Case("server", "image", "mix"), ["queue.read_ahead_kb"], None, with_durability=True)
    assert [one.name for one in space.parameters] == ["flush"]
    assert space.fixed == {"queue.read_ahead_kb": 128}


@pytest.mark.parametrize(
    ("queue", "found"),
    [
        ("scheduler: [none, deadline]", "'deadline'"),
        ("scheduler: [none]", "['none']"),
        ("read_ahead_kb: [128, 128]", "128 a second time"),
        ("read_ahead_kb: [128, -1]", "-1"),
        ("depth: [1, 2]", "depth"),
    ],
)
def test_what_no_queue_has_is_refused(shelf: Path, queue: str, found: str) -> None:
    (problem,) = problems(shelf, queue)
    assert problem.startswith("factors.queue")
    assert found in problem


def test_the_queue_of_a_disk_that_others_use_is_left_alone(shelf: Path) -> None:
    (problem,) = problems(shelf, "read_ahead_kb: [128, 0]", "disk")
    assert problem == "factors.queue: found disk, which others use too; expected emulated devices only"
