"""What tuners leave out of the knobs of a case: values that risk committed data, unless the study allows them."""

from knobscope.specs import Case, value_text
from knobscope.stages.plan.search_space import search_space
from knobscope.study_data.study import StudyData
from knobscope.text.formats import format_value

#: Said of a knob of which nothing but the default remains.
WHOLE = "all but its default"


def list_left_out(data: StudyData, case: Case) -> dict[str, str]:
    """Return the values that tuners do not try because they risk committed data, by knob, in words."""
    tune = data.specs.study.tune
    if case not in data.specs.cases or (tune is not None and tune.with_durability):
        return {}
    space = search_space(data.specs, case, [], None, with_durability=False)
    return {
        name: WHOLE
        if name in space.left_out
        else ", ".join(format_value(space.dbms, name, value_text(value)) for value in values)
        for name, values in space.risky.items()
    }
