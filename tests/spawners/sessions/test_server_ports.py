"""Ports for servers: free, distinct, and outside the ephemeral range."""

from __future__ import annotations

import socket

from carrel.spawners.sessions.server_ports import next_port


def test_ports_that_wait_for_their_servers_are_distinct_and_below_outgoing_connections() -> None:
    found = [next_port() for _ in range(50)]
    assert len(set(found)) == 50
    assert max(found) < 32768, "where Linux begins to take ports for them"


def test_a_port_in_use_is_skipped() -> None:
    with socket.socket() as taken:
        following = next_port() + 1
        taken.bind(("127.0.0.1", following))
        taken.listen()
        assert next_port() != following
