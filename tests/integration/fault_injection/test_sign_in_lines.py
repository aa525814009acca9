"""No sign-in and no end of one without a line of the audit, and no line without either, wherever a request
breaks; and whoever was not let in signs in anew.

Each call to MongoDB that a request makes breaks in each way, as in `test_audit_lines.py`. The provider is a
real one.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from scheduler_app.domain.command_line import new_verifier
from tests.drawn import SEED, drawn
from tests.integration.api.page_forms import form_token
from tests.integration.api.test_command_line_sign_in import END, let_in, redeem, token_for
from tests.integration.fault_injection.conftest import Bench, BenchMaker
from tests.integration.fault_injection.door import Call, Door, Way
from tests.integration.fault_injection.world import Run, World
from tests.openid_provider import (
    KEY,
    PUBLIC_URL,
    Browser,
    OpenIdProvider,
    be_patient,
    openid_provider,
    sign_in_settings,
)
from tests.processes import wait_until

ROOT: Final = {"X-API-Key": KEY}
#: After it the provider is asked whether a sign-in goes on.
CHECK_DUE: Final = timedelta(seconds=301)
Request = Callable[[], int]


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenIdProvider]:
    with openid_provider(tmp_path_factory.mktemp("openid"), PUBLIC_URL) as made:
        yield made


@pytest.fixture(scope="module")
def signing_bench(make_bench: BenchMaker, provider: OpenIdProvider) -> Iterator[Bench]:
    with make_bench(**sign_in_settings(provider)) as made, pytest.MonkeyPatch.context() as patch:
        be_patient(patch)
        yield made


def _begun(world: World, browser: Browser, provider: OpenIdProvider) -> Request:
    """A browser comes back from the provider."""
    path = browser.visit(browser.leave())
    return lambda: browser.get(path).status_code


def _ended(world: World, browser: Browser, provider: OpenIdProvider, **fields: str) -> Request:
    assert browser.sign_in("ann").status_code == 200
    token_for(browser, browser.here.application)
    form = {"form_token": form_token(browser.here, "/you")} | fields
    return lambda: browser.here.post("/sign-out", data=form, base_url=PUBLIC_URL).status_code


def _ended_everywhere(world: World, browser: Browser, provider: OpenIdProvider) -> Request:
    assert Browser(browser.here.application, provider).sign_in("ann").status_code == 200
    return _ended(world, browser, provider, everywhere="yes")


def _let_in(world: World, browser: Browser, provider: OpenIdProvider) -> Request:
    """A command line shows what a browser has brought it."""
    assert browser.sign_in("ann").status_code == 200
    verifier = new_verifier()
    code, _ = let_in(browser, verifier)
    return lambda: redeem(browser.here.application, verifier, code).status_code


def _token_ended(world: World, browser: Browser, provider: OpenIdProvider) -> Request:
    assert browser.sign_in("ann").status_code == 200
    client, token = browser.here.application.test_client(), token_for(browser, browser.here.application)
    return lambda: client.post(END, json={"token": token}).status_code


def _ended_by_administrator(world: World, browser: Browser, provider: OpenIdProvider) -> Request:
    assert browser.sign_in("ann").status_code == 200
    client = browser.here.application.test_client()
    (person,) = client.get("/api/v1/people", headers=ROOT).get_json()["people"]
    path = f"/api/v1/people/{person['id']}/sessions"
    return lambda: client.delete(path, headers=ROOT).status_code


def _given_another_role(world: World, browser: Browser, provider: OpenIdProvider) -> Request:
    assert browser.sign_in("rob").status_code == 200
    provider.change("groups", "ops")
    world.time.put(world.time() + CHECK_DUE)
    return lambda: browser.get("/you").status_code


def _refused_by_provider(world: World, browser: Browser, provider: OpenIdProvider) -> Request:
    assert browser.sign_in("rob").status_code == 200
    provider.change("groups", "nobody")
    world.time.put(world.time() + CHECK_DUE)
    return lambda: browser.get("/you").status_code


@dataclass(frozen=True)
class SignInAct:
    prepare: Callable[[World, Browser, OpenIdProvider], Request]
    line: str

    def __str__(self) -> str:
        return self.prepare.__name__.strip("_")


ACTS: Final = [
    SignInAct(_begun, "signed in"),
    SignInAct(_ended, "signed out"),
    SignInAct(_ended_everywhere, "signed out everywhere"),
    SignInAct(_let_in, "signed in"),
    SignInAct(_token_ended, "signed out"),
    SignInAct(_ended_by_administrator, "signed out everywhere"),
    SignInAct(_given_another_role, "role changed"),
    SignInAct(_refused_by_provider, "signed out"),
]


def _sessions(world: World) -> dict[str, Any]:
    """What each may do."""
    return {row["_id"]: row["scopes"] for row in world.database["sessions"].find()}


def _lines(world: World) -> dict[str, str]:
    rows = world.database["audit"].find({"resource": {"$regex": "^access/"}})
    return {row["_id"]: row["what"] for row in rows}


def _tried(
    bench: Bench, provider: OpenIdProvider, act: SignInAct, call: Call | None = None, way: Way | None = None
) -> tuple[list[Call], list[str]]:
    """The calls that it makes, and what is wrong after one of them broke."""
    with bench.world() as world:
        provider.change("reset")
        door = Door(call, way) if call else Door()
        with bench.tried(world) as process:
            _follow(world)
            request = act.prepare(world, Browser(process.client.application, provider), provider)
            before, known = _sessions(world), _lines(world)
            with bench.doors.put(door):
                run = Run(request).start()
                try:
                    wait_until(
                        lambda: run.ended.is_set() or (way is Way.ENDED and door.reached.is_set()),
                        "the request",
                        pause=0.002,
                    )
                finally:
                    door.bury()
                    run.join()
        if way is Way.ENDED:
            world.note_end_of_process()
        after = _sessions(world)
        new = [what for line, what in _lines(world).items() if line not in known]
        wrong = []
        if new != ([act.line] if after != before else []):
            wrong.append(f"sessions {before} became {after}, and the lines are {new}")
        if call is None and after == before:
            wrong.append(f"it changes nothing: {run}")
        if not _opens(world, provider):
            wrong.append("nobody can sign in any more")
    return [each for each in door.calls if each.thread == "run"], wrong


def _follow(world: World) -> None:
    """The provider has no clock that is held: what it has signed may not lie ahead of this one's."""
    world.time.put(max(world.time(), datetime.now(UTC)))


def _opens(world: World, provider: OpenIdProvider) -> bool:
    """Whether a person signs in with another process."""
    process = world.process()
    _follow(world)
    try:
        browser = Browser(process.client.application, provider)
        return browser.sign_in("ann").status_code == 200 and browser.is_signed_in()
    finally:
        process.close()


def _places(bench: Bench, provider: OpenIdProvider, act: SignInAct) -> list[tuple[Call, Way]]:
    calls, wrong = _tried(bench, provider, act)
    assert not wrong, wrong
    return [(call, way) for call in calls if not call.kind.endswith("of Redis") for way in Way]


def _wrong(
    bench: Bench, provider: OpenIdProvider, act: SignInAct, places: list[tuple[Call, Way]]
) -> list[str]:
    return [
        f"{call}, {way}: {each}"
        for call, way in places
        for each in _tried(bench, provider, act, call, way)[1]
    ]


@pytest.mark.timeout(600)  # how much there is to do differs from draw to draw
@pytest.mark.parametrize("act", ACTS, ids=lambda each: f"{each}, drawn by {SEED}")
def test_a_drawn_part_of_the_places(signing_bench: Bench, provider: OpenIdProvider, act: SignInAct) -> None:
    places = drawn(_places(signing_bench, provider, act), str(act))
    wrong = _wrong(signing_bench, provider, act, places)
    assert not wrong, f"with FAULTS_SEED={SEED}: {wrong}"


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("act", ACTS, ids=str)
def test_each_place(signing_bench: Bench, provider: OpenIdProvider, act: SignInAct) -> None:
    places = _places(signing_bench, provider, act)
    wrong = _wrong(signing_bench, provider, act, places)
    assert not wrong, f"of {len(places)} places: {wrong}"
