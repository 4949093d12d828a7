"""Output of jobs may use colours of the terminal and no other control sequences."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from carrel.hub.cli.common.terminal import TerminalSanitizer, plain

from ....fake_service import FakeService

EVIL = "\x1b]0;not your window\x07\x1b[2J\x1b[H\x1b]52;c;Y3VybA==\x1b\\\x1bc\x9b2J\a\b"
KEPT = "\x1b[1;38:5:2mgreen\x1b[0m\tgrößer 50%\r100%\r\nend\n"


def tamed(*parts: bytes) -> str:
    tamer = TerminalSanitizer()
    return "".join([*map(tamer.feed, parts), tamer.close()])


def test_colours_and_moves_within_a_line_stay() -> None:
    assert tamed(KEPT.encode()) == KEPT


def test_nothing_else_reaches_the_terminal() -> None:
    assert tamed((EVIL + KEPT + EVIL).encode()) == "2J" + KEPT + "2J"  # \x9b alone is dropped


def test_sequences_may_be_split_between_pieces() -> None:
    text = (EVIL + KEPT + EVIL).encode()
    assert tamed(*(text[n : n + 1] for n in range(len(text)))) == tamed(text)


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("\x1b]0;never ended\nthe rest", "0;never ended\nthe rest"),
        ("\x1b[" + "1" * 99 + "mlong", "1" * 99 + "mlong"),
        ("\x1b\x1b[2Jx\x1b", "x"),
        ("\x1b[?1049hx\x1b[1Ay", "xy"),
        ("\x1b\x00[2Jx", "[2Jx"),
        ("\x1b[\x002Jx", "2Jx"),
    ],
)
def test_incomplete_sequences_are_shown_as_text(printed: str, shown: str) -> None:
    assert tamed(printed.encode()) == shown


def test_an_open_colour_is_reset_at_the_end() -> None:
    assert tamed(b"\x1b[31mred") == "\x1b[31mred\x1b[0m"


def test_plain_text_has_no_colours_either() -> None:
    assert plain(EVIL + "\x1b[31m 50%\r100%\n") == "100%\n"


@pytest.mark.parametrize("options", [[], ["-f"]])
@pytest.mark.parametrize("where", ["terminal", "raw", "pipe"])
def test_logs_are_sanitized_in_a_terminal_only(where: str, options: list[str]) -> None:
    log = EVIL + "\x1b[31mred\x1b[0m\n"
    with FakeService() as service:
        service.add("j-1", state="succeeded", ended=True)
        service.logs["j-1"] = log.encode()
        raw = ["--raw"] if where == "raw" else []
        said = _said(service, ["logs", *options, *raw, "j-1"], in_terminal=where != "pipe")
    if where == "terminal":
        assert said == "2J\x1b[31mred\x1b[0m\r\n"
    else:
        assert said.replace("\r\n", "\n") == log


def test_causes_are_sanitized_too() -> None:
    with FakeService() as service:
        cause = {"code": "cell_error", "message": "It failed." + EVIL, "details": EVIL + "boom"}
        service.add("j-1", state="failed", ended=True, cause=cause, labels={"a": EVIL})
        said = _said(service, ["show", "j-1"], in_terminal=True)
    assert "\nboom" in said.replace("2Jboom", "boom").replace("\r", "")
    assert not set(said) & {"\x1b", "\x07", "\x08", "\x9b"}


def test_a_sweep_whose_trials_are_trained_as_one_says_so() -> None:
    sweep = {
        "trials": 12, "parallel": 1, "share": True, "trial_seconds": 0, "objective": "",
        "maximize": False,
    }  # fmt: skip  # grouped by meaning
    with FakeService() as service:
        service.add("j-1", sweep={**sweep, "together": True})
        service.add("j-2", sweep=sweep)
        one, plain = (_said(service, ["show", name], in_terminal=False) for name in ("j-1", "j-2"))
    assert "\nTrials:          12 trials trained as one\n" in one
    assert "Trials:" not in plain


def _said(service: FakeService, arguments: list[str], *, in_terminal: bool) -> str:
    """Return what the command writes into a terminal (with CR LF) or into a pipe."""
    end, output = pty.openpty() if in_terminal else os.pipe()
    with subprocess.Popen(
        [sys.executable, "-m", "carrel.hub.cli", *arguments],
        stdout=output,
        env={**os.environ, "CARREL_URL": service.url, "CARREL_TOKEN": "a-token"},
    ) as process:
        os.close(output)
        found = b""
        while part := _read(end):
            found += part
        assert process.wait(30) == 0
    os.close(end)
    return found.decode()


def _read(end: int) -> bytes:
    try:
        return os.read(end, 4096)
    except OSError:  # a terminal whose other end is closed
        return b""
