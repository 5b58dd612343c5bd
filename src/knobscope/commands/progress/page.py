"""One terminal screen of a study's progress."""

from collections.abc import Sequence

from knobscope.commands.progress.reading import CaseProgress, StudyProgress
from knobscope.specs import StudySpecs
from knobscope.text.formats import UNKNOWN, format_count, format_seconds, loosen_units, plural
from knobscope.text.text_table import align

_BAR = 20
#: A job that is heard of after every run is not heard of for so long when a run is slow, or nothing runs any more.
_SILENT_S = 120.0


def format_progress(specs: StudySpecs, progress: StudyProgress, whole: str) -> str:
    """Return the screen; `whole` says what the whole study takes."""
    study = specs.study
    table = [["case", "", "runs", "failed", "block"], *map(_describe_case, progress.cases)]
    lines = [f"{study.name}: {study.description}", whole, "", align(table), "", *_describe_end(study.name, progress)]
    return loosen_units("\n".join(lines))


def _describe_case(case: CaseProgress) -> Sequence[str]:
    filled = round(_BAR * case.done / case.planned) if case.planned else 0
    block = UNKNOWN
    if case.running:
        block = case.running[0]
    elif case.blocks:
        block = f"{case.blocks_done} of {case.blocks} done"
    runs = f"{format_count(case.done)} of {format_count(case.planned)}" if case.planned else "none planned yet"
    return [str(case.case), "#" * filled + "." * (_BAR - filled), runs, format_count(case.failed), block]


def _describe_end(name: str, progress: StudyProgress) -> list[str]:
    if progress.report:
        return [f"finished; the report: {progress.report}"]
    if progress.job is None or progress.silence_s is None:
        return ["nothing has been done yet"]
    running = [case.running[1] for case in progress.cases if case.running]
    lines = [f"last run: {state.result}  {state.changed}" for state in running]
    lines.append(f"last heard of: {progress.job}, {format_seconds(progress.silence_s)} ago")
    remaining_s = sum(case.left_s for case in progress.cases)
    lines.append(
        f"what is planned so far takes about {format_seconds(remaining_s)} more"
        if remaining_s
        else "all runs planned so far are done; what that job and those after it take is not known yet"
    )
    if progress.silence_s > _SILENT_S:
        lines.append("if no Snakemake runs any more: the same call of it goes on where this one ended")
    failed = sum(case.failed for case in progress.cases)
    if failed:
        lines.append(f"{plural(failed, 'run')} failed; why is in the logs below results/{name}/logs")
    return lines
