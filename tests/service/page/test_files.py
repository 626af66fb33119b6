"""Which files a steward can name or send: those of listed folders, CSV and Parquet, within a quota."""

import gzip
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.errors import InvalidParameter
from discreet.noise import SeededBits, uniform_below
from discreet.privacy import RenewalSchedule
from discreet.privacy.budget import BUDGET_PARTS
from discreet.service.api.http_responses import status_of
from discreet.service.page import file_sources
from discreet.service.page.file_sources import from_path, list_files, resolve
from discreet.service.request_executor import OPERATIONS
from discreet.service.settings import Settings
from discreet.service.worker.operations import perform
from tests.service.page.fakes import ORIGIN, Clinic, clinic_at


@pytest.fixture
def places(tmp_path: Path) -> Settings:
    root, outside = tmp_path / "root", tmp_path / "outside"
    for folder in (root / "sub", outside, tmp_path / "uploads"):
        folder.mkdir(parents=True)
    for path in (root / "a.csv", root / "sub" / "b.parquet", outside / "secret.csv", root / "x.duckdb", root / "t.txt"):
        path.write_text("a\n1\n")
    (root / "link.csv").symlink_to(outside / "secret.csv")
    (root / "door").symlink_to(outside)
    (root / "inner.csv").symlink_to(root / "a.csv")
    (root / "odd[1].csv").write_text("a\n1\n")
    (root / "folder.csv").mkdir()
    return Settings(folder=tmp_path, roots=(root,), uploads=tmp_path / "uploads")


@pytest.mark.parametrize("text", ["a.csv", "sub/b.parquet", "sub/../a.csv", "inner.csv"])
def test_files_inside_are_found(places: Settings, text: str) -> None:
    found = from_path(text, places)
    assert found.path.is_relative_to(places.roots[0])
    assert resolve(found.name, places) == found
    assert from_path(str(places.roots[0] / text), places).path == found.path


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "text",
    [
        "",
        "../outside/secret.csv",
        "sub/../../outside/secret.csv",
        "/etc/passwd",
        "/etc/passwd.csv",
        "link.csv",
        "door/secret.csv",
        "missing.csv",
        "folder.csv",
        "*.csv",
        "a?.csv",
        "[a].csv",
        "odd[1].csv",
        "{a,b}.csv",
        "http://169.254.169.254/a.csv",
        "s3://bucket/a.parquet",
        "file:///etc/passwd.csv",
        "x.duckdb",
        "t.txt",
        "a.csv\x00.parquet",
        "~/a.csv",
    ],
)
def test_all_others_are_refused(places: Settings, text: str) -> None:
    with pytest.raises(InvalidParameter):
        from_path(text, places)


@pytest.mark.parametrize(
    "name",
    [
        "root/0/../outside/secret.csv",
        "root/0//etc/passwd.csv",
        "root/1/a.csv",
        "root/-1/a.csv",
        "root/²/a.csv",
        "root/0/link.csv",
        "upload/../outside/secret.csv",
        "upload/" + "0" * 32 + ".csv",
        "upload/a.csv",
        "/etc/passwd.csv",
        "elsewhere/0/a.csv",
    ],
)
def test_names_of_sources_lead_nowhere_else(places: Settings, name: str) -> None:
    with pytest.raises(InvalidParameter):
        resolve(name, places)


def test_a_file_that_became_a_link_is_refused(places: Settings) -> None:
    found = from_path("a.csv", places)
    (places.roots[0] / "a.csv").unlink()
    (places.roots[0] / "a.csv").symlink_to(places.folder / "outside" / "secret.csv")
    with pytest.raises(InvalidParameter):
        resolve(found.name, places)


def test_the_list_shows_what_can_be_named(places: Settings) -> None:
    assert list_files(places) == ["a.csv", "inner.csv", "sub/b.parquet"]


def test_without_roots_nothing_can_be_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter):
        from_path("/etc/hosts.csv", Settings(folder=tmp_path))


# -------------------------------------------------------------------------------------------------------------- uploads


def kept(clinic: Clinic) -> list[Path]:
    folder = clinic.settings.uploads
    return sorted(folder.iterdir()) if folder.exists() else []


def test_an_upload_gets_a_random_name_and_is_private(clinic: Clinic) -> None:
    sue = clinic.browser("sue")
    response = sue.upload("../../evil name.csv", b"person,age\n1,2\n")
    assert response.status_code == 303
    (path,) = kept(clinic)
    assert path.read_bytes() == b"person,age\n1,2\n"
    assert "evil" not in path.name
    assert path.stat().st_mode & 0o777 == 0o600
    shown = sue.get(response.headers["location"])
    assert shown.status_code == 200
    assert clinic.desk.done[-1][1].operation is OPERATIONS["inspect"]


@pytest.mark.parametrize("name", ["x.duckdb", "x.txt", "x", "x.csv.gz", "x.html", ".csv/", "x.csv\\..\\y.exe"])
def test_other_kinds_of_files_are_refused(clinic: Clinic, name: str) -> None:
    assert clinic.browser("sue").upload(name, b"a\n1\n").status_code == 422
    assert not kept(clinic)


def test_an_upload_beyond_the_quota_leaves_nothing(tmp_path_factory: pytest.TempPathFactory) -> None:
    with clinic_at(tmp_path_factory.mktemp("quota"), upload_bytes=1000, uploads_bytes=1500) as clinic:
        sue = clinic.browser("sue")
        assert sue.upload("x.csv", b"a" * 1001).status_code == 422
        assert not kept(clinic)
        assert sue.upload("x.csv", b"a" * 1000).status_code == 303
        assert sue.upload("x.csv", b"a" * 501).status_code == 422
        assert sue.upload("x.csv", b"a" * 500).status_code == 303
        assert len(kept(clinic)) == 2


def test_a_large_upload_arrives_whole(clinic: Clinic) -> None:
    content = bytes(range(256)) * 5000
    assert clinic.browser("sue").upload("x.parquet", content).status_code == 303
    assert kept(clinic)[0].read_bytes() == content


@pytest.mark.parametrize(
    "body", [b"", b"--x", b"--b\r\n\r\n", b"--b\r\nContent-Disposition: form-data; name=f; filename=a.csv\r\n\r\na"]
)
def test_broken_bodies_are_refused(clinic: Clinic, body: bytes) -> None:
    sue = clinic.browser("sue")
    headers = {"origin": ORIGIN, "content-type": "multipart/form-data; boundary=b", "x-csrf-token": sue.csrf}
    assert sue.send("POST", "/protect/upload", content=body, headers=headers).status_code == 422
    assert not kept(clinic)


def test_a_path_is_declared_and_protected(clinic: Clinic) -> None:
    (clinic.settings.roots[0] / "stays.csv").write_text("person,age,sex\n1,40,f\n2,50,m\n")
    sue = clinic.browser("sue")
    place = sue.post("/protect/path", {"path": "stays.csv"}).headers["location"]
    assert "No bounds for age" in sue.get(place).text
    form = {
        "source": "root/0/stays.csv",
        "name": "stays",
        "whose": "column",
        "unit": "person",
        "limits": "private",
        "epsilon": "1",
        "delta": "1e-6",
        "column": ["person", "age", "sex"],
        "column-type": ["int", "int", "text"],
        "column-low": ["", "0", ""],
        "column-high": ["", "120", ""],
        "column-keys": ["", "", "f, m"],
    }
    assert "No bounds" not in sue.post("/protect/declare", form | {"act": "review"}).text
    assert clinic.desk.done[-1][1].operation is OPERATIONS["inspect"]
    refused = sue.post("/protect/declare", form | {"act": "protect", "unit": ""})
    assert refused.status_code == 422
    assert "whose rows" in refused.text
    undecided = sue.post("/protect/declare", form | {"act": "protect", "limits": ""})
    assert undecided.status_code == 422
    assert all(way in undecided.text for way in ("max_rows=20", "limits=&#34;private&#34;"))
    assert "is protected" in sue.post("/protect/declare", form | {"act": "protect"}).text
    given = clinic.desk.done[-1][1].arguments
    assert given["bounds"] == {"age": [0, 120]}
    assert given["limits"] == "private"
    assert given["keys"] == {"sex": ["f", "m"]}
    assert clinic.curator.tables()["stays"] == "stays"
    wider = form | {"column-high": ["", "130", ""], "epsilon": "", "delta": "", "act": "protect"}
    line = "bounds of age: 0 to 120 -&gt; 0 to 130"
    shown = sue.post("/protect/declare", wider)
    assert (shown.status_code, line in shown.text, 'name="change"' in shown.text) == (409, True, True)
    seen = {"seen": ["bounds of age: 0 to 120 -> 0 to 130"]}
    assert sue.post("/protect/declare", wider | seen).status_code == 409  # looked at, and not confirmed
    assert "is protected" in sue.post("/protect/declare", wider | seen | {"change": "yes"}).text
    assert clinic.desk.done[-1][1].arguments["change"] == seen["seen"]


def test_a_budget_is_given_by_month(clinic: Clinic) -> None:
    (clinic.settings.roots[0] / "days.csv").write_text("person,day\n1,2026-01-02\n")
    sue = clinic.browser("sue")
    place = sue.post("/protect/path", {"path": "days.csv"}).headers["location"]
    page = sue.get(place).text
    assert all(f'name="{part}"' in page for part in BUDGET_PARTS)
    form = {
        "source": "root/0/days.csv",
        "name": "days",
        "whose": "column",
        "unit": "person",
        "limits": "",
        "max_rows": "1",
        "epsilon": "1",
        "per": "month",
        "of": "day",
        "column": ["person", "day"],
        "column-type": ["int", "date"],
        "column-low": ["", ""],
        "column-high": ["", ""],
        "column-keys": ["", ""],
    }
    refused = sue.post("/protect/declare", form | {"act": "protect", "of": "person"})
    assert "a column of dates" in refused.text
    assert "is protected" in sue.post("/protect/declare", form | {"act": "protect"}).text
    assert clinic.curator._ledger.account("days").rows == RenewalSchedule("month", of="day")


_FILE = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\na\n1\n\r\n--b--\r\n'
_FIELD = b'--b\r\nContent-Disposition: form-data; name="f%d"\r\n\r\nx\r\n'


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("multipart/form-data; boundary=" + "b" * 10_000, _FILE),
        ("multipart/form-data; boundary=" + "b" * 257, _FILE),
        ("multipart/form-data; boundary*=x''%ff", _FILE),
        ("multipart/form-data; boundary*0=b; boundary*1=c", _FILE),
        ('multipart/form-data; boundary="', _FILE),
        ("multipart/form-data; boundary=\u00e9", _FILE),
        ("multipart/form-data", _FILE),
        ("text/csv", b"a\n1\n"),
        ("", b""),
        ("multipart/form-data; boundary=b", b"".join(_FIELD % i for i in range(50)) + _FILE),
        ("multipart/form-data; boundary=b", _FILE.replace(b'"a.csv"', b'"' + b"a" * 20_000 + b'.csv"')),
        ("multipart/form-data; boundary=b", _FILE.replace(b'filename="a.csv"', b"filename*=nope''%ff%fe")),
        ("multipart/form-data; boundary=b", _FILE.replace(b"Content-Disposition", b"Content Disposition")),
        ("multipart/form-data; boundary=b", b"--b\r\n" + b"h: x\r\n" * 500 + b"\r\n"),
        ("multipart/form-data; boundary=b", b"\r\n" * 10_000),
    ],
)
def test_malformed_forms_are_the_senders_fault(clinic: Clinic, kind: str, body: bytes) -> None:
    sue = clinic.browser("sue")
    headers: Any = {"origin": ORIGIN, "content-type": kind.encode("latin-1"), "x-csrf-token": sue.csrf}
    assert sue.send("POST", "/protect/upload", content=body, headers=headers).status_code == 422
    assert not kept(clinic)


def test_a_full_disk_is_not_the_senders_fault(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    sue = clinic.browser("sue")
    with monkeypatch.context() as changed:
        changed.setattr(file_sources, "count_uploaded_bytes", full)
        response = sue.upload("x.csv", b"a\n1\n")
    assert response.status_code == 503
    assert "could not be stored" in response.text
    assert not kept(clinic)


def _parquet() -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table({"id": list(range(50)), "ward": ["a", "b"] * 25}), out)
    return out.getvalue()


def _damaged() -> Iterator[tuple[str, bytes]]:
    """Files that are not what they are called, from cut ones to changed bytes; seeds are fixed."""
    whole, bits = _parquet(), SeededBits(5)
    for length in (0, 3, 4, 8, 12, len(whole) // 2, len(whole) - 1):
        yield ".parquet", whole[:length]
    for _ in range(15):
        changed = bytearray(whole)
        for _ in range((1, 3, 20)[uniform_below(3, bits=bits)]):
            changed[uniform_below(len(changed), bits=bits)] = uniform_below(256, bits=bits)
        yield ".parquet", bytes(changed)
    yield ".parquet", b"PAR1" + bytes(100) + b"PAR1"
    yield ".parquet", b"a,b\n1,2\n"
    yield from ((".csv", content) for content in (b"", b"\n", bytes(1000), b"\xff\xfe" * 50, b'"a\n', b"\xef\xbb\xbf"))
    yield from ((".csv", content) for content in (b",,,\n1,2,3\n", b"a,a\n1,2\n"))
    yield ".csv", b"a" * 300_000  # one name that is longer than the csv module reads
    yield ".csv", b"a\n" + b'"' * 10_000
    yield ".csv", gzip.compress(bytes(1 << 20))


@pytest.mark.ci
def test_a_damaged_file_is_inspected_or_refused_and_never_a_fault(tmp_path: Path) -> None:
    refused: list[InvalidParameter] = []
    for place, (ending, content) in enumerate(_damaged()):
        file = tmp_path / f"{place}{ending}"
        file.write_bytes(content)
        try:
            perform(cast("Any", None), OPERATIONS["inspect"], {"path": str(file)}, {})
        except InvalidParameter as error:
            refused.append(error)
    assert len(refused) > 12
    assert {status_of(error) for error in refused} == {422}


@pytest.mark.ci
def test_a_file_with_very_many_columns_is_refused_before_its_rows_are_read(tmp_path: Path) -> None:
    file = tmp_path / "wide.csv"
    file.write_text(",".join(f"c{i}" for i in range(20_000)) + "\n" + ",".join("1" * 20_000) + "\n")
    with pytest.raises(InvalidParameter, match="at most 700 columns"):
        perform(cast("Any", None), OPERATIONS["inspect"], {"path": str(file)}, {})
    packed = tmp_path / "wide.parquet"
    pq.write_table(pa.table({f"c{i}": [1] for i in range(2_000)}), packed)
    with pytest.raises(InvalidParameter, match="at most 700 columns"):
        perform(cast("Any", None), OPERATIONS["inspect"], {"path": str(packed)}, {})
