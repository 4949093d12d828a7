"""Notifications over a real store, a real mail server and a real receiver of webhooks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from carrel.hub.config.notification_table import NotificationTable
from carrel.hub.notifications.address_seal import AddressSeal
from carrel.hub.notifications.background import BackgroundNotifications
from carrel.hub.notifications.channel_store import ChannelStore
from carrel.hub.notifications.collector import Collector
from carrel.hub.notifications.delivery import NotificationDelivery
from carrel.hub.notifications.links import MessageLinks
from carrel.hub.notifications.outbox_store import OutboxStore
from carrel.hub.notifications.sender import AppriseSender, Sender
from carrel.hub.notifications.service import NotificationService
from carrel.hub.schemas.notifications.bodies import ChannelIn, ChannelOut
from carrel.hub.schemas.notifications.events import NotificationEvent
from carrel.hub.secrets.cipher import Cipher
from carrel.hub.store import SqlStore
from carrel.hub.web.security.signer import Signer

from ...contracts.store_kit import furnish
from ...mail_server import MailServer, Webhook, mail_server, webhook
from ...stores import new_store
from ..doubles import STUDENT1, Clock

SECRET = "s3cr3t-path"
"""The secret part of the address of the webhook."""


@dataclass(kw_only=True)
class Office:
    """Everything that tells users, with a clock that tests advance."""

    store: SqlStore
    clock: Clock
    mail: MailServer
    hook: Webhook
    table: NotificationTable
    seal: AddressSeal
    service: NotificationService
    background: BackgroundNotifications

    @property
    def hook_address(self) -> str:
        return f"json://127.0.0.1:{self.hook.port}/{SECRET}"

    def add(self, *events: NotificationEvent, address: str = "") -> ChannelOut:
        return self.service.add(STUDENT1, ChannelIn(address=address, events=list(events)))

    def only_channel(self) -> ChannelOut:
        (channel,) = self.service.all(STUDENT1).channels
        return channel

    def step(self, seconds: float = 0.0) -> None:
        """Let time pass, collect, send, and wait until everything is sent."""
        self.clock.pass_(seconds)
        self.background.step()
        assert self.background.wait_for_sending(30.0)

    def restart(self) -> None:
        """Forget what is not in the store, as a new process does."""
        self.service, self.background = assemble(self.store, self.clock, self.table, self.seal)


def assemble(
    store: SqlStore,
    clock: Clock,
    table: NotificationTable,
    seal: AddressSeal,
    sender: Sender | None = None,
) -> tuple[NotificationService, BackgroundNotifications]:
    channels, outbox = ChannelStore(store.transactions), OutboxStore(store.transactions)
    links = MessageLinks(base="http://carrel.example.edu/services/carrel", signer=Signer("key"))
    sender = sender or AppriseSender(table, seal)
    service = NotificationService(
        channels=channels,
        outbox=outbox,
        sender=sender,
        seal=seal,
        links=links,
        table=table,
        clock=clock,
    )
    collector = Collector(store, channels, outbox, clock, 600.0)
    delivery = NotificationDelivery(
        channels=channels, outbox=outbox, sender=sender, links=links, table=table, clock=clock
    )
    return service, BackgroundNotifications(collector, delivery)


@contextmanager
def open_office(folder: Path, **changes: object) -> Iterator[Office]:
    """Open a store with two devices; ``changes`` are keys of the site's table."""
    with mail_server() as mail, webhook() as hook:
        keys = {
            "smtp": "127.0.0.1",
            "smtp_port": mail.port,
            "smtp_security": "none",
            "sender": "Carrel <carrel@example.edu>",
            "own_address": "{user}@example.edu",
            "domains": ["lab.example.edu"],
            "services": ["json"],
            "hosts": [f"127.0.0.1:{hook.port}"],
        }
        table = NotificationTable.model_validate(keys | changes)
        store, clock = new_store(), Clock()
        seal = AddressSeal(Cipher(folder / "encryption.keys"))
        furnish(store)
        service, background = assemble(store, clock, table, seal)
        background.step()
        yield Office(
            store=store,
            clock=clock,
            mail=mail,
            hook=hook,
            table=table,
            seal=seal,
            service=service,
            background=background,
        )
