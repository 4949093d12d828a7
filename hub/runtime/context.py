"""The shared adapters, caches and settings of one running service."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..interfaces.backend import Backend
from ..interfaces.clock import Clock
from ..interfaces.files import Files
from ..interfaces.job_reuse import CompileCaches, NoCompileCaches
from ..interfaces.jupyterhub import JupyterHub
from ..interfaces.run_times import NoRunTimes, RunTimes
from ..interfaces.secrets import ValueCipher
from ..interfaces.store import Store
from ..provenance.signature import SigningKey
from ..scheduling.model.learned_order import LearnedOrder
from .device_evidence import DeviceEvidence
from .kernel_reports import KernelReports
from .notifier import ChangeNotifier
from .pending_server_starts import PendingServerStarts
from .plan_cache import PlanCache
from .prefix_offers import PrefixOffers
from .progress_cache import ProgressCache
from .spawner_listeners import SpawnerListeners


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Adapters, caches and settings that features share; a container without behaviour.

    Attributes:
        claim_seconds: how long a granted device is held for an owner who has to claim it.
        grace_seconds: how long a request may continue after a preemption notice.
        cipher: encrypts values of secrets for the store.
        signing_key: signs receipts and heads of logs in the name of this site.
        learned_order: discounts sizes in the queue order; None: none does.
    """

    store: Store
    hub: JupyterHub
    files: Files
    backend: Backend
    clock: Clock
    progress: ProgressCache
    claim_seconds: float
    grace_seconds: float
    signing_key: SigningKey
    cipher: ValueCipher
    run_times: RunTimes = field(default_factory=NoRunTimes)
    learned_order: LearnedOrder | None = None
    notifier: ChangeNotifier = field(default_factory=ChangeNotifier)
    plan_cache: PlanCache = field(default_factory=PlanCache)
    spawner_listeners: SpawnerListeners = field(default_factory=SpawnerListeners)
    pending_server_starts: PendingServerStarts = field(default_factory=PendingServerStarts)
    kernel_reports: KernelReports = field(default_factory=KernelReports)
    prefixes: PrefixOffers = field(default_factory=PrefixOffers)
    compile_caches: CompileCaches = field(default_factory=NoCompileCaches)
    device_evidence: DeviceEvidence = field(default_factory=DeviceEvidence)
