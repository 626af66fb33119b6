"""`create_api` puts the API together, and describes it in OpenAPI."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import compile_path

from discreet.errors import ServiceUnavailable
from discreet.service.api import own_routes, verb_routes
from discreet.service.api.http_guard import HttpGuard
from discreet.service.api.http_responses import install, json_response
from discreet.service.api.route_access import ServiceContext
from discreet.service.metrics import Metrics

VERSION = "1"
_SCHEME = {
    "type": "http",
    "scheme": "bearer",
    "description": "A key of the service, dk_..._..., read from this header only.",
}

_open = APIRouter(include_in_schema=False)


def create_api(offices: ServiceContext, *, metrics: Metrics | None = None) -> FastAPI:
    """Returns the application that serves /v1, /healthz and /readyz; the page may be added to it.

    Args:
        offices: the services that routes use.
        metrics: counts requests for stewards.
    """
    app = FastAPI(
        title="Discreet",
        version=VERSION,
        summary="Queries on private tables, answered with differential privacy and paid from budgets.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/v1/openapi.json",
        generate_unique_id_function=lambda route: route.name,
        redirect_slashes=False,
    )
    app.state.offices = offices
    for router in (verb_routes.router, own_routes.router, _open):
        app.include_router(router)
    install(app)
    app.add_middleware(HttpGuard, settings=offices.settings, metrics=metrics or Metrics())
    app.openapi = lambda: _describe_routes(app)  # type: ignore[method-assign]  # the way FastAPI says to extend it
    return app


@_open.get("/healthz")
async def alive() -> Response:
    """Returns 200 while the process runs."""
    return json_response({"alive": True})


@_open.get("/readyz")
async def ready(request: Request) -> Response:
    """Returns 200 while queries are taken.

    Raises:
        ServiceUnavailable: if they are not.
    """
    desk = request.app.state.offices.desk
    if not getattr(desk, "ready", True):
        raise ServiceUnavailable("The service accepts no queries now", "Try again later.", retry_after=5)
    if not await desk.check_ledger():
        raise ServiceUnavailable("The ledger does not answer", "Try again later.", retry_after=5)
    return json_response({"ready": True})


@_open.api_route("/v1/{rest:path}", methods=["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
async def nothing(request: Request) -> Response:
    """Answers every other address under /v1, so that an app mounted next to the API never does.

    Raises:
        HTTPException: 405 with the methods that an address takes, or 404.
    """
    described = _describe_routes(request.app)["paths"].items()
    here = (methods for path, methods in described if compile_path(path)[0].match(request.url.path))
    taken = sorted(method.upper() for methods in here for method in methods)
    raise HTTPException(405, headers={"Allow": ", ".join(taken)}) if taken else HTTPException(404)


def _describe_routes(app: FastAPI) -> dict[str, Any]:
    """Returns the description, in which every route needs the key."""
    if app.openapi_schema is None:
        made = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
        made.setdefault("components", {})["securitySchemes"] = {"key": _SCHEME}
        made["security"] = [{"key": []}]
        app.openapi_schema = made
    return app.openapi_schema
