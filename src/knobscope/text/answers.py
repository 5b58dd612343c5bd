"""Words for what an experiment answered about a finding: column `confirmed` of table `findings`."""

#: Stages `remeasure` and `imitate` give these answers; `found`: the rule names no cause, and the experiment found one.
_WORDS = {
    "yes": "confirmed",
    "found": "found by an experiment",
    "no": "refuted by an experiment",
    "not_tested": "not confirmed",
}


def describe_answer(confirmed: str | None) -> str:
    """Return the words for an answer; none is as good as `not_tested`."""
    return _WORDS.get(confirmed or "not_tested", str(confirmed))


def names_cause(confirmed: str | None) -> bool:
    """Whether an experiment says what the cause is."""
    return confirmed in ("yes", "found")
