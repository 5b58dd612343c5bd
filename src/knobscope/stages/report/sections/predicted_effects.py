"""What each value of a knob does alone by the model of screening: the effects of a study without a sweep."""

import math

from knobscope.figures import Effect, Figure, ForestRow, MetricPanel, draw_forest, slug
from knobscope.specs import Case, value_text
from knobscope.stages.plan import case_space
from knobscope.study_data.study import Row, StudyData
from knobscope.tables.responses import RESPONSES
from knobscope.text.formats import describe_change, format_value

#: Knobs in the picture; table `predicted_effects` has all.
_MOST = 12


def predicted_effects(data: StudyData, case: Case) -> list[Figure]:
    """Return the forest plot of the knobs above noise; nothing where a sweep measured effects, or none is above noise.

    The model has to be trustworthy.
    """
    rows = data.rows(
        """
        SELECT p.* FROM predicted_effects p
        JOIN importance i USING (dbms, device, workload, knob)
        JOIN fits f ON (f.dbms, f.device, f.workload, f.round) = (i.dbms, i.device, i.workload, i.round)
        WHERE p.dbms = ? AND p.device = ? AND p.workload = ? AND i.above_noise AND i.rank <= ? AND f.trustworthy
            AND NOT EXISTS (FROM runs WHERE phase = 'sweep' AND status = 'ok')
        ORDER BY i.rank, try_cast(p.value AS DOUBLE), p.value
        """,
        *case,
        _MOST,
    )
    if not rows:
        return []
    default = case_space(data.specs, case).default
    response = RESPONSES[data.specs.study.screening.response]
    panel = MetricPanel(
        f"{response.words[:1].upper()}{response.words[1:]}, predicted", response.less, response.more, response.sign
    )
    changes = [
        f"{row['knob']} = {row['value']}: {describe_change(response.sign * row['effect'], *response.words_of_column)}"
        for row in rows
    ]
    lines = [_line(data, case, row, value_text(default[row["knob"]]), response.sign) for row in rows]
    return [
        Figure(
            name=slug("predicted", *case),
            title="What each value does, by the model",
            caption="Against the default, all other knobs at their defaults. Lines are 95 % intervals from models of "
            "halves of the runs. No knob was changed alone, so a sweep would have to confirm this.",
            description=f"Predicted change of {response.words}. {'; '.join(changes)}.",
            draw=lambda width: draw_forest(width, lines, [panel]),
            data=rows,
            wide=True,
        )
    ]


def _line(data: StudyData, case: Case, row: Row, default: str, sign: int) -> ForestRow:
    dbms, least = data.specs.dbms.get(case.dbms), math.log1p(data.specs.study.thresholds.min_effect)
    is_clear = row["effect_low"] * row["effect_high"] > 0 and abs(row["effect"]) >= least
    low, high = sorted((sign * row["effect_low"], sign * row["effect_high"]))
    effect = Effect(sign * row["effect"], (low, high), is_clear)
    note = f"default {format_value(dbms, row['knob'], default)}"
    return ForestRow(row["knob"], note, format_value(dbms, row["knob"], row["value"]), (effect,))
