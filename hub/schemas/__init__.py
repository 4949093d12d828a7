"""Request and response bodies of the REST API, shared by the service and its clients.

Input models reject unknown keys and do not convert types. Times are seconds since the epoch (UTC);
durations are seconds.

This package exports the common bodies; import the others from their modules.
"""

from .base import LARGEST, LATEST, LONGEST, MODEL_LENGTH, NAME, In, Out
from .calendar import BudgetOut
from .errors import ErrorBody, ErrorOut
from .internal import (
    EventIn,
    EventsIn,
    HeldOut,
    KernelsIn,
    OpenSessionIn,
    StartedIn,
    StopIn,
    WatchOut,
)
from .pool import DeviceOut, GroupOut, GroupsOut, MeOut, PoolOut, QueueEntryOut, QueueOut
from .requests import (
    MAX_NOTEBOOK_BYTES,
    SCRIPT,
    CauseOut,
    ChangeIn,
    EventOut,
    ExtendIn,
    FileOut,
    FilesOut,
    JobIn,
    LeaseOut,
    NotebookIn,
    ProgressOut,
    QuoteIn,
    QuoteOut,
    QuotesIn,
    QuotesOut,
    RequestOut,
    RequestsOut,
    SessionIn,
    StepOut,
    WaitOut,
    WarningOut,
)
from .usage import LedgerOut, UsageOut, UsageReport, UsageRowOut, UsedBy

__all__ = [
    "LARGEST",
    "LATEST",
    "LONGEST",
    "MAX_NOTEBOOK_BYTES",
    "MODEL_LENGTH",
    "NAME",
    "SCRIPT",
    "BudgetOut",
    "CauseOut",
    "ChangeIn",
    "DeviceOut",
    "ErrorBody",
    "ErrorOut",
    "EventIn",
    "EventOut",
    "EventsIn",
    "ExtendIn",
    "FileOut",
    "FilesOut",
    "GroupOut",
    "GroupsOut",
    "HeldOut",
    "In",
    "JobIn",
    "KernelsIn",
    "LeaseOut",
    "LedgerOut",
    "MeOut",
    "NotebookIn",
    "OpenSessionIn",
    "Out",
    "PoolOut",
    "ProgressOut",
    "QueueEntryOut",
    "QueueOut",
    "QuoteIn",
    "QuoteOut",
    "QuotesIn",
    "QuotesOut",
    "RequestOut",
    "RequestsOut",
    "SessionIn",
    "StartedIn",
    "StepOut",
    "StopIn",
    "UsageOut",
    "UsageReport",
    "UsageRowOut",
    "UsedBy",
    "WaitOut",
    "WarningOut",
    "WatchOut",
]
