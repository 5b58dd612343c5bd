"""The ranking of a finished study: what the first K knobs of a search space are."""

from pathlib import Path

from knobscope.errors import UserError
from knobscope.specs import Case, StudySpecs, find_case
from knobscope.study_data.study import StudyData


def chosen_case(specs: StudySpecs, text: str | None) -> Case:
    """Return the case that an option names, or the only one of the study. UserError: none, or several."""
    names = ", ".join(map(str, specs.cases))
    if text is None:
        if len(specs.cases) > 1:
            raise UserError(f"study {specs.study.name} has several cases; choose one with --case: {names}")
        return specs.cases[0]
    return find_case(specs, text)


def ranked_knobs(database: Path, specs: StudySpecs, case: Case) -> tuple[list[str], str]:
    """Return the knobs of a case, most important first, and why that order cannot be trusted; empty: it can.

    UserError: the database is missing or holds no ranking.
    """
    with StudyData.open(database, specs) as data:
        rows = data.rows(
            "SELECT knob FROM importance WHERE dbms = ? AND device = ? AND workload = ? ORDER BY rank",
            *case,
        )
        doubts = data.rows(
            "SELECT reason_trust FROM fits WHERE dbms = ? AND device = ? AND workload = ? "
            "QUALIFY row_number() OVER (ORDER BY round DESC NULLS LAST) = 1 AND NOT trustworthy",
            *case,
        )
    if not rows:
        raise UserError(f"{database} holds no ranking of {case}; the study has to be screened first")
    return [row["knob"] for row in rows], "".join(row["reason_trust"] for row in doubts)
