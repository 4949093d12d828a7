"""The values that travel over HTTP, used by the service and by every client of it.

Input models refuse unknown keys and do not convert types, so that a mistake is answered
and never guessed at. Times are seconds since the epoch (UTC); spans are seconds.

Those of administration and of the history are imported from their own modules.
"""

from .answers import (
    CauseOut,
    DeviceOut,
    EventOut,
    FileOut,
    FilesOut,
    GroupOut,
    GroupsOut,
    LeaseOut,
    MeOut,
    PoolOut,
    ProgressOut,
    QueueEntryOut,
    QueueOut,
    QuoteOut,
    QuotesOut,
    RequestOut,
    RequestsOut,
    StepOut,
    WaitOut,
    WarningOut,
    WatchOut,
)
from .asking import (
    MAX_NOTEBOOK_BYTES,
    EventIn,
    EventsIn,
    ExtendIn,
    JobIn,
    KernelsIn,
    NotebookIn,
    OpenSessionIn,
    QuoteIn,
    QuotesIn,
    SessionIn,
    StartedIn,
    StopIn,
)
from .base import LARGEST, LATEST, NAME, In, Out
from .calendar import BudgetOut
from .problems import ErrorBody, ErrorOut
from .usage import LedgerOut, UsageOut, UsageReport, UsageRowOut

__all__ = [
    "LARGEST",
    "LATEST",
    "MAX_NOTEBOOK_BYTES",
    "NAME",
    "BudgetOut",
    "CauseOut",
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
    "WaitOut",
    "WarningOut",
    "WatchOut",
]
