"""What the quickstart starts and leaves no trace of: a folder, child processes, the daemon, a throw-away PostgreSQL."""

import ctypes
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from wire import Session

CLONE = Path(__file__).resolve().parents[3]


class Stop(Exception):
    """The quickstart cannot go on; the text says why and what to do."""


def build(say):
    """The path of the binary: $TIDEGATE, else built here from the clone."""
    if chosen := os.environ.get("TIDEGATE"):
        return Path(chosen).resolve()
    if shutil.which("cargo") is None:
        raise Stop("cargo is missing: install rustup (it reads rust-toolchain.toml), or set TIDEGATE to a built binary")
    target = subprocess.run(["rustc", "--print", "target-libdir", "--target", "wasm32-unknown-unknown"], cwd=CLONE, capture_output=True, text=True)
    if not Path(target.stdout.strip() or "missing").is_dir():
        say("adding the wasm target")
        subprocess.run(["rustup", "target", "add", "wasm32-unknown-unknown"], cwd=CLONE, check=True, stdout=sys.stderr)
    say("building tidegate (some minutes the first time)")
    command = ["cargo", "build", "--release", "--quiet", "-p", "tidegate-daemon"]
    if subprocess.run(command, cwd=CLONE, stdout=sys.stderr).returncode:
        raise Stop("the build failed: see above")
    folder = Path(os.environ.get("CARGO_TARGET_DIR", CLONE / "target"))
    return (CLONE / folder / "release" / "tidegate").resolve()


def dies_with_us(sig):
    """For preexec_fn: the child is sent `sig` when this process ends, however it ends."""
    def prepare():
        ctypes.CDLL(None).prctl(1, sig)

    return prepare


def end(process, sig, patience=30):
    if process.poll() is None:
        process.send_signal(sig)
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    return process.returncode


class Daemon:
    def __init__(self, binary, config, environment):
        self.binary, self.config = binary, config
        self.environment = {**os.environ, **environment}
        self.log = config.with_name("daemon.log")
        self.start()

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [self.binary, "run", "-c", self.config, "--log-format", "human"], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                cwd=self.config.parent, env=self.environment, start_new_session=True, preexec_fn=dies_with_us(signal.SIGTERM))

    def command(self, *arguments):
        """Runs a command of the CLI with --json: the envelope."""
        done = subprocess.run([self.binary, *arguments, "-c", self.config, "--json"], capture_output=True, text=True, stdin=subprocess.DEVNULL, env=self.environment)
        try:
            return json.loads(done.stdout)
        except ValueError:
            return {"ok": False, "error": {"message": done.stderr.strip()}}

    def status(self):
        """(pipeline, source) as `tidegate status` has them; empty while the daemon does not answer."""
        answer = self.command("status")
        if self.process.poll() is not None:
            raise Stop(f"the daemon has ended with exit code {self.process.returncode}:\n{self.tail()}")
        if not answer.get("ok"):
            return {}, {}
        return answer["result"]["pipelines"][0], answer["result"]["sources"][0]

    def wait_for(self, what, condition, seconds=120):
        """Polls `condition(pipeline, source)` until it holds."""
        deadline = time.monotonic() + seconds
        while True:
            pipeline, source = self.status()
            if pipeline and condition(pipeline, source):
                return pipeline
            if time.monotonic() > deadline:
                raise Stop(f"not within {seconds} s: {what}\n{json.dumps(pipeline, indent=2)}\n{self.tail()}")
            time.sleep(0.05)

    def tail(self):
        return self.log.read_text(errors="replace")[-3000:]

    def stop(self):
        return end(self.process, signal.SIGTERM)


# ---------------------------------------------------------------- PostgreSQL


def server_programs():
    """The folder with initdb and postgres, or None."""
    chosen = os.environ.get("TIDEGATE_PG_BIN")
    folders = [Path(chosen)] if chosen else sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: -int(path.parent.name.split(".")[0] or 0))
    return next((folder for folder in folders if (folder / "initdb").exists() and (folder / "postgres").exists()), None)


class Cluster:
    """A throw-away cluster on a unix socket alone, as an unprivileged user when we are root."""

    def __init__(self, programs, folder):
        self.programs, self.folder = programs, folder
        self.user = _unprivileged() if os.getuid() == 0 else None
        folder.mkdir()
        if self.user:
            os.chown(folder, self.user.pw_uid, self.user.pw_gid)
        self.port = _free_port()
        made = subprocess.run([programs / "initdb", "-D", folder / "data", "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"],
                              capture_output=True, text=True, **self._as_owner())
        if made.returncode:
            raise Stop(f"initdb failed: {made.stderr}")
        self.log = folder / "log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [programs / "postgres", "-D", folder / "data", "-k", folder, "-p", str(self.port), "-c", "listen_addresses=", "-c", "wal_level=logical",
                 "-c", "max_slot_wal_keep_size=1GB"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, preexec_fn=dies_with_us(signal.SIGINT), **self._as_owner())

    def ready(self):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                Session(self.url("postgres")).close()
                return self
            except Exception:
                time.sleep(0.05)
        raise Stop("PostgreSQL does not start:\n" + self.log.read_text(errors="replace")[-2000:])

    def url(self, database):
        return f"postgres://postgres@/{database}?host={self.folder}&port={self.port}"

    def stop(self):
        end(self.process, signal.SIGINT)

    def _as_owner(self):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")} | {"LC_ALL": "C", "TZ": "UTC"}
        libraries = self.programs.parent / "lib"
        if (libraries / "libpq.so.5").exists():
            environment["LD_LIBRARY_PATH"] = str(libraries)
        options = {"env": environment, "cwd": self.folder}
        if self.user:
            options.update(user=self.user.pw_uid, group=self.user.pw_gid, extra_groups=[])
        return options


def _unprivileged():
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise Stop("PostgreSQL refuses to run as root, and there is no user postgres or nobody")


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
