"""A Docker engine of Debian in a folder of its own: its root, its mounts, its network and its processes.

Nothing of the machine's own packages, firewall or network interfaces is changed. The engine's processes and
containers have a PID namespace: when the first process of it ends in any way, the kernel ends all the others.
They have a network namespace, too: port 8080 is free there, and nothing leaves it but within `internet()`.
"""

import contextlib
import os
import pty
import re
import resource
import select
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

#: In the engine's own Debian.
PACKAGES = (
    "aardvark-dns", "buildah", "ca-certificates", "catatonit", "curl", "docker-buildx", "docker-cli",
    "docker-compose", "docker.io", "iproute2", "iptables", "kubectl", "netavark", "openssl", "podman",
    "prometheus", "slirp4netns",
)  # fmt: skip
#: What the stand-ins for public images are made of.
BASES = {
    "bookworm": ("ca-certificates", "python-is-python3", "python3", "python3-pip", "python3-venv"),
    "trixie": ("ca-certificates",),
}
CGROUP = "rrule-scheduler-containers"
CGROUPS = Path("/sys/fs/cgroup")
NETWORKS = "10.231.0.0/16"
#: The lane's own address, for containers of any network: a restored schedule finds its receiver there.
HERE = "10.230.0.1"
#: That, and all networks of containers.
ALLOWED = "10.230.0.0/15"
#: Commands see this environment alone: Compose prefers variables of a shell to those of `.env`.
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8"}
START_SECONDS = 60
CGROUP_SECONDS = 10
_LIMITS = {"nofile": resource.RLIMIT_NOFILE, "nproc": resource.RLIMIT_NPROC}
ONLINE_SECONDS = 15
#: For the next words of a command in a terminal.
TYPING_SECONDS = 60


class StepFailed(Exception):
    """A step found something else than what the manual promises."""


def prepare(root: Path) -> None:
    """Makes the folders that are kept from run to run: the engine's Debian, and the stand-ins' bases."""
    root.mkdir(parents=True, exist_ok=True)
    mirror = _mirror()
    debootstrap = _debootstrap(root)
    for name, suite, packages in (
        ("engine", "trixie", PACKAGES),
        *((f"base-{suite}", suite, packages) for suite, packages in BASES.items()),
    ):
        folder = root / name
        if (folder / "made").exists():
            continue
        print(f"Debian {suite} into {folder} (once) …", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        with (root / f"{name}.log").open("w") as log:
            subprocess.run(
                [
                    *debootstrap,
                    "--variant=minbase",
                    f"--include={','.join(packages)}",
                    suite,
                    str(folder),
                    mirror,
                ],
                check=True,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "DEBOOTSTRAP_DIR": str(root / "debootstrap/usr/share/debootstrap")},
            )
        shutil.rmtree(folder / "var/cache/apt/archives", ignore_errors=True)
        (folder / "made").touch()


def _mirror() -> str:
    """The address that this machine's apt takes Debian from."""
    told = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages", "Origin: Debian"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    return next((site for site in told if "security" not in site), "http://deb.debian.org/debian")


def _debootstrap(root: Path) -> list[str]:
    """Debian's package of that name, unpacked and not installed."""
    there = root / "debootstrap"
    if not there.exists():
        subprocess.run(["apt-get", "-qq", "update"], check=True)
        subprocess.run(["apt-get", "-qq", "download", "debootstrap"], check=True, cwd=root)
        (package,) = root.glob("debootstrap_*.deb")
        subprocess.run(["dpkg", "-x", str(package), str(there)], check=True)
    return ["sh", str(there / "usr/sbin/debootstrap")]


def own_cgroup_mount() -> None:
    """Hides the machine's folder of cgroup hierarchies behind one of ours with the same hierarchies: what
    systemd in a privileged container mounts there does not stay. With cgroup v2 there is nothing to hide."""
    if (CGROUPS / "cgroup.controllers").exists():
        return
    hidden = Path("/run/rrule-scheduler-cgroups")
    hidden.mkdir(exist_ok=True)
    _mount("-t", "tmpfs", "cgroups", str(hidden))
    for hierarchy in sorted(path for path in CGROUPS.iterdir() if os.path.ismount(path)):
        (hidden / hierarchy.name).mkdir()
        _mount("--bind", str(hierarchy), str(hidden / hierarchy.name))
    _mount("--rbind", str(hidden), str(CGROUPS))


def remove_cgroups() -> None:
    """Those of containers, the deepest first, as soon as the kernel has ended their processes."""
    deadline = time.monotonic() + CGROUP_SECONDS
    while made := [path for path in (*CGROUPS.glob(f"*/{CGROUP}"), CGROUPS / CGROUP) if path.exists()]:
        for folder, _, _ in (step for path in made for step in os.walk(path, topdown=False)):
            with contextlib.suppress(OSError):
                os.rmdir(folder)
        if time.monotonic() > deadline:
            return
        time.sleep(0.1)


class Engine:
    """The running engine; commands run in its root, where they see `share` under the same path as here."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.share = root / "share"
        self.share.mkdir(exist_ok=True)
        self._daemon: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        remove_cgroups()
        folder = self.root / "engine"
        for stale in ("run/docker.pid", "var/run/docker.pid"):
            (folder / stale).unlink(missing_ok=True)
        conf = folder / "etc/containers/containers.conf"
        conf.parent.mkdir(exist_ok=True)
        conf.write_text(_podman_settings())
        script = f"""
            set -e
            cd {folder}
            mount --bind . . && cd {folder}
            mount -t proc proc proc; mount --rbind /dev dev; mount --rbind /sys sys; mount -t tmpfs tmpfs run
            mount -t tmpfs tmpfs tmp
            mkdir -p .{self.share} && mount --rbind {self.share} .{self.share}
            echo 'nameserver 10.0.2.3' > etc/resolv.conf
            printf '127.0.0.1 localhost\\n' > etc/hosts
            mkdir -p old && pivot_root . old && umount -l /old && cd /
            exec /usr/sbin/dockerd --data-root /var/lib/docker --exec-opt native.cgroupdriver=cgroupfs \
                --cgroup-parent /{CGROUP} --default-address-pool base={NETWORKS},size=24 --bip {HERE}/24
        """
        with (self.root / "dockerd.log").open("w") as log:
            self._daemon = subprocess.Popen(
                ["unshare", "--mount", "--propagation", "private", "sh", "-c", script],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env=ENVIRONMENT,
                start_new_session=True,
            )
        deadline = time.monotonic() + START_SECONDS
        while self._command(["docker", "info"]).returncode != 0:
            if self._daemon.poll() is not None or time.monotonic() > deadline:
                raise StepFailed(f"dockerd did not start:\n{(self.root / 'dockerd.log').read_text()[-3000:]}")
            time.sleep(0.5)
        # The engine starts those again that a killed run has left.
        self._remove_containers()

    def stop(self) -> None:
        """Ends every container and the engine; images, build cache and volumes stay for the next run."""
        if self._daemon is None:
            return
        self._remove_containers()
        self._daemon.terminate()
        try:
            self._daemon.wait(START_SECONDS)
        except subprocess.TimeoutExpired:
            self._daemon.kill()

    def _remove_containers(self) -> None:
        containers = self._command(["docker", "ps", "-aq"]).stdout.split()
        if containers:
            self._command(["docker", "rm", "--force", "--volumes", *containers])

    @contextlib.contextmanager
    def internet(self) -> Iterator[None]:
        """Within it packages can be installed: a process in the machine's network carries connections out."""
        assert self._daemon is not None
        slirp = subprocess.Popen(
            [
                "nsenter", "--net=/proc/1/ns/net", f"--mount=/proc/{self._daemon.pid}/ns/mnt", "--",
                "/usr/bin/slirp4netns", "--configure", "--mtu=65520", "--disable-host-loopback",
                "--netns-type=path", f"/proc/{os.getpid()}/ns/net", "tap0",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=ENVIRONMENT,
            start_new_session=True,
        )  # fmt: skip
        try:
            deadline = time.monotonic() + ONLINE_SECONDS
            while "default" not in subprocess.run(["ip", "route"], capture_output=True, text=True).stdout:
                if slirp.poll() is not None or time.monotonic() > deadline:
                    raise StepFailed("slirp4netns does not connect the engine's network")
                time.sleep(0.1)
            yield
        finally:
            slirp.terminate()
            slirp.wait()

    def run(
        self,
        *command: str,
        cwd: Path | None = None,
        environment: Mapping[str, str] | None = None,
        check: bool = True,
        stdin: str | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """The ended command; one that fails raises with its output."""
        done = self._command(command, cwd, environment, stdin)
        if check and done.returncode != 0:
            raise StepFailed(
                f"{' '.join(command)}\nstatus {done.returncode}\n{done.stdout[-4000:]}{done.stderr[-6000:]}"
            )
        return done

    def shell(self, block: str, cwd: Path, *, check: bool = True) -> subprocess.CompletedProcess[str]:
        """A block of the manual, word for word."""
        return self.run("bash", "-eu", "-o", "pipefail", "-c", block, cwd=cwd, check=check)

    def start_command(self, *command: str, cwd: Path | None = None) -> "subprocess.Popen[str]":
        """A command that goes on, with its output as text."""
        return subprocess.Popen(
            self._inside(command, cwd, {}),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            env=ENVIRONMENT,
        )

    def type_into(self, prompt: str, answers: Sequence[str], *command: str) -> str:
        """A command in a terminal, where an answer is typed at each prompt; what it said after the last."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            self._inside(command, None, {}),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=ENVIRONMENT,
            start_new_session=True,
        )
        os.close(theirs)
        said, left = "", list(answers)
        # A terminal whose last program has ended cannot be read any more.
        with contextlib.suppress(OSError):
            while select.select([ours], [], [], TYPING_SECONDS)[0]:
                said += os.read(ours, 4096).decode()
                if left and re.search(f"(?:{prompt})$", said):
                    os.write(ours, f"{left.pop(0)}\n".encode())
                    said = ""
            process.kill()
        os.close(ours)
        if process.wait() != 0 or left:
            raise StepFailed(f"{' '.join(command)}\nstatus {process.returncode}\n{said}")
        return said

    def _command(
        self,
        command: Sequence[str],
        cwd: Path | None = None,
        environment: Mapping[str, str] | None = None,
        stdin: str | None = None,
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self._inside(command, cwd, environment or {}),
            capture_output=True,
            text=True,
            env=ENVIRONMENT,
            input=stdin or "",
        )

    def _inside(self, command: Sequence[str], cwd: Path | None, environment: Mapping[str, str]) -> list[str]:
        assert self._daemon is not None, "the engine runs"
        settings = [f"{name}={value}" for name, value in environment.items()]
        enter = ["nsenter", f"--mount=/proc/{self._daemon.pid}/ns/mnt", "--"]
        return [*enter, "env", "-C", str(cwd or "/"), *settings, *command]


def _podman_settings() -> str:
    """By default podman raises limits, which this process may not be allowed to."""
    limits = [f'"{name}={_hard(kind)}:{_hard(kind)}"' for name, kind in _LIMITS.items()]
    return (
        f'[containers]\ndefault_ulimits = [{", ".join(limits)}]\n[engine]\nruntime = "runc"\n'
        'cgroup_manager = "cgroupfs"\n'
        '[network]\nfirewall_driver = "iptables"\n'
    )


def _hard(kind: int) -> int:
    return resource.getrlimit(kind)[1]


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)
