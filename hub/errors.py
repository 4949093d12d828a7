"""All errors that Carrel raises on purpose; their text is what the user reads.

CarrelError
├── Refused               the request is not accepted; says what would be
│   ├── InvalidInput      a value is malformed or out of range
│   │   ├── InvalidArgument  a value cannot even be sent to the service
│   │   └── NothingToReplay  no request has left a history in the chosen period
│   ├── OverMaximum       more than the group, the user or the pool may ever have
│   ├── NotAMember        the owner does not belong to the group
│   └── TooLarge          an upload exceeds its limit
├── NotFound              no such request, group, user, … (or not yours to see)
├── NotSignedIn           not signed in, or an invalid token
├── Forbidden             signed in, but without the right
├── Conflict              the current state does not allow it
│   ├── IllegalMove       the lifecycle table has no such transition
│   └── StaleEpoch        the caller's lease has ended: stop
├── Unavailable           a required part is not responding; try again
│   └── TooManyCalls      the caller makes too many calls; try again later
├── StateInUse            another process uses the state folder
├── PortBusy              another process listens on the port
├── BackupFailed          a backup could not be created or restored completely
├── ImageFailed           an image could not be built, verified or removed
└── BackendFailed         an engine could not start or stop something
"""

from __future__ import annotations


class CarrelError(Exception):
    """Base of all errors.

    ``accepted`` says what is accepted instead; ``field`` names the invalid field, so that a form
    can show the message beside it. ``help_url`` is the address of a page about it at the site that
    sent it; a client sets it.
    """

    code = "error"
    http_status = 500

    def __init__(self, message: str, *, accepted: str = "", field: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.accepted = accepted
        self.field = field
        self.help_url = ""

    def __str__(self) -> str:
        return f"{self.message} {self.accepted}".strip()


class Refused(CarrelError):
    code = "refused"
    http_status = 409


class InvalidInput(Refused):
    code = "invalid"
    http_status = 400


class InvalidArgument(InvalidInput):
    code = "invalid_argument"


class NothingToReplay(InvalidInput):
    code = "nothing_to_replay"


class OverMaximum(Refused):
    code = "over_maximum"


class NotAMember(Refused):
    code = "not_a_member"
    http_status = 403


class TooLarge(Refused):
    code = "too_large"
    http_status = 413


class NotFound(CarrelError):
    code = "not_found"
    http_status = 404


class NotSignedIn(CarrelError):
    code = "not_signed_in"
    http_status = 401


class Forbidden(CarrelError):
    code = "forbidden"
    http_status = 403


class Conflict(CarrelError):
    code = "conflict"
    http_status = 409


class IllegalMove(Conflict):
    code = "illegal_move"


class StaleEpoch(Conflict):
    code = "stale_epoch"


class Unavailable(CarrelError):
    code = "unavailable"
    http_status = 503


class TooManyCalls(Unavailable):
    """Nothing was done; ``seconds`` is how long to wait before the next call."""

    code = "too_many_calls"
    http_status = 429
    seconds = 1


class StateInUse(CarrelError):
    code = "state_in_use"


class PortBusy(CarrelError):
    code = "port_busy"


class BackupFailed(CarrelError):
    code = "backup_failed"


class ImageFailed(CarrelError):
    code = "image_failed"


class BackendFailed(CarrelError):
    code = "backend_failed"
    http_status = 503
