"""The order of pages: what teaches, what helps to get something done, what explains, and what is looked up.

Folders bring their pages by themselves, those that are named here first. A page that lies in docs/ itself is named here
once; one that is named nowhere stops the build.
"""

from __future__ import annotations

from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]

FOLDERS = {"Tutorials": "tutorials", "How-to": "howto", "Explanations": "explanations", "Reference": "reference"}

PAGES = {
    "Tutorials": (
        "tutorials/analyst",
        "tutorials/steward",
        "tutorials/tour",
        "tutorials/train_a_model",
        "tutorials/publish_every_week",
        "tutorials/servers",
        "tutorials/serve_a_team",
        "tutorials/synthetic_table",
        "tutorials/attack_your_release",
        "course",
        "attacks_linking",
        "attacks_rebuilding",
        "attacks_tracing",
    ),
    "How-to": (
        "scaling",
        "serving",
        "shared_ledger",
        "postgresql_wire",
        "reporting",
        "many_answers",
        "streams",
        "synthetic",
        "survey",
        "learning",
        "learning_models",
        "learning_pipelines",
        "deep",
        "auditing",
        "audit_query",
    ),
    "Explanations": ("how_it_works", "sharp_edges", "known_vulnerabilities", "robustness", "attacks", "mutants"),
    "Reference": (
        "sql_reference",
        "command_line",
        "http_api",
        "statistics",
        "robust",
        "estimating_and_testing",
        "notation",
    ),
}
"""Pages by section, in order; one that is not written yet is left out."""

PROJECT = ("CHANGELOG", "CONTRIBUTING", "SECURITY")
"""Pages at the root of the repository that are part of the site."""


def pages() -> list[Path]:
    """Returns all pages that people wrote, below docs/."""
    return sorted(path for path in DOCS.rglob("*.md") if not {"site", "_build"} & set(path.relative_to(DOCS).parts))


def sections() -> dict[str, list[str]]:
    """Returns the names of pages, relative to docs/ and without suffix, by section.

    Raises:
        LookupError: if a page is in no section.
    """
    there = [path.relative_to(DOCS).with_suffix("").as_posix() for path in pages()]
    found: dict[str, list[str]] = {}
    for section, folder in FOLDERS.items():
        named = [name for name in PAGES[section] if name in there]
        inside = [name for name in there if name.startswith(f"{folder}/") and name not in named]
        first = [name for name in named if name.startswith(f"{folder}/")]
        found[section] = first + inside + [name for name in named if name not in first]
    lost = set(there) - {"index"} - {name for names in found.values() for name in names}
    if lost:
        raise LookupError(f"Place these pages in docs/site/navigation.py: {', '.join(sorted(lost))}")
    return found
