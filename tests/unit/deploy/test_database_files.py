"""The configuration of the servers that operators run themselves: accepted by those very servers."""

import subprocess
from pathlib import Path

import yaml

from scheduler_app.embedded import find_mongod

FILE = Path("deploy/mongod.conf")


def test_mongod_accepts_its_file_as_a_member_of_the_set_that_the_uri_names() -> None:
    command = [str(find_mongod()), "--config", str(FILE), "--outputConfig"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    read = yaml.safe_load(done.stdout)
    assert read["replication"]["replSetName"] == "rs0"
    assert "replicaSet=rs0" in FILE.read_text()
    assert read["security"]["authorization"] == "enabled"
