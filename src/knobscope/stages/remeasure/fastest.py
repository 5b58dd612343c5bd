"""What new runs say of the fastest configurations: pairs with the default, and power cuts."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from knobscope.specs import StudySpecs
from knobscope.stages.measure import cut_case, open_cutter
from knobscope.stages.remeasure.causes import Answer
from knobscope.stages.remeasure.experiment import ITSELF
from knobscope.statistics.looks import SIGNIFICANCE
from knobscope.tables import FastestRow


def list_fastest(specs: StudySpecs, answers: Sequence[Answer], folder: Path) -> list[FastestRow]:
    """Return what is now known of the fastest configurations, for table `fastest`: all but what picked them.

    Those that are called safe have their power cut, with what that writes in a folder.
    """
    rows = [(answer.question, _tell_pairs(answer)) for answer in answers if answer.question.risk is not None]
    called_safe = [(question, row) for question, row in rows if question.risk == "none"]
    if called_safe and specs.study.remeasure.cuts:
        with open_cutter(folder) as cutter:
            for question, row in called_safe:
                print(f"remeasure: power cuts of the fastest safe configuration of {question.case}", file=sys.stderr)
                configurations = question.configuration, question.reference
                cut = cut_case(specs, question.case, *configurations, specs.study.remeasure.cuts, cutter)
                row.update(cast("FastestRow", cut))
    return [row for _, row in rows]


def _tell_pairs(answer: Answer) -> FastestRow:
    case, risk, repeated_effect = answer.question.case, answer.question.risk, answer.repeated_effect
    row: FastestRow = {"dbms": case.dbms, "device": case.device, "workload": case.workload, "risk": str(risk)}
    row["pairs"] = answer.pairs.get(ITSELF, 0)
    if repeated_effect is not None:
        low, high = repeated_effect.interval(SIGNIFICANCE)
        row |= {"again": repeated_effect.mean, "again_low": low, "again_high": high}
    return row
