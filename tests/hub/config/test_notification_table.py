"""What the table ``[notifications]`` of the site file accepts."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel.hub.config.site import SiteFile
from carrel.hub.errors import InvalidInput

MAIL = 'smtp = "mail.example.edu"\nsender = "Carrel <carrel@example.edu>"\n'


def read(keys: str) -> SiteFile:
    return SiteFile.parse(f"[notifications]\n{keys}", Path("carrel.toml"))


def test_a_site_without_the_table_has_no_notifications() -> None:
    assert not SiteFile.parse("", Path("carrel.toml")).notifications.available


def test_the_own_address_of_a_user_is_made_of_the_name() -> None:
    table = read(f'{MAIL}own_address = "{{user}}@example.edu"').notifications
    assert (table.port, table.mail_of("ada")) == (587, "ada@example.edu")
    assert table.mail_of("ada@lab") == table.mail_of("ada,bob") == ""


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ('smtp = "mail.example.edu"', "set sender too"),
        (MAIL, "set own_address or domains"),
        (f'{MAIL}own_address = "all@example.edu"', "an e-mail address with {user}"),
        (f'{MAIL}domains = ["e.edu"]\nsmtp_user = "x"', "smtp_password_file must be set together"),
        ('sender = "a@b.edu\\nBcc: c@d.edu"', "must be an e-mail address"),
        ('services = ["syslog"]', "must be one of discord"),
        ('services = ["jsons"]', "set hosts"),
        ('services = ["jsons"]\nhosts = ["https://x.edu"]', "must be a host name"),
        ('url = "jupyter.example.edu"', "http or https address"),
    ],
)
def test_a_mistake_is_reported_with_its_key(keys: str, says: str) -> None:
    with pytest.raises(InvalidInput, match="notifications") as caught:
        read(keys)
    assert says in caught.value.message
