"""Both roles in Debian's Chromium, from the sign-in link to the export, with nothing on its console."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.service.page.chromium import CHROMIUM, Complaints, chromium, new_page, served
from tests.service.page.fakes import Clinic, clinic_at

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="Debian's package chromium is not installed"),
]
BY_WARD = "SELECT ward, COUNT(*) AS n, AVG(age) AS mean_age FROM visits GROUP BY ward"
NARROW, WIDE = {"width": 420, "height": 900}, {"width": 1200, "height": 900}


class Window:
    """A window in which somebody is signed in, and what it complained about."""

    def __init__(self, browser: Browser, clinic: Clinic, origin: str, who: str, **settings: object) -> None:
        self.page: Page = new_page(browser, **settings)
        self.origin, self.complaints = origin, Complaints()
        self.complaints.watch(self.page, origin)
        link = clinic.identities.make_link(clinic.identities.local, who)
        self.page.goto(f"{origin}/sign-in?token={link}")
        self.page.get_by_role("button", name="Sign in").click()
        expect(self.page.get_by_role("button", name="Sign out")).to_be_visible()

    def open(self, path: str) -> Page:
        self.page.goto(self.origin + path)
        return self.page

    def close(self) -> None:
        self.page.context.close()
        assert not self.complaints.told

    def fits(self) -> bool:
        """Tells whether the page as a whole does not scroll sideways."""
        return bool(self.page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture
def origin(clinic: Clinic) -> Iterator[str]:
    with served(clinic.app) as place:
        yield place


def test_an_analyst_asks(browser: Browser, clinic: Clinic, origin: str) -> None:
    window = Window(browser, clinic, origin, "ana", viewport=WIDE)
    page = window.open("/ask")
    editor = page.locator(".cm-content")
    editor.click()
    page.keyboard.type("SELECT war")
    expect(page.locator(".cm-tooltip-autocomplete")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(BY_WARD)
    page.fill("#epsilon", "0.5")
    explained = page.locator("#explanation")
    expect(explained).to_contain_text("epsilon=0.5")
    expect(explained).to_contain_text("Error of mean_age")
    assert not [entry for entry in clinic.curator.entries() if entry.kind == "charge"]
    editor.click()
    page.keyboard.press("Control+Enter")
    outcome = page.locator("#outcome")
    expect(outcome.locator("tbody tr")).to_have_count(4)
    expect(outcome.locator(".chart svg")).to_be_visible()
    assert len([entry for entry in clinic.curator.entries() if entry.kind == "charge"]) == 1
    with page.expect_download() as saved:
        outcome.get_by_role("link", name="CSV").click()
    assert Path(saved.value.path()).read_text().startswith("ward,n,n_low,n_high")
    outcome.get_by_role("link", name="Certificate").click()
    expect(page.locator("main")).to_contain_text("For any two databases")
    expect(window.open("/budget").locator(".chart svg")).to_be_visible()
    expect(window.open("/history").locator("tbody tr")).to_have_count(1)
    window.close()


def test_budgets_are_compared_and_one_signs_out(browser: Browser, clinic: Clinic, origin: str) -> None:
    window = Window(browser, clinic, origin, "ana", viewport=WIDE)
    page = window.open("/choose-epsilon")
    page.locator(".cm-content").click()
    page.keyboard.insert_text("SELECT COUNT(*) AS n FROM visits")
    page.get_by_role("button", name="Choose epsilon").click()
    expect(page.locator(".chart svg")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    window.close()


def stays() -> bytes:
    return b"person,age,sex\n" + b"".join(b"%d,%d,%s\n" % (i, 20 + i, b"fm"[i % 2 :][:1]) for i in range(40))


def test_a_steward_protects_appoints_and_verifies(browser: Browser, clinic: Clinic, origin: str) -> None:
    window = Window(browser, clinic, origin, "sue", viewport=WIDE)
    page = window.open("/protect")
    page.set_input_files("#file", {"name": "stays.csv", "mimeType": "text/csv", "buffer": stays()})
    page.get_by_role("button", name="Upload").click()
    expect(page.locator("main")).to_contain_text("What is missing")
    page.fill("#name", "stays")
    page.select_option("#unit", "person")
    page.fill("#delta", "1e-6")
    page.get_by_label("Lower bound of age").fill("0")
    page.get_by_label("Upper bound of age").fill("120")
    page.get_by_label("Keys of sex").fill("f, m")
    page.get_by_role("button", name="Protect", exact=True).click()
    expect(page.get_by_role("heading", name="stays is protected")).to_be_visible()
    page.get_by_role("link", name="Appoint analysts").click()
    expect(page.locator("main")).to_contain_text("No one is appointed")
    page.fill("#appoint-who", "ben")
    page.get_by_role("button", name="Appoint").click()
    expect(page.get_by_role("status")).to_contain_text("Done: Appoint")
    window.open("/people").select_option("#key-name", "ben")
    page.locator("form[action='/keys']").get_by_role("button", name="Make").click()
    expect(page.locator("#secret")).to_contain_text("dk_")
    window.open("/attack").check("input[value=age]")
    page.get_by_role("button", name="Attack", exact=True).click()
    expect(page.locator(".chart svg")).to_be_visible()
    window.open("/verify").get_by_role("button", name="Verify now").click()
    expect(page.locator("main")).to_contain_text("The ledger is unchanged")
    window.close()
    assert clinic.curator.history("stays")[-1].who == "sue"


def test_pages_fit_a_phone_in_light_and_dark(browser: Browser, clinic: Clinic, origin: str) -> None:
    clinic.curator.ask(BY_WARD, epsilon="0.5", analyst="ana")
    pages: tuple[str, ...] = (
        "/ask",
        "/tables/visits",
        "/budget",
        "/overview",
        "/accounts/patients",
        "/accounts/patients/report",
    )
    pages += (
        "/people",
        "/protect",
        "/protect/declare?source=root/0/visits.csv",
        "/choose-epsilon",
        "/attack",
        "/history",
    )
    for scheme in ("light", "dark"):
        window = Window(browser, clinic, origin, "sue", viewport=NARROW, color_scheme=scheme)
        for path in pages:
            window.open(path).wait_for_load_state("load")
            assert window.fits(), (scheme, path)
        window.close()


def test_the_page_is_used_with_the_keyboard(browser: Browser, clinic: Clinic, origin: str) -> None:
    window = Window(browser, clinic, origin, "ana", viewport=WIDE)
    page = window.open("/tables")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.url.endswith("#main")
    for path in ("/ask", "/tables", "/history"):
        window.open(path)
        unnamed = "els => els.filter(e => !e.labels?.length && !e.getAttribute('aria-label')).map(e => e.outerHTML)"
        assert not page.eval_on_selector_all("input:not([type=hidden]), select, textarea:not([hidden])", unnamed)
        assert page.locator("h1").count() == page.locator("main").count() == 1
    window.close()


def test_what_a_script_would_do_is_refused_by_the_browser(browser: Browser, clinic: Clinic, origin: str) -> None:
    """The other side of the silence above: this browser does complain, and does not run what the policy forbids."""
    window = Window(browser, clinic, origin, "ana", viewport=WIDE)
    page = window.open("/tables")
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<p style=\"color:red\" onclick=\"x()\">x</p>')")
    page.evaluate("() => { window.s = document.createElement('script'); s.textContent = 'window.ran = 1'; }")
    page.evaluate("() => { document.body.append(window.s); }")
    assert page.evaluate("window.ran === undefined")
    assert window.complaints.told
    page.context.close()


@pytest.fixture
def clinic(tmp_path: Path) -> Iterator[Clinic]:
    with clinic_at(tmp_path, patients=200) as made:
        yield made
