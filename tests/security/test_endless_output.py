"""Programs of a spec that write without end are ended, with a sentence that names the limit."""

from pathlib import Path

import pytest

from knobscope.errors import UserError
from knobscope.servers import Server, ServerFailedError, ask_instance, make_data_directory, open_instance, read_version
from knobscope.specs import Dbms

pytestmark = pytest.mark.real

#: A server whose log would be longer than a command may write, without the disk that this takes.
LONG_LOG = "import os, time; os.ftruncate(1, (1 << 30) + 1); time.sleep(60)"


KNOB = {
    "type": "integer",
    "range": [1, 2],
    "default": 1,
    "apply": "restart",
    "mechanism": "other",
    "description": "nothing",
    "source": "https://example.org",
}


@pytest.fixture
def endless() -> Dbms:
    programs = {name: {"find": [f"/usr/bin/{name}"], "package": "coreutils"} for name in ("yes", "sleep", "python3")}
    return Dbms.model_validate(
        {
            "name": "endless",
            "description": "writes without end",
            "programs": programs,
            "version": ["yes"],
            "lifecycle": {"start": ["sleep", "60", "{knobs}"], "ready": ["yes"], "stop": {"timeout_s": 1}},
            "readback": {"command": ["yes"], "parser": "ini"},
            "writing": {"restart": {"argv": ["{knob}={value}"]}},
            "knobs": {"knob": KNOB},
            "files": {"data": ["*"]},
        }
    )


def test_every_answer_has_a_limit(endless: Dbms, open_directory: Path) -> None:
    assert endless.lifecycle is not None
    make_data_directory(open_directory / "data")
    with open_instance(endless, open_directory / "data") as instance:
        with pytest.raises(UserError, match=r"/usr/bin/yes wrote more than 1 MiB of output and was ended"):
            read_version(instance)
        with pytest.raises(ServerFailedError, match=r"/usr/bin/yes wrote more than 16 MiB of output and was ended"):
            ask_instance(instance)
        with (
            Server(instance, endless.lifecycle, {}, open_directory / "log") as server,
            pytest.raises(ServerFailedError, match=r"yes, which `ready` names, wrote more than 16 MiB of output"),
        ):
            server.wait_ready()


def test_a_log_has_a_limit_and_is_read_at_both_ends_only(endless: Dbms, open_directory: Path) -> None:
    assert endless.lifecycle is not None
    life = endless.lifecycle.model_copy(update={"start": ["python3", "-c", LONG_LOG], "ready": ["sleep", "0"]})
    make_data_directory(open_directory / "data")
    with (
        open_instance(endless, open_directory / "data") as instance,
        Server(instance, life, {}, open_directory / "log") as server,
    ):
        assert server.process.wait(30) == 128 + 25  # SIGXFSZ
        with pytest.raises(ServerFailedError) as caught:
            server.wait_ready()
    assert "ended, since it wrote a log of more than 1024 MiB" in caught.value.log_tail
    assert len(caught.value.log_tail) < 3 << 20
