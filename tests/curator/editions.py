"""Curators of before: their programs and their releases are those of an earlier edition."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from discreet.curator import measurement_plan
from discreet.curator.asking import performer
from discreet.curator.replay.stored_releases import pack
from discreet.measurement.program.program import ReleaseFormat, choose


def packed(edition: ReleaseFormat) -> Callable[..., str]:
    """Returns `pack` as it was, for releases by the rules of an edition: in one line, and by row."""

    def pack_by_row(*given: Any, **more: Any) -> str:
        fields = by_row(json.loads(pack(*given, **more)) | {"version": int(edition)})
        return json.dumps({name: value for name, value in fields.items() if name not in OF_HEADERS})

    return pack_by_row


OF_HEADERS = ("body", "groups", "variances")


def by_row(block: dict[str, Any]) -> dict[str, Any]:
    """Returns a block of columns, and those in it, as rows."""
    kept = {name: value for name, value in block.items() if name not in ("count", "columns", "noisy", "blocks")}
    keys = [list(key) for key in zip(*block["columns"], strict=True)] or [[]] * block["count"]
    noisy = [list(row) for row in zip(*block["noisy"], strict=True)] or [[]] * block["count"]
    inside = {"blocks": [by_row(one) for one in block["blocks"]]} if "blocks" in block else {}
    return {**kept, "keys": keys, "noisy": noisy, **inside}


def as_of(patch: pytest.MonkeyPatch, edition: ReleaseFormat) -> None:
    """Has all questions be planned and stored by the rules of an edition."""
    patch.setattr(measurement_plan, "choose", lambda *given, **more: choose(*given, **{**more, "edition": edition}))
    patch.setattr(performer, "pack", packed(edition))
