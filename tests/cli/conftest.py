from pathlib import Path

import pytest

from tests.cli.clinic import run, write


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with declarations and nothing protected yet."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path)
    return tmp_path


@pytest.fixture
def clinic(folder: Path) -> Path:
    """The same, protected."""
    assert run("protect").code == 0
    return folder
