"""No secret comes out: a canary stands wherever one can, every way to fail is gone, and all is searched."""

import os
import re
import secrets
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import requests
from click.testing import CliRunner
from cryptography.fernet import Fernet
from pymongo import MongoClient
from redis import Redis as RedisClient

from scheduler_app.broker.app import make_app
from scheduler_app.cli import main
from scheduler_app.config import Settings
from scheduler_app.embedded import Mongod, Redis, free_port
from tests.acceptance.journal import Journal
from tests.acceptance.stack import Stack, pids_of
from tests.integration.actions.receiver import Seen, hangs, says, writes
from tests.processes import Program, wait_until

#: In every canary, and nowhere else.
MARK = f"canary{secrets.token_hex(6)}"
API_KEY = f"{MARK}-api-key"
SECRETS_KEY = Fernet.generate_key().decode()
JSON = {"Content-Type": "application/json"}
PYTHON = (sys.executable, "-m")
GUNICORN = Path(__file__).parents[2] / "deploy" / "gunicorn.conf.py"


#: No process listens on it.
NOBODY = "127.0.0.1:1"


def canary(place: str) -> str:
    return f"{MARK}-{place}"


def echoes(seen: Seen, connection: socket.socket) -> bool:
    """A receiver that answers with all that it was sent."""
    told = f"{seen.path}\n{seen.headers}\n".encode() + seen.body
    return says("500 Internal Server Error", f"X-Echo: {seen.path}", body=told)(seen, connection)


class Searched:
    """Texts are searched as they come; `check` fails with all that was found."""

    def __init__(self) -> None:
        self.secrets = [MARK, SECRETS_KEY]
        self._found: list[str] = []

    def add(self, where: str, text: str) -> None:
        for secret in self.secrets:
            if (at := text.find(secret)) >= 0:
                self._found.append(f"{where} tells a secret: …{text[max(0, at - 300) : at + 60]}…")

    def check(self) -> None:
        assert not self._found, "\n\n".join(self._found)


@pytest.fixture
def mongo_uri_with_password(mongod_server: Mongod) -> Iterator[str]:
    user, password = f"user{secrets.token_hex(4)}", canary("mongodb")
    with MongoClient[dict[str, Any]](mongod_server.uri) as client:
        client.admin.command("createUser", user, pwd=password, roles=["root"])
        yield mongod_server.uri.replace("mongodb://", f"mongodb://{user}:{password}@") + "&authSource=admin"
        client.admin.command("dropUser", user)


@pytest.fixture
def guarded_redis(tmp_path: Path) -> Iterator[RedisClient]:
    """A Redis of its own, with a password."""
    folder = tmp_path / "redis"
    folder.mkdir()
    with Redis(folder) as server, RedisClient(port=server.port, decode_responses=False) as client:
        client.config_set("requirepass", canary("redis"))
        for place in ("broker", "results"):
            client.execute_command("ACL", "SETUSER", "default", f">{canary(place)}")
        yield client
        client.config_set("requirepass", "")


@pytest.fixture(params=["text", pytest.param("json", marks=pytest.mark.long)])
def stack(
    request: pytest.FixtureRequest, mongo_uri_with_password: str, guarded_redis: RedisClient, tmp_path: Path
) -> Iterator[Stack]:
    """An API, a beat and a worker, each with its bug."""
    port = guarded_redis.connection_pool.connection_kwargs["port"]
    made = Stack(
        tmp_path,
        {
            "LOG_FORMAT": request.param,
            "LOG_LEVEL": "debug",
            "MONGO_URI": mongo_uri_with_password,
            "MONGO_DATABASE": f"test_{secrets.token_hex(6)}",
            "BROKER_URL": f"redis://:{canary('redis')}@127.0.0.1:{port}/0",
            "CALLBACK_ALLOWED_NETWORKS": "127.0.0.0/8",
            "API_KEYS": API_KEY,
            "API_PROCESSES": "1",
            "SECRETS_KEY": SECRETS_KEY,
            # The same Redis, which lets these in as well; and one that is not there.
            "CELERY_BROKERS": f"shop=redis://:{canary('broker')}@127.0.0.1:{port}/1,"
            f"gone=redis://:{canary('broker-gone')}@{NOBODY}/0",
            "CELERY_TASKS": "shop:*,gone:*",
            "CELERY_RESULT_BACKENDS": f"shop=redis://:{canary('results')}@127.0.0.1:{port}/2,"
            f"gone=redis://:{canary('results-gone')}@{NOBODY}/1",
        },
    )
    api, beat, worker, denied = (str(free_port()) for _ in range(4))
    made.url = f"http://127.0.0.1:{api}"
    conf = ("-c", str(GUNICORN), "--access-logfile", "-")
    command = ("gunicorn", *conf, "--bind", f"127.0.0.1:{api}", "scheduler_app.api:create_app()")
    try:
        # It lets everything pass, as it does with names: workers judge what is connected to.
        anywhere = "0.0.0.0/0,::/0"
        made.start("api", "tests.acceptance.bugged", "api", *command, CALLBACK_ALLOWED_NETWORKS=anywhere)
        celery = ("celery", "-A", "scheduler_app")
        made.start(
            "beat", "tests.acceptance.bugged", "beat", *celery, "beat", "--pidfile=", METRICS_PORT=beat
        )
        options = ("-P", "threads", "--without-gossip", "--without-mingle", "-E", "-n", "worker@%h")
        made.start(
            "worker",
            "tests.acceptance.bugged",
            "worker",
            *celery,
            "worker",
            *options,
            METRICS_PORT=worker,
            CALLBACK_DENIED_PORTS=denied,
        )
        for process, role in zip(made.running[1:], ("beat", "worker"), strict=True):
            made.wait_for_node(role, process.pid)
        wait_until(lambda: answers(made.url + "/health"), "the API")
        # It answers before it knows of the indexes, and lists by a 503 until then.
        made.wait_for_node("api", *pids_of(made.running[0]))
        made.environment |= {
            "BEAT": f"http://127.0.0.1:{beat}",
            "WORKER": f"http://127.0.0.1:{worker}",
            "DENIED": denied,
        }
        yield made
    finally:
        made.close()


def answers(url: str) -> bool:
    try:
        return requests.get(url, timeout=5).ok
    except requests.RequestException:
        return False


def call(stack: Stack, method: str, path: str, **options: Any) -> requests.Response:
    headers = {"X-API-Key": API_KEY} | options.pop("headers", {})
    return requests.request(method, f"{stack.url}{path}", headers=headers, **options)


def create(stack: Stack, name: str, url: str, **fields: Any) -> requests.Response:
    body = {
        "name": name,
        "callback_url": url,
        "method": "POST",
        "headers": {"Authorization": f"Bearer {canary('header')}", "X-API-Key": canary("key-of-receiver")},
        "body": canary("body"),
        "timeout_seconds": 0.5,
        "max_retries": 1,
        "retry_backoff_seconds": 0.1,
        "signing": True,
        "run_at": "2040-01-01T00:00:00Z",
    }
    return call(stack, "POST", "/api/schedules", json=body | fields)


def create_task(stack: Stack, name: str, action: dict[str, Any]) -> str:
    """The id of a schedule whose task no worker runs."""
    rest = {"timeout_seconds": 1, "max_retries": 0, "run_at": "2040-01-01T00:00:00Z"}
    answer = call(stack, "POST", "/api/schedules", json={"name": name, "action": action} | rest)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def trigger(stack: Stack, schedule_id: str) -> str:
    assert call(stack, "POST", f"/api/schedules/{schedule_id}/trigger").status_code == 202
    return schedule_id


def finished(stack: Stack, schedule_id: str, name: str) -> str:
    """A schedule's history, once it has one."""
    path = f"/api/schedules/{schedule_id}/events/history"
    wait_until(lambda: bool(call(stack, "GET", path).json()["events"]), f"{name} to end")
    return call(stack, "GET", path).text


def scheduler(stack: Stack, *arguments: str, **environment: str) -> str:
    """What the command says, run in this process: one of its own takes half a second of CPU to begin."""
    return CliRunner().invoke(main, arguments, env=stack.environment | environment).output


def output(stack: Stack, *command: str, **environment: str) -> str:
    done = subprocess.run(
        [*PYTHON, *command],
        env={**stack.environment, **environment},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    return done.stdout + done.stderr


def told_by_worker(stack: Stack, worker: str, command: str) -> str:
    """What a worker answers to one of Celery's commands for workers."""
    settings = Settings(
        broker_url=stack.environment["BROKER_URL"], mongo_database=stack.environment["MONGO_DATABASE"]
    )
    with make_app(settings) as app:
        (answer,) = app.control.broadcast(command, reply=True, destination=[worker], timeout=30, limit=1)
    assert "error" not in answer[worker]
    return str(answer)


@pytest.mark.timeout(240)
def test_a_running_system_tells_no_secret_however_it_fails(
    stack: Stack, journal: Journal, guarded_redis: RedisClient
) -> None:
    found, query = Searched(), f"?key={canary('query')}"
    flower, login = free_port(), ("user", canary("flower"))
    options = ("--address=127.0.0.1", f"--port={flower}")
    stack.start(
        "flower", "celery", "-A", "scheduler_app", "flower", *options, FLOWER_BASIC_AUTH=":".join(login)
    )
    urls = {
        "echoes": journal.script(f"/echo{query}", echoes),
        "redirects": journal.script(f"/away{query}", says("302 Found", f"Location: /else{query}")),
        "hangs": journal.script(f"/hangs{query}", hangs),
        "closes": journal.script(f"/closes{query}", writes()),
        "is no HTTP": journal.script(f"/garbage{query}", writes(b"\xff\x00garbage")),
        "refuses": f"http://127.0.0.1:{free_port()}/{query}",
        "has no name": f"http://nowhere.invalid/{query}",
        "has a denied port": f"http://127.0.0.1:{stack.environment['DENIED']}/{query}",
        "is private": f"http://169.254.169.254/{query}",
        "bug in worker": journal.url(f"/bug{query}"),
    }
    made: dict[str, str] = {}
    for name, url in urls.items():
        answer = create(stack, name, url).json()
        made[name] = trigger(stack, answer["id"])
        found.secrets.append(answer["signing_secret"])
    wrong: list[requests.Response] = [
        create(stack, "bug in api", urls["echoes"]),
        create(stack, "n", f"http://user:{canary('url-password')}@example.com/"),
        create(stack, "n", f"ftp://example.com/{query}"),
        create(stack, "n", urls["echoes"], headers={"Authorization": f"{canary('header')}\r\n"}),
        create(stack, "n", urls["echoes"], headers={"Connection": canary("header")}),
        create(stack, "n", urls["echoes"], json={}, max_retries=99),
        call(stack, "POST", "/api/schedules", data=f'{{"body": "{canary("body")}"', headers=JSON),
        call(
            stack, "POST", "/api/schedules", json={"body": canary("body")}, headers={"Origin": "http://evil"}
        ),
        call(stack, "GET", "/api/schedules", headers={"X-API-Key": canary("wrong-key")}),
        call(stack, "GET", "/api/schedules", headers={"Authorization": f"Bearer {canary('wrong-key')}"}),
        call(stack, "GET", f"/api/events?api_key={canary('wrong-key')}"),
    ]
    for name in ("shop", "gone"):
        task = {
            "type": "celery_task",
            "task": "bill",
            "broker": name,
            "args": [canary("argument")],
            "wait": True,
        }
        made[f"task of {name}"] = trigger(stack, create_task(stack, f"task of {name}", task))
    create(stack, "bug in beat", urls["echoes"], run_at=None, rrule="FREQ=SECONDLY")
    assert [answer.status_code for answer in wrong] == [500, *[422] * 5, 400, 403, 401, 401, 422]
    for answer in wrong:
        found.add("an answer", answer.text + str(answer.headers))
    for name, schedule_id in made.items():
        history = finished(stack, schedule_id, name)
        if name == "has a denied port":  # the API allows it: the worker judges by its own settings
            assert "is denied by CALLBACK_DENIED_PORTS" in history
        if name not in ("echoes", "redirects"):  # what a receiver sends back is another test's
            found.add("a history", history)
    wait_until(lambda: "a bug, with 3" in log(stack, "beat"), "the bug in beat")
    for part in ("api", "worker"):
        assert "a bug, with 3" in log(stack, part)

    for url in (stack.url, stack.environment["BEAT"], stack.environment["WORKER"]):
        found.add("metrics", call_metrics(url))
    wait_until(lambda: answers(f"http://127.0.0.1:{flower}/healthcheck"), "Flower")
    worker = f"worker@{socket.gethostname()}"
    for page in (
        "/",
        "/tasks",
        "/broker",
        f"/worker/{worker}",
        "/api/tasks",
        "/api/workers?refresh=1",
        "/metrics",
    ):
        answer = requests.get(f"http://127.0.0.1:{flower}{page}", auth=login)
        assert answer.status_code != 401
        found.add(f"Flower's {page}", answer.text)
    for key in guarded_redis.scan_iter():
        found.add("a key in Redis", f"{key!r} {values(guarded_redis, key)!r}")
    # Asked by name, the worker is not waited for others.
    asked = ("--timeout", "30", "--destination", worker)
    inspect = partial(output, stack, "celery", "-A", "scheduler_app", "inspect", *asked)
    with ThreadPoolExecutor(2) as side_by_side:
        said = list(side_by_side.map(inspect, ("conf", "report")))
    said += [told_by_worker(stack, worker, which) for which in ("stats", "in_flight", "registered")]
    said += [
        scheduler(stack, "doctor"),
        scheduler(stack, "doctor", "--json"),
        scheduler(stack, "get", "none-such", SCHEDULER_URL=stack.url),
        scheduler(stack, "list", "--url", stack.url, SCHEDULER_API_KEY=canary("wrong-key")),
    ]
    for each in said:
        assert each
        assert "No nodes replied" not in each
        found.add("an answer to an operator", each)

    # A Redis whose password was changed refuses everybody.
    guarded_redis.config_set("requirepass", "another")
    guarded_redis.client_kill_filter(_type="normal", skipme=True)
    wait_until(lambda: "Cannot connect" in log(stack, "worker"), "the worker to lose Redis")
    call(stack, "POST", f"/api/schedules/{made['hangs']}/trigger")
    found.add("readyz", call(stack, "GET", "/readyz").text)
    found.add("doctor", scheduler(stack, "doctor"))
    for path in stack.folder.glob("*.log"):
        found.add(path.name, log(stack, path.stem))
    found.check()


def log(stack: Stack, part: str) -> str:
    return (stack.folder / f"{part}.log").read_text(errors="replace")


def call_metrics(url: str) -> str:
    answer = requests.get(f"{url}/metrics", headers={"X-API-Key": API_KEY})
    assert answer.ok
    return answer.text


def values(client: RedisClient, key: bytes) -> Any:
    match client.type(key):
        case b"list":
            return client.lrange(key, 0, -1)
        case b"hash":
            return client.hgetall(key)
        case b"zset":
            return client.zrange(key, 0, -1)
        case b"set":
            return client.smembers(key)
        case _:
            return client.get(key)


DOCTOR = ("scheduler_app.cli", "doctor")
WORKER = ("celery", "-A", "scheduler_app", "worker", "--without-gossip", "--without-mingle")
BEAT = ("celery", "-A", "scheduler_app", "beat", "--pidfile=")
API = ("gunicorn", "-c", str(GUNICORN), "--bind", "127.0.0.1:0", "scheduler_app.api:create_app()")
AWAY = {
    "MONGO_URI": f"mongodb://user:{MARK}@{NOBODY}/?replicaSet=rs0&tlsCertificateKeyFilePassword={MARK}",
    "BROKER_URL": f"redis://:{MARK}@{NOBODY}/0",
}
AMQP, FLOW = f"amqp://user:{MARK}@{NOBODY}//", f"redis://:{MARK}@{NOBODY}/0"
#: What each is told, its command, and what it says at last: processes that wait for MongoDB do not end.
BAD = [
    (AWAY, DOCTOR, "Wrong: "),
    (
        AWAY | {"BROKER_URL": f"redis://{NOBODY}/0?password={MARK}"},
        DOCTOR,
        "BROKER_URL must have its password",
    ),
    (AWAY, BEAT, "unavailable"),
    (AWAY, WORKER, "mongodb.awaited"),
    (AWAY | {"LOG_LEVEL": "debug"}, API, "not encrypted"),
    (AWAY, ("scheduler_app.cli", "up", "--data-dir", "up"), "does not answer"),
    (AWAY | {"MONGO_URI": f"mongodb://user:{MARK}/more@{NOBODY}/"}, DOCTOR, "MONGO_URI"),
    (AWAY | {"MONGO_URI": f"mongodb://user:{MARK}@more@{NOBODY}/"}, WORKER, "MONGO_URI cannot be used"),
    (AWAY | {"BROKER_URL": f"redis://:{MARK}/more@{NOBODY}/0"}, WORKER, "BROKER_URL must have a number"),
    (AWAY | {"BROKER_URL": f"redis://:{MARK}#more@{NOBODY}/0"}, DOCTOR, "BROKER_URL must have a number"),
    (AWAY | {"BROKER_URL": f"nosuch://:{MARK}@{NOBODY}/0"}, BEAT, "BROKER_URL cannot be used"),
    (AWAY | {"SECRETS_KEY": MARK}, API, "SECRETS_KEY must be Fernet keys"),
    (AWAY | {"API_KEYS": f"{API_KEY},{MARK[:12]}"}, API, "API_KEYS each key must have"),
    (AWAY, (*DOCTOR, "--config", "broken.yaml"), "is not YAML"),
    (AWAY | {"CELERY_BROKERS": f"shop=redis://:{MARK}@{NOBODY}/0"}, WORKER, "CELERY_TASKS must say"),
    (
        AWAY | {"CELERY_BROKERS": f"shop=redis://:{MARK}@{NOBODY}/0", "CELERY_TASKS": "shop:*"},
        DOCTOR,
        "Wrong: ",
    ),
    (AWAY | {"CELERY_BROKERS": f"shop=http://:{MARK}@{NOBODY}/"}, WORKER, "must have a URL for shop"),
    (AWAY | {"CELERY_RESULT_BACKENDS": f"shop=redis://:{MARK}@{NOBODY}/1"}, API, "names of CELERY_BROKERS"),
    (AWAY | {"FLOW_CONTROL_URL": FLOW}, BEAT, "FLOW_CONTROL_URL must be empty"),
    (AWAY | {"BROKER_URL": AMQP, "FLOW_CONTROL_URL": FLOW}, DOCTOR, "Wrong: "),
    (
        AWAY | {"BROKER_URL": AMQP, "FLOW_CONTROL_URL": f"redis://:{MARK}/more@{NOBODY}/0"},
        WORKER,
        "FLOW_CONTROL_URL must have a number",
    ),
]


@pytest.mark.long
@pytest.mark.timeout(360)
def test_settings_that_are_wrong_and_servers_that_are_away_tell_no_secret(
    tmp_path: Path, run: Callable[..., Program]
) -> None:
    found = Searched()
    found.secrets.append(MARK[:12])
    (tmp_path / "broken.yaml").write_text(f"api: {{keys: {MARK}\nmongo: [")
    for pair in zip(BAD[::2], BAD[1::2], strict=True):
        programs = [
            (run(*PYTHON, *command, PYTHONPATH=os.getcwd(), LOG_FORMAT=style, **environment), last)
            for (environment, command, last), style in zip(pair, ("text", "json"), strict=True)
        ]
        for program, last in programs:
            program.wait_for(re.escape(last))
            found.add(last, program.output)
            program.kill()
    found.check()
