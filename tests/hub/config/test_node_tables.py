"""Tables of machines in carrel.toml are added and removed; everything else stays as it is."""

from __future__ import annotations

import pytest

from carrel.hub.config.node_tables import with_node, without_node
from carrel.hub.config.site import NodeTable
from carrel.hub.errors import InvalidInput

GPU2 = NodeTable(name="gpu2", docker_host="ssh://carrel@gpu2", address="10.1.2.5")
FILE = """\
# Our site.
engine = "docker"

[docker]
address = "10.1.2.3"  # of this machine

[[nodes]]  # the old one
name = "gpu1"
docker_host = "ssh://carrel@gpu1"
address = "10.1.2.4"
"""
TABLE = """
[[nodes]]
name = "gpu2"
docker_host = "ssh://carrel@gpu2"
address = "10.1.2.5"
"""


def test_a_table_is_added_at_the_end_and_removed_again() -> None:
    assert with_node(FILE, GPU2) == FILE + TABLE
    assert without_node(FILE + TABLE, "gpu2") == FILE
    assert with_node("", GPU2) == TABLE.lstrip()
    assert without_node(TABLE, "gpu2") == ""


def test_a_table_between_others_is_removed_with_its_comment() -> None:
    head, _, _ = FILE.partition("\n[[nodes]]")
    after = "\n[docker.more]\n"
    assert without_node(FILE + TABLE, "gpu1") == head + TABLE
    assert without_node(f"[[nodes]]\nname = 'a'{after}", "a") == after.lstrip()


@pytest.mark.parametrize(
    "text",
    ["nodes = [{ name = 'gpu1' }]\n", "[[nodes]]\nname = 'gpu1'\n[nodes.more]\nx = 1\n"],
    ids=["inline", "in two parts"],
)
def test_a_table_of_another_form_is_left_to_the_administrator(text: str) -> None:
    with pytest.raises(InvalidInput, match="not written as"):
        without_node(text, "gpu1")
