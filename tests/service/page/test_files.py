"""Which files a steward can name or send: those of listed folders, CSV and Parquet, within a quota."""

from pathlib import Path

import pytest

from discreet.errors import InvalidParameter
from discreet.service.desk import Operation
from discreet.service.page.file_sources import from_path, listed, resolve
from discreet.service.settings import Settings
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
    assert listed(places) == ["a.csv", "inner.csv", "sub/b.parquet"]


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
    assert clinic.desk.done[-1][1].operation is Operation.INSPECT


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
        "epsilon": "1",
        "delta": "1e-6",
        "column": ["person", "age", "sex"],
        "column-type": ["int", "int", "text"],
        "column-low": ["", "0", ""],
        "column-high": ["", "120", ""],
        "column-keys": ["", "", "f, m"],
    }
    assert "No bounds" not in sue.post("/protect/declare", form | {"act": "review"}).text
    assert clinic.desk.done[-1][1].operation is Operation.INSPECT
    refused = sue.post("/protect/declare", form | {"act": "protect", "unit": ""})
    assert refused.status_code == 422
    assert "whose rows" in refused.text
    assert "is protected" in sue.post("/protect/declare", form | {"act": "protect"}).text
    given = clinic.desk.done[-1][1].arguments
    assert given["bounds"] == {"age": [0, 120]}
    assert given["keys"] == {"sex": ["f", "m"]}
    assert clinic.curator.tables()["stays"] == "stays"
    wider = form | {"column-high": ["", "130", ""], "epsilon": "", "delta": "", "act": "protect"}
    line = "bounds of age: 0 to 120 -&gt; 0 to 130"
    shown = sue.post("/protect/declare", wider)
    assert (shown.status_code, line in shown.text, 'name="change"' in shown.text) == (422, True, True)
    seen = {"seen": ["bounds of age: 0 to 120 -> 0 to 130"]}
    assert sue.post("/protect/declare", wider | seen).status_code == 422  # looked at, and not confirmed
    assert "is protected" in sue.post("/protect/declare", wider | seen | {"change": "yes"}).text
    assert clinic.desk.done[-1][1].arguments["change"] == seen["seen"]
