"""The first screen: what it says fits the numbers below it, and what was not measured is not stated."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from pages import ON_FLASH, Page, words_of

from knobscope.specs import StudySpecs

Render = Callable[..., Page]  # as fixture `render_head`


def sureness(page: Page, name: str) -> str:
    (found,) = (text for item in page.all("li") if (text := words_of(item)).startswith(f"{name} "))
    return found


def answer(page: Page) -> str:
    (found,) = page.all("div", "answer")
    return words_of(found)


def test_an_effect_that_did_not_show_again_decides_nothing(render_head: Render, page: Page) -> None:
    assert answer(page).startswith("synchronous matters most: off is")
    assert "is hollow" not in page.text
    gone = (
        "INSERT INTO what_ifs BY NAME SELECT DISTINCT dbms, device, workload, knob, value, NULL AS other_device, "
        "false AS is_level, 'none' AS property, '{}' AS change, 8 AS pairs, {is_gone} AS is_gone "
        "FROM effects WHERE knob = 'synchronous'"
    )
    again = render_head(gone.replace("{is_gone}", "true"), cases=[ON_FLASH])
    assert not answer(again).startswith("synchronous")
    assert "The ranking puts synchronous first, but its effect did not reproduce in new runs." in answer(again)
    assert "an effect that did not reproduce in new runs is hollow" in again.text
    there = render_head(gone.replace("{is_gone}", "false"), cases=[ON_FLASH])
    assert answer(there) == answer(page)


def test_a_ranking_of_a_prior_is_reported_as_one(render_head: Render) -> None:
    last = "UPDATE importance SET rank = rank + 100 WHERE knob = 'synchronous'"
    screened = answer(render_head(last, cases=[ON_FLASH]))
    assert ": it weighs all values of a knob" in screened
    taken = answer(render_head(last, "UPDATE fits SET prior = 'sqlite-all'", cases=[ON_FLASH]))
    assert ": it is that of prior sqlite-all, from runs of another study." in taken


def test_an_effect_that_is_a_fastest_configuration_has_the_figure_of_its_new_pairs(render_head: Render) -> None:
    swept = "UPDATE effects SET swept = estimate WHERE metric = 'latency_p95_us'"
    unsure = render_head(swept, cases=[ON_FLASH])
    assert "; not measured again, so it may be smaller)" in answer(unsure)
    alone = 'UPDATE fastest SET changes = \'{"synchronous": "off"}\', pairs = 4, again = ln(3), again_low = ln(2), '
    again = render_head(swept, f"{alone} again_high = ln(4)", cases=[ON_FLASH])
    assert "; 3x faster in the new pairs of runs above)" in answer(again)


def test_an_effect_that_its_new_pairs_alone_do_not_prove_is_said_to_be_one(render_head: Render) -> None:
    """The card says that the configuration did not prove faster; the sentence below it said how much faster it is."""
    swept = "UPDATE effects SET swept = estimate"
    for low, is_open in ((0.1, False), (-0.1, True)):
        alone = 'UPDATE fastest SET pairs = 4, again = ln(3), again_high = ln(9), changes = \'{"synchronous": "off"}\''
        said = answer(render_head(swept, f"{alone}, again_low = {low}", cases=[ON_FLASH]))
        assert ("; together with the sweep: the new pairs above alone do not prove it)" in said) == is_open


@pytest.mark.slow
def test_no_drift_is_no_good_news_where_noise_hides_it(render_head: Render) -> None:
    said = sureness(render_head("UPDATE effects SET noise = ln(1.74)", "UPDATE blocks SET treatment = 'none'"), "Drift")
    assert said.endswith("poor (good: none, and little noise: ± 74 % hides smaller changes)")
    said = sureness(render_head("UPDATE effects SET noise = 0.01", "UPDATE blocks SET treatment = 'none'"), "Drift")
    assert "hides" not in said
    assert said.endswith("good")


def test_blocks_that_cannot_be_judged_did_not_stay_the_same(render_head: Render) -> None:
    said = sureness(render_head("UPDATE blocks SET drift_p = NULL, bend_p = NULL, treatment = 'none'"), "Drift")
    assert said == "Drift not known no block has enough runs to tell a change of speed from noise"


def test_a_block_without_a_default_configuration_is_no_drift(render_head: Render) -> None:
    page = render_head(
        "UPDATE blocks SET treatment = 'none'",
        "UPDATE blocks SET treatment = 'dropped', sentinels = 0 WHERE block_id = (SELECT min(block_id) FROM blocks)",
    )
    said = sureness(page, "Drift")
    assert said.startswith("Drift 0 of ")
    assert "1 more block cannot be judged" in said


def test_runs_that_shared_the_machine_are_a_limit(render_head: Render, page: Page) -> None:
    shared = render_head("UPDATE runs SET other_measurements = if(device = 'fast-flash', 2, 0)")
    said = sureness(shared, "Other measurements")
    assert "runs shared the machine with another process of knobscope: each may have slowed the other down" in said
    assert said.endswith("poor (good: none)")
    assert "Other measurements" not in page.text


def test_runs_in_which_other_programs_computed_are_a_limit(render_head: Render, page: Page) -> None:
    disturbed = render_head(
        "UPDATE runs SET other_cpu_share = if(device = 'fast-flash', 0.31, 0.01), other_programs = '<make> 31 %'"
    )
    said = sureness(disturbed, "Other programs")
    assert "runs in which other programs took 5 % or more of the processors' time, up to 31 % (<make> 31 %)" in said
    assert said.endswith("poor (good: none)")
    assert "Other programs" not in page.text


@pytest.mark.parametrize(
    ("operations", "said"),
    [
        (19, "19 median of sqlite · slow-disk · ycsb-a, where one operation more or less is 5.3 %"),
        (300, "0.3 %"),
        (900, None),
    ],
)
def test_runs_of_few_operations_are_reported(render_head: Render, operations: int, said: str | None) -> None:
    page = render_head("UPDATE runs SET operations = if(device = 'slow-disk', ?, 5000)", parameters=[operations])
    if said is None:
        assert not [item for item in page.all("li") if "".join(item.itertext()).strip().startswith("Operations")]
        return
    told = sureness(page, "Operations")
    assert said in told
    assert f"{'poor' if operations == 19 else 'fair'} (good: 500 or more: increase measure_s)" in told


def test_runs_that_were_set_aside_are_reported_at_once(render_head: Render) -> None:
    page = render_head(
        "DELETE FROM set_aside_runs",
        "INSERT INTO set_aside_runs SELECT run_id, 'block', NULL, 'why' FROM runs WHERE status = 'ok' LIMIT 30",
    )
    assert "40 of 90 runs (44 %) were excluded: 10 gave no result and 30 are in blocks that cannot be compared." in (
        answer(page)
    )


@pytest.mark.parametrize(
    ("rate", "cache", "said"),
    [
        (
            0.00027,
            "write back",
            "The default configuration itself flushes once in 3,704 operations, so it can also lose committed",
        ),
        (
            0.0,
            "write back",
            "The default configuration itself never flushes, so it can also lose committed data in a power cut.",
        ),
        (0.0, "write through", ""),  # such a device is sent no flushes
        (0.5, "write back", ""),
        (None, "write back", ""),
    ],
)
def test_a_default_that_hardly_flushes_is_not_called_safe(
    render_head: Render, rate: float | None, cache: str, said: str
) -> None:
    page = render_head(
        f"UPDATE effects SET reference = {'NULL' if rate is None else rate} WHERE metric = 'flushes_per_op'",  # noqa: S608
        "INSERT INTO device_property (device, property, kernel) SELECT DISTINCT device, 'flush', "  # noqa: S608
        f"'write_cache {cache}' FROM cases",
    )
    words = answer(page)
    assert "but risks committed data" in words
    assert ("The default configuration itself" in words) == bool(said)
    assert said in words


def test_a_default_that_risks_data_is_named_next_to_a_slower_value(render_head: Render, specs: StudySpecs) -> None:
    dbms = specs.dbms["sqlite"]
    slower = "UPDATE effects SET estimate = -estimate, low = -high, high = -low, durability = false"
    for risky, said in (["full"], "), but full risks committed data."), ([], ")."):
        knob = dbms.knobs["synchronous"].model_copy(update={"durability": risky})
        marked = dbms.model_copy(update={"knobs": {**dbms.knobs, "synchronous": knob}})
        changed = replace(specs, dbms={**specs.dbms, "sqlite": marked})
        words = answer(render_head(f"{slower} WHERE knob = 'synchronous'", of=changed))
        assert f"slower than full (sqlite on slow-disk, ycsb-a{said}" in words


def test_findings_that_judge_nothing_are_no_clean_bill(render_head: Render) -> None:
    page = render_head(
        "DELETE FROM findings WHERE rule <> 'intuition'",
        "UPDATE findings SET verdict = 'insufficient', penalty = NULL, sentence = 'Cannot be judged: one block only.'",
    )
    words = answer(page)
    assert (
        "None of 10 questions about DBMS and device could be judged, for example: Cannot be judged: one block" in words
    )
    assert "No mismatch" not in words


def test_no_mismatch_comes_with_the_effects_that_noise_would_hide(render_head: Render, page: Page) -> None:
    assert "could not be seen" not in answer(page)
    page = render_head(
        "UPDATE findings SET verdict = 'none' WHERE verdict = 'mismatch'",
        "UPDATE effects SET low = estimate - ln(1.66), high = estimate + ln(1.66) WHERE metric = 'throughput_ops'",
    )
    words = answer(page)
    assert "No mismatch between DBMS and device" in words
    assert "Effects on throughput of less than 66 % could not be seen (half of a typical 95 % interval)." in words
    page = render_head(
        "UPDATE findings SET verdict = 'none' WHERE verdict = 'mismatch'",
        "UPDATE effects SET low = estimate - 0.01, high = estimate + 0.01 WHERE metric = 'throughput_ops'",
    )
    words = answer(page)
    assert "Effects on throughput of less than 5 % do not count (threshold min_effect)." in words


def test_an_effect_that_is_sure_and_small_is_not_denied(render_head: Render) -> None:
    small = "UPDATE effects SET estimate = 0.03, q_value = 0.001 WHERE metric = 'throughput_ops'"
    assert "No knob changes throughput by 5 % or more, beyond noise." in answer(render_head(small))


def test_a_ranking_that_predicts_no_configuration_promises_only_what_stands_out(render_head: Render) -> None:
    page = render_head(
        "UPDATE fits SET stopped = false, trustworthy = true, reason = 'not predictable: noise', r2_min = 0.1",
        cases=[ON_FLASH],
    )
    assert "Which knobs stand out can be trusted" in page.section("ranking")
    assert "it cannot predict the throughput of a single configuration" in page.section("ranking")
    assert "The ranking can be trusted" not in page.section("ranking")
    assert "trust which knobs stand out more than the size of their effects" in sureness(page, "Model")
    assert sureness(page, "Model").endswith("fair (good: 0.9 in every split)")


def test_a_ranking_names_the_knobs_that_it_expected(render_head: Render) -> None:
    told = render_head(cases=[ON_FLASH]).section("ranking")
    expected = "stood out in prior sqlite-all: synchronous and page_size needed less evidence than other knobs"
    assert expected in " ".join(told.split())
    cold = render_head("UPDATE fits SET warm_start = NULL, expected = NULL", cases=[ON_FLASH])
    assert "had to show less" not in cold.section("ranking")


def test_a_ranking_names_what_later_rounds_left_out(render_head: Render) -> None:
    assert "left out what" not in render_head(cases=[ON_FLASH]).section("ranking")
    page = render_head(
        """
        INSERT INTO costly_settings BY NAME
        SELECT dbms, device, workload, round, setting, times_slower, 9 AS configurations
        FROM fits JOIN (
            VALUES (0, '{"page_size": 512, "synchronous": "extra"}', 31.4), (0, '{"synchronous": "full"}', 5.0),
            (1, '{"synchronous": "full"}', 4.5), (1, '{"cache_size": -20000}', 6.0)
        ) AS found(round, setting, times_slower) USING (round)
        """,
        cases=[ON_FLASH],
    )
    told = page.section("ranking")
    both = "page_size = 512 B with synchronous = extra (31x slower)"
    assert f"several times slower: {both} and synchronous = full (5x slower). Such a bottleneck" in told
    # cache_size showed after the last round only.


def test_a_pair_of_knobs_without_an_interval_says_what_it_lacks(render_head: Render) -> None:
    pair = """
        INSERT INTO pair_effects BY NAME SELECT DISTINCT dbms, device, workload, 'synchronous' AS knob, 'off' AS value,
            'page_size' AS other, '{0}' AS other_value, 0.1 AS estimate, 0.1 AS alone, 0.1 AS other_alone,
            0.3 AS together, {1} AS blocks FROM cases
    """
    told = render_head(pair.format(4096, 1), pair.format(16384, 2), cases=[ON_FLASH]).section("ranking")
    assert (told.count("one block is not enough"), told.count("too few runs for an interval")) == (1, 1)


def test_an_import_states_nothing_that_it_does_not_know(render_head: Render) -> None:
    page = render_head(
        "UPDATE runs SET session = 'imported', monitor = NULL, lost_events = NULL, unattributed_share = NULL, "
        "started_at = NULL",
        "UPDATE device_profile SET block_device = NULL, filesystem = NULL",
        cases=[ON_FLASH],
    )
    assert sureness(page, "Block layer").startswith("Block layer 0 % of the imported runs come with I/O counts")
    assert "measured elsewhere" in page.text
    assert "runs at times that are not known" in page.text
    assert " records, " not in page.text
    assert "None" not in page.text.replace("None of", "")


def test_the_size_of_the_data_is_in_the_unit_of_its_generator(render_head: Render, specs: StudySpecs) -> None:
    books = {
        name: load.model_copy(update={"generator": "tpch", "records": 100}) for name, load in specs.workloads.items()
    }
    page = render_head(of=replace(specs, workloads=books), cases=[ON_FLASH])
    assert "tpch, scale factor 0.1, " in page.text


def test_the_fastest_configurations_are_blocks_to_copy(render_head: Render) -> None:
    again = (
        "UPDATE fastest SET pairs = 4, again = ln({0}), again_low = ln({1}), again_high = ln({2}) WHERE risk = '{3}'"
    )
    tuned = "UPDATE fastest SET tuner = 'all' WHERE risk = 'none'"
    page = render_head(again.format(12, 11, 13, "none"), again.format(1.1, 0.9, 1.3, "any"), tuned, cases=[ON_FLASH])
    blocks = page.all("article", "fastest")
    said = [*map(words_of, blocks)]
    assert said[0].startswith("Fastest safe configuration measured · sqlite · fast-flash · ycsb-a page_size = 16 KiB")
    assert "12x faster (95 % interval 11x to 13x) than the default in 4 new pairs of runs" in said[0]
    assert "runs; a tuner found it, and which of its changes matter was not tested" in said[0]
    assert said[0].endswith("# before data is loaded PRAGMA page_size = 16384")
    assert said[1].startswith("At any risk: not proved faster · sqlite · fast-flash · ycsb-a")
    assert blocks[0].find(".//{*}pre") is not None
    assert blocks[1].find(".//{*}pre") is None
    assert "did not prove faster than the default in 4 new pairs of runs (10 % slower to 30 % faster)" in said[1]
    assert "synchronous risks committed data" in said[1]


def test_what_keeps_a_default_that_risks_data_is_not_called_safe(render_head: Render, specs: StudySpecs) -> None:
    risky = (
        """UPDATE fastest SET configuration = replace(configuration, '"synchronous": "full"', '"synchronous": "off"')"""
    )
    dbms = specs.dbms["sqlite"]
    knob = dbms.knobs["synchronous"].model_copy(update={"durability": ["off"]})
    marked = dbms.model_copy(update={"knobs": {**dbms.knobs, "synchronous": knob}})
    marked_specs = replace(specs, dbms={**specs.dbms, "sqlite": marked})
    page = render_head(f"{risky} WHERE risk = 'none'", of=marked_specs, cases=[ON_FLASH])
    said = words_of(page.all("article", "fastest")[0])
    assert said.startswith("Fastest configuration without additional risk")
    assert "the default configuration risks committed data itself (synchronous = off)" in said
    assert "Safe by its spec" not in said


def test_a_fastest_configuration_that_was_not_measured_again_has_no_figure(page: Page) -> None:
    blocks = page.all("article", "fastest")
    assert len(blocks) == 4
    for block in blocks:
        said = "".join(block.itertext())
        assert "gain unknown, since it was not measured again and the best of many noisy runs looks faster" in said
        assert "faster than the default" not in said


def test_a_fastest_configuration_says_what_its_knobs_do_once(page: Page) -> None:
    texts = [*map(words_of, page.all("article", "fastest"))]
    assert ["synchronous =" in text for text in texts] == [False, True, False, True]
    described = ["synchronous: What a commit waits for." in text for text in texts]
    assert described == [False, True, False, False]
    assert any(described)


@pytest.mark.parametrize(
    ("columns", "title", "sentence"),
    [
        ("cuts = 5, cuts_lost = 0, rows_lost = 0", "Fastest safe", "Kept all acknowledged rows in 5 power cuts."),
        (
            "cuts = 5, cuts_lost = 1, rows_lost = 1, default_cuts_lost = 2, loses_more = false",
            "Fastest safe",
            "Lost acknowledged rows in 1 of 5 power cuts, 1 at most; the default configuration in 2 of 5.",
        ),
        (
            "cuts = 5, cuts_lost = 4, rows_lost = 30, default_cuts_lost = 0, loses_more = true",
            "Fastest configuration that is called safe and is not",
            "30 at most; the default configuration in 0 of 5: its spec is wrong to call it safe.",
        ),
        (
            "cuts = 5, cuts_lost = 1, rows_lost = 1, uncut = 'the disk was full'",
            "Fastest safe",
            "Lost acknowledged rows in 1 of 5 power cuts (the disk was full), 1 at most.",
        ),
        ("uncut = 'that needs root'", "Fastest safe", "Safe by its spec; no power was cut to see: that needs root."),
    ],
)
def test_power_cuts_decide_what_is_called_safe(columns: str, title: str, sentence: str, render_head: Render) -> None:
    page = render_head(f"UPDATE fastest SET {columns} WHERE risk = 'none'", cases=[ON_FLASH])  # noqa: S608
    texts = [*map(words_of, page.all("article", "fastest"))]
    assert texts[0].startswith(title)
    assert sentence in texts[0]
    assert "power" not in texts[1]


def test_defaults_that_the_spec_chooses_are_named(render_head: Render, specs: StudySpecs) -> None:
    dbms = specs.dbms["sqlite"]
    knob = dbms.knobs["synchronous"].model_copy(update={"built_in": "normal"})
    chosen = dbms.model_copy(update={"knobs": {**dbms.knobs, "synchronous": knob}})
    page = render_head(of=replace(specs, dbms={**specs.dbms, "sqlite": chosen}))
    said = " ".join(map(words_of, page.all("dl", "facts")))
    assert "Default configuration of sqlite" in said
    assert f"not as built in: synchronous = {knob.default} (built in: normal)" in " ".join(said.split())


def test_what_the_study_has_as_its_default_is_named(render_head: Render, specs: StudySpecs) -> None:
    """Of the settings that the spec chooses one is built in here, and the study chooses another one."""
    dbms = specs.dbms["sqlite"]
    knob = dbms.knobs["synchronous"].model_copy(update={"built_in": "normal"})
    chosen = dbms.model_copy(update={"knobs": {**dbms.knobs, "synchronous": knob}})
    baseline = {"sqlite": {"synchronous": "normal", "mmap_size": 4096}}
    study = specs.study.model_copy(update={"baseline": baseline})
    page = render_head(of=replace(specs, study=study, dbms={**specs.dbms, "sqlite": chosen}))
    said = " ".join(map(words_of, page.all("dl", "facts")))
    assert "not as built in: mmap_size = 4096 (built in: 0)" in " ".join(said.split())
    assert "synchronous" not in said
