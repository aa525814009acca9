"""deploy/kubernetes by Kubernetes' own schemas, and against the code that it runs."""

import ipaddress
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from scheduler_app.config import load_settings, names
from scheduler_app.worker.process import LAST_WORDS_SECONDS
from tests.unit.deploy.commands import ROOT, check_command

FOLDER = ROOT / "deploy" / "kubernetes"
VERSIONS = ("1.29", "1.33")
SECRETS = {
    "API_KEYS": "0123456789abcdef",
    "SECRETS_KEY": "",
    "MONGO_URI": "mongodb://u:p@mongo/",
    "BROKER_URL": "redis://:p@redis",
    "FLOW_CONTROL_URL": "",
    "SMTP_URL": "",
    "WITNESS_PING_URL": "",
}
PARTS = ("api", "beat", "worker", "witness")


def documents(path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(path.read_text()))


KUSTOMIZATION = documents(FOLDER / "kustomization.yaml")[0]
ALL = [document for name in KUSTOMIZATION["resources"] for document in documents(FOLDER / name)]
(GENERATED,) = KUSTOMIZATION["configMapGenerator"]
CONFIG = dict(
    line.split("=", 1)
    for name in GENERATED["envs"]
    for line in (FOLDER / name).read_text().splitlines()
    if not line.startswith("#")
)
SECRET = documents(FOLDER / "secret.example.yaml")[0]
POD_SPECS = {
    document["metadata"]["name"].removeprefix("scheduler-"): document["spec"]["template"]["spec"]
    for document in ALL
    if document["kind"] == "Deployment"
}


def of_kind(kind: str) -> list[dict[str, Any]]:
    return [document for document in ALL if document["kind"] == kind]


def container(part: str) -> dict[str, Any]:
    (found,) = POD_SPECS[part]["containers"]
    return found  # type: ignore[no-any-return]


def environment(part: str) -> dict[str, str]:
    """As the container sees it, with every secret there."""
    found = dict(CONFIG)
    for variable in container(part)["env"]:
        source = variable.get("valueFrom", {}).get("secretKeyRef")
        found[variable["name"]] = variable["value"] if source is None else SECRETS[source["key"]]
    return found


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "document", [*ALL, SECRET], ids=lambda one: f"{one['kind']}-{one['metadata']['name']}"
)
def test_each_manifest_is_what_kubernetes_expects(document: dict[str, Any], version: str) -> None:
    kubernetes_validate.validate(document, version, strict=True)


def test_every_manifest_is_applied_but_the_example_of_a_secret() -> None:
    files = {path.name for path in FOLDER.glob("*.yaml")}
    assert files - {"kustomization.yaml", "secret.example.yaml"} == set(KUSTOMIZATION["resources"])


def test_every_part_is_there() -> None:
    assert tuple(POD_SPECS) == PARTS
    replicas = {one["metadata"]["name"]: one["spec"].get("replicas") for one in of_kind("Deployment")}
    # A number in the manifest would undo at each `apply` what the autoscaler has decided.
    assert replicas == {
        "scheduler-api": 2,
        "scheduler-beat": 2,
        "scheduler-worker": None,
        "scheduler-witness": 1,
    }
    (scaler,) = of_kind("HorizontalPodAutoscaler")
    assert scaler["spec"]["scaleTargetRef"]["name"] == "scheduler-worker"
    assert scaler["spec"]["minReplicas"] == 2


def test_a_change_of_the_settings_rolls_every_pod() -> None:
    # kustomize puts a hash of what it generates into the name, and that into the pods, unless told not to.
    assert "generatorOptions" not in KUSTOMIZATION
    assert not GENERATED.get("options")
    for part in PARTS:
        assert container(part)["envFrom"] == [{"configMapRef": {"name": GENERATED["name"]}}]


def test_the_namespace_is_made_before_the_secret_that_stands_in_it() -> None:
    steps = (FOLDER / "kustomization.yaml").read_text().partition("apiVersion:")[0]
    namespace = steps.index("kubectl apply -f deploy/kubernetes/namespace.yaml")
    assert namespace < steps.index("create secret")


def test_certificates_are_files_in_every_pod_that_has_the_secret() -> None:
    for part in PARTS:
        (mount,) = [one for one in container(part)["volumeMounts"] if one["name"] == "certificates"]
        (volume,) = [one for one in POD_SPECS[part]["volumes"] if one["name"] == "certificates"]
        assert volume["secret"] == {"secretName": "scheduler-certificates", "optional": True}
        assert mount["readOnly"] is True
        assert f"={mount['mountPath']}/" in (FOLDER / "kustomization.yaml").read_text()


@pytest.mark.parametrize("part", PARTS)
def test_commands_are_understood(part: str) -> None:
    check_command(container(part)["args"])


@pytest.mark.parametrize("part", PARTS)
def test_every_setting_exists_and_all_of_them_are_accepted(part: str) -> None:
    assert set(environment(part)) <= set(names())
    load_settings(environ=environment(part))


@pytest.mark.parametrize("part", PARTS)
def test_a_pod_meets_the_restricted_standard(part: str) -> None:
    spec = POD_SPECS[part]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container(part)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert spec["automountServiceAccountToken"] is False


@pytest.mark.parametrize("part", PARTS)
def test_health_is_asked_where_it_is_answered(part: str) -> None:
    ports = {port["name"]: str(port["containerPort"]) for port in container(part)["ports"]}
    setting = "API_PORT" if part == "api" else "METRICS_PORT"
    for probe in ("livenessProbe", "startupProbe"):
        asked = container(part)[probe]["httpGet"]
        assert asked["path"] == "/healthz"
        assert ports[asked["port"]] == environment(part)[setting]


def test_a_worker_may_finish_before_it_is_killed() -> None:
    soft = float(environment("worker")["WORKER_SOFT_SHUTDOWN_SECONDS"])
    assert POD_SPECS["worker"]["terminationGracePeriodSeconds"] > soft + LAST_WORDS_SECONDS


@pytest.mark.parametrize("kind", ["Service", "PodDisruptionBudget"])
def test_what_selects_pods_selects_those_of_its_name(kind: str) -> None:
    assert {one["metadata"]["name"] for one in of_kind(kind)} == {f"scheduler-{part}" for part in PARTS}
    for one in of_kind(kind):
        selector = one["spec"]["selector"]
        labels = selector.get("matchLabels", selector)
        assert labels == {"app.kubernetes.io/name": one["metadata"]["name"]}


def test_the_example_has_every_secret_that_is_asked_for_and_no_value() -> None:
    asked = {
        variable["valueFrom"]["secretKeyRef"]["key"]
        for part in PARTS
        for variable in container(part)["env"]
        if "valueFrom" in variable
    }
    assert set(SECRET["stringData"]) == asked
    assert set(SECRET["stringData"].values()) == {""}


def test_each_part_has_only_the_secrets_that_it_needs_and_none_is_in_the_settings() -> None:
    asked = {
        part: {one["name"] for one in container(part)["env"] if "secretKeyRef" in one.get("valueFrom", {})}
        for part in PARTS
    }
    shared = {"SECRETS_KEY", "MONGO_URI", "BROKER_URL", "FLOW_CONTROL_URL"}
    assert asked == {
        "api": {*shared, "API_KEYS", "SMTP_URL"},
        "beat": shared,
        "worker": {*shared, "SMTP_URL"},
        "witness": {"MONGO_URI", "SECRETS_KEY", "SMTP_URL", "WITNESS_PING_URL"},
    }
    assert not any("://" in value for value in CONFIG.values())


def test_each_part_has_a_limit_of_memory() -> None:
    for part in PARTS:
        assert container(part)["resources"]["limits"]["memory"]


def egress(part: str) -> list[dict[str, Any]]:
    """What the policies that select a part's pods let out; empty lists let out nothing."""
    found = []
    for policy in of_kind("NetworkPolicy"):
        selector = policy["spec"]["podSelector"]
        names = {selector.get("matchLabels", {}).get("app.kubernetes.io/name")}
        names |= {name for one in selector.get("matchExpressions", []) for name in one["values"]}
        if f"scheduler-{part}" in names and "Egress" in policy["spec"]["policyTypes"]:
            found += policy["spec"]["egress"]
    return found


@pytest.mark.parametrize("part", PARTS)
def test_a_part_reaches_its_servers_and_only_what_sends_reaches_the_world(part: str) -> None:
    rules = egress(part)
    assert rules, "without a rule everything is let out"
    assert {port["port"] for rule in rules for port in rule.get("ports", [])} == {
        *(53, 27017),
        *(6379, 26379),  # Redis, Sentinel
        *(5671, 5672),  # RabbitMQ with TLS, and without
    }
    blocks = [to["ipBlock"] for rule in rules for to in rule["to"] if "ipBlock" in to]
    assert [block["cidr"] for block in blocks] == (
        ["0.0.0.0/0", "::/0"] if part in ("worker", "witness") else []
    )


def test_of_the_world_what_is_private_is_left_out() -> None:
    left_out = [
        ipaddress.ip_network(network)
        for rule in egress("worker")
        for to in rule["to"]
        for network in to.get("ipBlock", {}).get("except", [])
    ]
    for address in ("10.1.2.3", "169.254.169.254", "172.31.0.1", "192.168.1.1", "100.100.100.200", "fd00::1"):
        found = ipaddress.ip_address(address)
        assert any(found in network for network in left_out if network.version == found.version), address
