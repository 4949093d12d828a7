"""Routes for supervisors and monitoring: ``/healthz``, ``/readyz`` and ``/metrics``.

The first two need no sign-in, and reveal only which part is not responding.
"""

from __future__ import annotations

from http import HTTPStatus

from fastapi import APIRouter, Request
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response

from ..dependencies.callers import Carrel
from ..dependencies.context import web_of

router = APIRouter(include_in_schema=False)


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """Respond without a check of other services."""
    return {"status": "ok"}


@router.get("/readyz")
def readyz(web: Carrel) -> JSONResponse:
    """Respond with 200 if the store, the scheduling loop and JupyterHub respond, else with 503."""
    result = web.readiness.check()
    status = HTTPStatus.OK if result.ready else HTTPStatus.SERVICE_UNAVAILABLE
    return JSONResponse(result.model_dump(), status)


@router.get("/metrics")
async def metrics(request: Request) -> Response:
    web = web_of(request)
    await web.caller_access.monitor(request)
    text = await run_in_threadpool(web.metrics.text)
    return Response(text, headers={"Content-Type": CONTENT_TYPE_LATEST})
