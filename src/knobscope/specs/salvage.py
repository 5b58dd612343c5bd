"""A study with mistakes in it, as far as it can be read: what it names is checked too, for all problems at once."""

import copy
from typing import Any

from knobscope.specs.models.study import Study
from knobscope.specs.reading.source import Document, SpecProblem
from knobscope.specs.reading.validate import examine_document

#: Without these there is nothing to look up, or other problems would follow from the first one.
_ESSENTIAL = ("dbms", "devices", "workloads", "knobs", "baseline")


def examine_study(document: Document) -> tuple[Study | None, list[SpecProblem]]:
    """Return the study, without what is wrong in it, and all problems of its file; None when too little is right."""
    study, problems = examine_document(document, Study)
    if study is not None or not isinstance(document.data, dict):
        return study, problems
    valid = _without_wrong(document.data, problems)
    return (None if valid is None else examine_document(Document(document.path, valid, {}), Study)[0]), problems


def _without_wrong(data: dict[Any, Any], problems: list[SpecProblem]) -> dict[Any, Any] | None:
    """Return the data with defaults instead of what is wrong, None when something essential is."""
    valid = copy.deepcopy(data)
    for problem in problems:
        if not problem.location:
            return None
        first, *deeper = problem.location
        if first == "knobs" and len(deeper) > 1:  # what the study says of one knob of a DBMS
            valid["knobs"][deeper[0]][deeper[1]] = None
        elif first == "workloads" and deeper:  # what it changes in one of them
            valid["workloads"][deeper[0]] = None
        elif first in _ESSENTIAL:
            return None
        else:
            valid.pop(first, None)
    return {"name": "unknown", "description": "", **valid}
