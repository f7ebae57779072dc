"""Starts the schedulers of an engine with Ray: an actor each, in a placement group, on one machine or several."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace as replace_fields
from typing import Any

import msgspec
from msgspec.structs import replace

from bough.config.network import Address, KeyPair, Network, listen
from bough.config.port_args import PortArgs
from bough.config.ranks import DETOKENIZER, SERVER, MachineShare, ParallelLayout, ProcessKey
from bough.config.server_args import ServerArgs
from bough.entrypoints.launcher import Launcher, StartedProcess, shared_memory
from bough.entrypoints.ray_rank import Doors, LaunchReply, LaunchRequest, Proof, RankActor, Site
from bough.errors import ConfigError, StartupError
from bough.ipc.handshake import ChildConfig, ChildFailed, framed, write_message

try:
    import ray
    from ray.exceptions import RayError
    from ray.util.placement_group import PlacementGroup, placement_group, remove_placement_group
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
except ImportError as error:
    raise ConfigError(
        f"Ray cannot be imported ({error}): pip install 'bough-llm[ray]'", param="distributed_executor_backend"
    ) from None

logger = logging.getLogger(__name__)

BUNDLE_INDICES = "VLLM_RAY_BUNDLE_INDICES"
"""Variable in which trainers name the bundles of the current placement group that are for an engine, as ``0,1``."""

GPUS_PER_RANK = "VLLM_RAY_PER_WORKER_GPUS"
"""Variable that says how much of a GPU each rank takes from its bundle."""

_METHODS_AT_A_TIME = 8
_POLL_SECONDS = 0.25
_PATIENCE_SECONDS = 10.0
"""Time without room after which the log says what is waited for."""

_CALL_SECONDS = 30.0


class RankProcess(StartedProcess):
    """A scheduler that an actor has started, maybe on another machine."""

    def __init__(self, key: ProcessKey, actor: Any, pid: int) -> None:
        self.key = key
        self._actor, self._pid = actor, pid
        self._ended = threading.Event()
        self._status = -signal.SIGKILL
        self._loss: str | None = None
        self.status_fd, write_fd = os.pipe()
        threading.Thread(target=self._relay, args=(write_fd,), name=f"bough-{key}", daemon=True).start()

    @property
    def pid(self) -> int:
        return self._pid

    def wait(self, timeout_s: float) -> int | None:
        return self._status if self._ended.wait(timeout_s) else None

    def describe_death(self) -> str:
        if self.wait(_CALL_SECONDS) is not None and self._loss is not None:
            return f"the actor of the {self.key} process is gone: {self._loss}"
        return super().describe_death()

    def hang_up(self) -> None:
        if ray.is_initialized():  # otherwise the actor has ended with its owner
            self._actor.hang_up.remote()

    def beat(self) -> None:
        pass  # an actor ends with its owner, and a hung owner is ended by a child of its own

    def dump_stacks(self) -> None:
        self._actor.dump_stacks.remote()

    def kill(self) -> None:
        if ray.is_initialized():
            self._actor.kill.remote()

    def close(self) -> None:
        if ray.is_initialized():
            ray.kill(self._actor)
        os.close(self.status_fd)

    def _relay(self, write_fd: int) -> None:
        """Write the report, and close the descriptor when the process has ended."""
        try:
            report = ray.get(self._actor.report.remote())
            if report is not None:
                with contextlib.suppress(BrokenPipeError):  # the engine is being stopped
                    write_message(write_fd, framed(report))
            self._status = ray.get(self._actor.wait.remote())
        except RayError as error:
            self._loss = str(error).splitlines()[0]
        finally:
            self._ended.set()
            os.close(write_fd)


class _Connection:
    """This process's connection to Ray, made and ended by a thread of its own.

    So Ray leaves the signal handlers of the process alone. The thread lives as long as the connection: where Ray starts
    a cluster, the kernel ends its processes with the thread that has started them.
    """

    def __init__(self) -> None:
        self._is_made, self._is_over = threading.Event(), threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="bough-ray", daemon=True)
        self._thread.start()

    def wait(self) -> BaseException | None:
        """Wait until there is a connection; returns the reason why there is none."""
        self._is_made.wait()
        return self._failure

    def close(self) -> None:
        """End the connection, and the cluster if it was started for it."""
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            ray.init(configure_logging=False)
        except BaseException as error:
            self._failure = error
            return
        finally:
            self._is_made.set()
        self._is_over.wait()
        ray.shutdown()


class RayLauncher(Launcher):
    """Starts schedulers in a placement group of its own, or in the current one.

    Args:
        layout: of the engine.
        args: with the names of files as the user gave them, since paths differ from machine to machine.
    """

    def __init__(self, layout: ParallelLayout, args: ServerArgs) -> None:
        self._layout, self._args = layout, args
        self._keys = layout.schedulers
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._connection: _Connection | None = None
        self._own_group: PlacementGroup | None = None
        self._actors: dict[ProcessKey, Any] = {}
        self._sites: dict[ProcessKey, Site] = {}
        self._networks: dict[ProcessKey, Network] = {}
        self._undo = contextlib.ExitStack()

    def prepare(self, port_args: PortArgs) -> PortArgs:
        try:
            self._connect()
            group, bundles, options = self._room()
            actor_class = ray.remote(max_concurrency=_METHODS_AT_A_TIME, **options)(RankActor)
            for key, bundle in zip(self._keys, bundles, strict=True):
                strategy = PlacementGroupSchedulingStrategy(
                    group, placement_group_bundle_index=bundle, placement_group_capture_child_tasks=True
                )
                with self._unless_stopping():
                    self._actors[key] = actor_class.options(scheduling_strategy=strategy).remote()
            with open(os.path.join(port_args.directory, "proof"), "wb") as file:
                proof = Proof(file.name, os.getpid(), file.fileno())
                offsets = self._look(msgspec.msgpack.encode(proof))
            names = ", ".join(f"{key.ranks or key} on node {site.node[:8]}" for key, site in self._sites.items())
            logger.info("Ray has room for the schedulers: %s", names)
            if all(site.is_main for site in self._sites.values()):
                return port_args
            return replace_fields(port_args, network=self._connected(port_args, offsets))
        except RayError as error:
            raise StartupError(f"Ray cannot start the schedulers: {str(error).splitlines()[0]}") from None

    @contextlib.contextmanager
    def shares(self) -> Iterator[dict[ProcessKey, MachineShare]]:
        neighbours: dict[str, list[ProcessKey]] = defaultdict(list)
        for key, site in self._sites.items():
            neighbours[site.machine].append(key)
        shares = {}
        for keys in neighbours.values():
            memory = self._sites[keys[0]].memory if len(keys) > 1 else None
            for index, key in enumerate(keys):
                shares[key] = MachineShare(index, len(keys), memory, device=self._sites[key].device)
        shares = {key: shares[key] for key in self._keys}
        if self._networks:
            yield shares
            return
        with shared_memory(self._layout) as (weights, groups):
            yield {key: replace(share, weights=weights, group=groups.get(key.dp)) for key, share in shares.items()}

    def start(self, module: str, config: ChildConfig) -> RankProcess:
        key, network = config.key, self._networks.get(config.key)
        # Neither can be done from another machine, and an actor that outlives this process ends its scheduler.
        config.tidies_up, config.parent_limits = False, None
        config.network = network
        if network is not None:
            config.server_args = self._args.without_secrets().to_dict()
        request = LaunchRequest(module, config, os.getpid() if network is None else None)
        actor = self._actors[key]
        try:
            reply: LaunchReply = msgspec.msgpack.decode(
                self._result(actor.launch.remote(msgspec.msgpack.encode(request))), type=LaunchReply
            )
        except RayError as error:
            raise StartupError(f"Ray cannot start the {key} process: {str(error).splitlines()[0]}") from None
        if isinstance(reply, ChildFailed):
            message = f"{key} on {self._sites[key].host}: {reply.message}"
            raise (ConfigError if reply.is_config_error else StartupError)(message)
        return RankProcess(key, actor, reply.pid)

    def stop(self) -> None:
        self._stopping.set()
        with self._lock:
            actors, self._actors = self._actors, {}
            group, self._own_group = self._own_group, None
            connection, self._connection = self._connection, None
            self._undo.close()
            if ray.is_initialized():  # a host that has left Ray has left nothing there
                for actor in actors.values():
                    ray.kill(actor)
                if group is not None:
                    remove_placement_group(group)
            if connection is not None:
                connection.close()

    @contextlib.contextmanager
    def _unless_stopping(self) -> Iterator[None]:
        """Keep :meth:`stop` from running meanwhile; what is made then is gone after it."""
        with self._lock:
            if self._stopping.is_set():
                raise StartupError("the engine was told to stop while it was starting")
            yield

    def _connect(self) -> None:
        if ray.is_initialized():
            return
        self._connection = connection = _Connection()
        failure = connection.wait()
        if failure is not None:
            raise StartupError(f"cannot reach Ray: {failure}")

    def _room(self) -> tuple[PlacementGroup, Sequence[int], dict[str, float]]:
        """Return a placement group, the bundles in it that are for the schedulers, and what each takes of its own."""
        indices, current = os.environ.get(BUNDLE_INDICES), ray.util.get_current_placement_group()
        count = len(self._keys)
        if current is None:
            if indices:
                raise ConfigError(f"{BUNDLE_INDICES} is set, but this process is in no placement group of Ray")
            return self._new_group(count)
        if indices:
            bundles = _parsed(indices, count, current.bundle_count)
        elif current.bundle_count >= count:
            bundles = list(range(count))
        else:
            raise ConfigError(
                f"the current placement group of Ray has {current.bundle_count} bundles, and {count} schedulers need "
                "one each"
            )
        gpus = float(os.environ.get(GPUS_PER_RANK, "1"))
        has_gpus = all(current.bundle_specs[bundle].get("GPU") for bundle in bundles)
        return current, bundles, {"num_cpus": 0, "num_gpus": gpus if has_gpus else 0}

    def _new_group(self, count: int) -> tuple[PlacementGroup, Sequence[int], dict[str, float]]:
        args = self._args
        has_gpus = args.device == "cuda" or (args.device == "auto" and ray.cluster_resources().get("GPU", 0) >= count)
        bundle = {"CPU": args.cpu_threads or 1, **({"GPU": 1} if has_gpus else {})}
        with self._unless_stopping():
            self._own_group = group = placement_group([bundle] * count, strategy="PACK")
        self._result(group.ready(), f"room for {count} schedulers, {_described(bundle)} each")
        return group, range(count), {"num_cpus": bundle["CPU"], "num_gpus": bundle.get("GPU", 0)}

    def _look(self, proof: bytes) -> dict[ProcessKey, float]:
        """Learn where the actors are; return the seconds by which their clocks are ahead of this process's."""
        offsets = {}
        for key, actor in self._actors.items():
            self._result(actor.look.remote(proof))  # the first call waits for the actor's start
            begin = time.monotonic()
            site = self._sites[key] = msgspec.msgpack.decode(self._result(actor.look.remote(proof)), type=Site)
            offsets[key] = site.clock - (begin + time.monotonic()) / 2
        return offsets

    def _connected(self, port_args: PortArgs, offsets: dict[ProcessKey, float]) -> Network:
        """Have all processes listen to each other; return what those of this machine know."""
        layout, own_host, own_keys = self._layout, ray.util.get_node_ip_address(), KeyPair.make()
        listeners, addresses, members = {}, {}, [own_keys.public]
        for key in (SERVER, DETOKENIZER, *layout.controllers):
            for endpoint in port_args.endpoints_of(key, layout):
                listener = self._undo.enter_context(listen(own_host))
                listeners[endpoint] = listener.fileno()
                addresses[endpoint] = Address(own_host, listener.getsockname()[1], own_keys.public)
        for key, actor in self._actors.items():
            host = self._sites[key].host
            request = msgspec.msgpack.encode((host, port_args.endpoints_of(key, layout)))
            answer = self._result(actor.listen.remote(request))
            doors = msgspec.msgpack.decode(answer, type=Doors)
            members.append(doors.key)
            addresses |= {endpoint: Address(host, port, doors.key) for endpoint, port in doors.ports.items()}
        network = Network(own_host, own_keys, addresses, listeners, tuple(members))
        without_keys = replace(network, keys=KeyPair(own_keys.public, b""), listeners={})
        self._networks = {
            key: replace(without_keys, host=self._sites[key].host, clock_offset=offsets[key]) for key in self._keys
        }
        return network

    def _result(self, reference: Any, what: str = "the actors of its schedulers") -> Any:
        """Wait for what Ray has to find or to compute; :meth:`stop` ends the waiting.

        Raises:
            StartupError: after the time that a start may take.
        """
        begin, is_announced = time.monotonic(), False
        while not ray.wait([reference], timeout=_POLL_SECONDS)[0]:
            with self._unless_stopping():
                waited = time.monotonic() - begin
            if waited > self._args.startup_timeout:
                raise StartupError(f"Ray did not find {what} within {waited:.0f} s; {_cluster()}")
            if waited > _PATIENCE_SECONDS and not is_announced:
                is_announced = True
                logger.warning("Waiting for Ray to find %s; %s", what, _cluster())
        return ray.get(reference)


def _parsed(indices: str, count: int, bundle_count: int) -> list[int]:
    words = indices.split(",")
    bundles = [int(word) for word in words if word.strip().isdecimal()]
    if len(bundles) != len(words) or len(set(bundles)) != count or max(bundles) >= bundle_count:
        raise ConfigError(
            f"{BUNDLE_INDICES} must name {count} of the {bundle_count} bundles of the placement group, got {indices!r}"
        )
    return bundles


def _described(resources: Mapping[str, float]) -> str:
    return ", ".join(f"{amount:g} {name}" for name, amount in sorted(resources.items()) if name in ("CPU", "GPU"))


def _cluster() -> str:
    free, total = ray.available_resources(), ray.cluster_resources()
    return f"the cluster has {_described(total) or 'none'}, of which are free: {_described(free) or 'none'}"
