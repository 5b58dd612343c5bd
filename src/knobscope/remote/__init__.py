"""Another machine, reached by ssh: what is started there ends with us; of files just the client's jars are left."""

from knobscope.remote.clocks import ClockOffset
from knobscope.remote.connection import RemoteError
from knobscope.remote.machine import RemoteMachine, open_machine
