"""What a request makes of a destination: what it changes, what stays, and what is refused."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scheduler_app.domain.action import CALLBACKS, COMMANDS
from scheduler_app.domain.deliverable import Signing
from scheduler_app.domain.destination import Auth, AuthType, Destination, DestinationDraft
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.ids import WholeId
from scheduler_app.domain.masking import MASK

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
LATER = NOW + timedelta(days=1)
URL = "https://a.test/base"
SIGNING = Signing("whsec_c2VjcmV0", NOW)
BASIC = Auth(AuthType.BASIC, "secret", username="bob")
STORED = Destination(
    id=WholeId("d"),
    url=URL,
    headers=(("X-Key", "secret"),),
    auth=BASIC,
    signing=SIGNING,
    rate_per_second=5.0,
    deleting=True,
    version=3,
    created_at=NOW,
    updated_at=NOW,
)


def put(old: Destination | None = STORED, **fields: Any) -> Destination:
    return DestinationDraft(**{"url": URL} | fields).destination(WholeId("d"), LATER, old)


def test_a_new_destination_has_what_is_given_and_the_usual_beside_it() -> None:
    made = put(None, auth=BASIC, burst=1)
    assert made == Destination(id=WholeId("d"), url=URL, auth=BASIC, created_at=LATER, updated_at=LATER)


def test_what_replaces_a_destination_is_its_next_version_and_keeps_its_age_alone() -> None:
    assert put() == Destination(id=WholeId("d"), url=URL, version=4, created_at=NOW, updated_at=LATER)


@pytest.mark.parametrize(
    ("asked", "kept"), [({}, None), ({"signing": False}, None), ({"signing": True}, SIGNING)]
)
def test_what_replaces_a_destination_keeps_its_signing_secret_where_signing_is_asked_for(
    asked: dict[str, Any], kept: Signing | None
) -> None:
    assert put(**asked).signing == kept


def test_an_edit_is_the_next_version_leaves_the_rest_and_ends_a_deletion() -> None:
    made = DestinationDraft(timeout_seconds=9.0).edit(STORED, LATER)
    assert made == replace(STORED, timeout_seconds=9.0, version=4, updated_at=LATER, deleting=False)


@pytest.mark.parametrize("draft", [DestinationDraft(), DestinationDraft(url=URL, signing=True)])
def test_an_edit_that_changes_nothing_is_none(draft: DestinationDraft) -> None:
    assert draft.edit(STORED, LATER) is STORED


def test_an_edit_takes_signing_away() -> None:
    assert DestinationDraft(signing=False).edit(STORED, LATER).signing is None


def test_masks_stand_for_what_is_stored() -> None:
    masked: dict[str, Any] = {"headers": (("X-Key", MASK),), "auth": replace(BASIC, secret=MASK)}
    for made in (put(**masked), DestinationDraft(**masked, paused=True).edit(STORED, LATER)):
        assert (made.headers, made.auth) == (STORED.headers, BASIC)


@pytest.mark.parametrize(
    "other", [replace(BASIC, secret=MASK, username="eve"), Auth(AuthType.BEARER, MASK, username="bob")]
)
def test_a_mask_stands_for_no_secret_of_other_credentials(other: Auth) -> None:
    with pytest.raises(InvalidField, match="is masked, and there is no value to keep"):
        DestinationDraft(auth=other).edit(STORED, LATER)


def test_a_mask_in_a_new_destination_stands_for_nothing() -> None:
    with pytest.raises(InvalidField, match="its password is masked") as refused:
        put(None, auth=replace(BASIC, secret=MASK))
    assert refused.value.field == "auth"


def test_credentials_go_to_no_other_origin_unless_they_are_given_again() -> None:
    elsewhere: dict[str, Any] = {"url": "https://b.test/base", "headers": ()}
    for asked in (elsewhere, elsewhere | {"auth": replace(BASIC, secret=MASK)}):
        with pytest.raises(
            InvalidField, match=r"was given for https://a\.test.* give its password"
        ) as refused:
            DestinationDraft(**asked).edit(STORED, LATER)
        assert refused.value.field == "auth"
    again = replace(BASIC, secret="another")
    assert DestinationDraft(**elsewhere, auth=again).edit(STORED, LATER).auth == again
    assert DestinationDraft(**elsewhere, auth=None).edit(STORED, LATER).auth is None
    assert DestinationDraft(url=f"{URL}/below").edit(STORED, LATER).auth == BASIC


def test_headers_go_to_no_other_origin_and_the_refusal_names_fields_that_destinations_have() -> None:
    with pytest.raises(InvalidField, match=r"X-Key.* leave them out \(headers: \{\}\)") as refused:
        DestinationDraft(url="https://b.test/base", auth=None).edit(STORED, LATER)
    assert refused.value.field == "url"
    given = DestinationDraft(url="https://b.test/base", auth=None, headers=(("X-Key", "another"),))
    assert given.edit(STORED, LATER).headers == (("X-Key", "another"),)
    with pytest.raises(InvalidField) as refused:
        DestinationDraft(headers=(("X-Other", MASK),)).edit(STORED, LATER)
    assert refused.value.field == "headers"


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"method": "PUT", "allowed_methods": ("POST",)}, "method"),
        ({"queue": COMMANDS}, "queue"),
        ({"queue": "no queue"}, "queue"),
        ({"auth": BASIC, "headers": (("X-One", "1"), ("authorization", "own"))}, "auth"),
        ({"burst": 2}, "burst"),
        ({"backoff_seconds": 9.0, "backoff_max_seconds": 8.9}, "retry_backoff_max_seconds"),
    ],
)
def test_what_contradicts_itself_is_refused_by_name(fields: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidField) as refused:
        put(None, **fields)
    assert refused.value.field == field
    with pytest.raises(InvalidField) as refused:
        DestinationDraft(**fields).edit(replace(STORED, rate_per_second=None), LATER)
    assert refused.value.field == field


@pytest.mark.parametrize(
    "fields",
    [
        {"method": "PUT", "allowed_methods": ("POST", "PUT")},
        {"allowed_methods": ("POST",)},
        {"queue": "slow"},
        {"queue": CALLBACKS},
        {"headers": (("Authorization", "own"),)},
        {"auth": BASIC, "headers": (("X-One", "1"),)},
        {"burst": 1},
        {"burst": 2, "rate_per_second": 1.0},
        {"backoff_seconds": 9.0},
        {"backoff_max_seconds": 9.0},
        {"backoff_seconds": 9.0, "backoff_max_seconds": 9.0},
    ],
)
def test_what_goes_together_is_taken(fields: dict[str, Any]) -> None:
    made = put(None, **fields)
    assert {name: getattr(made, name) for name in fields} == fields


def test_a_burst_waits_for_a_rate_that_is_given_again() -> None:
    fast = replace(STORED, burst=9)
    assert DestinationDraft(rate_per_second=None).edit(fast, LATER).burst == 9


def test_a_destination_has_a_url() -> None:
    with pytest.raises(InvalidField) as refused:
        DestinationDraft().destination(WholeId("d"), LATER)
    assert refused.value.field == "url"
