"""The parameters of TPC-C and what each of them takes; what a workload does not state is as in the specification."""

from collections.abc import Iterator, Mapping

from knobscope.specs.reading.base import Misfit, Value, suggest
from knobscope.specs.reading.source import show_value

#: Kinds of transactions, each with the cards that it has in the deck from which the mix is dealt (clause 5.2.4.2).
_CARDS = {"new_order": 45, "payment": 43, "order_status": 4, "delivery": 4, "stock_level": 4}
#: Share of ordered items, and of payments, that belong to another warehouse (clauses 2.4.1.5 and 2.5.1.2).
_SHARES = {"remote_item_share": 0.01, "remote_payment_share": 0.15}
_MOST_CARDS = 1000
_SMALLEST = 100

#: Parameters with the values that hold where a workload states none.
TPCC_DEFAULTS: Mapping[str, Value] = {**_CARDS, **_SHARES, "think_times": False, "scale": 1}


def find_wrong_tpcc(parameters: Mapping[str, Value]) -> Iterator[Misfit]:
    """Yield parameters that TPC-C does not have, values that it cannot use, and a deck without cards."""
    wrong = False
    for name, value in parameters.items():
        expected = _expected(name, value)
        if expected is not None:
            wrong = True
            found = show_value(value) if name in TPCC_DEFAULTS else "an unknown parameter"
            yield Misfit(("parameters", name), found, expected)
    if not wrong and not any(parameters.get(kind, cards) for kind, cards in _CARDS.items()):
        yield Misfit(("parameters",), "a deck without cards", f"at least one card of {', '.join(_CARDS)}")


def _expected(name: str, value: Value) -> str | None:
    """Say what a parameter takes instead of this value, None when it takes it."""
    is_share = type(value) in (int, float) and 0 <= float(value) <= 1
    if name in _CARDS:
        is_count = type(value) is int and 0 <= value <= _MOST_CARDS
        return None if is_count else f"a whole number of cards from 0 to {_MOST_CARDS}"
    if name in _SHARES:
        return None if is_share else "a share from 0 to 1"
    if name == "think_times":
        return None if isinstance(value, bool) or is_share else "true, false, or a share of the waits from 0 to 1"
    if name == "scale":
        fits = type(value) is int and 1 <= value <= _SMALLEST
        return None if fits else f"a whole number from 1 to {_SMALLEST}"
    return suggest(name, sorted(TPCC_DEFAULTS))
