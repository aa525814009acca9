"""`scheduler apply` of items that make no sense: each is refused by itself, in a sentence."""

from pathlib import Path

import pytest

from tests.integration.client.test_operating import Shell

ITEMS = {
    "a merge key": "schedules:\n- id: {tag}\n  <<: {{a: 1}}\n",
    "a list where text belongs": "schedules:\n- id: {tag}\n  callback_url: [1]\n",
    "an object for a calendar": "schedules:\n- id: {tag}\n  calendar: {{a: 1}}\n",
    "a list for a destination": "schedules:\n- id: {tag}\n  destination: [a]\n",
    "an object for a note": "blackouts:\n- name: {tag}\n  note: {{a: 1}}\n",
    "an object for a URL": "destinations:\n- name: {tag}\n  url: {{a: 1}}\n",
    "an object for a country": "calendars:\n- name: {tag}\n  country: {{a: 1}}\n",
    "fields that are no names": "destinations:\n- name: {tag}\n  1: 2\n  self: 3\n  dry_run: 4\n",
    "half a character in a value": 'schedules:\n- id: {tag}\n  name: "\\ud800"\n',
}


@pytest.mark.parametrize("text", ITEMS.values(), ids=ITEMS)
def test_an_item_that_makes_no_sense_is_refused_in_a_sentence(
    url: str, tmp_path: Path, tag: str, text: str
) -> None:
    file = tmp_path / "all.yaml"
    file.write_text(text.format(tag=tag))
    for options, status in ((("--plan",), 1), ((), 1)):
        done = Shell(url).run("apply", "-f", str(file), "--owner", tag, *options, status=status)
        assert tag in done.stdout + done.stderr


def test_a_name_that_is_half_a_character_is_refused_with_its_place(
    url: str, tmp_path: Path, tag: str
) -> None:
    file = tmp_path / "all.yaml"
    file.write_text('schedules:\n- id: "\\ud800"\n')
    done = Shell(url).run("apply", "-f", str(file), "--owner", tag, "--plan", status=1)
    assert "item 1 of schedules" in done.stdout + done.stderr
