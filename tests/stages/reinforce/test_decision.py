"""Which values are measured again: by their noise, never by their effects, and never beyond the most."""

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from drawn_sweeps import draw_rounds, draw_sweep

from knobscope.stages.reinforce import decide
from knobscope.statistics.power import Aim

AIM = Aim(effect=1.3, power=0.9, fdr=0.05, comparisons=12)
VALUES = list(range(1, 13))
COMPLETE = [VALUES] * 3


def rng() -> np.random.Generator:
    return np.random.default_rng(21)


def ask(tables: tuple[pd.DataFrame, pd.DataFrame], most: int = 12, aim: Aim = AIM) -> dict[str, Any]:
    decision = decide(*tables, aim, 3, most)
    assert json.loads(json.dumps(decision, allow_nan=False)) == decision
    return decision


def more_of(decision: dict[str, Any]) -> dict[int, int]:
    return {int(value["config_id"][1:]): value["more"] for value in decision["values"]}


def test_a_quiet_sweep_is_done() -> None:
    decision = ask(draw_sweep(rng(), COMPLETE, 0.03))
    assert decision["done"] and decision["more"] == 0
    assert decision["noise"] == pytest.approx(0.03, rel=0.3)
    assert decision["reason"] == "effects of 1.3x would be found for 12 of 12 values"
    assert all(1 < value["smallest_effect"] < 1.3 and value["suffices"] for value in decision["values"])


def test_noisy_values_get_more_blocks_and_quiet_ones_do_not() -> None:
    decision = ask(draw_sweep(rng(), [list(range(1, 25))] * 3, {-1: 0.03, 4: 0.4, 9: 0.4}))
    more = more_of(decision)
    assert {value for value, blocks in more.items() if blocks} == {4, 9}
    assert decision["more"] == max(more.values()) <= 9
    assert not decision["done"]
    assert "blocks more for knob = " in decision["reason"] and "knob = 4 (" in decision["reason"]


@pytest.mark.slow
def test_what_is_asked_for_is_enough_when_noise_stays_as_it_is() -> None:
    """Nine in ten values of 20 sweeps suffice after one further round, without having had many blocks too many."""
    suffice, blocks = [], []
    for seed in range(20):
        draw = np.random.default_rng(seed)
        first = draw_sweep(draw, COMPLETE, 0.11)
        more = more_of(ask(first))
        further = [[value for value in VALUES if more[value] > block] for block in range(max(more.values()))]
        rows = ask(draw_rounds(first, draw_sweep(draw, further, 0.11, round_=1)))["values"]
        suffice += [row["smallest_effect"] <= 1.33 for row in rows]
        blocks += [row["blocks"] for row in rows]
    needed = AIM.count_blocks(0.11, len(VALUES), 3)
    assert needed is not None and 3 < needed < 12
    assert np.mean(suffice) >= 0.9
    assert np.mean(blocks) == pytest.approx(needed, abs=1)


def test_effects_are_not_looked_at() -> None:
    plain = ask(draw_sweep(rng(), COMPLETE, 0.1))
    changed = ask(draw_sweep(rng(), COMPLETE, 0.1, effects={2: 0.7, 5: -0.4, 6: 0.05}))
    assert more_of(plain) == more_of(changed)
    assert max(more_of(plain).values()) > 0
    assert changed["noise"] == pytest.approx(plain["noise"])


def test_no_value_gets_more_than_the_most() -> None:
    first = draw_sweep(rng(), COMPLETE, 0.4)
    decision = ask(first, most=5)
    assert set(more_of(decision).values()) == {2}
    further = draw_sweep(np.random.default_rng(22), [VALUES] * 2, 0.4, round_=1)
    decision = ask(draw_rounds(first, further), most=5)
    assert decision["done"] and decision["blocks"] == 5
    assert "5 blocks, the most that the study allows, were not enough for knob = " in decision["reason"]
    assert ask(first, most=3)["done"]


def test_a_value_that_failed_in_some_blocks_is_measured_again_and_one_that_always_fails_is_not() -> None:
    def fails(block: int, value: int) -> bool:
        return value == 3 or (value == 5 and block == 1)

    decision = ask(draw_sweep(rng(), COMPLETE, 0.01, fails=fails))
    assert {value: blocks for value, blocks in more_of(decision).items() if blocks} == {5: 1}
    assert "no run to compare of knob = 3" in decision["reason"]
    further = draw_sweep(rng(), [[5]] * 2, 0.01, round_=1, fails=lambda block, value: True)
    decision = ask(draw_rounds(draw_sweep(rng(), COMPLETE, 0.01, fails=fails), further), most=5)
    assert decision["done"]  # five blocks were to measure it, in whatever many it failed


def test_values_without_any_run_of_the_default_end_the_sweep() -> None:
    plan, runs = draw_sweep(rng(), COMPLETE, 0.01)
    decision = ask((plan, runs[runs["is_sentinel"]].assign(status="timeout", throughput_ops=np.nan)))
    assert decision["done"]
    assert decision["reason"].startswith("no run to compare of knob = ")


def test_unknown_noise_takes_one_block_more() -> None:
    plan, runs = draw_sweep(rng(), [VALUES, VALUES], 0.05)
    only = runs["block_id"].str.endswith("-0") | (runs["config_id"] == "c1")
    decision = ask((plan, runs[only & ((runs["position"] == 0) | ~runs["is_sentinel"])]))
    assert decision["noise"] is None
    assert set(more_of(decision).values()) == {1}


def test_two_devices_take_more_blocks() -> None:
    tables = draw_sweep(rng(), COMPLETE, 0.07)
    assert ask(tables)["done"]
    assert not ask(tables, aim=Aim(1.3, 0.9, 0.05, 24, between_devices=True))["done"]


def test_a_stalled_run_is_not_taken_for_noise() -> None:
    plan, runs = draw_sweep(rng(), COMPLETE, 0.03)
    runs.loc[runs.index[runs["config_id"] == "c7"][0], "throughput_ops"] /= 10
    assert ask((plan, runs))["done"]


def test_a_sweep_without_values_is_done() -> None:
    decision = ask(draw_sweep(rng(), [[], []], 0.03))
    assert decision["done"] and decision["reason"] == "there is no value to repeat"
