"""An engine behind HTTP, for programs that want a server of their own."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import math
import os
import select
import socket
import sys
import weakref
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from bough.child_main import Child, run_child
from bough.config.local_files import with_local_files
from bough.config.ranks import ProcessKey
from bough.config.server_args import ServerArgs, resolve
from bough.entrypoints.http.access import own_key
from bough.entrypoints.http.tls import client_tls_context
from bough.entrypoints.launcher import ChildProcess, child_config
from bough.errors import BadRequest, ConfigError, RequestFailed, StartupError
from bough.refusals import refusal

if TYPE_CHECKING:
    from bough.tokenization.tokenizer import Tokenizer

CONNECT_TIMEOUT_SECONDS = 10.0

END_TIMEOUT_SECONDS = 10.0
"""How long the server may take to end, beyond the time that it was given to finish requests."""

HIGHEST_PORT = 65535


class _Answer(NamedTuple):
    """An answer of which the head is there."""

    connection: http.client.HTTPConnection
    response: http.client.HTTPResponse
    connected: socket.socket
    """The connection forgets its own where the answer says that it is the last one."""


class RuntimeEndpoint:
    """A client of a running server, by its native API or any other.

    Methods raise :class:`BadRequest` (or :class:`Overloaded`) if the server refuses, and :class:`RequestFailed` if it
    fails or cannot be reached. A connection per call; safe to use from several threads.

    Args:
        base_url: ``http://host:port``.
        api_key: sent with every request.
        verify: whether an ``https`` server must prove its identity; a path names the certificates to trust instead of
            the system's.

    Raises:
        BadRequest: if ``base_url`` is no address.
        ConfigError: if the certificates to trust cannot be used.
    """

    def __init__(self, base_url: str, api_key: str | None = None, verify: bool | str = True) -> None:
        self._headers = {"Content-Type": "application/json"}
        if api_key is not None:
            self._headers["Authorization"] = f"Bearer {api_key}"
        self.base_url = base_url.rstrip("/")
        try:
            self._address = urlsplit(self.base_url)
            self._port = self._address.port
        except ValueError as error:
            raise BadRequest(f"not the URL of a server: {base_url} ({error})", param="base_url") from None
        if self._address.scheme not in ("http", "https") or not self._address.hostname:
            raise BadRequest(f"not the URL of a server: {base_url}", param="base_url")
        self._tls = client_tls_context(self.base_url, verify)

    def generate(self, **fields: Any) -> Any:
        """``POST /generate`` with these fields; returns the answer, a dictionary or a list of them."""
        return self._json("POST", "/generate", fields)

    def encode(self, **fields: Any) -> Any:
        """``POST /encode`` with these fields; returns the answer, a dictionary or a list of them."""
        return self._json("POST", "/encode", fields)

    def stream(self, **fields: Any) -> EventReader:
        """``POST /generate`` with these fields; iterate over the result for events as they come."""
        return self.events("/generate", fields)

    def get_model_info(self) -> dict[str, Any]:
        """``GET /model_info``."""
        return dict(self.get("/model_info"))

    def get_server_info(self) -> dict[str, Any]:
        """``GET /server_info``."""
        return dict(self.get("/server_info"))

    def get(self, path: str) -> Any:
        """``GET`` of any endpoint that answers with JSON; returns the answer."""
        return self._json("GET", path)

    def events(self, path: str, fields: dict[str, Any]) -> EventReader:
        """``POST`` to any endpoint that streams; iterate over the result for events as they come."""
        return EventReader(self._open("POST", path, {**fields, "stream": True}))

    def flush_cache(self) -> None:
        """``POST /flush_cache``: forget all cached prefixes."""
        self._open("POST", "/flush_cache").connection.close()

    def control(self, path: str, fields: dict[str, Any]) -> Any:
        """``POST`` to an endpoint that changes the server's state; returns the answer, and raises if it refuses."""
        return self._json("POST", path, fields)

    def post(self, path: str, fields: dict[str, Any]) -> tuple[int, Any]:
        """``POST`` to any endpoint that answers with JSON; returns the status, whatever it is, and the answer."""
        answer = self._send("POST", path, fields)
        return answer.response.status, self._content(path, answer)

    @contextlib.contextmanager
    def request(self, method: str, path: str, body: dict[str, Any] | None = None) -> Iterator[http.client.HTTPResponse]:
        """Send a request to any endpoint and yield the answer, whatever its status; hang up when the block ends."""
        answer = self._send(method, path, body)
        with contextlib.closing(answer.connection), self._reported():
            yield answer.response

    def _json(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        return self._content(path, self._open(method, path, body))

    def _content(self, path: str, answer: _Answer) -> Any:
        with contextlib.closing(answer.connection), self._reported():
            text = answer.response.read()
        try:
            return json.loads(text)
        except ValueError:
            raise RequestFailed(f"no JSON from {self.base_url}{path}, status {answer.response.status}") from None

    def _open(self, method: str, path: str, body: dict[str, Any] | None = None) -> _Answer:
        """Send a request; returns when the head of a good answer is there."""
        answer = self._send(method, path, body)
        try:
            if answer.response.status != http.client.OK:
                with self._reported():
                    raise refusal(self.base_url + path, answer.response.status, answer.response.read())
        except BaseException:
            answer.connection.close()
            raise
        return answer

    def _send(self, method: str, path: str, body: dict[str, Any] | None = None) -> _Answer:
        """Send a request; returns when the head of an answer is there."""
        host, timeout = self._address.hostname or "", CONNECT_TIMEOUT_SECONDS
        with self._reported():
            connection = (
                http.client.HTTPConnection(host, self._port, timeout=timeout)
                if self._tls is None
                else http.client.HTTPSConnection(host, self._port, timeout=timeout, context=self._tls)
            )
        try:
            with self._reported():
                connection.connect()
                connected = connection.sock
                connected.settimeout(None)  # reaching the server may not take long, an answer may
                payload = None if body is None else json.dumps(body).encode()
                connection.request(method, self._address.path + path, payload, self._headers)
                return _Answer(connection, connection.getresponse(), connected)
        except BaseException:
            connection.close()
            raise

    @contextlib.contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except (OSError, http.client.HTTPException, UnicodeError) as error:  # the last of a host that is no name
            raise RequestFailed(f"no answer from {self.base_url}: {error or type(error).__name__}") from None


class EventReader:
    """Iterates over the events of a streamed answer. Close it to make the server stop early."""

    def __init__(self, answer: _Answer) -> None:
        self._connection, self._response, self._socket = answer

    def __iter__(self) -> EventReader:
        return self

    def __next__(self) -> dict[str, Any]:
        try:
            for line in self._response:
                if not line.startswith(b"data:"):
                    continue
                data = line[len(b"data:") :].strip()
                if data == b"[DONE]":
                    break
                event: dict[str, Any] = json.loads(data)
                if error := event.get("error"):
                    raise RequestFailed(str(error.get("message", error) if isinstance(error, dict) else error))
                return event
            else:
                raise RequestFailed("the server ended the answer in the middle")
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise RequestFailed(f"the answer broke off: {error or type(error).__name__}") from None
        self.close()
        raise StopIteration

    def close(self) -> None:
        """Hang up; may be called from another thread, to end a wait for the next event."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._connection.close()
        self._response.close()


class Runtime:
    """A server process on a free port, for as long as this object (or its program) lives.

    Takes the options of :class:`~bough.config.server_args.ServerArgs` as keywords. ``port`` is where the search for a
    free one begins; by default the system chooses. ``shutdown_timeout`` is 0 by default: :meth:`shutdown` does not
    wait for running requests. ``launch_timeout`` bounds the seconds to start, a download included; it may be infinite.

    Raises:
        ConfigError: if an option is wrong.
        StartupError: if the server cannot start.
    """

    def __init__(self, log_level: str = "error", launch_timeout: float = 300.0, **options: Any) -> None:
        self.server_args = ServerArgs.of_keywords({"log_level": log_level, "shutdown_timeout": 0.0, **options})
        if self.server_args.ssl_ca_certs is not None:
            raise ConfigError(
                "ssl_ca_certs asks clients for certificates, and Runtime has none to show: use bough serve for this",
                param="ssl_ca_certs",
            )
        with _free_listener(self.server_args.host, options.get("port")) as listener:
            host, port = listener.getsockname()[:2]
            config = child_config(ProcessKey("server"), self.server_args)
            config.listener_fd = listener.fileno()
            self._server = _ServerProcess(
                ChildProcess("bough.entrypoints.runtime", config, new_session=True), self.server_args
            )
        self._finalizer = weakref.finalize(self, self._server.end)
        reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
        scheme = "http" if self.server_args.ssl_certfile is None else "https"
        self.url = f"{scheme}://[{reachable}]:{port}" if ":" in reachable else f"{scheme}://{reachable}:{port}"
        self.generate_url = f"{self.url}/generate"
        # The socket was bound here: whose server it is needs no certificate.
        self.endpoint = RuntimeEndpoint(self.url, own_key(self.server_args), verify=False)
        try:
            self._server.wait_until_ready(launch_timeout)
        except BaseException:
            self.shutdown()
            raise

    @property
    def pid(self) -> int:
        """Process id of the server."""
        return self._server.child.pid

    def generate(
        self,
        prompt: str | list[str],
        sampling_params: dict[str, Any] | None = None,
        return_logprob: bool | list[bool] = False,
        logprob_start_len: int | list[int] | None = None,
        top_logprobs_num: int | list[int] | None = None,
    ) -> str:
        """Generate; returns the answer of ``/generate`` as JSON text."""
        answer = self.endpoint.generate(
            text=prompt,
            sampling_params=sampling_params,
            return_logprob=return_logprob,
            logprob_start_len=logprob_start_len,
            top_logprobs_num=top_logprobs_num,
        )
        return json.dumps(answer)

    async def async_generate(self, prompt: str, sampling_params: dict[str, Any] | None = None) -> AsyncIterator[str]:
        """Generate, yielding text as it comes. Leaving the iteration early ends the request."""
        events = await asyncio.to_thread(self.endpoint.stream, text=prompt, sampling_params=sampling_params)
        length = 0
        try:
            while (event := await asyncio.to_thread(next, events, None)) is not None:
                text: str = event["text"]
                yield text if self.server_args.incremental_streaming_output else text[length:]
                length = len(text)
        finally:
            events.close()

    def encode(self, prompt: str | list[str | list[str]]) -> str:
        """Embeddings, or a classifier's scores, of texts or pairs of texts; returns the answer of ``/encode`` as JSON.

        Raises:
            BadRequest: if the model generates text.
        """
        return json.dumps(self.endpoint.encode(text=prompt))

    def get_tokenizer(self) -> Tokenizer:
        """The tokenizer of the model, loaded into this process."""
        from bough.tokenization.loading import load_tokenizer

        args = with_local_files(resolve(self.server_args))
        return load_tokenizer(args.tokenizer_path or args.model_path)

    def flush_cache(self) -> None:
        """Forget all cached prefixes."""
        self.endpoint.flush_cache()

    def cache_prefix(self, prefix: str) -> None:
        """Compute what prompts will begin with, so that it is in the prefix cache when they come."""
        self.endpoint.generate(text=prefix, sampling_params={"max_new_tokens": 0})

    def release_memory_occupation(self, tags: Sequence[str] | None = None) -> None:
        """Give memory of the server back to the machine, by default all."""
        self.endpoint.control("/release_memory_occupation", {"tags": tags})

    def resume_memory_occupation(self, tags: Sequence[str] | None = None) -> None:
        """Take memory again, by default all that is given back."""
        self.endpoint.control("/resume_memory_occupation", {"tags": tags})

    def sleep(self, level: int = 1) -> None:
        """Give all memory back, by vLLM's name; of level 2 weights are discarded."""
        self.endpoint.control(f"/sleep?level={level}", {})

    def wake_up(self, tags: Sequence[str] | None = None) -> None:
        """Take memory again, by vLLM's name."""
        self.resume_memory_occupation(tags)

    def is_sleeping(self) -> bool:
        """Return whether any memory is given back."""
        return bool(self.endpoint.get("/is_sleeping")["is_sleeping"])

    def get_server_info(self) -> dict[str, Any]:
        """Options and state of the server."""
        return self.endpoint.get_server_info()

    def shutdown(self) -> None:
        """End the server and wait for it. Doing it twice does nothing."""
        self._finalizer()

    def __enter__(self) -> Runtime:
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()


class _ServerProcess:
    """The process of a :class:`Runtime`, of which it knows nothing, so that that can be collected."""

    def __init__(self, child: ChildProcess, server_args: ServerArgs) -> None:
        self.child = child
        self._owner_pid = os.getpid()
        self._is_ready = False
        self._patience = server_args.shutdown_timeout + END_TIMEOUT_SECONDS

    def wait_until_ready(self, timeout_s: float) -> None:
        poller = select.poll()
        poller.register(self.child.status_fd, select.POLLIN)
        # The end of the process can be read, too.
        if not poller.poll(None if timeout_s == math.inf else timeout_s * 1000):
            raise StartupError(
                f"the server did not start within {timeout_s:g} s; a larger launch_timeout gives it more"
            )
        self.child.take_report()
        self._is_ready = True

    def end(self) -> None:
        if os.getpid() != self._owner_pid:
            return  # a fork of the host must not end what belongs to the host
        child = self.child
        if self._is_ready:
            child.terminate()
        else:
            child.hang_up()
        if child.wait(self._patience) is None:
            child.hang_up()
            child.kill()
            child.wait(END_TIMEOUT_SECONDS)
        child.close()


def _free_listener(host: str, first_port: int | None) -> socket.socket:
    """A listening socket on a port of the system's choice, or on the first free one from ``first_port`` on."""
    from bough.entrypoints.http.server import bind_socket

    if first_port is None:
        return bind_socket(host, 0)
    for port in range(first_port, HIGHEST_PORT):
        try:
            return bind_socket(host, port)
        except StartupError as error:
            if error.param != "port":
                raise
    return bind_socket(host, HIGHEST_PORT)


def run_runtime_process(child: Child) -> int:
    """Be the server that a :class:`Runtime` starts, on an inherited socket; returns the exit status."""
    from bough.entrypoints.launch import launch_server

    listener_fd = child.config.listener_fd
    assert listener_fd is not None
    return launch_server(child.server_args, listener=socket.socket(fileno=listener_fd), on_ready=child.ready)


if __name__ == "__main__":
    sys.exit(run_child(run_runtime_process, sys.argv[1:]))
