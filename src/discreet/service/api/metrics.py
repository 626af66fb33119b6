"""What a steward may watch: requests by route and status, durations, queues; nothing of people, questions or data.

Durations depend on data, so they are on a listener of their own, which needs a steward's key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from discreet.errors import DiscreetError, NotAuthenticated
from discreet.service.api.route_access import shown_key
from discreet.service.caller import Permission
from discreet.service.identity import Identities

_SECONDS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 300)


class Metrics:
    """Counts of one service; two of them share nothing.

    Args:
        gauges: returns numbers of the moment by name, such as how many requests wait.
    """

    def __init__(self, gauges: Callable[[], Mapping[str, int]] = dict) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_Gauges(gauges))
        labels = ("route", "status")
        self._requests = Counter("discreet_requests", "Requests.", labels, registry=self._registry)
        self._seconds = Histogram(
            "discreet_request_seconds", "Durations.", ("route",), buckets=_SECONDS, registry=self._registry
        )

    def count(self, route: str, status: int, seconds: float) -> None:
        """Counts a request by route and status, and its duration."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """Returns all of it in the form that Prometheus reads."""
        return generate_latest(self._registry)


class _Gauges(Collector):
    def __init__(self, gauges: Callable[[], Mapping[str, int]]) -> None:
        self._gauges = gauges

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Yields every number of the moment."""
        for name, value in self._gauges().items():
            yield GaugeMetricFamily(f"discreet_{name}", name.replace("_", " "), value=value)


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
