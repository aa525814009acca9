"""The origin of a callback's URL: what its neighbours are counted by."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler_app.domain.action import MAX_ORIGIN, UNKNOWN_ORIGIN, origin_of


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("http://example.com", "http://example.com:80"),
        ("https://example.com/hook?a=1#top", "https://example.com:443"),
        ("https://example.com?to=http://other.test/", "https://example.com:443"),
        ("HTTPS://Example.COM:8443/Hook", "https://example.com:8443"),
        ("http://example.com:/", "http://example.com:80"),
        ("http://example.com:080/", "http://example.com:80"),
        ("http://example.com./", "http://example.com:80"),
        ("http://my_service:8080/", "http://my_service:8080"),
        ("http://127.0.0.1:9/", "http://127.0.0.1:9"),
        ("http://[2606:4700:4700:0:0:0:0:1111]/", "http://[2606:4700:4700::1111]:80"),
        ("http://[::1]:8080/", "http://[::1]:8080"),
    ],
)
def test_an_origin_is_scheme_host_and_port(url: str, origin: str) -> None:
    assert origin_of(url) == origin


def test_different_paths_and_ports_written_or_not_are_one_origin() -> None:
    assert len({origin_of(f"http://a.test{rest}") for rest in ("", "/", "/x", "?y", ":80/z")}) == 1
    assert origin_of("http://a.test/") != origin_of("https://a.test/")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.com",
        "/hook",
        "ftp://example.com/",
        "http://",
        "http:///path",
        "http://./",
        "http://user@example.com/",
        "http://exa mple.com/",
        "http://example.com:0/",
        "http://example.com:65536/",
        "http://example.com:port/",
        "http://[::1/",
        "http://[1::2::3]/",
        "http://bücher.example/",
        "http://" + "a" * 5000,
        "http://example.com\n/",
    ],
)
def test_what_is_no_url_of_a_receiver_has_one_common_origin(url: str) -> None:
    assert origin_of(url) == UNKNOWN_ORIGIN


@pytest.mark.parametrize("damaged", [None, 7, True, 1.5, b"http://a.test/", ["http://a.test/"], {"url": 1}])
def test_a_damaged_url_has_the_common_origin_too(damaged: Any) -> None:
    assert origin_of(damaged) == UNKNOWN_ORIGIN


def test_the_longest_host_name_has_an_origin_of_its_own() -> None:
    host = ".".join(["a" * 63] * 3 + ["a" * 61])
    assert len(host) == 253
    assert origin_of(f"https://{host}:65535/") == f"https://{host}:65535"


# A machine that stands still is no fault of an example.
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text())
def test_any_text_has_a_bounded_origin(text: str) -> None:
    for url in (text, f"http://{text}", f"https://a.test:{text}", f"http://[{text}]/"):
        assert 0 < len(origin_of(url)) <= MAX_ORIGIN
