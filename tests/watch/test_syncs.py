"""A call of sync(2) by anybody is noticed."""

import os

import pytest
from loop_devices import Syncs

pytestmark = pytest.mark.real


def test_a_call_is_noticed(syncs: Syncs) -> None:
    os.sync()
    assert syncs.came()
