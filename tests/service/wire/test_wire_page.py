"""docs/postgresql_wire.md: what it tells to type is typed, and its programs run."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from docs.generators.terminal import Terminal
from docs.site.code_blocks import blocks
from docs.site.navigation import DOCS
from tests.postgres_server import absent
from tests.service.wire.served import Served, served
from tests.test_walkthroughs import shape

PAGE = DOCS / "postgresql_wire.md"
SHELL, TYPED, PSYCOPG, PANDAS = (block for block in blocks(PAGE) if block.is_run)


@pytest.mark.ci
def test_psql(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a clinic of which nobody has asked yet; what is shown is the end of what is printed."""
    if shutil.which("psql") is None:
        absent("psql is not installed")
    monkeypatch.chdir(tmp_path)
    Path("typed").write_text(TYPED.body, "utf-8")
    (shown,) = (block.body for block in blocks(PAGE) if block.language == "text")
    with (
        served() as wire,
        Terminal({"5433": str(wire.port), "user=ann": f"user=ann password={wire.keys['ann'][1]}"}) as at,
    ):
        printed = at.type(f"{SHELL.body.strip()} < typed")
        assert wire.spent() == pytest.approx(0.2)
    assert 'Table "public.visits"' in printed
    printed = printed.replace("; the noise is seeded: NOT PRIVATE", "")
    notice, _, table = printed.partition("NOTICE:")[2].partition("DETAIL:")
    assert shape(f"NOTICE:{notice}".strip()) == shape(shown)[:1]
    assert shape(table.strip())[-6:] == shape(shown)[2:]
    for block in (SHELL, TYPED):
        block.ran()


def test_programs(wire: Served, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("KEY", wire.keys["ann"][1])
    known: dict[str, Any] = {}
    for block in (PSYCOPG, PANDAS):
        exec(compile(block.body.replace("5433", str(wire.port)), "docs/postgresql_wire.md", "exec"), known)
        block.ran()
    known["engine"].dispose()
    assert known["n_low"] < known["n"] < known["n_high"]
    assert capsys.readouterr().out.startswith("Cost: epsilon=0.1")
    assert [column["name"] for column in known["columns"]][:2] == ["patient", "ward"]
    assert list(known["ages"].ward) == ["A", "B", "C"]
