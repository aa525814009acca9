"""Whatever a setting is given as, the services of `scheduler up` read the value that `up` itself has read."""

import dataclasses
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler_app.cli.run_file import kept_run_file
from scheduler_app.cli.up.services import service_environment
from scheduler_app.config import InvalidSetting, Settings, load_settings, names

#: Characters that texts, lists, shells, YAML and JSON give a meaning to, and some that none of them does.
_CHARACTERS = st.one_of(
    st.sampled_from(list(" ,;:=\"'\\\n\r\t[]{}#&*!|>%@`$~-?/äß€漢🕰\u2028\u0085\x7f\x01")),
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"),
)
_TEXT = st.text(_CHARACTERS, max_size=20)
_WORD = st.text(st.characters(codec="utf-8", categories=["L", "N"]), min_size=1, max_size=8)
_PATTERN = st.lists(
    st.one_of(_WORD, st.sampled_from(["id,*", "'a, b'", '"ä"', "--columns", "/opt/*"])),
    min_size=1,
    max_size=3,
).map(" ".join)
_PASSWORD = st.text("abcXYZ0189%_.~-", max_size=12)


def _lists(item: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(item, min_size=1, max_size=3, unique=True).map(", ".join)


def _url(*schemes: str) -> st.SearchStrategy[str]:
    return st.tuples(st.sampled_from(schemes), _PASSWORD).map(lambda made: f"{made[0]}://:{made[1]}@host:1/0")


def _texts_of(name: str) -> st.SearchStrategy[str]:
    """Texts for a setting: many of them are refused, and some of every setting are not."""
    field = names()[name]
    if name in _TEXTS:
        return _TEXTS[name]
    if isinstance(field.default, bool):
        return st.sampled_from(["true", "TRUE", "False"])
    if isinstance(field.default, int | float):
        number = f"{field.default:g}"
        return st.sampled_from([number, f" {number} ", f"+{number}", f"0{number}", f"{number}\n"])
    return _TEXT


_TEXTS: dict[str, st.SearchStrategy[str]] = {
    "MONGO_URI": _PASSWORD.map(lambda password: f"mongodb://u:{password}@a:1,b:2/?replicaSet=rs0&w=1"),
    "MONGO_DATABASE": _WORD,
    "BROKER_URL": st.one_of(_url("redis", "amqp"), st.just("sentinel://a:1;sentinel://b:2")),
    "BROKER_CA_BUNDLE": st.just(__file__),
    "BROKER_CLIENT_CERTIFICATE": st.just(__file__),
    "FLOW_CONTROL_URL": _url("redis", "rediss"),
    "LOG_LEVEL": st.sampled_from(["info", "WARN", "Debug"]),
    "LOG_FORMAT": st.sampled_from(["auto", "json", "text"]),
    "API_HOST": st.sampled_from(["127.0.0.1", "localhost", "::1"]),
    "API_KEYS": _lists(st.text("abc#'\"ä€{}", min_size=16, max_size=20)),
    "CALLBACK_ALLOWED_NETWORKS": _lists(st.sampled_from(["10.0.0.0/8", "fc00::/7", "192.168.1.1"])),
    "CALLBACK_DENIED_PORTS": st.one_of(st.just("none"), _lists(st.sampled_from(["22", "6000-6063", " 25 "]))),
    "ALLOWED_COMMANDS": st.one_of(
        _lists(_PATTERN), st.lists(_PATTERN, max_size=3).map(lambda made: _json(made))
    ),
    "CELERY_BROKERS": st.just("shop=redis://:a%2Cb@h:1/0, reports=amqp://u:p=q@h//"),
    "ALLOW_ANY_COMMAND": st.sampled_from(["true", "FALSE"]),
    "CELERY_TASKS": st.just("shop:a.*@x ,reports:ä'*\"\\$@*, shop:b"),
    "CELERY_RESULT_BACKENDS": st.just("shop=redis://h:1/1"),
    "TRUSTED_PROXIES": _lists(st.sampled_from(["10.0.0.0/8", "fc00::/7", "192.168.1.1"])),
    "OIDC_SCOPES": st.sampled_from(["openid", " openid email", "openid  profile"]),
    "PUBLIC_URL": st.sampled_from(["https://scheduler.example.com", "HTTP://Other:8080/"]),
}


def _json(value: object) -> str:
    import json

    return json.dumps(value, ensure_ascii=False)


def _as_environment(name: str, text: str, folder: Path) -> Settings:
    return load_settings(environ={**_beside(name), name: text})


def _as_file(name: str, text: str, folder: Path) -> Settings:
    section, _, key = name.lower().partition("_")
    path = folder / "given.yaml"
    path.write_text(yaml.safe_dump({section: {key: text}}, allow_unicode=True), encoding="utf-8")
    return load_settings(str(path), environ=_beside(name))


def _as_flag(name: str, text: str, folder: Path) -> Settings:
    return load_settings(overrides={name: text}, environ=_beside(name))


def _beside(name: str) -> dict[str, str]:
    """What a setting needs beside itself to be possible."""
    return {
        "FLOW_CONTROL_URL": {"BROKER_URL": "amqp://h//"},
        "CELERY_BROKERS": {"CELERY_TASKS": "shop:*,reports:*"},
        "CELERY_RESULT_BACKENDS": {"CELERY_BROKERS": "shop=redis://h:1/0", "CELERY_TASKS": "shop:*"},
    }.get(name, {})


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in names():
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("way", [_as_environment, _as_file, _as_flag])
@pytest.mark.parametrize("name", names())
def test_a_service_reads_the_value_that_was_given(
    name: str, way: Callable[[str, str, Path], Settings], tmp_path: Path
) -> None:
    accepted = 0

    @settings(
        max_examples=15,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(text=_texts_of(name))
    def check(text: str) -> None:
        nonlocal accepted
        try:
            own = way(name, text, tmp_path)
        except InvalidSetting:
            return
        accepted += 1
        assert load_settings(environ=service_environment(own, {})) == own

    check()
    assert accepted, f"no text for {name} was accepted: this test says nothing about it"


def test_a_process_reads_all_settings_as_they_were_given(tmp_path: Path) -> None:
    given = {
        "MONGO_URI": "mongodb://u:p%2C@a:1,b:2/?replicaSet=rs0",
        "REDIS_HOST": "ö, 'x' \"y\"\nz",
        "API_KEYS": "ops:0123456789abcdéf:read,another-key-of-16+",
        "ALLOWED_COMMANDS": '["printf --columns id,*", "echo \\"a b\\"", "sh -c \'x\\ny\'"]',
        "CELERY_BROKERS": "shop=redis://:a%2Cb@h:1/0,reports=amqp://u:p=q@h//",
        "CELERY_TASKS": "shop:a.*@x,reports:*",
        "CELERY_RESULT_BACKENDS": "shop=redis://h:1/1",
        "CALLBACK_DENIED_PORTS": "22,6000-6063",
        "COMMAND_DIRECTORY": "/tmp/a, b\n€",
        "SECRETS_KEY": "one,two",
    }
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(_sections(given)))
    own = load_settings()
    read = "import pickle, sys; from scheduler_app.config import load_settings as l; s = l()"
    dumped = "sys.stdout.buffer.write(pickle.dumps({n: getattr(s, n.lower()) for n in sys.argv[1:]}))"
    child = subprocess.run(
        [sys.executable, "-c", f"{read}; {dumped}", *given],
        env=service_environment(own, {}),
        stdout=subprocess.PIPE,
        check=True,
    )
    found: dict[str, Any] = pickle.loads(child.stdout)
    assert found == {name: getattr(own, name.lower()) for name in given}
    assert found["ALLOWED_COMMANDS"][0] == "printf --columns id,*"
    assert dict(found["CELERY_BROKERS"])["reports"] == "amqp://u:p=q@h//"


def test_a_tool_that_finds_the_run_reads_all_settings_as_they_were_given(tmp_path: Path) -> None:
    given = {"REDIS_HOST": "ö, 'x' \"y\"\n: #z ", "ALLOWED_COMMANDS": '["echo a,b"]', "SECRETS_KEY": "0o17"}
    own = load_settings(environ=given)
    with kept_run_file(tmp_path, own.given) as path:
        assert load_settings(str(path), environ={}) == own


def _sections(given: dict[str, str]) -> dict[str, dict[str, str]]:
    sections: dict[str, dict[str, str]] = {}
    for name, text in given.items():
        section, _, key = name.lower().partition("_")
        sections.setdefault(section, {})[key] = text
    return sections


def test_a_service_reads_no_file_that_up_has_not_read(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("retention: {days: 7}\n")
    (tmp_path / "config.yaml").write_text("allowed: {commands: [reboot]}\n")
    own = load_settings("mine.yaml")
    service = load_settings(environ=service_environment(own, {}))
    assert (service.retention_days, service.allowed_commands) == (7, ())


def test_a_list_in_the_file_keeps_its_items(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(
        'allowed: {commands: ["printf --columns id,*", date]}\n'
        "api: {keys: [0123456789abcdef, 0123456789abcdeg]}\n"
    )
    own = load_settings()
    assert own.allowed_commands == ("printf --columns id,*", "date")
    assert own.api_keys == ("0123456789abcdef", "0123456789abcdeg")
    assert load_settings(environ=service_environment(own, {})) == own


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("api: {keys: ['0123456789abcdef,x']}", "api.keys must have no comma in an item"),
        ("mongo: {database: [a, b]}", "mongo.database must be one text, not a list of 2"),
        ("celery: {brokers: {shop: 'redis://h'}}", "celery.brokers must be a text, or a list of texts"),
        ('redis: {host: "a\\0b"}', "REDIS_HOST must be text without NUL"),
        ('redis: {host: ""}', "REDIS_HOST must not be empty"),
    ],
)
def test_what_would_reach_a_service_as_something_else_is_refused(
    tmp_path: Path, text: str, says: str
) -> None:
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(InvalidSetting, match=re.escape(says)):
        load_settings()


def test_the_file_is_read_as_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(
        "broker: {sentinel_master: 0123}\nredis: {host: yes}\napi: {keys: }\n"
    )
    own = load_settings(environ={})
    assert (own.broker_sentinel_master, own.redis_host, own.api_keys) == ("0123", "yes", ())


def test_the_file_may_be_named_by_the_environment(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("retention: {days: 7}\n")
    assert load_settings(environ={"SCHEDULER_CONFIG": "mine.yaml"}).retention_days == 7
    assert os.devnull == service_environment(load_settings(), {})["SCHEDULER_CONFIG"]
    assert dataclasses.fields(Settings)[-1].name == "given"
