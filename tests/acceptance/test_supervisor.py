"""The supervisor over small programs: what it starts, what it says, what it leaves."""

import json
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.processes import Program, wait_until

_SUPERVISE = """
import json, os, sys
from pathlib import Path
from scheduler_app.cli.up.supervisor import Console, Service, Supervisor

def service(name, program, tier=0, grace=60, ready_when=None):
    ready = (lambda: True) if ready_when is None else (lambda: Path(ready_when).exists())
    return Service(name, (sys.executable, "-u", "-c", program), os.environ, tier, grace, ready)

services = [service(**each) for each in json.loads(sys.argv[1])]
console = Console([each.name for each in services])
sys.exit(Supervisor(services, console, lambda: console.block("ALL READY")).run())
"""

_LIVES = "import time; print('lives'); time.sleep(300)"
_ENDS_SLOWLY = """
import signal, sys, time
def end(*_):
    print('is ending'); time.sleep(0.3); print('has ended'); sys.exit(0)
signal.signal(signal.SIGTERM, end); print('lives'); time.sleep(300)
"""
_NEVER_ENDS = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN); print('lives'); time.sleep(300)
"""
_FORKS = """
import subprocess, sys
child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)']); print('lives'); child.wait()
"""

Supervise = Callable[..., Program]


@pytest.fixture
def supervise(run: Callable[..., Program]) -> Supervise:
    def start(*services: dict[str, Any]) -> Program:
        return run(sys.executable, "-c", _SUPERVISE, json.dumps(services))

    return start


def _running(program: Program, source: str) -> psutil.Process:
    return next(process for process in program.processes() if process.cmdline()[-1:] == [source])


def _order(program: Program, *lines: str) -> bool:
    return re.search(".*".join(map(re.escape, lines)), program.output, re.DOTALL) is not None


def test_a_tier_is_started_when_all_below_it_are_ready(supervise: Supervise, tmp_path: Path) -> None:
    program = supervise(
        {"name": "base", "program": _LIVES, "ready_when": "ready"},
        {"name": "door", "program": _LIVES, "tier": 1},
    )
    program.wait_for("^base +| lives")
    assert "door" not in program.output
    (tmp_path / "ready").touch()
    program.wait_for("^ALL READY$")
    program.wait_for(r"^door \| lives$")
    assert _order(program, "base | lives", "ALL READY")


def test_every_line_stands_unchanged_behind_the_name_of_its_service(supervise: Supervise) -> None:
    says = "import sys, time; sys.stdout.write('{\"a\": 1}\\n\\t\\u00fc  \\nbegun'); sys.stdout.flush(); "
    program = supervise(
        {"name": "api", "program": says + "time.sleep(0.2); print(' line'); time.sleep(300)"},
        {
            "name": "worker1",
            "program": "import sys, time; print('to stderr', file=sys.stderr); time.sleep(300)",
        },
    )
    program.wait_for(r'^api     \| \{"a": 1\}$')
    program.wait_for("^api     \\| \tü  $")
    program.wait_for(r"^api     \| begun line$")
    program.wait_for(r"^worker1 \| to stderr$")


def test_what_a_service_wrote_last_is_shown_though_it_died_in_the_middle_of_a_line(
    supervise: Supervise,
) -> None:
    dies = "import sys; sys.stdout.write('x' * 300_000 + ' the reason'); sys.stdout.flush(); sys.exit(3)"
    program = supervise({"name": "beat", "program": dies})
    program.wait_for(r"the reason$")
    program.wait_for(r"^up   \| beat ended \(exit status 3\), is started again in 1 s$")


def test_a_service_that_is_killed_is_started_again_and_a_line_says_so(supervise: Supervise) -> None:
    program = supervise({"name": "worker1", "program": _FORKS}, {"name": "api", "program": _LIVES})
    program.wait_for("^ALL READY$")
    program.wait_for(r"^worker1 \| lives$")
    program.wait_for(r"^api     \| lives$")
    killed = _running(program, _FORKS)
    left_behind = killed.children()
    assert left_behind
    killed.kill()
    program.wait_for(r"^up      \| worker1 ended \(killed by SIGKILL\), is started again in 1 s$")
    program.wait_for(r"(?s)started again.*worker1 \| lives$")
    assert not set(left_behind) & set(program.processes()), "its own child must not hold its port"
    assert program.output.count("api     | lives") == 1


def test_a_service_that_keeps_dying_is_started_ever_more_rarely(supervise: Supervise, tmp_path: Path) -> None:
    # Healthy until all were ready, then never again.
    dies = (
        "import os, sys, time; first = not os.path.exists('once'); open('once', 'w').close()\n"
        "time.sleep(300 if first else 0); sys.exit(1)"
    )
    program = supervise({"name": "beat", "program": dies})
    program.wait_for("^ALL READY$")
    wait_until((tmp_path / "once").exists, "its first start")
    _running(program, dies).kill()
    program.wait_for(r"started again in 1 s$")
    program.wait_for(r"started again in 2 s$")
    program.wait_for(r"started again in 4 s$")


def test_when_a_service_cannot_come_up_nothing_is_kept_running(supervise: Supervise) -> None:
    program = supervise(
        {"name": "api", "program": _LIVES},
        {"name": "beat", "program": "import sys; sys.exit('no such module')", "ready_when": "never"},
    )
    assert program.wait() == 1
    assert program.output.count("beat | no such module") == 3
    assert "beat ended 3 times before everything was ready: giving up" in program.output
    assert program.processes() == []


def test_a_program_that_does_not_exist_is_one_line(run: Callable[..., Program]) -> None:
    program = run(
        sys.executable,
        "-c",
        "import os, sys; from scheduler_app.cli.up.supervisor import *;"
        "p = Service('x', ('/nowhere/program',), os.environ, 0, 1);"
        "sys.exit(Supervisor([p], Console(['x']), lambda: None).run())",
    )
    program.wait_for(r"^x  \| /nowhere/program: No such file or directory$")
    assert "Traceback" not in program.output


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ctrl_c_sigterm_and_a_closed_terminal_end_the_tiers_in_order(
    supervise: Supervise, number: signal.Signals
) -> None:
    program = supervise(
        {"name": "base", "program": _ENDS_SLOWLY},
        {"name": "work", "program": _ENDS_SLOWLY, "tier": 1},
        {"name": "door", "program": _ENDS_SLOWLY, "tier": 2},
    )
    for name in ("base", "work", "door"):
        program.wait_for(rf"^{name} \| lives$")
    program.wait_for("^ALL READY$")
    program.signal(number, to_group=True)
    assert program.wait() == 0
    assert _order(
        program,
        "door | is ending",
        "door | has ended",
        "work | is ending",
        "work | has ended",
        "base | is ending",
        "base | has ended",
    )
    assert program.output.count("is ending") == 3, "the terminal's own signal must not reach the services"
    assert "killed" not in program.output
    assert program.processes() == []


def test_what_does_not_end_within_its_grace_is_killed(supervise: Supervise) -> None:
    program = supervise({"name": "deaf", "program": _NEVER_ENDS, "grace": 0.5})
    program.wait_for(r"^deaf \| lives$")
    program.signal(signal.SIGTERM)
    assert program.wait() == 0
    assert "deaf had to be killed" in program.output
    assert program.processes() == []


def test_a_second_signal_hurries(supervise: Supervise) -> None:
    program = supervise({"name": "deaf", "program": _NEVER_ENDS, "grace": 100})
    program.wait_for(r"^deaf \| lives$")
    program.signal(signal.SIGINT)
    program.wait_for("ending everything")
    program.signal(signal.SIGINT)
    assert program.wait() == 1
    assert program.processes() == []


def test_a_signal_before_all_is_ready_ends_what_has_been_started(supervise: Supervise) -> None:
    program = supervise({"name": "base", "program": _ENDS_SLOWLY, "ready_when": "never"})
    program.wait_for(r"^base \| lives$")
    program.signal(signal.SIGTERM)
    assert program.wait() == 0
    assert "ALL READY" not in program.output
    assert "base | has ended" in program.output


def test_nothing_survives_a_supervisor_that_is_killed(supervise: Supervise) -> None:
    program = supervise({"name": "deaf", "program": _NEVER_ENDS}, {"name": "api", "program": _LIVES})
    program.wait_for(r"^deaf \| lives$")
    program.wait_for(r"^api  \| lives$")
    program.signal(signal.SIGKILL)
    program.wait()
    program.wait_for_nothing_left()


def test_it_ends_in_order_when_nobody_reads_its_output_any_more(run: Callable[..., Program]) -> None:
    services = [{"name": "chatty", "program": "import time\nwhile True: print('word'); time.sleep(0.01)"}]
    pipeline = '"$0" -c "$1" "$2" | head -n 3; echo "status ${PIPESTATUS[0]}"'
    program = run("bash", "-c", pipeline, sys.executable, _SUPERVISE, json.dumps(services))
    assert program.wait() == 0
    assert "status 0" in program.output
    assert "BrokenPipeError" not in program.output
    assert program.processes() == []
