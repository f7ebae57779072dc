from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator

import pytest

from bough.config.port_args import PortArgs
from bough.config.ranks import SCHEDULER
from bough.config.server_args import ServerArgs, resolve
from bough.entrypoints.launch_plan import LaunchPlan
from bough.entrypoints.launcher import ChildProcess, child_config
from bough.entrypoints.process_supervisor import ProcessSupervisor
from bough.entrypoints.running_engine import RunningEngine
from bough.errors import ConfigError, StartupError
from tests.entrypoints.leftovers import eventually, is_running, own_resources, socket_directories
from tests.entrypoints.serve_echo import ECHO_SCHEDULER


@pytest.fixture
def ports() -> Iterator[PortArgs]:
    port_args = PortArgs.create()
    yield port_args
    port_args.cleanup()


@pytest.fixture
def supervisor() -> Iterator[ProcessSupervisor]:
    made = ProcessSupervisor()
    yield made
    made.stop()


def launch(supervisor: ProcessSupervisor, module: str, args: ServerArgs, ports: PortArgs) -> None:
    config = child_config(SCHEDULER, args)
    config.port_args = ports.to_dict()
    supervisor.add(ChildProcess(module, config))


def start(supervisor: ProcessSupervisor, ports: PortArgs, how: str = "well") -> None:
    args = resolve(ServerArgs(served_model_name=how, log_level="critical", skip_tokenizer_init=True))
    launch(supervisor, ECHO_SCHEDULER, args, ports)


def test_child_reports_what_the_front_end_must_know(supervisor, ports):
    start(supervisor, ports)
    assert supervisor.wait_until_ready(60)[SCHEDULER]["max_total_num_tokens"] == 1000
    assert supervisor.any_alive


def test_children_of_an_engine_are_told_no_secrets():
    secrets = {"api_key": "sk-a", "admin_api_key": "sk-b", "ssl_keyfile_password": "c"}
    args = ServerArgs(served_model_name="secrets", log_level="critical", skip_tokenizer_init=True, port=7, **secrets)
    engine = RunningEngine(LaunchPlan.make(args, scheduler_module=ECHO_SCHEDULER), lambda message: None)
    try:
        engine.prepare()
        engine.launch()
        with pytest.raises(ConfigError, match="told None, None, None at 7"):
            engine.wait_until_ready()
    finally:
        engine.stop()


def test_child_that_cannot_start_is_reported_at_once(ports) -> None:
    cases = [
        ("config-error", ConfigError, "no such device; use another"),
        ("error", StartupError, "internal error: RuntimeError: told to fail (--log-level debug shows where)"),
        ("killed", StartupError, "the scheduler process was killed by SIGKILL; was there too little memory? while"),
        ("exit", StartupError, "the scheduler process ended with status 3 while it was starting"),
    ]
    for how, error, message in cases:
        supervisor = ProcessSupervisor()
        start(supervisor, ports, how)
        try:
            with pytest.raises(error) as caught:
                supervisor.wait_until_ready(60)
        finally:
            supervisor.stop()
        assert str(caught.value).startswith(message)
        assert isinstance(caught.value, ConfigError) == (error is ConfigError)


def test_module_that_does_not_exist_is_a_start_up_error(supervisor, ports, capfd):
    launch(supervisor, "bough.no_such_module", resolve(ServerArgs()), ports)
    with pytest.raises(StartupError, match="the scheduler process ended with status 1 while it was starting"):
        supervisor.wait_until_ready(60)
    assert "no_such_module" in capfd.readouterr().err


def test_endpoints_that_cannot_be_sent_leave_no_child_behind(supervisor):
    unsendable = PortArgs(*["/tmp/\udcff"] * 4)
    before = own_resources()
    with pytest.raises(UnicodeEncodeError):
        launch(supervisor, ECHO_SCHEDULER, resolve(ServerArgs()), unsendable)
    assert own_resources() == before


def test_a_child_that_comes_after_the_end_is_ended_with_the_others(ports):
    before = own_resources()
    supervisor = ProcessSupervisor()
    supervisor.stop()
    with pytest.raises(StartupError):
        start(supervisor, ports)
    assert own_resources() == before


def test_stopping_ends_the_wait_for_children_that_load(supervisor, ports):
    start(supervisor, ports, "slow")
    errors: list[Exception] = []

    def wait() -> None:
        try:
            supervisor.wait_until_ready(60)
        except StartupError as error:
            errors.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    time.sleep(0.1)
    supervisor.stop()
    waiting.join(5)
    assert [str(error) for error in errors] == ["the engine was told to stop while it was starting"]
    assert not supervisor.any_alive


def test_death_of_a_child_that_is_ready_is_noticed_while_others_load(supervisor, ports, monkeypatch):
    take_report = ChildProcess.take_report

    def take_and_kill(self):
        report = take_report(self)
        os.kill(self.pid, signal.SIGKILL)
        return report

    monkeypatch.setattr(ChildProcess, "take_report", take_and_kill)
    start(supervisor, ports)
    other = PortArgs.create()
    start(supervisor, other, "slow")
    with pytest.raises(StartupError, match=r"killed by SIGKILL; .* while others were starting"):
        supervisor.wait_until_ready(60)
    other.cleanup()


def test_death_is_noticed_and_ends_the_other_children(supervisor, ports):
    start(supervisor, ports)
    other = PortArgs.create()
    start(supervisor, other)
    supervisor.wait_until_ready(60)
    deaths: list[str] = []
    supervisor.watch(deaths.append)
    first, second = supervisor.pids
    os.kill(first, signal.SIGSEGV)
    assert eventually(lambda: len(deaths) == 1 and not is_running(second), timeout=5)
    assert deaths == ["the scheduler process was killed by SIGSEGV"]
    other.cleanup()


def test_children_that_end_after_unwatch_are_no_accident(supervisor, ports):
    start(supervisor, ports)
    supervisor.wait_until_ready(60)
    deaths: list[str] = []
    supervisor.watch(deaths.append)
    supervisor.unwatch()
    os.kill(supervisor.pids[0], signal.SIGKILL)
    supervisor.stop()
    assert deaths == []


def test_terminal_and_service_manager_do_not_end_children(supervisor, ports):
    start(supervisor, ports)
    supervisor.wait_until_ready(60)
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(supervisor.pids[0], number)
    time.sleep(0.2)
    assert supervisor.any_alive


def test_stopped_child_that_hears_nothing_is_killed(supervisor, ports):
    start(supervisor, ports)
    supervisor.wait_until_ready(60)
    os.kill(supervisor.pids[0], signal.SIGSTOP)
    supervisor.stop()
    assert not supervisor.any_alive


def test_nothing_is_left_after_stop():
    def once(how: str) -> None:
        ports = PortArgs.create()
        supervisor = ProcessSupervisor()
        start(supervisor, ports, how)
        try:
            supervisor.wait_until_ready(60)
            supervisor.watch(lambda message: None)
        except StartupError:
            pass
        supervisor.stop()
        supervisor.stop()
        ports.cleanup()

    once("well")
    gc.collect()  # earlier tests have left descriptors in cycles, which would go meanwhile
    before = own_resources()
    for how in ("well", "killed", "error"):
        once(how)
    assert own_resources() == before


HOST = textwrap.dedent(
    """
    import os, sys, threading, time
    from bough.config.port_args import PortArgs
    from bough.config.ranks import SCHEDULER
    from bough.config.server_args import ServerArgs, resolve
    from bough.entrypoints.launcher import ChildProcess, child_config
    from bough.entrypoints.process_supervisor import ProcessSupervisor

    def work():
        ports = PortArgs.create()
        supervisor = ProcessSupervisor()
        args = resolve(ServerArgs(skip_tokenizer_init=True))
        config = child_config(SCHEDULER, args)
        config.port_args, config.tidies_up = ports.to_dict(), "tidy" in sys.argv
        supervisor.add(ChildProcess("tests.entrypoints.echo_scheduler", config))
        supervisor.wait_until_ready(60)
        fork = 0
        if "fork" in sys.argv:
            fork = os.fork()
            if fork == 0:
                time.sleep(60)
                os._exit(0)
        print(supervisor.pids[0], fork, flush=True)
        time.sleep(60)

    if "thread" in sys.argv:
        worker = threading.Thread(target=work)
        worker.start()
        worker.join()  # Python 3.12 forks no more once the main thread has ended
    else:
        work()
    """
)


@pytest.mark.parametrize(
    "how",
    [["main"], ["thread"], ["main", "fork"], ["thread", "fork"], ["main", "tidy"], ["main", "fork", "tidy"]],
    ids="-".join,
)
def test_children_end_when_their_parent_is_killed(own_tmp, how):
    host = subprocess.Popen(
        [sys.executable, "-c", HOST, *how], stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": own_tmp}
    )
    assert host.stdout is not None
    child, fork = map(int, host.stdout.readline().split())
    assert is_running(child)
    host.kill()
    host.wait()
    try:
        assert eventually(lambda: not is_running(child), timeout=5)
        assert (socket_directories() == set()) == ("tidy" in how)
    finally:
        if fork:
            os.kill(fork, signal.SIGKILL)
        host.stdout.close()


def test_programs_for_children_say_what_to_run_instead():
    for module in ("bough.scheduler.process", "bough.managers.detokenizer_manager"):
        done = subprocess.run([sys.executable, "-m", module], capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        assert "bough serve" in done.stderr
