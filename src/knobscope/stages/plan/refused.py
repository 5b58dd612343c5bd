"""What plans leave out because the DBMS refuses it, or takes it for another value, as trials or the spec say."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from knobscope.specs import Dbms, Value, value_text


@dataclass(frozen=True)
class RefusedValue:
    """A value of a knob that no plan has, or not together with others, and why."""

    knob: str
    value: Value
    reason: str
    is_replaced: bool = False  # whether another value, which the DBMS makes of it, is measured instead


def list_refused(dbms: Dbms, knobs: Collection[str]) -> Iterator[RefusedValue]:
    """Yield what is refused of these knobs: values, values that become others, and those that clash with others."""
    for name in knobs:
        knob = dbms.knobs[name]
        for value, reason in knob.refused.items():
            yield RefusedValue(name, value, f"{dbms.name} refuses it: {reason}")
        for value in knob.becomes:
            substitute = value_text(knob.settle(value))
            yield RefusedValue(name, value, f"{dbms.name} takes it for {substitute}, which is measured instead", True)
    for clash in dbms.clashes:
        if clash.values.keys() <= set(knobs):
            (first, value), *partners = clash.values.items()
            beside = ", ".join(f"{name} = {value_text(partner_value)}" for name, partner_value in partners)
            yield RefusedValue(first, value, f"{dbms.name} refuses it together with {beside}: {clash.words}")
