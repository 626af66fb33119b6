"""What is proposed for a file: bounds from names, private lines as comments, copies that are read."""

from __future__ import annotations

import csv
import gzip
import re
import stat
import tomllib
from pathlib import Path

import pytest

from discreet.errors import InvalidParameter
from discreet.plan.model.types import Type
from discreet.presentation.inspection.charset import encoding_of
from discreet.presentation.inspection.column_kinds import _KINDS, kind_of, likely_unit
from discreet.presentation.inspection.file_check import EACH_ROW, WARNING, check_file, mend_file
from discreet.presentation.inspection.proposed_config import proposed_config
from tests.cases import try_all

TEXT = "name,price\nJos\u00e9,1\n\u00c5sa,2\n"


def test_kinds_are_few_clear_and_generous() -> None:
    names = [name for _, all_names in _KINDS for name in all_names]
    assert len(set(names)) == len(names)
    try_all((kind for kind, _ in _KINDS), lambda kind: _is_wide(kind.low, kind.high))


def _is_wide(low: object, high: object) -> None:
    assert type(low) is type(high)
    assert str(low) < str(high) if isinstance(low, str) else low < high  # type: ignore[operator]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Age", "age"),
        ("patientAge", "age"),
        ("age_at_diagnosis", "age"),
        ("sbp", "systolic blood pressure"),
        ("SystolicBP", "systolic blood pressure"),
        ("percent_white", "percent"),
        ("pickup_latitude", "latitude"),
        ("lon", "longitude"),
        ("birth_year", "year"),
        ("model_year", "year"),
        ("hours_per_week", "hours of a week"),
        ("HbA1c", "HbA1c in percent"),
        ("day", "day of a month"),
        ("dob", "date of birth"),
        *((name, "") for name in ("page", "age_months", "days_since", "percent_change", "charges", "weight", "id", "")),
    ],
)
def test_a_name_tells_its_kind_or_none(name: str, kind: str) -> None:
    found = kind_of(name)
    assert (found.name if found else "") == kind


@pytest.mark.parametrize(
    ("names", "unit"),
    [
        (("encounter_id", "patient_nbr", "age"), "patient_nbr"),
        (("userId", "movieId", "rating"), "userId"),
        (("id", "person_id"), "person_id"),
        (("Customer ID", "amount"), "Customer ID"),
        (("ssn", "x"), "ssn"),
        (("visit_id", "amount"), None),
        (("age", "sex"), None),
    ],
)
def test_ids_of_people_are_guessed_from_names(names: tuple[str, ...], unit: str | None) -> None:
    assert likely_unit(names) == unit


@pytest.mark.parametrize(
    ("content", "codec"),
    [
        (TEXT.encode(), "utf-8"),
        (TEXT.encode("utf-8-sig"), "utf-8-sig"),
        (TEXT.encode("latin-1"), "latin-1"),
        (TEXT.replace("1", "1 \u20ac").encode("cp1252"), "cp1252"),
        (TEXT.encode("utf-16"), "utf-16"),
        (TEXT.encode("utf-16-le"), "utf-16-le"),
        (TEXT.encode("utf-16-be"), "utf-16-be"),
        (b"", "utf-8"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_encodings_are_recognised_and_mended(tmp_path: Path, content: bytes, codec: str, packed: bool) -> None:
    path = tmp_path / ("t.csv.gz" if packed else "t.csv")
    path.write_bytes(gzip.compress(content) if packed else content)
    found = encoding_of(path)
    assert found.codec == codec
    if not found.is_readable:
        assert check_file(path).mends
        copy = mend_file(path, tmp_path / "copy.csv")
        assert copy.read_text().splitlines()[1].startswith("Jos\u00e9,1")
        assert stat.S_IMODE(copy.stat().st_mode) == 0o600
        assert list(tmp_path.glob("*.part")) == []


def people(path: Path, *, shift: int = 0, rare: str = "") -> Path:
    """A table whose columns have the same names and types whatever the numbers."""
    with path.open("w", newline="") as file:
        write = csv.writer(file).writerow
        write(["patient_id", "age", "charge", "ward", "seen"])
        for i in range(200):
            write(
                [
                    f"p{i % (40 + shift)}",
                    20 + i % 50,
                    f"{i + shift}.5",
                    rare or "ABC"[i % 3],
                    f"2024-01-{1 + i % 28:02}",
                ]
            )
    return path


def test_what_is_not_a_comment_does_not_depend_on_values(tmp_path: Path) -> None:
    one = people(tmp_path / "visits.csv")
    texts = [proposed_config(check_file(one), name="visits", folder=tmp_path)]
    people(one, shift=17, rare="one rare ward")
    texts.append(proposed_config(check_file(one), name="visits", folder=tmp_path))
    assert texts[0] != texts[1]
    assert tomllib.loads(texts[0]) == tomllib.loads(texts[1])
    declared = tomllib.loads(texts[0])["tables"]["visits"]
    assert declared["bounds"] == {"age": [0, 120]}
    assert declared["keys"] == {}
    differing = [pair for pair in zip(*(text.splitlines() for text in texts), strict=True) if pair[0] != pair[1]]
    assert all(line.startswith("#") and "PRIVATE: read from the data" in line for pair in differing for line in pair)


def test_private_lines_are_accepted_once_a_steward_takes_them(tmp_path: Path) -> None:
    path = people(tmp_path / "visits.csv")
    text = proposed_config(check_file(path), name="visits", folder=tmp_path)
    taken = "\n".join(re.sub(r"^# (?=\S+ = )", "", line) for line in text.splitlines())
    declared = tomllib.loads(taken)["tables"]["visits"]
    assert declared["bounds"]["charge"] == [0.5, 200]
    assert declared["keys"]["ward"] == ["A", "B", "C"]
    assert declared["limits"] == "private"
    assert "max_rows" not in declared


def test_what_a_steward_is_told_is_marked(tmp_path: Path) -> None:
    told = str(check_file(people(tmp_path / "t.csv")))
    assert told.startswith(WARNING)
    assert "95% have at most 5" in told
    assert "20 to 69" in told


def test_a_few_wrong_values_do_not_change_the_type(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id,x\n" + "".join(f"{i},{i}.5\n" for i in range(300)) + "1,broken\n2,?\n")
    column = check_file(path, unit="id").columns["x"]
    assert (column.proposal.type, column.proposal.unread, column.values.unread) == (Type.FLOAT, 1, ("broken",))
    path.write_text("id,x\n" + "".join(f"{i},{'V57' if i % 10 == 0 else i}\n" for i in range(300)))
    column = check_file(path, unit="id").columns["x"]
    assert column.proposal.type is Type.TEXT
    assert "270 of 300 values are of type float" in column.proposal.remarks[0]


def test_ids_that_are_no_whole_numbers_are_texts(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id,x\n1.5,1\n2.5,2\n")
    assert check_file(path).columns["id"].proposal.type is Type.TEXT


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        (["1,234", "5,678"], "do not show which"),
        (["1,5", "1,234,567"], "decimals in some values and thousands in others"),
        (["1/2/2024", "2/3/2024"], "do not show which"),
        (["31/12/2024", "12/31/2024"], "differs from value to value"),
    ],
)
def test_what_has_two_meanings_is_told_and_left_alone(tmp_path: Path, cells: list[str], told: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x\n" + "".join(f'"{cell}"\n' for cell in cells))
    found = check_file(path, unit=EACH_ROW)
    assert told in found.columns["x"].proposal.remarks[0]
    with pytest.raises(InvalidParameter, match="nothing in the file can be mended"):
        mend_file(path, tmp_path / "copy.csv")


def test_refusals_name_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b,A\n1,2,3\n")
    found = check_file(path)
    assert "'A', 'a'" in found.troubles[0]
    with pytest.raises(InvalidParameter, match=r"Columns have the same name.*--mend"):
        proposed_config(found, name="t", folder=tmp_path)
    path.write_text("a,b\n1,2\n")
    with pytest.raises(InvalidParameter, match="--unit ''"):
        proposed_config(check_file(path), name="t", folder=tmp_path)
    with pytest.raises(InvalidParameter, match="Its columns are a, b"):
        check_file(path, unit="c")
    path.write_text('a,b\n"1,5",2\n')
    (tmp_path / "copy.csv").write_text("")
    with pytest.raises(InvalidParameter, match="not to exist yet"):
        mend_file(path, tmp_path / "copy.csv")
