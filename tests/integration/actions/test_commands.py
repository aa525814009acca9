"""Commands as real processes: whatever they do, they are ended, capped or refused, and nothing is left."""

import json
import os
import pwd
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil
import pytest

from scheduler_app.actions.command import running
from scheduler_app.actions.command.kind import CommandKind
from scheduler_app.actions.kind import Executor, Outcome, Verdict
from scheduler_app.config import InvalidSetting, Settings
from scheduler_app.domain.command_action import CommandAction
from tests.builders import event, schedule
from tests.processes import PATIENCE_SECONDS, wait_until

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
Run = Callable[..., Verdict]


def executor(**settings: Any) -> Executor:
    return CommandKind().executor(
        Settings(**{"allowed_commands": ("MARK= PASSWORD= *", "shell:MARK= *")} | settings), lambda: None
    )


def begin(
    executor: Executor, action: CommandAction, *, timeout_seconds: float = PATIENCE_SECONDS, name: str = "s1"
) -> None:
    made = replace(schedule(NOON, name), action=action, timeout_seconds=timeout_seconds)
    executor.start(event(NOON, name), made, NOON)


def collect(executor: Executor, count: int = 1) -> list[Verdict]:
    found: list[Verdict] = []
    while len(found) < count:
        found += executor.wait(1.0)
    return found


@pytest.fixture
def mark() -> Iterator[str]:
    """Stands in the environment of the test's processes."""
    made = uuid4().hex
    yield made
    for process in marked(made):
        with suppress(psutil.NoSuchProcess):  # it has ended since it was found
            process.kill()


def marked(mark: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("MARK") == mark:
                found.append(process)
        except psutil.Error:
            continue
    return found


def guardians() -> list[list[str]]:
    """The command lines of those of this process; other children are servers of the test's session."""
    found = []
    for child in psutil.Process().children():
        try:
            line = child.cmdline()
        except psutil.Error:  # it has ended
            continue
        if any(word.endswith("guardian.py") for word in line):
            found.append(line)
    return found


@pytest.fixture
def run(mark: str) -> Run:
    """Runs a line of the shell to its end; nothing of it may be left then."""

    def run(line: str, *, timeout_seconds: float = PATIENCE_SECONDS, **settings: Any) -> Verdict:
        with closing(executor(**settings)) as made:
            action = CommandAction((line,), shell=True, env=(("MARK", mark),))
            begin(made, action, timeout_seconds=timeout_seconds)
            (verdict,) = collect(made)
            assert marked(mark) == []
            return verdict

    return run


def test_status_output_and_duration_are_told(run: Run) -> None:
    verdict = run("echo one; echo two >&2; exit 3")
    assert (verdict.outcome, verdict.status_code, verdict.error) == (Outcome.RETRY, 3, None)
    assert verdict.output == "one\ntwo\n"
    assert verdict.snippet == "one two "
    assert verdict.duration_ms > 0


def test_the_environment_is_clean_and_names_the_event(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MONGO_URI", "mongodb://user:password@host")
    verdict = run("env")
    variables = dict(line.split("=", 1) for line in (verdict.output or "").splitlines())
    assert variables.pop("SCHEDULER_EVENT_ID") == event(NOON).id
    assert variables.pop("SCHEDULER_RUN_TIME") == "2026-03-02T12:00:00Z"
    assert variables["SCHEDULER_ATTEMPT"] == "1"
    assert not {"MONGO_URI", "PYTHONPATH"} & set(variables)


def test_what_a_command_leaves_behind_is_killed(run: Run) -> None:
    verdict = run("sleep 600 & setsid sleep 600 & (setsid sh -c 'sleep 600 & sleep 600' &) ; exit 0")
    assert (verdict.outcome, verdict.status_code) == (Outcome.SUCCESS, 0)


def test_what_ignores_sigterm_is_killed_at_its_limit(run: Run) -> None:
    verdict = run("trap '' TERM; (trap '' TERM; sleep 600) & sleep 600", timeout_seconds=0.3)
    assert (verdict.outcome, verdict.status_code) == (Outcome.RETRY, None)
    assert verdict.error == "the command took longer than 0.3 s and was ended"


def test_a_command_may_end_by_itself_at_its_limit(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "GRACE_SECONDS", 30.0)
    line = "trap 'echo tidied; exit 9' TERM; echo begun; while :; do :; done"
    for limit in (0.5, 5.0, 20.0):
        verdict = run(line, timeout_seconds=limit)
        if verdict.output:  # otherwise this machine stood still until its limit
            break
    assert verdict.output == "begun\ntidied\n"
    assert f"{limit:g} s" in (verdict.error or "")


def test_a_tree_that_forks_on_and_on_is_killed(run: Run) -> None:
    line = "f() { if [ $1 -gt 0 ]; then f $(($1 - 1)) & f $(($1 - 1)) & fi; sleep 600; }; f 5"
    assert run(line, timeout_seconds=0.5).outcome is Outcome.RETRY


def test_a_hundred_megabytes_are_capped(run: Run) -> None:
    verdict = run("echo begin; head -c 100000000 /dev/zero | tr '\\0' x; echo end")
    text = verdict.output or ""
    assert verdict.outcome is Outcome.SUCCESS
    assert text.startswith("begin\nxxx")
    assert text.endswith("xend\n")
    assert len(text) < 140_000


def test_memory_is_limited(run: Run) -> None:
    line = f"{sys.executable} -c 'bytearray(2**30)'"
    verdict = run(line, command_memory_mib=256)
    assert (verdict.outcome, verdict.status_code) == (Outcome.RETRY, 1)
    assert "MemoryError" in (verdict.output or "")


def test_the_size_of_files_is_limited(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "large"
    verdict = run(f"exec head -c 3000000 /dev/zero > {target}", command_file_mib=1)
    assert "SIGXFSZ: it reached the limit COMMAND_FILE_MIB" in (verdict.error or "")
    assert target.stat().st_size == 2**20


def test_cpu_time_is_limited(run: Run) -> None:
    verdict = run("while :; do :; done", command_cpu_seconds=1)
    assert verdict.error is not None
    assert "SIGXCPU" in verdict.error or "SIGKILL" in verdict.error


def test_open_files_are_limited(run: Run) -> None:
    assert run("ulimit -n", command_open_files=77).output == "77\n"


def test_a_command_gives_way_to_others_and_its_guardian_does_not(run: Run) -> None:
    here = os.nice(0)
    for setting, niceness in ((10, min(here + 10, 19)), (0, here)):
        verdict = run("nice; cut -d ' ' -f 19 /proc/$PPID/stat", command_niceness=setting)
        assert [int(line) for line in (verdict.output or "").split()] == [niceness, here]


#: Ends when the group of its session gives way, at once where the kernel has no such groups.
UNTIL_ITS_GROUP_GIVES_WAY = "while grep -q 'nice 0$' /proc/$$/autogroup; do sleep 0.05; done"


def test_the_kernels_group_of_a_commands_session_gives_way_too_and_that_of_its_guardian_does_not(
    run: Run,
) -> None:
    """A kernel that groups processes by session (`sched_autogroup_enabled`) compares niceness within a
    group only."""
    here = Path("/proc/self/autogroup")
    groups = [" nice 10", " nice 0"] if here.exists() else []
    verdict = run(f"{UNTIL_ITS_GROUP_GIVES_WAY}; cat /proc/$$/autogroup /proc/$PPID/autogroup")
    told = [line for line in (verdict.output or "").splitlines() if line.startswith("/autogroup-")]
    assert [line[line.index(" ") :] for line in told] == groups


def test_commands_run_where_the_setting_says(run: Run, tmp_path: Path) -> None:
    assert run("pwd", command_directory=str(tmp_path)).output == f"{tmp_path}\n"


@pytest.mark.parametrize(
    ("action", "said"),
    [
        (CommandAction(("rm", "-rf", "/")), "ALLOWED_COMMANDS"),
        (CommandAction(("true; rm",), shell=True), "ALLOWED_COMMANDS"),
        (CommandAction(()), "must name a program"),
        (CommandAction(("true",), env=(("LD_PRELOAD", "/tmp/x.so"),)), "LD_PRELOAD"),
        (CommandAction(("true",), env=(("PATH", "/tmp"),)), "PATH"),
        (CommandAction(("true",), env=(("a=b", "c"),)), "env"),
    ],
)
def test_what_is_not_allowed_or_unusable_never_runs(action: CommandAction, said: str) -> None:
    with closing(executor(allowed_commands=("true", "shell:true"))) as made:
        begin(made, action)
        (verdict,) = collect(made)
    assert verdict.outcome is Outcome.PERMANENT
    assert said in verdict.reason


def test_a_program_that_is_not_there_is_a_permanent_failure(run: Run) -> None:
    with closing(executor()) as made:
        begin(made, CommandAction(("no-such-program",)))
        (verdict,) = collect(made)
    assert verdict.outcome is Outcome.PERMANENT
    assert "No such file" in verdict.reason


@pytest.mark.parametrize(("code", "outcome"), [(1, Outcome.RETRY), (4, Outcome.PERMANENT)])
def test_exit_statuses_say_whether_it_is_tried_again(code: int, outcome: Outcome) -> None:
    with closing(executor()) as made:
        begin(made, CommandAction(("sh", "-c", f"exit {code}"), retry_exit_codes=(1, 2)))
        (verdict,) = collect(made)
    assert (verdict.outcome, verdict.status_code) == (outcome, code)


def test_fifty_that_hang_hold_up_no_other() -> None:
    with closing(executor()) as made:
        for number in range(50):
            begin(made, CommandAction(("sleep", "600")), name=f"hung-{number}")
        begin(made, CommandAction(("true",)), name="quick")
        (verdict,) = collect(made)
        assert verdict.event_id == event(NOON, "quick").id
    wait_until(lambda: guardians() == [], "the guardians to end")


WORKER = """
import sys, time
from tests.integration.actions.test_commands import begin, executor
from scheduler_app.domain.command_action import CommandAction
line = "trap '' TERM; setsid sleep 600 & (trap '' TERM; sleep 600) & echo $$ > " + sys.argv[2] + "; sleep 600"
begin(executor(), CommandAction((line,), shell=True, env=(("MARK", sys.argv[1]),)), timeout_seconds=600)
time.sleep(600)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_is_left_of_a_worker_that_was_killed(mark: str, tmp_path: Path, number: int) -> None:
    started = tmp_path / "started"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen((sys.executable, "-c", WORKER, mark, str(started)), env=environment) as worker:
        try:
            wait_until(started.exists, "the command to start")
            worker.send_signal(number)
            worker.wait()
        finally:
            worker.kill()
    wait_until(lambda: marked(mark) == [], "its processes to end")


def test_nothing_is_left_of_a_command_whose_guardian_was_killed(mark: str, tmp_path: Path) -> None:
    started = tmp_path / "started"
    line = (
        "trap '' TERM; setsid sh -c 'sleep 600 & sleep 600' & (trap '' TERM; sleep 600) &"
        f" echo $PPID > {started}.new; mv {started}.new {started}; sleep 600"
    )
    with closing(executor()) as made:
        begin(made, CommandAction((line,), shell=True, env=(("MARK", mark),)))
        begin(made, CommandAction(("sleep", "600"), env=(("MARK", f"other-{mark}"),)), name="other")
        wait_until(started.exists, "the command to start")
        wait_until(lambda: len(marked(mark)) >= 5, "its processes to start")
        wait_until(lambda: len(marked(f"other-{mark}")) == 1, "the other command to start")
        os.kill(int(started.read_text()), signal.SIGKILL)
        (verdict,) = collect(made)
        assert (verdict.outcome, verdict.error) == (Outcome.RETRY, "the command's guardian was killed")
        assert marked(mark) == [], "the next attempt may begin now"
        assert len(marked(f"other-{mark}")) == 1, "and no other command is touched"


#: Denies setpriority by seccomp, as a sandbox of systemd does, and then runs a command.
SANDBOXED = """
import ctypes, errno, platform, struct
from contextlib import closing, suppress
from tests.integration.actions.test_commands import begin, collect, executor
from scheduler_app.domain.command_action import CommandAction
number = {"x86_64": 141, "aarch64": 140}[platform.machine()]
denied, allowed = 0x00050000 | errno.EPERM, 0x7FFF0000
code = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, denied), (0x06, 0, 0, allowed)]
program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in code))
prog = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(code), ctypes.addressof(program)))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, prog, 0, 0) == 0
with closing(executor(command_niceness=10)) as made:
    begin(made, CommandAction(("nice",)))
    (verdict,) = collect(made)
    print(verdict.outcome, verdict.reason, verdict.output)
"""


#: Gives up CAP_SYS_ADMIN for what it starts, and then runs commands that end when their groups give way.
RATE_LIMITED = """
import ctypes
from contextlib import closing
from tests.integration.actions.test_commands import UNTIL_ITS_GROUP_GIVES_WAY, begin, collect, executor
from scheduler_app.domain.command_action import CommandAction
assert ctypes.CDLL(None).prctl(24, 21, 0, 0, 0) == 0
with closing(executor(command_niceness=10, command_concurrency=8)) as made:
    for number in range(8):
        begin(made, CommandAction((UNTIL_ITS_GROUP_GIVES_WAY,), shell=True), name=f"s{number}")
    print({verdict.outcome for verdict in collect(made, 8)})
"""


def printed_by(program: str) -> list[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = (sys.executable, "-c", program)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300)
    return done.stdout.split()


def test_a_command_runs_where_a_sandbox_forbids_to_give_way() -> None:
    assert printed_by(SANDBOXED) == [*str(Outcome.SUCCESS).split(), str(os.nice(0))]


def test_commands_that_start_together_all_give_way_where_the_kernel_allows_ten_a_second() -> None:
    assert printed_by(RATE_LIMITED) == str({Outcome.SUCCESS}).split()


def user_of_none() -> str:
    """A user without processes, which the limit would count; one of many, for another run of this test may
    be under way."""
    found = [process.info["uids"] for process in psutil.process_iter(["uids"])]
    busy = {each.real for each in found if each is not None}
    return random.choice([each.pw_name for each in pwd.getpwall() if each.pw_uid not in busy])


def test_the_processes_of_a_user_are_limited() -> None:
    if os.getuid() != 0:
        with closing(executor(command_processes=1)) as made:
            begin(made, CommandAction(("sh -c 'true' & wait",), shell=True))
            (verdict,) = collect(made)
        assert verdict.outcome is Outcome.RETRY
        return
    with closing(executor(command_processes=40, command_user=user_of_none(), command_directory="/")) as made:
        line = "for i in $(seq 60); do sleep 5 & done; echo all"
        begin(made, CommandAction((line,), shell=True), timeout_seconds=60)
        (verdict,) = collect(made)
    assert "fork" in (verdict.output or "")
    assert "all" not in (verdict.output or "").split()


#: A worker's process as a supervisor starts it: its secrets are in its initial environment, and its parent's.
SECRETIVE = """
import os, sys, subprocess
from contextlib import closing, suppress
from scheduler_app.config import conceal_secrets, load_settings
from scheduler_app.actions.command.kind import CommandKind
from tests.integration.actions.test_commands import begin, collect
from scheduler_app.domain.command_action import CommandAction
settings = load_settings()
conceal_secrets(settings)
if sys.argv[1:]:
    sys.exit(subprocess.run([sys.executable, "-c", sys.argv[1]]).returncode)
import ctypes
assert ctypes.CDLL(None).prctl(3, 0, 0, 0, 0) == 0, "others of its user could read it"
line = sys.stdin.read()
with closing(CommandKind().executor(settings, lambda: None)) as made:
    env = (("STOP", os.environ["STOP"]), ("SAID", "dbobsz.pg.uif.bqj.lfz"))
    begin(made, CommandAction((line,), shell=True, env=env))
    (verdict,) = collect(made)
    print(verdict.output)
"""

#: Shows what /proc says of a command's ancestors, up to the process of the test, with other letters: what is
#: printed as it is, as the last line, would be masked.
ANCESTORS = r"""
p=$$
while [ "$p" != "$STOP" ]; do
    echo "process $p"
    tr '\0' '\n' < /proc/$p/environ | tr a-z b-za
    tr a-z b-za < /proc/$p/maps
    tr '\0' ' ' < /proc/$p/cmdline
    p=$(cut -d ' ' -f 4 /proc/$p/stat)
done
echo "mine $SAID" | tr b-za a-z
"""


def test_no_ancestor_of_a_command_shows_a_secret_of_ours() -> None:
    secrets = {
        "API_KEYS": "canary.of.the.api.key",
        "SECRETS_KEY": "canary-of-the-secrets-key",
        "MONGO_URI": "mongodb://user:canary-of-mongo@127.0.0.1:1/",
        "BROKER_URL": "redis://:canary-of-redis@127.0.0.1:1/0",
        "CELERY_BROKERS": "shop=redis://:canary-of-the-shop@127.0.0.1:1/0",
        "CELERY_TASKS": "shop:*",
        "FLOWER_BASIC_AUTH": "me:canary-of-flower",
    }
    environment = (
        os.environ
        | secrets
        | {
            "ALLOWED_COMMANDS": "shell:STOP= SAID= *",
            "ALLOW_ANY_COMMAND": "true",
            "COMMAND_MEMORY_MIB": "8192",
            "PYTHONPATH": os.pathsep.join(sys.path),
            "STOP": str(os.getpid()),
        }
    )
    command = (sys.executable, "-c", SECRETIVE, SECRETIVE)
    done = subprocess.run(
        command, env=environment, input=ANCESTORS, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("process ") >= 3, "shell, guardian, worker and its parent"
    assert "guardian.py" in done.stdout
    if os.getuid() == 0:
        assert "API_KEYS=***" in done.stdout, "root can look there, and finds nothing"
    assert "dbobsz-" not in done.stdout
    assert "dbobsz.pg" not in done.stdout.replace("SAID=dbobsz", "")
    assert "canary" not in done.stdout
    assert "lhmd ********\n" in done.stdout, "the key itself is masked, wherever a command has it from"


def test_only_a_worker_of_root_runs_commands_as_another_user(run: Run, tmp_path: Path) -> None:
    if os.getuid() != 0:
        with pytest.raises(InvalidSetting, match="COMMAND_USER"):
            executor(command_user="nobody")
        return
    tmp_path.chmod(0o755)
    verdict = run("id -un; id -Gn", command_user="nobody", command_directory="/")
    assert (verdict.output or "").split() == ["nobody", "nogroup"]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"allowed_commands": ()}, "ALLOWED_COMMANDS"),
        ({"command_user": "nobody-at-all"}, "COMMAND_USER"),
        ({"command_directory": "/no/such/folder"}, "COMMAND_DIRECTORY"),
    ],
)
def test_a_worker_refuses_settings_it_cannot_work_with(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidSetting, match=said):
        executor(**settings)


def test_no_secret_is_in_a_command_line(mark: str) -> None:
    with closing(executor()) as made:
        begin(made, CommandAction(("sleep", "600"), env=(("MARK", mark), ("PASSWORD", "s3cret-of-mine"))))
        wait_until(lambda: len(marked(mark)) == 1, "the command to run")
        lines = json.dumps([*guardians(), *[each.cmdline() for each in marked(mark)]])
        assert "s3cret-of-mine" not in lines
