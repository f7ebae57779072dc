"""The list of classes whose methods answer the server's routes."""

from __future__ import annotations

from bough.entrypoints.chat.core import ChatCore
from bough.entrypoints.http.anthropic.handlers import MessagesHandlers
from bough.entrypoints.http.asgi import Handler
from bough.entrypoints.http.native.control import ControlHandlers
from bough.entrypoints.http.native.encode import EncodeHandler
from bough.entrypoints.http.native.generate import GenerateHandler
from bough.entrypoints.http.native.invocations import InvocationsHandler
from bough.entrypoints.http.native.loads import LoadsHandler
from bough.entrypoints.http.native.memory import MemoryHandlers
from bough.entrypoints.http.native.parse_text import ParseTextHandlers
from bough.entrypoints.http.native.pauses import PauseHandlers
from bough.entrypoints.http.native.profile import ProfileHandlers
from bough.entrypoints.http.native.sessions import SessionHandlers
from bough.entrypoints.http.native.tokenize import TokenizeHandlers
from bough.entrypoints.http.native.weights import WeightHandlers
from bough.entrypoints.http.native.worker_calls import WorkerCallHandlers
from bough.entrypoints.http.ollama.embed import OllamaEmbedHandlers
from bough.entrypoints.http.ollama.handlers import OllamaHandlers
from bough.entrypoints.http.openai.chat import ChatHandler
from bough.entrypoints.http.openai.completions import CompletionHandler
from bough.entrypoints.http.openai.decisions import DecisionsHandler
from bough.entrypoints.http.openai.models import ModelsHandler
from bough.entrypoints.http.openai.vectors import VectorHandlers
from bough.entrypoints.http.playground import Playground
from bough.entrypoints.http.probes import Probes
from bough.entrypoints.http.responses.handlers import ResponsesHandlers
from bough.entrypoints.http.route import Handlers, Route
from bough.managers.tokenizer_manager import TokenizerManager

HANDLERS: tuple[type[Handlers], ...] = (
    *(ChatHandler, CompletionHandler, GenerateHandler, ModelsHandler, ResponsesHandlers, MessagesHandlers),
    *(OllamaHandlers, OllamaEmbedHandlers, VectorHandlers, DecisionsHandler, EncodeHandler, TokenizeHandlers),
    *(SessionHandlers, LoadsHandler, InvocationsHandler, ParseTextHandlers, WeightHandlers, ProfileHandlers),
    *(MemoryHandlers, PauseHandlers, WorkerCallHandlers, ControlHandlers, Probes, Playground),
)
"""Every class of handlers, in the order of the documentation."""

ROUTES = tuple(route for kind in HANDLERS for route in kind.routes())
"""Every route."""


def make_handlers(manager: TokenizerManager) -> dict[Route, Handler]:
    """Make the handler of every route."""
    core = ChatCore(manager)
    made = [kind(manager, core) for kind in HANDLERS]
    return {route: getattr(each, route.handler) for each in made for route in each.routes()}
