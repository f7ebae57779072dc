from __future__ import annotations

import importlib.metadata

from bough import __version__
from bough.cli import main
from bough.cli_commands import check_env
from bough.model_executor.machine import Machine


def report(capsys) -> dict[str, str]:
    assert main(["check-env"]) == 0
    return dict(line.split(None, 1) for line in capsys.readouterr().out.splitlines())


def test_versions_of_bough_and_of_what_it_needs_are_reported(capsys):
    rows = report(capsys)
    assert rows["bough"] == __version__
    assert {"torch", "msgspec", "uvicorn"} <= set(check_env.direct_dependencies())
    for name in check_env.direct_dependencies():
        assert rows[name] == importlib.metadata.version(name)


def test_extras_are_no_dependencies():
    assert "pytest" not in check_env.direct_dependencies()


def test_native_kernels_are_reported(capsys):
    assert report(capsys)["native"].removeprefix("kernels").strip()


def test_a_missing_package_is_said(monkeypatch, capsys):
    monkeypatch.setattr(check_env, "direct_dependencies", lambda: ["no-such-package"])
    assert report(capsys)["no-such-package"] == "missing: pip install no-such-package"


def test_what_a_container_allows_is_shown(monkeypatch, tmp_path, capsys):
    for name, text in {
        "proc/meminfo": "MemAvailable: 8388608 kB\n",
        "proc/self/cgroup": "0::/\n",
        "sys/fs/cgroup/memory.max": "1073741824\n",
        "sys/fs/cgroup/memory.current": "0\n",
        "sys/fs/cgroup/cpu.max": "50000 100000\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(check_env, "Machine", lambda: Machine(tmp_path))
    rows = report(capsys)
    assert rows["memory"].startswith("1.0 GiB available of ")
    assert rows["cores"].startswith("1 usable")


def test_extras_are_those_of_users(capsys):
    assert "bench" in check_env.extras()
    assert not {"dev", "test"} & check_env.extras().keys()
    assert main(["check-env"]) == 0
    shown = capsys.readouterr().out
    for label in ("extra bench", "huge pages", "compiler", "open files", "temporary files"):
        assert f"\n{label} " in shown


def test_a_missing_extra_is_named(monkeypatch, capsys):
    monkeypatch.setattr(check_env, "extras", lambda: {"none": ["no-such-package"]})
    assert main(["check-env"]) == 0
    assert "not installed (no-such-package)" in capsys.readouterr().out


def test_what_cannot_be_told_hides_nothing_else(monkeypatch, capsys):
    def fail(*_arguments):
        raise OSError("broken")

    for name in ("direct_dependencies", "extras", "_native_kernels", "_temporary_files", "_memory", "_torch_rows"):
        monkeypatch.setattr(check_env, name, fail)
    assert main(["check-env"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("cannot be told: OSError: broken") == 6
    assert "\nopen files " in shown
