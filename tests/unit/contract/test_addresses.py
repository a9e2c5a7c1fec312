"""URLs that a request or a command line names: a wrong one is reported first of all, credentials are refused."""

import argparse
import copy
from typing import Any

import pytest

from contract.documents import parse
from contract.fields import RequestError
from spark.report import publish

from .test_request import ENVIRONMENT, GOOD

WRONG = ["http://h:80a", "h:8083", "ftp://h:8083", "http://", "http://h:8083\n", "http://[::1"]
RULE = "must be a URL http://HOST:PORT or https://HOST:PORT"


def with_connect(url: str) -> dict[str, Any]:
    found = copy.deepcopy(GOOD)
    found["mirror"]["connect_url"] = url
    return found


def destinations(*words: str) -> publish.Destinations:
    parser = argparse.ArgumentParser()
    publish.add_options(parser)
    return publish.destinations(parser.parse_args(words), {})


@pytest.mark.parametrize("url", WRONG)
def test_a_wrong_connect_url_is_reported_with_field_value_and_fix(url: str) -> None:
    with pytest.raises(RequestError) as caught:
        parse(with_connect(url), ENVIRONMENT)
    (problem,) = caught.value.problems
    assert problem.startswith(f"mirror: connect_url {RULE} (got {url!r}")
    assert problem.endswith("Correct the URL.")


@pytest.mark.parametrize("url", WRONG)
def test_a_wrong_push_gateway_is_reported_with_option_value_and_fix(url: str) -> None:
    with pytest.raises(RequestError) as caught:
        destinations("--push-gateway", url)
    assert str(caught.value).startswith(f"--push-gateway: {RULE} (got {url!r}")


@pytest.mark.parametrize("url", ["https://user:made-up-password@h:1", "https://user@h:1", "http://u:p@h:80a"])
def test_credentials_in_a_url_are_refused_and_not_shown(url: str) -> None:
    for refused in (
        lambda: parse(with_connect(url), ENVIRONMENT),
        lambda: destinations("--push-gateway", url),
    ):
        with pytest.raises(RequestError, match="without user and password") as caught:
            refused()
        assert "made-up-password" not in str(caught.value)
        assert "user@" not in str(caught.value)


@pytest.mark.parametrize("url", ["http://mm2-connect.ns.svc:8083", "https://[::1]:8083/", "http://h"])
def test_a_right_url_is_taken_as_it_is(url: str) -> None:
    assert parse(with_connect(url), ENVIRONMENT).mirror.connect_url == url
    assert destinations("--push-gateway", url).push_gateway == url
