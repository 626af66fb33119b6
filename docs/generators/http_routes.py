"""Writes the table of verbs in docs/http_api.md from `VERBS`. Run it after you add a verb."""

from __future__ import annotations

from pathlib import Path

from discreet.requests.verb_table import VERBS, Permission

PAGE = Path(__file__).parents[1] / "http_api.md"
BEGIN, END = "<!-- verbs: docs/generators/http_routes.py -->", "<!-- end of verbs -->"
_WHO = {
    Permission.ASK: "analysts, stewards",
    Permission.PLAN: "analysts, stewards",
    Permission.SEE_OWN: "everyone",
    Permission.VERIFY: "auditors, stewards",
    Permission.STEWARD: "stewards",
}


def route_table() -> str:
    """Returns a line for each verb that HTTP offers: its route, who may use it, and what it does."""
    lines = ["| route | who | what |", "|---|---|---|"]
    for verb in VERBS.values():
        if "http" in verb.faces:
            what = " ".join((verb.request.__doc__ or "").split())
            lines.append(f"| `{' '.join(verb.route)}` | {_WHO[verb.permission]} | {what} |")
    return "\n".join(lines)


def page_with_table(text: str) -> str:
    """Returns the text of the page with the table of today's verbs."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{route_table()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page_with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
