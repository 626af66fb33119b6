"""Sealed columns: nothing of a reading is seen before something of it is released."""

from __future__ import annotations

import ast
import copy
import io
import logging
import os
import pickle
import subprocess
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet
from discreet.errors import InvalidParameter, QueryFailed
from discreet.measurement.releases.exact_groups import ExactGroups
from discreet.measurement.releases.open_exact import open_exact, opens
from discreet.plan.analysis.group_keys import in_order
from discreet.plan.model.group_columns import GroupColumns
from discreet.plan.model.readings import Groups
from discreet.plan.model.types import Type
from discreet.progress import stage, told_to
from tests.open_groups import unsealed

SECRET: Groups = {("Ada", 7): (424242, 1 << 90), (None, 9): (5, -6)}
KINDS = (Type.TEXT, Type.INT)


def made(groups: Groups, width: int | None = 2, kinds: Sequence[Type] = KINDS) -> ExactGroups:
    return ExactGroups(GroupColumns.of(groups, kinds, width))


LOOKS: dict[str, Callable[[Any], object]] = {
    "text": str,
    "format": lambda groups: f"{groups}",
    "width": lambda groups: f"{groups:>30}",
    "percent": lambda groups: "%s" % groups,  # noqa: UP031 - as old code would
    "bytes": bytes,
    "truth": bool,
    "length": len,
    "list": list,
    "iterator": iter,
    "unpacked": lambda groups: [*groups],
    "membership": lambda groups: ("Ada", 7) in groups,
    "item": lambda groups: groups["Ada", 7],
    "equality": lambda groups: groups == groups,  # noqa: PLR0124
    "difference": lambda groups: groups != groups,  # noqa: PLR0124
    "order": lambda groups: groups < groups,  # noqa: PLR0124
    "sorted": lambda groups: sorted([groups, groups]),
    "index": lambda groups: [groups].index(made({})),
    "hash": hash,
    "dictionary": lambda groups: {groups: 1},
    "number": int,
    "double": float,
    "range": range,
    "sum": sum,
    "array": np.asarray,
    "copied array": lambda groups: np.array([groups]) + 1,
    "pickle": pickle.dumps,
    "copy": copy.copy,
    "deep copy": copy.deepcopy,
    "fields": vars,
    "attribute": lambda groups: groups.keys,
    "subclass": lambda groups: type("Open", (type(groups),), {}),
}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_nothing_is_seen(look: Callable[[Any], object]) -> None:
    with pytest.raises((TypeError, AttributeError)) as refused:
        look(made(SECRET))
    assert not any(secret in str(refused.value) for secret in ("Ada", "424242"))


def test_a_debugger_sees_the_same_of_all() -> None:
    assert (
        repr(made(SECRET)) == repr(made({})) == repr(made({("Ada",): (1, 2, 3)}, None, KINDS[:1])) == "<exact groups>"
    )
    assert sys.getsizeof(made(SECRET)) == sys.getsizeof(made({}))


# ----------------------------------------------------------------------------------------------------------- operations

VALUES = {Type.TEXT: st.sampled_from(["", "A", "B", "é", None]), Type.INT: st.sampled_from([-1, 0, 2, 1 << 62, None])}
SHAPES = st.sampled_from([(), (Type.TEXT,), (Type.INT,), (Type.INT, Type.TEXT), (Type.INT, Type.INT)])
NUMBERS = st.integers(-(1 << 70), 1 << 70)


@st.composite
def groups_of(draw: st.DrawFn) -> tuple[tuple[Type, ...], Groups]:
    kinds = draw(SHAPES)
    keys = draw(st.lists(st.tuples(*(VALUES[kind] for kind in kinds)), unique=True, max_size=6 if kinds else 1))
    return kinds, {key: (draw(NUMBERS), draw(NUMBERS)) for key in keys}


@given(groups_of(), st.data())
def test_operations_mean_what_they_say(given_groups: tuple[tuple[Type, ...], Groups], data: st.DataObject) -> None:
    kinds, groups = given_groups
    sealed = made(groups, 2, kinds)
    assert unsealed(sealed) == groups
    assert list(unsealed(sealed.in_order())) == in_order(groups)
    public = tuple(data.draw(st.lists(st.tuples(*(VALUES[kind] for kind in kinds)), max_size=6 if kinds else 1)))
    if public:
        aligned = open_exact(sealed.align_to(public))
        assert aligned.key_tuples == list(public)
        assert aligned.numbers == [groups.get(key, (0, 0)) for key in public]
    assert unsealed(sealed.slice_statistics(1, 2)) == {key: (second,) for key, (_, second) in groups.items()}
    assert unsealed(sealed.times(3)) == {key: (3 * a, 3 * b) for key, (a, b) in groups.items()}
    wanted = {key: (a, (b + 4) >> 3) for key, (a, b) in groups.items()}
    assert unsealed(sealed.round_statistics((0, 3))) == wanted


def test_keys_that_are_listed_twice_have_their_group_twice() -> None:
    for kind, key, other in ((Type.INT, 5, 6), (Type.TEXT, "A", "B")):
        sealed = made({(key,): (3, 4)}, 2, [kind])
        assert open_exact(sealed.align_to(((key,), (other,), (key,)))).numbers == [(3, 4), (0, 0), (3, 4)]


def test_sums_over_the_axes_of_a_table() -> None:
    sizes = (2, 3, 2)
    cells: Groups = {(place,): (place * (1 << 61), -place) for place in range(12)}
    sealed = made(cells, 2, [Type.INT])
    for axes in ([], [0], [1], [0, 2], [0, 1, 2]):
        wanted: dict[tuple[int, ...], list[int]] = {}
        for place, index in enumerate(product(*map(range, sizes))):
            sums = wanted.setdefault(tuple(at for axis, at in enumerate(index) if axis not in axes), [0, 0])
            sums[0] += place * (1 << 61)
            sums[1] -= place
        assert open_exact(sealed.sum_over_axes(sizes, axes)).numbers == [tuple(sums) for sums in wanted.values()]


def test_copies_of_rows_have_their_cells_once() -> None:
    assert unsealed(made({("A",): (3, 8, 1, 2)}, None, [Type.TEXT]).times(5)) == {("A",): (3, 8, 5, 10)}


# ------------------------------------------------------------------------------------------------------------- openings

OPENINGS = {
    "measurement/releases/releaser.py": 6,
    "measurement/releases/rank_draws.py": 2,
    "measurement/selection.py": 2,
    "curator/streams/stream_plan.py": 1,
    "audit/queries/recorder.py": 8,
    "audit/queries/fit_audit.py": 1,
}
"""How often each module opens what was read: a change here is a change of what sees exact numbers."""


def test_openings_are_counted() -> None:
    source = Path(discreet.__file__).parent
    found: Counter[str] = Counter()
    for path in source.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        name = path.relative_to(source).as_posix()
        assert "_ExactGroups__content" not in text or name == "measurement/releases/open_exact.py"
        if "open_exact" in text and name != "measurement/releases/open_exact.py":
            calls = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
            found[name] += sum(isinstance(call.func, ast.Name) and call.func.id == "open_exact" for call in calls)
    assert +found == OPENINGS


def test_errors_lose_what_they_know() -> None:
    @opens
    def divide(groups: ExactGroups) -> float:
        content = open_exact(groups)
        try:
            raise ValueError(f"{content.key_tuples}")
        except ValueError as error:
            raise ZeroDivisionError(f"{content.numbers}") from error

    with pytest.raises(QueryFailed) as failed:
        divide(made(SECRET))
    assert failed.value.__cause__ is failed.value.__context__ is None
    names = [frame.name for frame in traceback.extract_tb(failed.value.__traceback__)]
    assert "divide" not in names
    assert names[-1] == "call_without_leaks"
    assert "Ada" not in "".join(traceback.format_exception(failed.value))


def test_an_interrupt_stays_one_and_shows_no_frames() -> None:
    @opens
    def stopped(groups: ExactGroups) -> None:
        held = open_exact(groups).key_tuples
        raise KeyboardInterrupt(*held[:0])

    with pytest.raises(KeyboardInterrupt) as told:
        stopped(made(SECRET))
    assert [frame.name for frame in traceback.extract_tb(told.value.__traceback__)][-1] == "call_without_leaks"


# -------------------------------------------------------------------------------------------------------------- mutants


def test_mutant_a_reading_in_a_stage() -> None:
    told: list[str] = []
    with told_to(told.append), pytest.raises(TypeError):
        stage(f"Read {made(SECRET)}")
    assert told == []


def test_mutant_a_reading_in_a_note() -> None:
    with pytest.raises(TypeError):
        "\n- ".join(["Notes", str(made(SECRET))])


def test_mutant_a_reading_in_an_error() -> None:
    with pytest.raises(TypeError):
        raise InvalidParameter("keys", f"{made(SECRET)}", "to be few", "Ask for fewer.")


def test_mutant_a_reading_in_a_log_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Handlers that forgive errors, as those in production do, write nothing."""
    monkeypatch.setattr(logging, "raiseExceptions", False)
    written, logger = io.StringIO(), logging.Logger("a line of its own")
    logger.addHandler(logging.StreamHandler(written))
    logger.error("Read %s", made(SECRET))
    logger.error(made(SECRET))
    assert written.getvalue() == ""


@pytest.mark.slow
def test_mutants_that_types_refuse(tmp_path: Path) -> None:
    """What would only fail when it runs is refused before it is written."""
    lines = ["len(groups)", "list(groups)", "int(groups)", "groups[0]", "sum(groups)", "groups.keys", "float(groups)"]
    program, source = tmp_path / "mutant.py", Path(discreet.__file__).parents[1]
    begin = (
        "from discreet.measurement.releases.exact_groups import ExactGroups\n\ndef read(groups: ExactGroups) -> None:\n"
    )
    program.write_text(begin + "".join(f"    {line}\n" for line in lines), encoding="utf-8")
    options = ["--strict", "--no-site-packages", "--ignore-missing-imports", "--follow-imports=silent"]
    command = [sys.executable, "-m", "mypy", *options, "--cache-dir", str(tmp_path), str(program)]
    environment = {**os.environ, "MYPYPATH": str(source)}
    said = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path, env=environment).stdout
    refused = {int(line.split(":")[1]) for line in said.splitlines() if ": error:" in line}
    assert refused == set(range(4, 4 + len(lines))), said
