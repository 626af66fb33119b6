"""Vendored scripts are those that were checked, their licences are there, and the wheel would carry them."""

from hashlib import sha256
from pathlib import Path

import discreet.service.page

FOLDER = Path(discreet.service.page.__file__).parent / "assets"


def test_checksums_hold() -> None:
    lines = (FOLDER / "CHECKSUMS").read_text().splitlines()
    assert {line.split()[1] for line in lines} == {"htmx.js", "editor.js", "charts.js", "LICENCES.txt"}
    for line in lines:
        digest, name = line.split()
        assert sha256((FOLDER / name).read_bytes()).hexdigest() == digest


def test_every_package_has_its_licence() -> None:
    text = (FOLDER / "LICENCES.txt").read_text()
    parts = (
        "htmx.org 2.",
        "@codemirror/view 6.",
        "@lezer/highlight 1.",
        "vega 6.",
        "vega-lite 6.",
        "vega-interpreter 2.",
    )
    for name in parts:
        assert f"\n{name}" in text


def test_what_was_bundled_can_be_bundled_again() -> None:
    source = FOLDER / "source"
    assert {"build.sh", "package.json", "package-lock.json", "editor_entry.js", "charts_entry.js"} <= {
        path.name for path in source.iterdir()
    }


def test_scripts_of_ours_make_no_code_from_text() -> None:
    text = (FOLDER / "page.js").read_text()
    assert "eval(" not in text
    assert "new Function" not in text
    assert "innerHTML" not in text
