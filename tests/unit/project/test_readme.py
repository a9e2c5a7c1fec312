"""The README keeps its promises: two commands on the first screen, and no command that nothing runs."""

from tests.support.readme_commands import README, RUN_ELSEWHERE, commands

ROOT = README.parent
FIRST_SCREEN_LINES = 24


def test_the_two_commands_stand_within_the_first_screen() -> None:
    first_screen = README.read_text(encoding="utf-8").splitlines()[:FIRST_SCREEN_LINES]
    assert {"make demo", "make test"} <= {line.strip() for line in first_screen}


def test_what_is_run_elsewhere_is_really_run_there() -> None:
    shown = set(commands())
    for command, place in RUN_ELSEWHERE.items():
        assert command in shown
        text = (ROOT / place).read_text(encoding="utf-8")
        words = command.split()
        assert all(word in text for word in words), f"{place} does not run `{command}`"


def test_every_page_the_readme_links_to_exists() -> None:
    text = README.read_text(encoding="utf-8")
    links = [part.split(")")[0] for part in text.split("](")[1:]]
    missing = [link for link in links if "://" not in link and not (ROOT / link.split("#")[0]).exists()]
    assert not missing
