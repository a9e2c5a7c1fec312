import pytest

from tests.support.followed_sides import Followed


@pytest.fixture
def followed(monkeypatch: pytest.MonkeyPatch) -> Followed:
    """A follower of a mirror that has copied nothing yet."""
    return Followed(monkeypatch)
