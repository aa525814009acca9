"""Other ways to run it: the manifests' pods, the wheel in an empty environment."""

import json
import secrets
import subprocess
import sys
import time
from contextlib import ExitStack
from typing import Any

import yaml
from cryptography.fernet import Fernet

from tests.containers.deployment import IMAGE, ROOT, copy_of_tree, until
from tests.containers.engine import Engine, StepFailed
from tests.containers.lane import Lane
from tests.containers.traffic import Traffic


def pods(lane: Lane) -> list[str]:
    """The pods of deploy/kubernetes, rendered by kubectl and run by podman."""
    engine = lane.engine
    lane.running().down()
    folder = copy_of_tree(engine.share / "manifests")
    plain = _config_name(engine, folder)
    with (folder / "deploy/kubernetes/settings.env").open("a") as file:
        file.write("CALLBACK_ALLOWED_NETWORKS=10.89.0.0/16\n")
    if _config_name(engine, folder) == plain:
        raise StepFailed("a change of settings.env does not change the ConfigMap's name")
    rendered = list(
        yaml.safe_load_all(engine.run("kubectl", "kustomize", "deploy/kubernetes", cwd=folder).stdout)
    )
    image = next(
        document["spec"]["template"]["spec"]["containers"][0]["image"]
        for document in rendered
        if document["kind"] == "Deployment"
    )
    with ExitStack() as stack:
        stack.callback(_remove_pods, engine)
        _remove_pods(engine)
        for name, target in ((IMAGE, image), ("mongo:7.0", "mongo:7.0"), ("redis:7.4", "redis:7.4")):
            archive = engine.share / "image.tar"
            engine.run("docker", "save", "-o", str(archive), name)
            loaded = engine.run("podman", "load", "-q", "-i", str(archive)).stdout.strip().rpartition(": ")[2]
            engine.run("podman", "tag", loaded, f"localhost/{target}")
            archive.unlink()
        engine.run("podman", "network", "create", "--subnet", "10.89.7.0/24", "lane")
        shared = ("--network", "lane", "-d", "--pull=never")
        password, key = secrets.token_hex(24), secrets.token_hex(24)
        engine.run(
            "podman", "run", *shared, "--name", "redis", "localhost/redis:7.4", "redis-server",
            "--requirepass", password,
        )  # fmt: skip
        engine.run(
            "podman", "run", *shared, "--name", "mongo", "localhost/mongo:7.0", "mongod", "--replSet", "rs0",
            "--bind_ip_all",
        )  # fmt: skip
        initiate = 'rs.initiate({_id: "rs0", members: [{_id: 0, host: "mongo:27017"}]})'
        until(
            lambda: engine.run(
                "podman", "exec", "mongo", "mongosh", "--quiet", "--eval", initiate, check=False
            ).returncode == 0,
            "mongod",
        )  # fmt: skip
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "scheduler"},
            "stringData": {
                "API_KEYS": key,
                "SECRETS_KEY": Fernet.generate_key().decode(),
                "MONGO_URI": "mongodb://mongo:27017/?replicaSet=rs0",
                "BROKER_URL": f"redis://:{password}@redis:6379/0",
            },
        }
        kinds = ("ConfigMap", "Deployment")
        played = [secret, *(document for document in rendered if document["kind"] in kinds)]
        (folder / "play.yaml").write_text(yaml.safe_dump_all(played))
        engine.run("podman", "kube", "play", "--network", "lane", "play.yaml", cwd=folder)
        address = until(lambda: _address(engine, "scheduler-api"), "the API's pod")
        base = f"http://{address}:8080"

        def ask(method: str, path: str, body: Any = None) -> Any:
            data = ["-d", json.dumps(body)] if body is not None else []
            headers = ("-H", f"Authorization: Bearer {key}", "-H", "Content-Type: application/json")
            answer = engine.run(
                "curl", "-s", "-X", method, f"{base}{path}", *headers, *data, check=False
            ).stdout
            return json.loads(answer) if answer.startswith(("{", "[")) else {}

        try:
            until(lambda: ask("GET", "/readyz").get("status") == "ready", "the pods to be ready")
        except StepFailed as error:
            said = engine.run(
                "sh", "-c",
                "podman ps -a; for name in $(podman ps -aq --filter name=scheduler-); do"
                " podman logs --tail 5 $name 2>&1; done",
            ).stdout  # fmt: skip
            raise StepFailed(f"{error}: {address} {ask('GET', '/readyz')}\n{said}") from None
        target = Traffic(lane.deployment)
        stack.callback(target.close)
        ask(
            "POST",
            "/api/v1/schedules",
            {
                "id": "pod",
                "name": "pod",
                "rrule": "FREQ=SECONDLY",
                "callback_url": f"http://10.89.7.1:{target.port}/ok",
            },
        )
        calls = until(lambda: target.seen(), "a callback of a pod")
        restarts = engine.run("podman", "ps", "--format", "{{.Names}} {{.Restarts}}").stdout.split("\n")
        began = time.monotonic()
        engine.run("podman", "kube", "down", "play.yaml", cwd=folder)
        seconds = time.monotonic() - began
    version = engine.run("sh", "-c", "podman --version; kubectl version --client | head -n 1").stdout.split(
        "\n"
    )
    count = len([line for line in restarts if line.startswith("scheduler-")])
    return [
        f"{count} containers of pods by {version[0]}, rendered by kubectl ({version[1]})",
        f"callbacks: the first {len(calls)} seen",
        f"a change of settings.env names the ConfigMap anew; the pods ended in {seconds:.0f} s",
    ]


def wheel(lane: Lane) -> list[str]:
    """What `make dist` makes, in an empty environment outside any clone: `scheduler up` and a callback."""
    engine = lane.engine
    lane.images()
    made = engine.share / "dist"
    name = "rrule-scheduler-wheel"
    engine.run("docker", "rm", "--force", name, check=False)
    shared = ("--init", "--name", name, "-v", f"{made}:/dist:ro")

    def run(commands: str, user: str = "root") -> str:
        return engine.run("docker", "exec", "-u", user, name, "bash", "-euc", commands).stdout.strip()

    try:
        with engine.internet():
            make = (sys.executable, "deploy/dist.py", "--uncommitted", "--output", str(made))
            done = subprocess.run(make, cwd=ROOT, capture_output=True, text=True)
            if done.returncode:
                raise StepFailed(f"make dist: {done.stdout}{done.stderr}")
            engine.run("docker", "run", "-d", *shared, "python:3.12-slim-bookworm", "sleep", "infinity")
            # mongod of the extra `embedded` needs libcurl, which a slim image does not have.
            run("apt-get update -qq; apt-get install -y -qq --no-install-recommends libcurl4 >/dev/null")
            run("useradd -m somebody; python3 -m venv /venv")
            run('/venv/bin/pip install -q "$(ls /dist/*.whl)[embedded]"')
        run(
            "mkdir ~/work; cd ~/work; echo 'raise SystemExit(\"not ours\")' | tee api.py > beat.py;"
            " (CALLBACK_ALLOWED_NETWORKS=127.0.0.0/8 /venv/bin/scheduler up > up.log 2>&1 &);"
            " python3 -m http.server 9000 --bind 127.0.0.1 > receiver.log 2>&1 &",
            "somebody",
        )
        until(lambda: "Everything is ready" in run("cat ~/work/up.log", "somebody"), "scheduler up")
        run("cd ~/work; /venv/bin/scheduler create http://127.0.0.1:9000/ --every 2s", "somebody")
        until(lambda: '"GET / HTTP/1.1" 200' in run("cat ~/work/receiver.log", "somebody"), "a callback")
        doctor = run("cd ~/work; /venv/bin/scheduler doctor", "somebody")
        fetch = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:8080/docs/operations.html').status)"
        manual = run(f'python3 -c "{fetch}"')
        packages = run("/venv/bin/pip list --format=freeze").split()
        files = ", ".join(sorted(path.name for path in made.iterdir()))
        said = doctor.splitlines()[-1]
        return [
            files,
            f"{len(packages)} packages; a callback seen; the manual is served ({manual}); doctor: {said}",
        ]
    except StepFailed as error:
        shown = engine.run(
            "docker", "exec", name, "tail", "-n", "30", "/home/somebody/work/up.log", check=False
        )
        raise StepFailed(f"{error}\n{shown.stdout}") from None
    finally:
        engine.run("docker", "rm", "--force", name, check=False)


def _config_name(engine: Engine, folder: Any) -> str:
    rendered = yaml.safe_load_all(engine.run("kubectl", "kustomize", "deploy/kubernetes", cwd=folder).stdout)
    return next(str(one["metadata"]["name"]) for one in rendered if one["kind"] == "ConfigMap")


def _address(engine: Engine, pod: str) -> str:
    """Of the pod of that Deployment."""
    names = engine.run("podman", "ps", "-a", "--format", "{{.Names}}").stdout.split()
    infra = [
        engine.run("podman", "inspect", name, "--format", "{{.Pod}} {{.IsInfra}}", check=False).stdout.split()
        for name in names
        if name.startswith(pod)
    ]
    for pod_id, *_ in filter(None, infra):
        told = json.loads(engine.run("podman", "pod", "inspect", pod_id).stdout)
        told = told[0] if isinstance(told, list) else told
        (inspected,) = json.loads(engine.run("podman", "inspect", told["InfraContainerID"]).stdout)
        return str(inspected["NetworkSettings"]["Networks"]["lane"]["IPAddress"])
    return ""


def _remove_pods(engine: Engine) -> None:
    engine.run("podman", "pod", "rm", "--all", "--force", "--time=1", check=False)
    engine.run("podman", "rm", "--all", "--force", "--volumes", "--time=1", check=False)
    engine.run("podman", "network", "rm", "--force", "lane", check=False)
    engine.run("podman", "secret", "rm", "scheduler", check=False)


STEPS = (pods, wheel)
