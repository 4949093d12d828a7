"""Ask JupyterHub to start the server of a session; no other module does."""

from __future__ import annotations

import logging

from ..errors import CarrelError, NotFound, Unavailable
from ..records.json_value import Json
from ..records.requests import Cause, CauseCode, RequestRecord
from ..runtime.context import Context
from ..scheduling.model.states import State
from ..schemas import SessionIn
from ..transitions import lifecycle

_log = logging.getLogger(__name__)


def start_server(
    context: Context, request: RequestRecord, options: SessionIn | None = None
) -> None:
    """Ask JupyterHub to start a session's server, or to adopt the one that runs.

    If JupyterHub does not answer, the request stays as it is and the scheduling loop asks again.

    Args:
        options: the options that the owner chose; by default they are derived from the request.
            Secrets are not passed on: they are stored with the request.

    Raises:
        CarrelError: JupyterHub refused. The request has failed with that message, unless its
            processes already run and JupyterHub may still adopt them.
    """
    owner, server_name = request.owner, request.server_name
    _log.info("asking JupyterHub to start server %s of %s", server_name or "default", owner)
    chosen = _options(request) if options is None else options.model_dump(exclude={"secrets"})
    context.pending_server_starts.note(owner, server_name, request.id, now=context.clock())
    try:
        context.hub.start_server(owner, server_name, chosen)
    except Unavailable as error:
        _log.warning("%s: %s", request.id, error)
    except CarrelError as refused:
        if request.state is not State.RUNNING or isinstance(refused, NotFound):
            cause = Cause(code=CauseCode.START_FAILED, message=str(refused))
            context.store.apply(
                request.id, lifecycle.stop, State.FAILED, cause, now=context.clock()
            )
            context.notifier.notify()
        raise


def _options(request: RequestRecord) -> dict[str, Json]:
    return {
        "devices": request.devices,
        "hours": request.seconds / 3600,
        "group": request.group,
        **({"model": request.model} if request.model else {}),
    }
