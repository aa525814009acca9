"""Ports that one test process has for itself, whatever else runs on this machine."""

import socket

from scheduler_app.embedded.server import LOOPBACK

#: Of each test process: more than it has given away while any of them is still waited for.
PORTS_EACH = 500
#: What the processes of tests hold, to the end of this one.
_held: list[socket.socket] = []


def own_ports(of: range, each: int = PORTS_EACH) -> range:
    """A part of the range that no other process has asked this for; all of it where none is left.

    Who holds the first port of a part has the part: a port that one process has found to be free must not be
    taken by another before it is listened on, be that of the same run of tests or of another one.
    """
    for first in range(of.start, of.stop - each + 1, each):
        holder = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            holder.bind((LOOPBACK, first))
        except OSError:
            holder.close()
            continue
        _held.append(holder)
        return range(first + 1, first + each)
    return of
