"""Whether the processes agree in their settings, by what they say of them."""

from datetime import UTC, datetime
from typing import Any

from scheduler_app.config import Settings
from scheduler_app.health import Status
from scheduler_app.health.check import Check
from scheduler_app.health.processes import check_settings
from scheduler_app.store.processes import ProcessRecord, fingerprint, shared_settings

OWN = shared_settings(Settings(callback_allowed_networks="10.0.0.0/8"))
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
VERSION = "1"
KEY = "a" * 43 + "="


def node(role: str, name: str = "", version: str = VERSION, **differing: Any) -> ProcessRecord:
    return ProcessRecord(name or role, role, NOON, 2.0, version=version, settings={**OWN, **differing})


def check(*nodes: ProcessRecord) -> Check:
    return check_settings(nodes, OWN, VERSION)


def test_processes_that_agree_are_fine() -> None:
    assert check(node("api"), node("beat"), node("worker")).status is Status.OK
    assert check().status is Status.OK


def test_a_worker_with_other_networks_is_named_with_what_it_has() -> None:
    found = check(
        node("worker", "w1"), node("worker", "w2"), node("worker", "w3", CALLBACK_ALLOWED_NETWORKS="")
    )
    assert found.status is Status.WRONG
    assert found.found == "CALLBACK_ALLOWED_NETWORKS is 10.0.0.0/8 in most, but empty in w3"
    assert found.remedy


def test_networks_matter_to_workers_alone() -> None:
    assert check(node("worker"), node("beat", CALLBACK_ALLOWED_NETWORKS="")).status is Status.OK


def test_all_that_differs_is_told_at_once() -> None:
    found = check(
        node("beat", "b1", DISPATCH_HORIZON_SECONDS=9.0, PREQUEUER_EVENT_TIMEFRAME_MINUTES=1),
        node("beat", "b2"),
        node("api"),
        node("worker", SECRETS_KEY=fingerprint(KEY)),
    )
    assert [part.partition(" ")[0] for part in found.found.split("; ")] == [
        "DISPATCH_HORIZON_SECONDS",
        "PREQUEUER_EVENT_TIMEFRAME_MINUTES",
        "SECRETS_KEY",
    ]


def test_that_only_this_command_differs_is_a_note() -> None:
    found = check(node("worker", CALLBACK_ALLOWED_NETWORKS="10.1.0.0/16"))
    assert found.status is Status.NOTE
    assert found.found == "CALLBACK_ALLOWED_NETWORKS is 10.0.0.0/8 here and 10.1.0.0/16 in all that use it"


def test_several_versions_are_a_note() -> None:
    found = check(node("worker", "w1"), node("worker", "w2", version="2"))
    assert (found.status, found.found) == (Status.NOTE, "several versions run: 1, 2")


def test_nodes_of_a_release_that_says_nothing_of_its_settings_are_passed_over() -> None:
    assert check(ProcessRecord("old", "worker", NOON, 2.0, version=VERSION)).status is Status.OK


def test_a_fingerprint_tells_newest_keys_apart_and_shows_none() -> None:
    other = "b" * 43 + "="
    assert fingerprint(KEY) == fingerprint(f" {KEY} , {other}") != fingerprint(other)
    assert fingerprint("") == fingerprint(" ,") == "not set"
    assert KEY[:8] not in fingerprint(KEY)
    assert len(fingerprint(KEY)) == len("key ") + 8


def test_the_spelling_of_a_list_is_no_difference() -> None:
    one, other = (
        shared_settings(Settings(callback_allowed_networks=text))
        for text in ("10.0.0.0/8,::1/128", " 10.0.0.0/8 , ::1/128,")
    )
    assert one == other


def test_no_secret_is_among_them() -> None:
    secret = Settings(mongo_uri="mongodb://u:hidden@h", broker_url="redis://:hidden@h", api_keys=("hidden",))
    assert "hidden" not in str(shared_settings(secret))
