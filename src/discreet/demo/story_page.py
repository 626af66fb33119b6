"""The story as a page, one HTML file with charts for a browser without a network; and the whole show with all pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from discreet.curator import Answer
from discreet.demo import background, terminal
from discreet.demo.average_attack import TRIALS
from discreet.demo.clinic import HIGHEST_CHARGE, PATIENTS, RICH_CHARGE, RICH_WARD, TYPES
from discreet.demo.conversation import BOUNDS, KEYS, LIMITS, DemoReply
from discreet.demo.lab import SHOWN, Exhibit, exhibits, write_lab
from discreet.demo.robustness_page import run_contamination, write_robust
from discreet.demo.story import PROVENANCE, Story, progress, tell
from discreet.noise import Bits
from discreet.presentation.template_environment import render
from discreet.report import answers, charts, page
from discreet.report.charts import Point
from discreet.report.display import format_measured, number, percent
from discreet.report.html import Html

FILE, LAB = "report.html", "lab.html"
CONTENTS = {
    "protected": "What is protected",
    "answers": "Questions and answers",
    "refused": "What was refused",
    "attack": "The attack",
    "ledger": "The ledger",
    "background": "Noise and epsilons",
}


def write_report(story: Story, folder: Path) -> Path:
    """Writes the page, over an older one, and says where it is.

    Raises:
        MissingExtra: if charts cannot be drawn; nothing is written.
    """
    text = report(story)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / FILE
    path.write_text(text, encoding="utf-8")
    return path


def report(story: Story) -> str:
    """Returns the whole page."""
    lead = (
        "A synthetic clinic was protected, queried in several ways and attacked. "
        "Every number has an interval, a cost and an entry in a ledger that cannot be changed unnoticed."
    )
    parts = (
        render_declarations(story),
        render_answers(story),
        render_refusals(story),
        render_attack(story),
        ledger(story),
        render_lessons(),
    )
    sections = (page.section(name, CONTENTS[name], *part) for name, part in zip(CONTENTS, parts, strict=True))
    return page.document("Private answers about a small clinic", facts(story), *sections, lead=lead, contents=CONTENTS)


def facts(story: Story) -> Html:
    """Returns the figures to begin with."""
    refusals = sum(said.refusal is not None for said in story.said)
    free = sum(said.answer is not None and said.answer.replayed for said in story.said)
    return page.facts(
        {
            "synthetic patients": f"{story.patients:,}",
            "visits": f"{story.visits:,}",
            "answers paid for": str(len(story.said) - refusals - free),
            "answers for free": str(free),
            "refusals": str(refusals),
            "ledger entries": str(story.head.sequence),
        }
    )


def render_declarations(story: Story) -> list[Html]:
    """Returns what the steward declared."""
    text = (
        f"The unit of privacy is a patient, with all their visits. The patients' account holds {story.balance.total}. "
        f"One patient may count in {LIMITS.groups} groups of an answer, with {LIMITS.rows} visits in each. "
        "The declarations are public, and nothing in them is read from the data."
    )
    rows = [[name, kind, _public(name)] for name, kind in TYPES.items()]
    table = page.table(("column", "type", "public"), rows, caption="Declarations of the table")
    return [page.beside(page.paragraph(text), table)]


def _public(column: str) -> str:
    if column in KEYS:
        return "keys: " + ", ".join(KEYS[column])
    if column in BOUNDS:
        low, high = BOUNDS[column]
        return f"bounds: {low:,} to {high:,}"
    return "the unit, never shown" if column == "patient" else "nothing"


def render_answers(story: Story) -> Iterable[Html]:
    """Yields questions with answers."""
    yield page.paragraph(
        "Each cell has a released number and its 95 % interval, in digits and as a small error bar. In the charts, "
        "diamonds are exact answers within the same bounds. We can show these only because the patients are synthetic."
    )
    for said in story.said:
        if said.answer is not None:
            yield _exchange(said, said.answer, story.exact)


def _exchange(said: DemoReply, answer: Answer, exact: Mapping[str, Mapping[str, float]]) -> Html:
    line = said.line
    caption = f"Released numbers with {percent(answer.confidence)} intervals"
    table = page.scrolling(answers.table(answer.records, caption=caption), label=line.title)
    drawn = [_figure(said, answer, name, exact.get(f"{line.name} {name}", {})) for name in line.bars + line.dots]
    narrow = len(answers.shape(answer.records).numbers) == 1
    shown = [page.beside(table, *drawn)] if narrow else [table, page.beside(*drawn)]
    parts = page.code(line.text), page.paragraph(line.remark), *shown, _price(answer)
    return page.section(_anchor(line.name), line.title, *parts, level=3)


def _anchor(name: str) -> str:
    return "asked-" + name.replace(" ", "-")


def _price(answer: Answer) -> Html:
    """Returns what it cost and how to read it, in small print."""
    seeded = "" if answer.private else " Not private: the noise was seeded, for tests."
    cost = [page.amount(str(answer.cost)), " paid, "] if not answer.replayed else ["Replayed, at no cost; "]
    rest = page.amount(str(answer.remaining)), f" remaining.{seeded} ", " ".join(answer.notes)
    return page.paragraph(*cost, *rest, kind="small")


def _figure(said: DemoReply, answer: Answer, name: str, exact: Mapping[str, float]) -> Html:
    points = answers.points(answer.records, name)
    draw = charts.bars if name in said.line.bars else charts.dots
    return page.figure(
        draw(points, title=name, exact=exact),
        caption=f"{name}, with {percent(answer.confidence)} intervals" + ("; diamonds: exact" if exact else ""),
        description=f"{said.line.title}: {name}. {_describe_chart(points)}",
    )


def _describe_chart(points: Sequence[Point]) -> str:
    """Returns a chart for those who hear it."""
    return "; ".join(f"{p.label} {format_measured(p.value, p.low, p.high)}" for p in points) + "."


def render_refusals(story: Story) -> Iterable[Html]:
    """Yields questions without answers."""
    yield page.paragraph("A refusal is decided before the data are read, and costs nothing.")
    for said in story.said:
        if said.refusal is not None:
            reason = page.paragraph(str(said.refusal), kind="refusal")
            parts = page.code(said.line.text), reason, page.paragraph(said.line.remark)
            yield page.section(_anchor(said.line.name), said.line.title, *parts, level=3)


def render_attack(story: Story) -> list[Html]:
    """Returns what averages reveal about one bill."""
    raw = story.raw
    exact = (
        f"One patient of {RICH_WARD} leaves. The exact average charge of {raw.visits:,} visits falls from "
        f"{float(raw.before):,.4f} to {float(raw.after):,.4f}. Multiply each by its number of visits, {raw.visits:,} "
        f"and {raw.visits - 1:,}, and subtract: {number(raw.inferred_bill)}, the patient's bill, to the last digit."
    )
    private = (
        "The same attack on private averages was run many times, on copies of the ward with fresh noise. "
        f"Two protections stop it. First, a charge counts as at most {HIGHEST_CHARGE:,}, the public bound, so no "
        "answer reveals anything about the rest of a large bill. Second, noise covers what one patient can still "
        "change. With a large epsilon the second protection gets weak, and the trials gather around the bound. The "
        "first one remains."
    )
    groups = {f"epsilon {found.epsilon}": found.inferred for found in story.private}
    figure = page.figure(
        charts.clouds(groups, title="the bill, as inferred", landmarks={f"the bill: {RICH_CHARGE:,}": RICH_CHARGE}),
        caption=f"{len(story.private[0].inferred)} trials at each epsilon. Ticks are trials. Lines hold nine in ten.",
        description="What the attacker infers. "
        + "; ".join(f"epsilon {row[0]}: {row[2]}" for row in _trials(story)[1:]),
    )
    columns = ("averages", "median of trials", "nine in ten trials")
    table = page.table(columns, _trials(story), caption="The bill as inferred by the attacker", numbers=columns[1:])
    more = page.paragraph("More attacks, on other releases: ", page.link("the lab", LAB), ".")
    return [page.paragraph(exact), page.paragraph(private), page.beside(figure, table), more]


def _trials(story: Story) -> list[tuple[str, str, str]]:
    exact = number(story.raw.inferred_bill)
    return [
        ("exact", exact, f"{exact} to {exact}"),
        *(
            (
                f"epsilon {p.epsilon}",
                number(p.quantile(0.5)),
                f"{number(p.quantile(0.05))} to {number(p.quantile(0.95))}",
            )
            for p in story.private
        ),
    ]


def ledger(story: Story) -> list[Html]:
    """Returns what was spent, entry by entry."""
    paid = {said.line.name: _epsilon(said.answer) for said in story.said if said.answer and not said.answer.replayed}
    figure = page.figure(
        charts.lengths(paid, title="epsilon"),
        caption="What each answer cost.",
        description="; ".join(f"{name}: epsilon {cost:g}" for name, cost in paid.items()) + ".",
    )
    shown = {"balance": story.balance, "head": story.head, "figure": figure, "items": story.entries}
    return [render("demo_ledger.html", **shown)]


def _epsilon(answer: Answer) -> float:
    return float(getattr(answer.cost, "epsilon", 0))


def render_lessons() -> list[Html]:
    """Returns what noise, accountants and epsilons do."""
    return [page.beside(_noise(), _accounts()), _meanings(), page.paragraph(PROVENANCE, kind="small")]


def _noise() -> Html:
    readings = background.errors()
    first, last = readings[0], readings[-1]
    return page.figure(
        charts.curve(readings, across="epsilon", title="people", logarithmic=True),
        caption=f"A released count of {background.VISITS:,} people lies in this band with 95 % chance.",
        description=f"The band narrows from {first.low:.0f} to {first.high:.0f} at epsilon {first.x:g} "
        f"to {last.low:.0f} to {last.high:.0f} at epsilon {last.x:g}.",
    )


def _accounts() -> Html:
    found = {account.method: account.epsilon for account in background.accounts()}
    return page.figure(
        charts.lengths(found, title="epsilon"),
        caption=f"What {background.QUERIES} Laplace releases at epsilon {float(background.EACH)} cost together, "
        f"by accountant, at delta {float(background.DELTA):.0e}.",
        description="; ".join(f"{method} {epsilon:.2f}" for method, epsilon in found.items()) + ".",
    )


def _meanings() -> Html:
    columns = (
        "epsilon",
        "a belief of 50 % becomes at most",
        "power of the best test at 5 % false alarms",
        "error of a count",
    )
    rows = [
        (m.epsilon, f"{100 * m.belief:.2f} %", f"{100 * m.power:.2f} %", f"± {m.error}") for m in background.meanings()
    ]
    return page.table(columns, rows, caption="What an epsilon means for one person", numbers=columns)


def show(
    console: Console, folder: Path, *, bits: Bits | None = None, patients: int = PATIENTS, trials: int = TRIALS
) -> Path:
    """Runs the story and the attacks of the lab, and writes a page about each.

    Args:
        console: where it is printed.
        folder: where the report goes.
        bits: the source of all noise; None is the secure one.
        patients: how many people the clinic has.
        trials: of the attack, at each epsilon.

    Returns:
        The report.

    Raises:
        MissingExtra: if charts cannot be drawn here; the story is printed by then, and nothing is written.
    """
    story = tell(console, bits=bits, patients=patients, trials=trials)
    shown = _lab(console, bits)
    terminal.heading(console, "6. The report")
    with console.status("Drawing charts"):
        paths = (
            write_report(story, folder),
            write_lab(shown, folder),
            write_robust(run_contamination(bits=bits), folder),
        )
    for path in paths:
        console.print(Text(str(path.resolve())), soft_wrap=True)
    terminal.say(console, "Open the pages in a browser. They need no network.")
    return paths[0]


def _lab(console: Console, bits: Bits | None) -> tuple[Exhibit, ...]:
    """Runs the attacks on other releases, and prints each when it is done."""
    terminal.heading(console, "5. The lab: three releases without names")
    shown = []
    with progress(console) as bar:
        task = bar.add_task("Attacking", total=len(SHOWN))
        for exhibit in exhibits(bits=bits):
            terminal.exhibit(console, exhibit)
            shown.append(exhibit)
            bar.advance(task)
    return tuple(shown)
