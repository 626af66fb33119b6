"""What a steward may watch: requests by route and status, durations, queues; nothing of people, questions or data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

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
