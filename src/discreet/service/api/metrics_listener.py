"""A listener for metrics: durations depend on data, so they need a steward's key and have a port of their own."""

from __future__ import annotations

from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from discreet.errors import DiscreetError, NotAuthenticated
from discreet.service.api.route_access import shown_key
from discreet.service.caller import Permission
from discreet.service.identity import Identities
from discreet.service.metrics import Metrics


def create_metrics_app(metrics: Metrics, identities: Identities) -> Starlette:
    """Returns the application of /metrics, for a listener of its own and stewards' keys."""

    async def show(request: Request) -> Response:
        try:
            identities.authenticate_key(shown_key(request)).require(Permission.STEWARD)
        except NotAuthenticated:
            return Response(status_code=401, headers={"WWW-Authenticate": 'Bearer realm="discreet"'})
        except DiscreetError:
            return Response(status_code=403)
        return Response(metrics.text(), media_type=CONTENT_TYPE_LATEST)

    return Starlette(routes=[Route("/metrics", show, methods=["GET"])])
