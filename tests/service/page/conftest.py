"""A clinic for every test, and one that all tests of a module share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.page.fakes import Clinic, clinic_at


@pytest.fixture
def clinic(tmp_path: Path) -> Iterator[Clinic]:
    with clinic_at(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    with clinic_at(tmp_path_factory.mktemp("clinic")) as made:
        yield made
