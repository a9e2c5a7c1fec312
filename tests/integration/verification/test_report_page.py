"""The report in a real headless Chromium: by eye and by keyboard, in light and dark, on phone and paper."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sandbox.toolchain.optional_tools import chromium_program
from sandbox.toolchain.paths import here
from spark.report import index, publish
from spark.report.html import as_html
from tests.support import report_documents as made
from tests.support.waiting import wait_until

from ...support.browser import Page, chromium

DOCUMENTS: dict[str, Callable[[], made.Document]] = {
    "clean": made.clean,
    "faulty": made.faulty,
    "stopped": made.stopped,
    "large": made.large,
}
BACKGROUND = "getComputedStyle(document.body).backgroundColor"
# Contrast of text and its own or its nearest painted background, WCAG 2.2 (1.4.3); whole page, smallest first.
CONTRASTS = """(() => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const rgb = (colour) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const painted = (one) => {
    for (let at = one; at; at = at.parentElement) {
      const colour = rgb(getComputedStyle(at).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255, 255];
  };
  const found = new Map();
  for (const one of document.body.querySelectorAll("*")) {
    const own = [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!own || one.closest("svg") || ["SCRIPT", "STYLE"].includes(one.tagName)) continue;
    const [a, b] = [light(rgb(getComputedStyle(one).color)), light(painted(one))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    found.set(`${one.tagName}.${one.className}`, Math.round(ratio * 100) / 100);
  }
  return [...found].sort((x, y) => x[1] - y[1]);
})()"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("report")


@pytest.fixture(scope="module")
def pages(folder: Path) -> dict[str, Path]:
    """The pages on disk, and the index of some runs."""
    files = {name: folder / f"{name}.html" for name in DOCUMENTS}
    for name, file in files.items():
        file.write_text(as_html(DOCUMENTS[name]()), encoding="utf-8")
    for hour, name in enumerate(("clean", "faulty", "stopped", "clean")):
        moment = f"2026-01-02T0{hour}:00:00+00:00"
        run = DOCUMENTS[name]() | {"started_at": moment, "finished_at": moment, "seconds": 40.0 + hour}
        report = folder / "runs" / f"run-{hour}" / "report.html"
        publish.write_report(report.parent, run, folder / "runs")
        index.add(folder / "runs", run, report)
    return {**files, "index": folder / "runs" / "index.html"}


@pytest.fixture(scope="module")
def tab(folder: Path) -> Iterator[Page]:
    with chromium(chromium_program(here()), folder) as socket:
        yield Page(socket)


@pytest.fixture
def page(tab: Page) -> Iterator[Page]:
    """A tab; whatever a test does in it, nothing may be said on its console and no other place asked for anything."""
    tab.said.clear()
    tab.requests.clear()
    yield tab
    assert tab.said == []
    assert [url for url in tab.requests if not url.startswith(("file:", "data:"))] == []


@pytest.mark.parametrize("width", [320, 768, 1280])
@pytest.mark.parametrize("name", [*DOCUMENTS, "index"])
def test_a_page_fits_every_screen(page: Page, pages: dict[str, Path], name: str, width: int) -> None:
    page.open(pages[name], width=width, height=800)
    assert page.value("document.documentElement.scrollWidth") <= width
    assert page.value("document.querySelector('h1').getBoundingClientRect().bottom") < 400, "the verdict is seen first"


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", ["clean", "faulty", "stopped", "index"])
def test_text_can_be_read_on_its_background(page: Page, pages: dict[str, Path], name: str, *, dark: bool) -> None:
    page.open(pages[name], dark=dark)
    lowest = page.value(CONTRASTS)[:5]
    assert lowest[0][1] >= 4.5, lowest


def test_colours_follow_the_system_until_they_are_chosen_by_keyboard(page: Page, pages: dict[str, Path]) -> None:
    page.open(pages["clean"], dark=False)
    light = page.value(BACKGROUND)
    page.open(pages["clean"], dark=True)
    dark = page.value(BACKGROUND)
    assert light != dark
    page.press("Tab")
    assert page.value("document.activeElement.className") == "skip"
    page.press("Tab")
    assert page.value("document.activeElement.id") == "theme-auto"
    page.press("ArrowRight")
    assert page.value(BACKGROUND) == light
    page.press("ArrowRight")
    assert page.value(BACKGROUND) == dark


def test_the_skip_link_is_seen_when_it_has_the_focus_and_leads_to_the_content(
    page: Page, pages: dict[str, Path]
) -> None:
    page.open(pages["faulty"])
    assert page.value("document.querySelector('.skip').getBoundingClientRect().right") < 0
    page.press("Tab")
    assert page.value("document.querySelector('.skip').getBoundingClientRect().left") >= 0
    page.press("Enter")
    assert page.value("document.activeElement.id") == "content"


def test_what_has_the_focus_is_outlined(page: Page, pages: dict[str, Path]) -> None:
    page.open(pages["faulty"])
    for _ in range(30):
        page.press("Tab")
        focused = "(document.activeElement.closest('label') ?? document.activeElement)"
        assert page.value(f"parseFloat(getComputedStyle({focused}).outlineWidth)") >= 2, page.value(
            f"{focused}.outerHTML"
        )


def test_a_finding_opens_by_keyboard_and_by_its_cell_in_the_grid(page: Page, pages: dict[str, Path]) -> None:
    page.open(pages["faulty"])
    page.value("document.querySelector('#f0 summary').focus()")
    page.press(" ")
    assert page.value("document.querySelector('#f0').open") is True
    anchor = page.value("document.querySelectorAll('.grid a.bad')[1].getAttribute('href')")
    page.value("document.querySelectorAll('.grid a.bad')[1].focus()")
    page.press("Enter")
    wait_until("the finding is open", lambda: page.value(f"document.querySelector('{anchor}').open") is True)


def test_findings_can_be_filtered_and_are_all_there_without_a_script(page: Page, pages: dict[str, Path]) -> None:
    shown = "[...document.querySelectorAll('.finding')].filter((one) => !one.hidden).length"
    page.open(pages["large"])
    assert page.value(shown) == 506
    script = "const box = document.querySelector('.filter input'); box.value = 'LOST line-2'; "
    page.value("{" + script + "box.dispatchEvent(new Event('input', {bubbles: true}))}")
    some = page.value(shown)
    assert 0 < some < 506
    assert page.value("document.querySelector('.filter output').textContent") == f"{some} of 506 shown"
    page.open(pages["large"], script=False)
    assert page.value(shown) == 506
    assert page.value("getComputedStyle(document.querySelector('.filter')).display") == "none"


def test_a_grid_of_50_topics_and_64_partitions_is_seen_at_once(page: Page, pages: dict[str, Path]) -> None:
    page.open(pages["large"], width=1280, height=1000)
    assert page.value("document.querySelectorAll('.grid tbody tr').length") == 50
    assert page.value("document.querySelectorAll('.grid tbody td').length") == 50 * 64
    assert (
        page.value(
            "(() => {const s = document.querySelector('#grid .scroll'); return s.scrollWidth - s.clientWidth})()"
        )
        == 0
    )
    height = page.value("document.querySelector('.grid').getBoundingClientRect().height")
    assert height < 950
    assert page.value("document.querySelector('.grid td .c').getBoundingClientRect().width") >= 13


def test_tables_name_their_columns_and_rows_and_scroll_by_keyboard(page: Page, pages: dict[str, Path]) -> None:
    page.open(pages["faulty"])
    assert page.value(
        "[...document.querySelectorAll('table')].every((one) => one.querySelector('thead th[scope=col]'))"
    )
    regions = "[...document.querySelectorAll('.scroll')]"
    assert page.value(f"{regions}.every((one) => one.tabIndex === 0 && one.getAttribute('aria-label'))")
    headings = page.value("[...document.querySelectorAll('h1, h2, h3')].map((one) => one.tagName)")
    assert headings[0] == "H1"
    assert headings.count("H1") == 1


# Text of a table's cells that a narrow screen shows without scrolling, by the words that it puts before them.
CELLS = """[...document.querySelectorAll('#checks tbody td[data-label=observed]')].map((one) => {
  const box = one.getBoundingClientRect(), frame = one.closest('.scroll');
  return [getComputedStyle(one, '::before').content, one.textContent,
          box.left >= 0 && box.right <= innerWidth && box.height > 0 && frame.scrollWidth <= frame.clientWidth];
})"""


@pytest.mark.parametrize("name", ["clean", "faulty"])
def test_a_narrow_screen_shows_what_was_observed_and_a_wide_one_a_table(
    page: Page, pages: dict[str, Path], name: str
) -> None:
    page.open(pages[name], width=400, height=800)
    checks = [check["observed"] for check in DOCUMENTS[name]()["checks"]]
    cells = page.value(CELLS)
    assert sorted(text for _, text, _ in cells) == sorted(checks)
    assert {label.replace('" "', "") for label, _, _ in cells} == {'"observed: "'}
    assert all(seen for _, _, seen in cells), cells
    page.open(pages[name], width=1200, height=800)
    assert {label for label, _, _ in page.value(CELLS)} == {"none"}
    assert page.value("getComputedStyle(document.querySelector('#checks tr')).display") == "table-row"


def test_a_command_is_copied_as_it_stands_and_is_whole_on_a_narrow_screen(page: Page, pages: dict[str, Path]) -> None:
    page.call("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    page.open(pages["faulty"], width=400, height=800)
    command = "python -m ops offsets set --stack stg --mirror mm2 --group billing --exact"
    box = f"[...document.querySelectorAll('.command')].find((one) => one.textContent.startsWith('{command}'))"
    assert page.value(f"{box}.querySelector('code').textContent") == command
    assert page.value(f"{box}.scrollWidth <= {box}.clientWidth")
    page.value(f"{box}.querySelector('button').click()")
    label = f"{box}.querySelector('button').textContent"
    wait_until("the button says so", lambda: page.value(label) in ("Copied", "Selected"))
    page.open(pages["faulty"], width=400, script=False)
    assert page.value("document.querySelectorAll('.command button').length") == 0
    assert page.value(f"{box}.textContent") == command


def test_the_index_leads_to_a_report_and_back(page: Page, pages: dict[str, Path]) -> None:
    page.open(pages["index"], width=400, script=False)
    assert page.value("document.querySelectorAll('#runs a').length") == 4
    assert page.value("[...document.querySelectorAll('#mirrors svg')].length") >= 2
    name = page.value("document.querySelector('#runs a').getAttribute('href')")
    assert name == "run-3/report.html"
    page.open(pages["index"].parent / name)
    assert page.value("new URL(document.querySelector('.top a').href).pathname") == str(pages["index"])


def test_bars_are_as_long_on_the_screen_as_their_share(page: Page, pages: dict[str, Path]) -> None:
    page.open(pages["clean"])
    widths = "[...document.querySelectorAll('.meter span')].map((one) => one.getBoundingClientRect().width)"
    short, long = page.value(widths)
    assert short / long == pytest.approx(0.4 / 38.5, rel=0.05)


def test_plots_are_drawn_and_named(page: Page, pages: dict[str, Path]) -> None:
    page.open(pages["clean"])
    names = page.value("[...document.querySelectorAll('svg')].map((one) => one.getAttribute('aria-label'))")
    assert [name.split(":")[0] for name in names] == ["Lag", "Latency"]
    inside = """[...document.querySelectorAll('svg')].every((one) => {
      const frame = one.getBoundingClientRect();
      return [...one.querySelectorAll('text, rect, polyline')].map((part) => part.getBoundingClientRect()).every(
        (part) => part.left >= frame.left - 1 && part.right <= frame.right + 1 && part.bottom <= frame.bottom + 1);
    })"""
    assert page.value(inside)


def test_a_printed_report_is_whole(page: Page, pages: dict[str, Path]) -> None:
    page.open(pages["faulty"])
    paper = page.pdf()
    assert paper.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", paper)) >= 2
    page.call("Emulation.setEmulatedMedia", media="print")
    page.value("dispatchEvent(new Event('beforeprint'))")
    assert page.value("[...document.querySelectorAll('details')].every((one) => one.open)")
    assert page.value("getComputedStyle(document.querySelector('nav')).display") == "none"
    page.call("Emulation.setEmulatedMedia", media="")
