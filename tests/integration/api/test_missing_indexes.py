"""While an index of a release is still being built, who needs it is told so: the database does answer."""

from flask.testing import FlaskClient
from structlog.testing import capture_logs

from scheduler_app.store import Store

BUILDING = (
    "an index that this needs is still being built, as after an upgrade; nothing was lost, try again later"
)


def test_a_list_its_page_and_the_log_say_that_an_index_is_missing(client: FlaskClient, store: Store) -> None:
    store.mongo.collection("schedules").drop_index("list_v1")
    with capture_logs() as lines:
        answer = client.get("/api/v1/schedules")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")
    assert answer.get_json()["detail"] == f"{BUILDING}: `scheduler doctor` names what is being built"
    (line,) = [each for each in lines if each["event"] == "api.unavailable"]
    assert line["message"] == "A request needs an index of this release that is not there yet"
    store.mongo.collection("audit").drop_index("list_v1")
    page = client.get("/changes")
    assert (page.status_code, page.headers["Retry-After"]) == (503, "2")
    assert BUILDING in page.text
    assert "does not answer" not in page.text + answer.text


def test_the_status_does_not_say_that_the_database_is_away(client: FlaskClient, store: Store) -> None:
    for collection, index in (("schedules", "list_state_v1"), ("destinations", "queue_v1")):
        store.mongo.collection(collection).drop_index(index)
        found = client.get("/api/v1/status").get_json()
        assert found["verdict"] == "down"
        (reason,) = [each for each in found["reasons"] if each["subject"] == "mongodb"]
        assert reason["message"] == "mongodb: an index of this release is still being built"
        assert "does not answer" not in str(found)
