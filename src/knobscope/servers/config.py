"""Configuration files of a server: the fixed content of the spec, then the knobs."""

from typing import Any

import yaml

from knobscope.processes import write_shared
from knobscope.servers.instance import Configuration, Instance
from knobscope.specs import Moment, Value, Writing


def write_config_files(instance: Instance, configuration: Configuration, moment: Moment) -> None:
    """Write all files under `config_files` anew, with the knobs that are passed at this moment."""
    for name, file in instance.dbms.config_files.items():
        if file.yaml is not None:
            content = _fill(instance, file.yaml)
            for knob, value, writing in instance.knobs_at(configuration, moment):
                if writing.file == name:
                    _set_keys(content, instance, knob, value, writing)
            text = yaml.safe_dump(content, sort_keys=False)
        else:
            lines = [instance.fill(line) for line in file.lines or []]
            for knob, value, writing in instance.knobs_at(configuration, moment):
                if writing.file == name:
                    lines += _lines_of(instance, knob, value, writing)
            text = "".join(f"{line}\n" for line in lines)
        write_shared(instance.config / name, text, instance.user)


def _fill(instance: Instance, content: Any) -> Any:
    if isinstance(content, str):
        return instance.fill(content)
    if isinstance(content, dict):
        return {key: _fill(instance, value) for key, value in content.items()}
    return [_fill(instance, value) for value in content] if isinstance(content, list) else content


def _set_keys(content: dict[str, Any], instance: Instance, knob: str, value: Value, writing: Writing) -> None:
    """Set the keys of one knob; a value with no unit behind it keeps its type, and a key set to nothing goes away."""
    if writing.key is not None:
        unit = instance.dbms.knobs[knob].unit
        plain = writing.value == "{value}" or (writing.value == "{value}{unit}" and not unit)
        key = instance.fill_knob(writing.key, knob, value)
        content[key] = value if plain and knob not in instance.homes else instance.fill_knob(writing.value, knob, value)
        return
    fragment = writing.of_value(value)
    for key, setting in fragment.items() if isinstance(fragment, dict) else ():
        if setting is None:
            content.pop(key, None)
        else:
            content[key] = setting


def _lines_of(instance: Instance, knob: str, value: Value, writing: Writing) -> list[str]:
    lines = [writing.line] if writing.line is not None else writing.of_value(value)
    return [instance.fill_knob(line, knob, value) for line in lines or []]
