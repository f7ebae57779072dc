"""The choice of what starts the schedulers."""

from __future__ import annotations

import sys

import pytest

from bough.config.server_args import ServerArgs
from bough.entrypoints.launch_plan import LaunchPlan
from bough.entrypoints.launcher import ProcessLauncher
from bough.errors import ConfigError


def test_processes_of_this_machine_are_the_default() -> None:
    for options in ({}, {"distributed_executor_backend": "mp", "tp_size": 2}, {"distributed_executor_backend": "uni"}):
        plan = LaunchPlan.make(ServerArgs(skip_tokenizer_init=True, **options))
        assert isinstance(plan.launcher(), ProcessLauncher), options


def test_ray_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "bough.entrypoints.ray_launcher", raising=False)
    for options in ({"use_ray": True}, {"distributed_executor_backend": "ray"}):
        with pytest.raises(ConfigError, match=r"bough-llm\[ray\]") as caught:
            LaunchPlan.make(ServerArgs(skip_tokenizer_init=True, **options)).launcher()
        assert caught.value.param == "distributed_executor_backend"


def test_one_process_cannot_be_several() -> None:
    with pytest.raises(ConfigError) as caught:
        ServerArgs(distributed_executor_backend="uni", tp_size=2)
    assert caught.value.param == "distributed_executor_backend"
