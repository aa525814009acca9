"""What is kept: passwords that change, another broker, backup and restore, an upgrade on the same volumes."""

import re
import secrets
import time

import requests

from tests.containers.deployment import API_PORT, Deployment, blocks_of_step, copy_of_tree, until
from tests.containers.engine import ALLOWED, StepFailed
from tests.containers.lane import Lane
from tests.containers.traffic import audited, counted, told, traffic

#: It has /api without /api/v1, and other names for its packages and its image. Processes of both work with
#: the same servers, which ask for passwords.
OLDER = "47bd55f2d3dfe7f04086f47be253a7e163ee3e55"
#: The last one whose Compose project has a MongoDB and a Redis without passwords.
WITHOUT_PASSWORDS = "d3cc1dc55246f48704a584c8455a8580076b88b3"
#: What docker-compose.yml wants beside what older releases wanted.
PASSWORDS = ("MONGO_PASSWORD", "MONGO_KEY", "REDIS_PASSWORD")
WINDOW_SECONDS = 45
BOTH_SECONDS = 90


def passwords(lane: Lane) -> list[str]:
    """Every password in .env is changed under load, as the manual says."""
    deployment = lane.running()
    names = ("API_KEYS", "FLOWER_PASSWORD", "MONGO_PASSWORD", "MONGO_KEY", "REDIS_PASSWORD")
    old = deployment.settings()
    with traffic(deployment) as target:
        # The load asks with the key that it began with.
        fresh = {name: secrets.token_hex(24) for name in names}
        fresh["API_KEYS"] = f"{old['API_KEYS']},{fresh['API_KEYS']}"

        def strike() -> None:
            deployment.set(**fresh)
            deployment.compose("up", "--wait")

        found = counted(target, f"passwords-{int(time.time())}", 20, BOTH_SECONDS, strike)
    deployment.set(API_KEYS=fresh["API_KEYS"].split(",")[1])
    deployment.compose("up", "--wait")
    refused = requests.get(
        f"http://127.0.0.1:{API_PORT}/api/v1/schedules",
        headers={"Authorization": f"Bearer {old['API_KEYS']}"},
        timeout=10,
    )
    if refused.status_code != 401:
        raise StepFailed(f"the old key still opens: {refused.status_code}")
    deployment.ask("GET", "/api/v1/schedules")
    pinged = deployment.shell(
        f'docker compose exec -T redis sh -c "REDISCLI_AUTH={old["REDIS_PASSWORD"]} redis-cli ping"',
        check=False,
    )
    if "PONG" in pinged.stdout:
        raise StepFailed("Redis takes its old password")
    return [found, "the old key is refused, and so is Redis's old password"]


def rabbitmq(lane: Lane) -> list[str]:
    """RabbitMQ becomes the broker, by the block in docker-compose.yml; a worker and the broker are killed."""
    deployment = lane.running()
    before = deployment.settings()
    text = (deployment.folder / "docker-compose.yml").read_text()
    commented = text.split("are sent):\n#\n")[1].split("#\n# Then:")[0]
    commands = "\n".join(line.removeprefix("#") for line in commented.splitlines())
    for _ in range(2):
        deployment.shell(commands)
    if len(deployment.settings()) != len(before) + 3:
        raise StepFailed("the block wrote something else than three settings")
    deployment.compose("--profile", "rabbitmq", "up", "--wait")
    with traffic(deployment) as target:

        def strike() -> None:
            target.kill("worker")
            time.sleep(4)
            target.kill("rabbitmq")

        found = audited(target, "rabbitmq", BOTH_SECONDS, strike)
    version = deployment.compose(
        "--profile", "rabbitmq", "exec", "-T", "rabbitmq", "rabbitmqctl", "version"
    ).strip()
    deployment.compose("--profile", "rabbitmq", "down")
    keep = {name: value for name, value in deployment.settings().items() if name in before}
    (deployment.folder / ".env").write_text("".join(f"{name}={value}\n" for name, value in keep.items()))
    deployment.compose("up", "--wait")
    return [
        told(found),
        f"RabbitMQ {version.splitlines()[-1]}; the block run twice wrote three settings once",
    ]


def backup(lane: Lane) -> list[str]:
    """Backup under load and restore into a second installation, by the manual's commands."""
    deployment = lane.running()
    take, restore = blocks_of_step("docs/operations.md", "backup")
    with traffic(deployment) as target:
        sealed = deployment.ask(
            "POST",
            "/api/v1/schedules",
            {
                "name": "sealed",
                "id": "sealed",
                "rrule": "FREQ=SECONDLY;INTERVAL=2",
                "callback_url": target.callback_url("/ok"),
                "headers": {"X-Secret": "kept"},
            },
            expect=201,
        )
        taken: list[float] = []

        def strike() -> None:
            began = time.monotonic()
            deployment.shell(take)
            taken.append(time.monotonic() - began)

        found = counted(target, f"backup-{int(time.time())}", 20, WINDOW_SECONDS, strike)
        before = deployment.read(lambda database: database["events"].count_documents({}))
        deployment.down()
        # A second installation: a copy of the files, the backup, and nothing else.
        kept = {name: (deployment.folder / name).read_bytes() for name in ("mongo.tar.gz", "env-of-backup")}
        size = len(kept["mongo.tar.gz"])
        copy_of_tree(deployment.folder)
        for name, content in kept.items():
            (deployment.folder / name).write_bytes(content)
        with lane.engine.internet():
            deployment.shell(restore)
        began = time.time()
        until(
            lambda: [row for row in target.seen() if row[0] > began and row[1].startswith("sealed-")],
            "a callback",
        )
        there = deployment.read(lambda database: database["events"].count_documents({}))
        if deployment.ask("GET", "/api/v1/schedules/sealed")["id"] != sealed["id"]:
            raise StepFailed("the schedule is not there")
        deployment.ask("DELETE", "/api/v1/schedules/sealed")
        deployment.execute("api", "scheduler", "doctor")
    return [
        f"during the backup ({taken[0]:.1f} s, {size / 1e6:.1f} MB): {found}",
        f"restored into an installation without volumes: {there:,} events (of {before:,} after the load)",
        "there, a schedule with a sealed header calls on, and doctor finds nothing wrong",
    ]


def upgrade(lane: Lane) -> list[str]:
    """An older commit's volumes and processes; these here replace them one after the other under load."""
    (commands,) = blocks_of_step("docs/production.md", "upgrade")
    # Here the old workers and the new ones work side by side.
    overlapping = "docker compose up --wait --no-deps worker\n"
    first, _, then = commands.partition(overlapping)
    deployment = _older(lane, OLDER, *PASSWORDS)
    with traffic(deployment) as target:

        def strike() -> None:
            _bring_this_release(deployment)
            with lane.engine.internet():
                deployment.shell(first)
            if len({container["Image"] for container in deployment.containers("worker")}) != 2:
                raise StepFailed("no old worker works beside the new ones")
            deployment.shell(overlapping + then)

        found = counted(target, f"upgrade-{int(time.time())}", 20, BOTH_SECONDS, strike)
    return [f"from {OLDER[:10]}, on its volumes, its processes and the new ones side by side: {found}"]


def upgrade_without_passwords(lane: Lane) -> list[str]:
    """A release whose MongoDB and Redis have no passwords, its volumes and `.env`; these here follow it."""
    (commands,) = blocks_of_step("docs/production.md", "upgrade-without-passwords")
    deployment = _older(lane, WITHOUT_PASSWORDS)
    with traffic(deployment) as target:

        def strike() -> None:
            _bring_this_release(deployment)
            refused = deployment.compose("config", check=False)
            if "in .env, see docker-compose.yml" not in refused:
                raise StepFailed(f"Compose does not say what .env lacks: {refused[-500:]}")
            with lane.engine.internet():
                deployment.shell(commands)

        found = counted(target, f"without-{int(time.time())}", 20, BOTH_SECONDS, strike)
        added = [name for name in PASSWORDS if len(deployment.settings().get(name, "")) < 48]
        if added:
            raise StepFailed(f"{added} have no value in .env")
        answered = deployment.compose("exec", "-T", "redis", "redis-cli", "ping", check=False)
        if "NOAUTH" not in answered:
            raise StepFailed(f"Redis asks for no password: {answered}")
    return [f"from {WITHOUT_PASSWORDS[:10]}, on its volumes, all of it ended before the new: {found}"]


def _older(lane: Lane, commit: str, *kept: str) -> Deployment:
    """An older commit's installation on new volumes, with the keys of this one and the settings `kept`."""
    deployment = lane.running()
    settings = deployment.settings()
    deployment.down()
    copy_of_tree(deployment.folder, commit)
    # Its first line asks a registry for the builder's own language, which the builder has.
    dockerfile = deployment.folder / "deploy" / "Dockerfile"
    dockerfile.write_text(re.sub(r"\A# syntax=.*\n", "", dockerfile.read_text()))
    names = ("API_KEYS", "SECRETS_KEY", "FLOWER_PASSWORD", *kept)
    (deployment.folder / ".env").write_text("".join(f"{name}={settings[name]}\n" for name in names))
    deployment.set(CALLBACK_ALLOWED_NETWORKS=ALLOWED)
    with lane.engine.internet():
        deployment.compose("up", "--build", "--wait")
    return deployment


def _bring_this_release(deployment: Deployment) -> None:
    """Its files in the place of the older ones; `.env` stays."""
    env = (deployment.folder / ".env").read_text()
    copy_of_tree(deployment.folder)
    (deployment.folder / ".env").write_text(env)


STEPS = (passwords, rabbitmq, backup, upgrade, upgrade_without_passwords)
