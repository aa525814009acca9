"""What OIDC_ROLES gives to people, by what their provider says of them."""

from typing import Any

import pytest

from scheduler_app.domain.api_key import ALL_SCOPES, KeyScope
from scheduler_app.domain.command_line import challenge_of, new_verifier, read_typed_code, typed_code_of
from scheduler_app.domain.person import Grant, granted, parse_roles, person_name

READ, WRITE = KeyScope.READ, KeyScope.WRITE


@pytest.mark.parametrize(
    ("claims", "scopes", "tenant"),
    [
        ({"groups": ["ops"]}, {READ}, "default"),
        ({"groups": "ops"}, {READ}, "default"),
        ({"groups": ["x", "ops", "writers"]}, {READ, WRITE}, "default"),
        # The first line that matches says in which tenant.
        ({"groups": ["ops", "acme"]}, {READ}, "default"),
        ({"groups": ["acme"]}, {WRITE}, "acme"),
        ({"groups": ["root"]}, ALL_SCOPES, None),
        ({"realm_access": {"roles": ["boss"]}}, ALL_SCOPES, "default"),
        ({"realm_access.roles": ["boss"]}, ALL_SCOPES, "default"),
        ({"email": "a@b.c", "email_verified": True}, {READ}, "default"),
    ],
)
def test_lines_give_what_they_say(claims: dict[str, Any], scopes: set[KeyScope], tenant: str | None) -> None:
    roles = parse_roles(
        "groups=ops=read,groups=writers=write,groups=acme=write@acme,groups=root=all@*,"
        "realm_access.roles=boss=all,email=a@b.c=read"
    )
    assert granted(roles, claims) == Grant(frozenset(scopes), tenant)


@pytest.mark.parametrize(
    "claims",
    [
        *(
            {},
            {"groups": []},
            {"groups": ["Ops", "ops ", "opsx"]},
            {"groups": {"ops": True}},
            {"groups": None},
        ),
        *({"groups": [["ops"]]}, {"group": ["ops"]}, {"email": "a@b.c"}, {"realm_access": "boss"}),
        *({"email": "a@b.c", "email_verified": "true"}, {"email": "A@b.c", "email_verified": True}),
    ],
)
def test_nobody_gets_what_no_line_gives(claims: dict[str, Any]) -> None:
    roles = parse_roles("groups=ops=read,email=a@b.c=read,realm_access.roles=boss=all")
    assert granted(roles, claims) is None


def test_a_person_is_the_same_at_one_issuer_alone() -> None:
    assert person_name("https://a", "ann") == person_name("https://a", "ann")
    assert (
        len({person_name("https://a", "ann"), person_name("https://b", "ann"), person_name("https://a", "x")})
        == 3
    )


def test_a_typed_code_is_read_as_people_type_it() -> None:
    typed = typed_code_of(challenge_of(new_verifier()))
    assert len(typed) == 14
    assert read_typed_code(typed.lower().replace("-", "  ")) == typed
    assert read_typed_code(f"{typed}A") is None
    assert read_typed_code("0" * 12) is None
