"""Mismatch rules as a page for people: docs/reference/rules.md, and the same for rules of a user's own."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from knobscope.specs.models.rule import SHIPPED_RULES, Rule, read_rule, shipped_rules

_HEAD = """\
# Mismatch rules

Written by `make docs` from the folders in `rules/mismatch`; `knobscope rules STUDY` writes the same for the rules of a
study, those of your own included. [adding-a-rule.md](../how-to/adding-a-rule.md) shows how to write one.

A rule gives each question one of three verdicts. *mismatch*: an effect that matters, beyond noise. *none*: what was
measured rules such an effect out. *insufficient*: neither; the finding says what was missing. On
a modelled device an experiment may settle it ([causes.md](../how-to/causes.md#on-modelled-devices-change-the-device)).

`fdr` and `min_effect` belong to the study, and all rules read them: at most a share of `fdr` of the effects called
significant may be false (Benjamini-Hochberg), and an effect matters from a relative change of `min_effect` on.
Thresholds of single rules are below. A study sets any of them under `thresholds`.

A knob whose `mechanism` is `throttle` holds I/O back on purpose, so no rule calls that a mismatch: its findings say
*none*, and why.

On a shared device some data requests (reads, writes and discards; a flush has no owner) are of unknown origin. Their
share has two limits that no study sets, macros of `study.duckdb`: above `most_unattributed()` the rules about the block
layer say *insufficient*, above `told_unattributed()` findings mention it.

A penalty says what better I/O would gain, unless the rule measures it as a ratio of two figures (`penalty: measured`).
If a finding goes by the time that clients wait, this time limits the penalty, and if an experiment on a modelled device
confirms the cause, so does the share of the effect that disappears. Any other penalty is at most 1 / (1 - busy share),
where the busy share is that of the device in the median run of the slower setting: the rest of the time is taken to
stay as it is. Where that lowers a penalty, the finding says so; where no run recorded how long the device was busy,
there is no penalty.
"""
#: Headings of the comment at the head of a query, in the order of the page.
_ORDER = ("Mismatch", "None", "Insufficient", "Penalty", "Cannot see", "Needs", "Source")


def render_rules(rules: Iterable[Rule]) -> str:
    """Return the page."""
    listed = list(rules)
    rows = [f"| [`{rule.name}`](#{rule.name}) | {rule.about.question} |" for rule in listed]
    table = "\n".join(["| rule | what it asks |", "|---|---|", *rows])
    return "\n".join([_HEAD, table, "", *("\n".join(_render_rule(rule)) for rule in listed)])


def write_rules(path: Path) -> Path:
    """Write the page of the rules that come with knobscope; returns its path."""
    path.write_text(render_rules(read_rule(SHIPPED_RULES / name) for name in shipped_rules()), encoding="utf-8")
    return path


def _render_rule(rule: Rule) -> Iterator[str]:
    about, header = rule.about, rule.header
    yield f"## {rule.name}\n\n**{about.title}.** Claim: {header['']}\n"
    for heading in [*_ORDER, *(name for name in header if name and name not in _ORDER)]:
        if heading in header:
            yield f"- **{heading}**: {header[heading]}"
    if about.cause is not None:
        expected = "be faster" if about.cause.expected == "gain" else "lose nothing"
        factor = about.cause.factor.replace("_", " ")
        yield (
            f"- **Confirmed** when fio repeats the I/O, changes the {factor} alone, and the changed I/O turns out to "
            f"{expected}: {about.cause.confirmed}. Otherwise: {about.cause.refuted}."
        )
    yield f"- **Tables and views**: {', '.join(f'`{name}`' for name in about.needs)}"
    yield f"- **Pictures**: {', '.join(about.figures) or 'none'}\n"
    if about.thresholds:
        yield "| threshold | default | unit | what it decides | source of the default |\n|---|---|---|---|---|"
        for name, threshold in about.thresholds.items():
            yield f"| `{name}` | {threshold.default:g} | {threshold.unit} | {threshold.meaning} | {threshold.source} |"
        yield ""
