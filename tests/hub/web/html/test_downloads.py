"""Names of downloads: exact in UTF-8, with a readable fallback in ASCII."""

from __future__ import annotations

import re
from email.message import Message

import pytest

from carrel.hub.client.transport.calls import HttpResponse
from carrel.hub.client.transport.downloads import OutputFile
from carrel.hub.web.html.downloads import attachment

from ....source_tree import ROOT, modules


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("train.ipynb", "train.ipynb"),
        ("übung.ipynb", "ubung.ipynb"),
        ("u\u0308bung.ipynb", "ubung.ipynb"),
        ('a "b"; c.ipynb', "a _b__ c.ipynb"),
        ("\u0938\u0935\u093e\u0932.ipynb", "____.ipynb"),
        ("a\r\nSet-Cookie: x.ipynb", "a__Set-Cookie_ x.ipynb"),
    ],
)
def test_a_download_has_its_name_and_a_fallback(name: str, plain: str) -> None:
    header = attachment(name)
    assert header.isascii()
    assert f'filename="{plain}"' in header
    parsed = Message()
    parsed["Content-Disposition"] = header
    assert parsed.get_filename() in (name, plain)
    response = HttpResponse(headers={"Content-Disposition": header}, content=b"")
    assert OutputFile.of(response, "j-1").name == name


def test_the_fallback_is_used_where_there_is_no_other() -> None:
    for header, name in (('attachment; filename="a.ipynb"', "a.ipynb"), ("inline", "j-1.ipynb")):
        response = HttpResponse(headers={"Content-Disposition": header}, content=b"")
        assert OutputFile.of(response, "j-1").name == name


def test_one_function_writes_the_header() -> None:
    """Every Content-Disposition comes from ``attachment``."""
    written = re.compile(r"""["']Content-Disposition["']\]?\s*[:=]\s*(\w+)""", re.IGNORECASE)
    found = {
        (str(path.relative_to(ROOT)), value)
        for path in modules().values()
        for value in written.findall(path.read_text(encoding="utf-8"))
    }
    assert {value for _, value in found} == {"attachment"}
    assert len(found) >= 4
