"""The Carrel service: puts the parts together and runs them (the composition root)."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import fcntl
import logging
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path

from .config import garbage_collection

if __name__ == "__main__":
    # Before the imports: they allocate millions of objects and hardly any garbage.
    garbage_collection.raise_thresholds()

from fastapi import FastAPI

from ..courses.files.blobs import FolderBlobs
from ..courses.gradebook import plugins as gradebook_plugins
from ..courses.leaderboards.background import BackgroundEvaluation
from ..courses.sandbox import plugins
from ..courses.services import CourseServices
from ..courses.store import SqlCourseStore
from . import plugins as hub_plugins
from .accounts.store import Accounts
from .attempts.compile_caches import OwnerCompileCaches
from .backup.background import BackgroundBackups
from .config import backend as config_backend
from .config import log as config_log
from .config.base_url import BASE_URL, VARIABLE
from .config.learned_orders import load_learned_order, usable_learned_order
from .config.lost_state import refuse_lost_state
from .config.notification_table import NotificationTable
from .config.secrets import Secrets
from .config.settings import Settings
from .config.signing_key import site_signing_key
from .config.site import SiteFile
from .config.state_folder import StateFolder
from .controller.devices.device_validation import DeviceValidation, remove_validation_marks
from .controller.devices.validation_store import ValidationStore
from .controller.idle_culling import IdleCulling
from .controller.loop import Loop
from .demo import prepare_demo
from .errors import CarrelError, InvalidInput, StateInUse, Unavailable
from .files.local import LocalFiles
from .forecasts.service import JobRunTimes
from .interfaces.backend import Backend
from .jupyterhub.availability import HubAvailability
from .jupyterhub.client import HubApi
from .notifications.address_seal import AddressSeal
from .notifications.background import BackgroundNotifications
from .notifications.channel_store import ChannelStore
from .notifications.collector import Collector
from .notifications.delivery import NotificationDelivery
from .notifications.links import MessageLinks
from .notifications.outbox_store import OutboxStore
from .notifications.sender import AppriseSender
from .notifications.service import NotificationService
from .open_links.tickets import OpenLinks
from .receipts.background import ReceiptWriter
from .receipts.ended_jobs import EndedJobs
from .receipts.service import ReceiptService
from .requests.sweeps import TrialService
from .runtime.context import Context
from .runtime.loop_metrics import LoopMetrics
from .runtime.progress_cache import ProgressCache
from .runtime.service_clock import ServiceClock
from .secrets.cipher import Cipher
from .shadow_order.recorder import ShadowRecorder
from .shadow_order.store import ShadowStore
from .store import SqlStore, open_store
from .supervisor import doctor
from .supervisor.doctor_run import DoctorRun
from .transparency.background import LogPublisher
from .transparency.log_store import SqlLogStore
from .transparency.publication import PublicationPlace
from .transparency.service import TransparencyLog
from .usage.site_report import SiteReports
from .web.app import Server, build_app
from .web.security.hub_oauth import HubSignIn
from .web.security.signer import Signer
from .workflows.monthly_reports import MonthlyReports
from .workflows.rehearsal_schedules import RehearsalSchedules

log = logging.getLogger("carrel")

NODE = "local"
DEMO_DEVICES = 2
"""Simulated devices of the demo where the driver finds none."""


def main(arguments: list[str] | None = None) -> int:
    """Run the service until it is told to stop; used by ``carrel up``."""
    parser = argparse.ArgumentParser(prog="python -m carrel.hub.app", description=__doc__)
    parser.add_argument("--state", required=True, help="the state folder")
    chosen = parser.parse_args(arguments)
    try:
        state = StateFolder.at(chosen.state)
        settings = Settings.load(state)
        if settings.base_url != BASE_URL:
            raise InvalidInput(
                f"{VARIABLE} is {BASE_URL}, but this installation serves at {settings.base_url}.",
                accepted="`carrel up` starts the service with the stored value.",
            )
        config_log.configure(config_log.chosen_format(settings.log))
        with only_one(state):
            serve(state, settings)
    except CarrelError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def serve(state: StateFolder, settings: Settings) -> None:
    """Build everything, then serve until SIGTERM."""
    secrets = Secrets.ensure(state)
    store = open_store(state.database, half_life=settings.use_half_life_seconds)
    clock = ServiceClock(store.clock_offset())
    accounts = Accounts(state.accounts)
    availability = HubAvailability()
    hub = HubApi(settings.hub_api_url, secrets.service_token, availability=availability)
    backend = choose_backend(state, settings)
    homes = config_backend.homes(state, settings)
    stopping = threading.Event()
    progress = ProgressCache(store)
    run_times = JobRunTimes(store, clock, progress, state.run_time_model, stopping)
    context = Context(
        store=store,
        hub=hub,
        files=LocalFiles(homes=homes, outputs=state.outputs),
        backend=backend,
        clock=clock,
        progress=progress,
        claim_seconds=settings.claim_seconds,
        grace_seconds=settings.preemption_grace_seconds,
        signing_key=site_signing_key(state),
        cipher=Cipher(state.encryption_keys),
        run_times=run_times,
        learned_order=usable_learned_order(state, settings.learned_order),
        compile_caches=OwnerCompileCaches.of(
            state.compile_caches, settings.compile_cache_bytes, homes.owner
        ),
    )
    courses = CourseServices.build(
        context,
        SqlCourseStore(store.transactions),
        FolderBlobs(state.blobs),
        sandboxes=partial(plugins.load_sandbox, state, settings),
        root=state.courses,
        owner=homes.owner,
        accounts=accounts,
        gradebooks=partial(gradebook_plugins.load_gradebook, state, settings),
        prefixes=state.prefixes,
    )
    idle_culling = IdleCulling(context, settings.idle_countdown_seconds)
    metrics = LoopMetrics()
    loop = Loop(
        context,
        node=NODE,
        idle_culling=idle_culling,
        validation=build_validation(context, store, settings),
        metrics=metrics,
        service_clock=clock,
        rehearsals=RehearsalSchedules(context, courses.rehearsals),
        shadow=ShadowRecorder(ShadowStore(store.transactions), partial(load_learned_order, state)),
    )
    loop.inventory()
    backups = BackgroundBackups(state, settings, store, clock)
    publisher = build_log(context, store, settings)
    receipts = ReceiptService(context, TrialService(context), site=settings.url)
    writer = ReceiptWriter(EndedJobs(store.transactions), receipts)
    notifications, background = build_notifications(
        context,
        store,
        table=SiteFile.load(state).notifications,
        settings=settings,
        signer=Signer(secrets.crypt_key),
        seal=AddressSeal(Cipher(state.encryption_keys)),
    )

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        cycling = asyncio.create_task(loop.run())
        threading.Thread(target=backups.remove_interrupted, daemon=True).start()
        for thread in (
            background,
            publisher,
            writer,
            run_times,
            BackgroundEvaluation(courses.leaderboards.evaluation, stopping),
            build_monthly_reports(
                context, state, settings, courses, notifications, stopping=stopping
            ),
        ):
            thread.start()
        if settings.demo:
            threading.Thread(target=prepare_demo, args=(courses, stopping), daemon=True).start()
        try:
            yield
        finally:
            stopping.set()
            background.stop()
            cycling.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await cycling
            await asyncio.to_thread(writer.stop)
            # Last, so that it enters the lines of the last cycle.
            await asyncio.to_thread(publisher.stop)

    app = build_app(
        context,
        HubSignIn.of(settings, secrets.service_token, availability),
        settings,
        clock=clock,
        hub_token=secrets.hub_token,
        crypt_key=secrets.crypt_key,
        lifespan=lifespan,
        accounts=accounts,
        metrics_token=secrets.metrics_token,
        loop_metrics=metrics,
        checks={"store": store.check, "hub": hub.check},
        doctor=DoctorRun(partial(doctor.findings, state, settings), clock),
        backups=backups,
        log=publisher.log,
        courses=courses,
        notifications=notifications,
        open_links=build_open_links(SiteFile.load(state), settings, Signer(secrets.crypt_key)),
    )
    server = Server.of(app, port=settings.service_port, host=settings.internal_ip)
    try:
        server.run()
    finally:
        loop.close()
        hub.close()
        accounts.close()
        store.close()


def build_validation(
    context: Context, store: SqlStore, settings: Settings
) -> DeviceValidation | None:
    """Build what validates devices; None where the settings do not want it."""
    if not settings.validate_devices:
        remove_validation_marks(context)
        return None
    booted_at = context.clock() - time.clock_gettime(time.CLOCK_BOOTTIME)
    return DeviceValidation(context, ValidationStore(store.transactions), booted_at)


def build_log(context: Context, store: SqlStore, settings: Settings) -> LogPublisher:
    """Build the log that can be proved, with the threads that grow and publish it."""
    proved = TransparencyLog(
        SqlLogStore(store.transactions),
        context.signing_key,
        settings.public_service_url,
        context.clock,
    )
    place = PublicationPlace(file=settings.log_heads_file, command=settings.log_heads_command)
    return LogPublisher(proved, place, settings.log_head_seconds)


def build_notifications(
    context: Context,
    store: SqlStore,
    *,
    table: NotificationTable,
    settings: Settings,
    signer: Signer,
    seal: AddressSeal,
) -> tuple[NotificationService, BackgroundNotifications]:
    """Build the channels of users, and the threads that collect and send notifications."""
    channels, outbox = ChannelStore(store.transactions), OutboxStore(store.transactions)
    links = MessageLinks(base=public_address(table, settings), signer=signer)
    service = NotificationService(
        channels=channels,
        outbox=outbox,
        sender=AppriseSender(table, seal),
        seal=seal,
        links=links,
        table=table,
        clock=context.clock,
    )
    collector = Collector(store, channels, outbox, context.clock, context.claim_seconds)
    delivery = NotificationDelivery(
        channels=channels,
        outbox=outbox,
        sender=service.sender,
        links=links,
        table=table,
        clock=context.clock,
    )
    return service, BackgroundNotifications(collector, delivery)


def build_monthly_reports(
    context: Context,
    state: StateFolder,
    settings: Settings,
    courses: CourseServices,
    notifications: NotificationService,
    *,
    stopping: threading.Event,
) -> MonthlyReports:
    """Build the thread that writes the report of each month, if the settings want it."""
    reports = SiteReports(
        store=context.store,
        clock=context.clock,
        costs=settings.device_models,
        currency=settings.currency,
    )
    return MonthlyReports(
        enabled=settings.monthly_report,
        context=context,
        reports=reports,
        folder=state.reports,
        courses=courses.access.course_names,
        channels=notifications.channels,
        outbox=notifications.outbox,
        stopping=stopping,
    )


def build_open_links(site_file: SiteFile, settings: Settings, signer: Signer) -> OpenLinks:
    """Build the rules and tickets of links that open material."""
    return OpenLinks(
        allowed=site_file.open_links.allowed,
        signer=signer,
        base=public_address(site_file.notifications, settings),
    )


def public_address(table: NotificationTable, settings: Settings) -> str:
    """Return the address of the service in messages and links, without a slash at its end."""
    return f"{table.url}/services/carrel" if table.url else settings.public_service_url


def choose_backend(state: StateFolder, settings: Settings) -> Backend:
    """The engine that was chosen; the demo pretends devices where the driver finds none."""
    made = hub_plugins.load_backend(state, settings, settings.simulated_devices)
    if settings.demo and settings.simulated_devices is None:
        try:
            found = made.inventory()
        except Unavailable as error:
            log.warning("the driver does not answer: %s", error)
            found = ()
        if not found:
            return hub_plugins.load_backend(state, settings, DEMO_DEVICES)
    return made


@contextlib.contextmanager
def only_one(state: StateFolder) -> Iterator[None]:
    """One scheduling loop per state folder.

    Raises:
        StateInUse: another service works on it.
        Refused: its database is lost or damaged.
    """
    refuse_lost_state(state)
    state.create()
    with Path(state.run / "service.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise StateInUse(
                f"Another Carrel service works on {state.root}.",
                accepted=f"Stop it first: carrel down --state {state.root}",
            ) from None
        yield


if __name__ == "__main__":
    sys.exit(main())
