"""A real HTTP server on a real socket, in a thread, with the fake engine behind it."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import json
import socket
import threading
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import uvloop

from bough.config.model_config import ModelConfig
from bough.config.server_args import ServerArgs
from bough.entrypoints.http.app import create_app
from bough.entrypoints.http.server import bind_socket, make_server
from bough.entrypoints.http.tls import tls_context
from bough.managers.tokenizer_manager import TokenizerManager
from bough.tokenization.tokenizer import Tokenizer
from tests.entrypoints.http.fake_engine import SCRIPT, FakeEngine
from tests.entrypoints.http.tiny_tokenizer import tiny_tokenizer

if TYPE_CHECKING:
    from bough.observability.otel import OtelTracer

T = TypeVar("T")

CONTEXT_LEN = 512
MODEL_NAME = "org/tiny"


def tiny_model_config(
    directory: Path, vocab_size: int, context_len: int = CONTEXT_LEN, **generation_config: Any
) -> ModelConfig:
    config = {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "vocab_size": vocab_size,
        "hidden_size": 8,
        "intermediate_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 1,
        "num_key_value_heads": 1,
        "head_dim": 8,
        "max_position_embeddings": context_len,
        "rms_norm_eps": 1e-6,
        "tie_word_embeddings": True,
        "rope_theta": 10000.0,
        "eos_token_id": 0,
        "torch_dtype": "float32",
    }
    (directory / "config.json").write_text(json.dumps(config))
    if generation_config:
        (directory / "generation_config.json").write_text(json.dumps(generation_config))
    return ModelConfig.from_path(str(directory), load_format="dummy")


class RunningServer:
    """A server in a thread; ``call`` runs code on its event loop."""

    def __init__(
        self,
        directory: Path,
        *,
        tokenizer: Tokenizer | None,
        generation_config: dict[str, Any],
        context_len: int,
        tracer: OtelTracer | None = None,
        **args: Any,
    ):
        self._tracer = tracer
        self.sock = bind_socket("127.0.0.1", 0)
        self.port = self.sock.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.server_args = ServerArgs(model_path=str(directory), served_model_name=MODEL_NAME, **args)
        self.model_config = tiny_model_config(directory, 300, context_len, **generation_config)
        self.context_len = context_len
        self.tokenizer = tokenizer
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._ready.wait(10)

    def _run(self) -> None:
        uvloop.run(self._serve())

    async def _serve(self) -> None:
        self.loop = asyncio.get_running_loop()
        eos = self.tokenizer.eos_token_id if self.tokenizer is not None else None
        self.engine = FakeEngine(self.tokenizer, eos_id=eos, script=SCRIPT)
        info = {
            "max_req_input_len": self.context_len - 1,
            "max_req_len": self.context_len,
            "max_total_num_tokens": 4096,
            "max_running_requests": 8,
        }
        self.manager = TokenizerManager(self.server_args, self.model_config, self.tokenizer, self.engine, info)
        await self.manager.start()
        self.app = create_app(self.manager, tracer=self._tracer)
        self.server = make_server(self.app, self.server_args, tls_context(self.server_args))
        serving = asyncio.create_task(self.server.serve(sockets=[self.sock]))
        while not self.server.started:
            await asyncio.sleep(0.001)
        self._ready.set()
        await serving
        await self.manager.close()

    def call(self, work: Coroutine[Any, Any, T], timeout: float = 10) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(timeout)

    def run(self, function: Any) -> Any:
        async def call() -> Any:
            return function()

        return self.call(call())

    def wait_until(self, condition: Any, timeout: float = 5) -> None:
        async def poll() -> None:
            while not condition():
                await asyncio.sleep(0.005)

        try:
            self.call(asyncio.wait_for(poll(), timeout), timeout + 1)
        except (asyncio.TimeoutError, concurrent.futures.TimeoutError):
            raise AssertionError("the condition did not come true") from None

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=10)

    def assert_idle(self) -> None:
        """Nothing is left of any request."""
        self.wait_until(lambda: not self.engine.running and not self.manager.rid_to_state)
        assert self.manager.model_update_lock._readers == 0

    def stop(self) -> None:
        self.server.force_exit = True
        self.run(self.server.end)
        self._thread.join(10)
        assert not self._thread.is_alive()


@contextlib.contextmanager
def running_server(
    directory: Path,
    *,
    skip_tokenizer: bool = False,
    generation_config: dict[str, Any] | None = None,
    context_len: int = CONTEXT_LEN,
    more_specials: tuple[str, ...] = (),
    **args: Any,
) -> Iterator[RunningServer]:
    tokenizer = None if skip_tokenizer else tiny_tokenizer(more_specials)
    server = RunningServer(
        directory, tokenizer=tokenizer, generation_config=generation_config or {}, context_len=context_len, **args
    )
    try:
        yield server
    finally:
        server.stop()
