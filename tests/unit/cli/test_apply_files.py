"""The files of `scheduler apply`: bounded, and with one meaning."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from scheduler_app.cli.apply import files
from scheduler_app.cli.apply.files import FileError, read_items, read_yaml, write_yaml


def test_plain_words_are_what_json_has() -> None:
    words = ("NO", "2040-01-01T00:00:00Z", "12:30:00", "true", "010", "-7", "1.5", "null", "on", "1e3", "")
    text = "\n".join(f"{name}: {word}" for name, word in zip("abcdefghijk", words, strict=True))
    assert read_yaml(text) == {
        "a": "NO",
        "b": "2040-01-01T00:00:00Z",
        "c": "12:30:00",
        "d": True,
        "e": "010",
        "f": -7,
        "g": 1.5,
        "h": None,
        "i": "on",
        "j": 1000.0,
        "k": None,
    }


_TEXTS = st.text() | st.from_regex(r"[-+]?[0-9_.]{0,4}[eE]?[-+]?[0-9]{0,4}", fullmatch=True)
_NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)


_DATA = st.dictionaries(_TEXTS, _TEXTS | _NUMBERS | st.booleans() | st.none() | st.lists(_TEXTS), max_size=5)
# A machine that stands still is no fault of an example.
_EVERY = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@settings(_EVERY, max_examples=30, derandomize=True, database=None)
@given(_DATA)
@example({"name": "734478e1"})
@example({"name": "1e5", "1e5": "-0e-7"})
@example({"rrule": "DTSTART:20260101T000000Z\nRRULE:FREQ=DAILY", "note": "\x85\u2028\n "})
def test_what_is_written_is_read_as_it_was(data: dict[str, Any]) -> None:
    assert read_yaml(write_yaml(data)) == data


@pytest.mark.long
@settings(_EVERY, max_examples=300)
@given(_DATA)
def test_whatever_is_written_is_read_as_it_was(data: dict[str, Any]) -> None:
    assert read_yaml(write_yaml(data)) == data


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: &x [1]\nb: *x", "line 1: anchors and aliases"),
        ("a: *x", "line 1: anchors and aliases"),
        ("a: !!python/object/apply:os.system [id]", "line 1: tags"),
        ("a: 1\na: 2", "line 2: 'a' is there twice"),
        ("? [1]\n: 2", "a name must be text"),
        ("a: [1", "line 1"),
        ("a: " + "[" * 30 + "]" * 30, "nested deeper than 20"),
        ("[" * 100_000, "nested deeper than 20"),
        ("a: \x00", "special characters"),
        ("a: 1\n---\nb: 2", "line 2"),
    ],
    ids=lambda value: value[:20],
)
def test_what_is_no_data_is_refused_by_its_line(text: str, said: str) -> None:
    with pytest.raises(ValueError) as raised:
        read_yaml(text)
    assert said in str(raised.value)


def test_calendars_come_before_what_names_them(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text("schedules:\n- {id: s1, name: n}\n")
    folder = tmp_path / "sub"
    folder.mkdir()
    (folder / "a.json").write_text('{"destinations": [{"name": "d1"}], "calendars": [{"name": "c1"}]}')
    (tmp_path / "notes.txt").write_text("[")
    found = read_items(tmp_path)
    assert [(item.kind, item.name) for item in found] == [
        ("calendars", "c1"),
        ("destinations", "d1"),
        ("schedules", "s1"),
    ]
    assert found[2].fields == {"name": "n"}
    assert str(found[2]) == "schedule s1"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- 1", "must have the keys calendars, destinations, blackouts, notifications, schedules"),
        ("schedule: []", "'schedule' is not one of the keys"),
        ("schedules: {}", "must be a list"),
        ("schedules: [{name: n}]", "item 1 of schedules needs id"),
        ("schedules: [{id: a}, {id: 5}]", "item 2 of schedules needs id"),
        ("schedules: [{id: a}, {id: a}]", "schedule a is in "),
    ],
)
def test_a_wrong_file_is_named(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(text)
    with pytest.raises(FileError) as raised:
        read_items(file)
    assert str(raised.value).startswith(str(file))
    assert said in str(raised.value)


def test_files_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileError, match="there is no file"):
        read_items(tmp_path)
    (tmp_path / "a.yaml").write_text("schedules: [{id: a}, {id: b}]")
    (tmp_path / "b.yaml").write_text("schedules: [{id: c}]")
    for name, most in (("MAX_FILES", 1), ("MAX_BYTES", 40), ("MAX_ITEMS", 2)):
        with monkeypatch.context() as changed:
            changed.setattr(files, name, most)
            with pytest.raises(FileError, match=r"more than|exceed"):
                read_items(tmp_path)
    assert len(read_items(tmp_path)) == 3
    (tmp_path / "c.yaml").write_bytes(b"\xff\xfe")
    with pytest.raises(FileError, match="UTF-8"):
        read_items(tmp_path)


@pytest.mark.parametrize("text", ["schedules:\n" + "-\n" * 100, "[" + "a," * 101 + "]"])
def test_a_file_of_too_many_values_is_refused_when_they_are_reached(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_VALUES", 100)
    with pytest.raises(ValueError, match=r"line [0-9]+: it holds more than 100 names and values; split it"):
        read_yaml(text + " and nonsense: [")
