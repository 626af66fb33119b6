"""One service for the tests of its clients."""

from collections.abc import Iterator

import pytest

import discreet
from discreet.noise import SeededBits
from discreet.remote import RemoteCurator
from tests.remote.served import Served, served


@pytest.fixture
def service(bits: SeededBits) -> Iterator[Served]:
    with served(bits) as made:
        yield made


@pytest.fixture
def ana(service: Served) -> RemoteCurator:
    return discreet.connect(service.url, key=service.keys["ana"])


@pytest.fixture
def stella(service: Served) -> RemoteCurator:
    return discreet.connect(service.url, key=service.keys["stella"])
