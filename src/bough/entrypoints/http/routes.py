"""Every route of the server in one table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bough.entrypoints.chat.core import ChatCore
from bough.entrypoints.http.access import Access
from bough.entrypoints.http.answers import ANY_JSON, HTML, LINES, TEXT, Answer, QueryParameter
from bough.entrypoints.http.anthropic.answers import AnthropicEvent, AnthropicMessage, TokenCountAnswer
from bough.entrypoints.http.anthropic.handlers import MessagesHandlers
from bough.entrypoints.http.anthropic.protocol import COUNT_TOKENS, MESSAGES
from bough.entrypoints.http.asgi import Handler
from bough.entrypoints.http.errors import (
    AnthropicErrors,
    ErrorDialect,
    NativeErrors,
    OllamaErrors,
    OpenAIErrors,
)
from bough.entrypoints.http.fields import BodySpec
from bough.entrypoints.http.native.answers import (
    DetokenizeAnswer,
    DoneAnswer,
    EncodeAnswer,
    FunctionCallsAnswer,
    GenerateAnswer,
    LoadsAnswer,
    ModelInfo,
    SeparateReasoningAnswer,
    ServerInfo,
    TokenizeAnswer,
    WeightUpdateAnswer,
    WeightVersionAnswer,
)
from bough.entrypoints.http.native.control import ABORT, CONTINUE, MAX_FLUSH_TIMEOUT, PAUSE, ControlHandlers
from bough.entrypoints.http.native.encode import ENCODE, EncodeHandler
from bough.entrypoints.http.native.generate import GenerateHandler
from bough.entrypoints.http.native.invocations import Invocable, InvocationsHandler
from bough.entrypoints.http.native.loads import LOADS_QUERY, LoadsHandler
from bough.entrypoints.http.native.parse_text import PARSE_FUNCTION_CALL, SEPARATE_REASONING, ParseTextHandlers
from bough.entrypoints.http.native.profile import START_PROFILE, ProfileHandlers
from bough.entrypoints.http.native.protocol import GENERATE
from bough.entrypoints.http.native.sessions import CLOSE_SESSION, OPEN_SESSION, SessionHandlers
from bough.entrypoints.http.native.tokenize import DETOKENIZE, TOKENIZE, TokenizeHandlers
from bough.entrypoints.http.native.weights import (
    DESTROY_GROUP,
    GET_BY_NAME,
    INIT_GROUP,
    UPDATE_FROM_DISK,
    UPDATE_FROM_DISTRIBUTED,
    UPDATE_FROM_TENSOR,
    UPDATE_VERSION,
    WeightHandlers,
)
from bough.entrypoints.http.ollama.answers import (
    OllamaAnswer,
    OllamaEmbedAnswer,
    OllamaEmbeddingsAnswer,
    OllamaModel,
    OllamaModels,
    VersionAnswer,
)
from bough.entrypoints.http.ollama.embed import OllamaEmbedHandlers
from bough.entrypoints.http.ollama.handlers import OllamaHandlers
from bough.entrypoints.http.ollama.protocol import (
    OLLAMA_CHAT,
    OLLAMA_EMBED,
    OLLAMA_EMBEDDINGS,
    OLLAMA_GENERATE,
    OLLAMA_SHOW,
)
from bough.entrypoints.http.openai.answers import (
    ChatAnswer,
    ChatChunk,
    ClassifyAnswer,
    CompletionAnswer,
    CompletionChunk,
    DecisionsAnswer,
    EmbeddingsAnswer,
    ModelCard,
    ModelList,
    PairScoresAnswer,
    RankedDocument,
    RerankAnswer,
    ScoreAnswer,
)
from bough.entrypoints.http.openai.chat import ChatHandler
from bough.entrypoints.http.openai.completions import CompletionHandler
from bough.entrypoints.http.openai.decisions import DECISIONS, DecisionsHandler
from bough.entrypoints.http.openai.models import ModelsHandler
from bough.entrypoints.http.openai.protocol import CHAT, COMPLETIONS
from bough.entrypoints.http.openai.vector_protocol import CLASSIFY, EMBEDDINGS, RERANK, SCORE
from bough.entrypoints.http.openai.vectors import VectorHandlers
from bough.entrypoints.http.probes import Probes
from bough.entrypoints.http.responses.answers import DeletedAnswer, ItemsAnswer, ResponseAnswer, ResponseEvent
from bough.entrypoints.http.responses.handlers import MAX_ITEMS_LISTED, ResponsesHandlers
from bough.entrypoints.http.responses.protocol import RESPONSES
from bough.managers.tokenizer_manager import TokenizerManager

NATIVE = NativeErrors()
OPENAI = OpenAIErrors()
ANTHROPIC = AnthropicErrors()
OLLAMA = OllamaErrors()

ITEMS_QUERY = (
    QueryParameter(
        "limit", {"type": "integer", "minimum": 1, "maximum": MAX_ITEMS_LISTED, "default": 20}, "Most items."
    ),
    QueryParameter("order", {"enum": ["asc", "desc"], "default": "desc"}, "Newest last, or first."),
    QueryParameter("after", {"type": "string"}, "Id of an item: what comes behind it."),
)
_BETA = (QueryParameter("beta", {"type": "string"}, "What Anthropic's clients add; it changes nothing."),)
_PROBE = Answer(None, text_statuses=(503,))
_TEXT = Answer(None)


@dataclass(frozen=True)
class RouteInfo:
    """What is said of a route in the documentation, and what it needs.

    Attributes:
        path: with parameters in braces; several routes with other methods may share one, and then its handler.
        methods: HTTP methods.
        summary: one line.
        dialect: how errors look.
        body: fields of the body, if there is one.
        aliases: other paths of the same thing: older ones, and those of other servers.
        is_probe: whether it is left out of the metrics, and open to all.
        is_control: whether it acts on other clients' requests or on the server.
        takes_body: whether there is a body of one of the :data:`INVOCABLE` kinds.
        is_body_optional: whether an empty body is one without fields.
        answer: what it answers with.
        query: what the query string may say.
    """

    path: str
    methods: tuple[str, ...]
    summary: str
    dialect: ErrorDialect
    body: BodySpec[Any] | None = None
    aliases: tuple[str, ...] = ()
    is_probe: bool = False
    is_control: bool = False
    takes_body: bool = False
    is_body_optional: bool = False
    answer: Answer = ANY_JSON
    query: tuple[QueryParameter, ...] = ()

    @property
    def access(self) -> Access:
        """What it asks of its callers."""
        if self.is_probe:
            return Access.OPEN
        return Access.CONTROL if self.is_control else Access.CLIENT

    @property
    def has_body(self) -> bool:
        """Whether a request brings a body."""
        return self.body is not None or self.takes_body

    @property
    def is_limited(self) -> bool:
        """Whether calls count among the requests of their key: all that bring work, not the end of a session."""
        return self.access is Access.CLIENT and self.has_body and self.body is not CLOSE_SESSION

    @property
    def needs_json(self) -> bool:
        """Refuse a body that is said to be something else than JSON, in the dialects whose clients name the type."""
        return self.has_body and self.dialect in (OPENAI, ANTHROPIC)


ROOT = RouteInfo(
    "/",
    ("GET",),
    "Says that the server is running. Who accepts HTML gets the playground.",
    NATIVE,
    is_probe=True,
    answer=Answer(str, also=(HTML,)),
)
HEALTH = RouteInfo(
    "/health",
    ("GET",),
    "200 while every part of the server is alive, else 503. Cheap.",
    NATIVE,
    is_probe=True,
    answer=_PROBE,
)
READY = RouteInfo(
    "/ready",
    ("GET",),
    "200 while requests are welcome, else 503: starting, shutting down, sick, paused, queue full.",
    NATIVE,
    is_probe=True,
    answer=_PROBE,
)
HEALTH_GENERATE = RouteInfo(
    "/health_generate",
    ("GET",),
    "200 if a token makes it through all processes, or has to wait (a pause, a full queue, other requests that go on); "
    "else 503.",
    NATIVE,
    is_probe=True,
    answer=_PROBE,
)
METRICS = RouteInfo("/metrics", ("GET",), "Prometheus metrics.", NATIVE, is_probe=True, answer=_TEXT)
GENERATE_ROUTE = RouteInfo(
    "/generate",
    ("POST", "PUT"),
    "Generate from text or token ids, one prompt or many.",
    NATIVE,
    GENERATE,
    answer=Answer(GenerateAnswer | list[GenerateAnswer], events=GenerateAnswer),
)
MODEL_INFO = RouteInfo(
    "/model_info", ("GET",), "What is being served.", NATIVE, aliases=("/get_model_info",), answer=Answer(ModelInfo)
)
SERVER_INFO = RouteInfo(
    "/server_info",
    ("GET",),
    "Options, capacity and state of the server.",
    NATIVE,
    aliases=("/get_server_info",),
    answer=Answer(ServerInfo),
)
FLUSH_CACHE = RouteInfo(
    "/flush_cache",
    ("GET", "POST"),
    "Forget cached prefixes. Query: `timeout`, seconds to wait for running requests.",
    NATIVE,
    aliases=("/reset_prefix_cache",),
    is_control=True,
    answer=Answer(None, text_statuses=(400,)),
    query=(
        QueryParameter(
            "timeout",
            {"type": "number", "minimum": 0, "maximum": MAX_FLUSH_TIMEOUT, "default": 0},
            "Seconds to wait for running requests.",
        ),
    ),
)
ABORT_ROUTE = RouteInfo(
    "/abort_request",
    ("POST",),
    "End requests by id, by prefix of ids, or all.",
    NATIVE,
    ABORT,
    is_control=True,
    answer=_TEXT,
)
PAUSE_ROUTE = RouteInfo(
    "/pause_generation",
    ("POST",),
    "Compute nothing for the time being; requests that come meanwhile wait.",
    NATIVE,
    PAUSE,
    is_body_optional=True,
    is_control=True,
    answer=Answer(DoneAnswer),
)
CONTINUE_ROUTE = RouteInfo(
    "/continue_generation",
    ("POST",),
    "Go on after `/pause_generation`.",
    NATIVE,
    CONTINUE,
    is_body_optional=True,
    is_control=True,
    answer=Answer(DoneAnswer),
)
UPDATE_FROM_DISK_ROUTE = RouteInfo(
    "/update_weights_from_disk",
    ("POST",),
    "Serve another checkpoint of the same model.",
    NATIVE,
    UPDATE_FROM_DISK,
    is_control=True,
    answer=Answer(WeightUpdateAnswer, statuses=(400,)),
)
UPDATE_FROM_TENSOR_ROUTE = RouteInfo(
    "/update_weights_from_tensor",
    ("POST",),
    "Take some weights from the request.",
    NATIVE,
    UPDATE_FROM_TENSOR,
    is_control=True,
    answer=Answer(WeightUpdateAnswer, statuses=(400,)),
)
UPDATE_FROM_DISTRIBUTED_ROUTE = RouteInfo(
    "/update_weights_from_distributed",
    ("POST",),
    "Take some weights that a trainer broadcasts.",
    NATIVE,
    UPDATE_FROM_DISTRIBUTED,
    is_control=True,
    answer=Answer(WeightUpdateAnswer, statuses=(400,)),
)
INIT_GROUP_ROUTE = RouteInfo(
    "/init_weights_update_group",
    ("POST",),
    "Become part of a group in which a trainer sends weights.",
    NATIVE,
    INIT_GROUP,
    is_control=True,
    answer=Answer(WeightUpdateAnswer, statuses=(400,)),
)
DESTROY_GROUP_ROUTE = RouteInfo(
    "/destroy_weights_update_group",
    ("POST",),
    "Leave such a group.",
    NATIVE,
    DESTROY_GROUP,
    is_control=True,
    answer=Answer(WeightUpdateAnswer, statuses=(400,)),
)
UPDATE_VERSION_ROUTE = RouteInfo(
    "/update_weight_version",
    ("POST",),
    "Call the weights by another name.",
    NATIVE,
    UPDATE_VERSION,
    is_control=True,
    answer=Answer(WeightVersionAnswer),
)
GET_WEIGHTS_ROUTE = RouteInfo(
    "/get_weights_by_name",
    ("GET", "POST"),
    "The first rows of a weight, as the model has it.",
    NATIVE,
    GET_BY_NAME,
    is_control=True,
    answer=ANY_JSON,
)
START_PROFILE_ROUTE = RouteInfo(
    "/start_profile",
    ("GET", "POST"),
    "Record what scheduler and model do, for Perfetto.",
    NATIVE,
    START_PROFILE,
    is_body_optional=True,
    is_control=True,
    answer=_TEXT,
)
STOP_PROFILE_ROUTE = RouteInfo(
    "/stop_profile",
    ("GET", "POST"),
    "End the recording; names its files.",
    NATIVE,
    is_control=True,
    answer=Answer(None, statuses=(400,)),
)
LIST_MODELS = RouteInfo("/v1/models", ("GET",), "The models that are served.", OPENAI, answer=Answer(ModelList))
GET_MODEL = RouteInfo("/v1/models/{model:path}", ("GET",), "One model.", OPENAI, answer=Answer(ModelCard))
COMPLETIONS_ROUTE = RouteInfo(
    "/v1/completions",
    ("POST",),
    "Continue one or more prompts.",
    OPENAI,
    COMPLETIONS,
    answer=Answer(CompletionAnswer, events=CompletionChunk),
)
CHAT_ROUTE = RouteInfo(
    "/v1/chat/completions",
    ("POST",),
    "Answer a conversation.",
    OPENAI,
    CHAT,
    answer=Answer(ChatAnswer, events=ChatChunk),
)
PARSE_FUNCTION_CALL_ROUTE = RouteInfo(
    "/parse_function_call",
    ("POST",),
    "Find the tool calls in a text.",
    NATIVE,
    PARSE_FUNCTION_CALL,
    answer=Answer(FunctionCallsAnswer),
)
SEPARATE_REASONING_ROUTE = RouteInfo(
    "/separate_reasoning",
    ("POST",),
    "Tell a model's thoughts from its answer.",
    NATIVE,
    SEPARATE_REASONING,
    answer=Answer(SeparateReasoningAnswer),
)
RESPONSES_ROUTE = RouteInfo(
    "/v1/responses",
    ("POST",),
    "Answer a conversation, and keep the answer for a while.",
    OPENAI,
    RESPONSES,
    answer=Answer(ResponseAnswer, events=ResponseEvent, statuses=(404,), named_events=True, tells_errors=True),
)
RESPONSE_ROUTE = RouteInfo(
    "/v1/responses/{response_id}",
    ("GET",),
    "A response that is kept.",
    OPENAI,
    answer=Answer(ResponseAnswer, events=ResponseEvent),
    query=(
        QueryParameter(
            "stream",
            {"type": "boolean", "default": False},
            "The events of a response that was made with `background` and `stream`, those to come included.",
        ),
        QueryParameter("starting_after", {"type": "integer", "minimum": 0}, "Only the events behind this one."),
    ),
)
DELETE_RESPONSE_ROUTE = RouteInfo(
    RESPONSE_ROUTE.path, ("DELETE",), "Forget a response that is kept.", OPENAI, answer=Answer(DeletedAnswer)
)
CANCEL_RESPONSE_ROUTE = RouteInfo(
    "/v1/responses/{response_id}/cancel",
    ("POST",),
    "End the work on a background response.",
    OPENAI,
    answer=Answer(ResponseAnswer),
)
RESPONSE_ITEMS_ROUTE = RouteInfo(
    "/v1/responses/{response_id}/input_items",
    ("GET",),
    "What went into a response.",
    OPENAI,
    answer=Answer(ItemsAnswer),
    query=ITEMS_QUERY,
)
MESSAGES_ROUTE = RouteInfo(
    "/v1/messages",
    ("POST",),
    "Answer a conversation, in Anthropic's words.",
    ANTHROPIC,
    MESSAGES,
    answer=Answer(AnthropicMessage, events=AnthropicEvent, named_events=True),
    query=_BETA,
)
COUNT_TOKENS_ROUTE = RouteInfo(
    "/v1/messages/count_tokens",
    ("POST",),
    "Tokens of a conversation for `/v1/messages`.",
    ANTHROPIC,
    COUNT_TOKENS,
    answer=Answer(TokenCountAnswer),
    query=_BETA,
)
OLLAMA_CHAT_ROUTE = RouteInfo(
    "/api/chat",
    ("POST",),
    "Answer a conversation, in Ollama's words.",
    OLLAMA,
    OLLAMA_CHAT,
    answer=Answer(OllamaAnswer, events=OllamaAnswer, events_type=LINES),
)
OLLAMA_GENERATE_ROUTE = RouteInfo(
    "/api/generate",
    ("POST",),
    "Answer a prompt, in Ollama's words.",
    OLLAMA,
    OLLAMA_GENERATE,
    answer=Answer(OllamaAnswer, events=OllamaAnswer, events_type=LINES),
)
OLLAMA_EMBED_ROUTE = RouteInfo(
    "/api/embed",
    ("POST",),
    "Embeddings of texts, in Ollama's words.",
    OLLAMA,
    OLLAMA_EMBED,
    answer=Answer(OllamaEmbedAnswer),
)
OLLAMA_EMBEDDINGS_ROUTE = RouteInfo(
    "/api/embeddings",
    ("POST",),
    "The older form of `/api/embed`, for one text.",
    OLLAMA,
    OLLAMA_EMBEDDINGS,
    answer=Answer(OllamaEmbeddingsAnswer),
)
OLLAMA_SHOW_ROUTE = RouteInfo(
    "/api/show", ("POST",), "About the model, for Ollama's clients.", OLLAMA, OLLAMA_SHOW, answer=Answer(OllamaModel)
)
OLLAMA_TAGS = RouteInfo(
    "/api/tags", ("GET",), "The models that there are, for Ollama's clients.", OLLAMA, answer=Answer(OllamaModels)
)
OLLAMA_PS = RouteInfo(
    "/api/ps", ("GET",), "The models that are loaded, for Ollama's clients.", OLLAMA, answer=Answer(OllamaModels)
)
OLLAMA_VERSION = RouteInfo(
    "/api/version",
    ("GET",),
    "The version of Ollama whose interface is offered, for its clients.",
    OLLAMA,
    answer=Answer(VersionAnswer),
)
ENCODE_ROUTE = RouteInfo(
    "/encode",
    ("POST", "PUT"),
    "Embeddings, or a classifier's scores (logits), of one text or many.",
    NATIVE,
    ENCODE,
    answer=Answer(EncodeAnswer | list[EncodeAnswer]),
)
CLASSIFY_NATIVE_ROUTE = RouteInfo(
    "/classify",
    ("POST", "PUT"),
    "The same as `/encode`.",
    NATIVE,
    ENCODE,
    answer=Answer(EncodeAnswer | list[EncodeAnswer]),
)
EMBEDDINGS_ROUTE = RouteInfo(
    "/v1/embeddings", ("POST",), "Embeddings of texts.", OPENAI, EMBEDDINGS, answer=Answer(EmbeddingsAnswer)
)
CLASSIFY_ROUTE = RouteInfo(
    "/v1/classify",
    ("POST",),
    "Probabilities of a classifier's classes.",
    OPENAI,
    CLASSIFY,
    answer=Answer(ClassifyAnswer),
)
RERANK_ROUTE = RouteInfo(
    "/v1/rerank",
    ("POST", "PUT"),
    "Sort documents by their relevance for a query.",
    OPENAI,
    RERANK,
    answer=Answer(list[RankedDocument]),
)
RERANK_RESULTS_ROUTE = RouteInfo(
    "/rerank",
    ("POST",),
    "The same with the answer that Jina, Cohere and vLLM have: an object with `results`.",
    OPENAI,
    RERANK,
    aliases=("/v2/rerank",),
    answer=Answer(RerankAnswer),
)
SCORE_ROUTE = RouteInfo(
    "/v1/score",
    ("POST",),
    "Probabilities of given tokens after query and item; of a classifier its scores (logits).",
    OPENAI,
    SCORE,
    answer=Answer(ScoreAnswer, PairScoresAnswer),
    aliases=("/score",),
)
DECISIONS_ROUTE = RouteInfo(
    "/v1/decisions",
    ("POST",),
    "Answer typed questions about a text by probabilities, without generating.",
    OPENAI,
    DECISIONS,
    answer=Answer(DecisionsAnswer),
)
TOKENIZE_ROUTE = RouteInfo(
    "/tokenize",
    ("POST",),
    "Token ids of a text or a conversation.",
    OPENAI,
    TOKENIZE,
    aliases=("/v1/tokenize",),
    answer=Answer(TokenizeAnswer),
)
DETOKENIZE_ROUTE = RouteInfo(
    "/detokenize",
    ("POST",),
    "Text of token ids.",
    OPENAI,
    DETOKENIZE,
    aliases=("/v1/detokenize",),
    answer=Answer(DetokenizeAnswer),
)
LOADS = RouteInfo(
    "/v1/loads",
    ("GET",),
    "How busy the schedulers are, for routers.",
    NATIVE,
    answer=Answer(LoadsAnswer, also=(TEXT,)),
    query=LOADS_QUERY,
)
OPEN_SESSION_ROUTE = RouteInfo(
    "/open_session",
    ("GET", "POST"),
    "Begin a session, of which requests name only what is new.",
    NATIVE,
    OPEN_SESSION,
    answer=Answer(str),
)
CLOSE_SESSION_ROUTE = RouteInfo(
    "/close_session", ("GET", "POST"), "End a session and whatever runs in it.", NATIVE, CLOSE_SESSION, answer=_TEXT
)
PING = RouteInfo("/ping", ("GET",), "The same as `/health`, by SageMaker's name.", NATIVE, is_probe=True, answer=_PROBE)
INVOCATIONS = RouteInfo(
    "/invocations",
    ("POST",),
    "SageMaker's name for a chat completion, a completion, embeddings or `/generate`: `messages`, `prompt`, `input`, "
    "or `text` and `input_ids` in the body tell which.",
    OPENAI,
    takes_body=True,
    answer=Answer(Any, events=Any),
)

INVOCABLE: tuple[BodySpec[Any], ...] = (CHAT, COMPLETIONS, EMBEDDINGS, GENERATE)
"""What ``/invocations`` takes."""

ROUTES: tuple[RouteInfo, ...] = (
    *(CHAT_ROUTE, COMPLETIONS_ROUTE, GENERATE_ROUTE, LIST_MODELS, GET_MODEL, MODEL_INFO, SERVER_INFO, FLUSH_CACHE),
    *(RESPONSES_ROUTE, RESPONSE_ROUTE, DELETE_RESPONSE_ROUTE, CANCEL_RESPONSE_ROUTE, RESPONSE_ITEMS_ROUTE),
    *(MESSAGES_ROUTE, COUNT_TOKENS_ROUTE),
    *(OLLAMA_CHAT_ROUTE, OLLAMA_GENERATE_ROUTE, OLLAMA_EMBED_ROUTE, OLLAMA_EMBEDDINGS_ROUTE, OLLAMA_SHOW_ROUTE),
    *(OLLAMA_TAGS, OLLAMA_PS, OLLAMA_VERSION),
    *(EMBEDDINGS_ROUTE, CLASSIFY_ROUTE, RERANK_ROUTE, RERANK_RESULTS_ROUTE, SCORE_ROUTE, DECISIONS_ROUTE),
    *(ENCODE_ROUTE, CLASSIFY_NATIVE_ROUTE),
    *(TOKENIZE_ROUTE, DETOKENIZE_ROUTE, OPEN_SESSION_ROUTE, CLOSE_SESSION_ROUTE, LOADS, INVOCATIONS, PING),
    *(PARSE_FUNCTION_CALL_ROUTE, SEPARATE_REASONING_ROUTE),
    *(UPDATE_FROM_DISK_ROUTE, UPDATE_FROM_TENSOR_ROUTE, INIT_GROUP_ROUTE, UPDATE_FROM_DISTRIBUTED_ROUTE),
    *(DESTROY_GROUP_ROUTE, UPDATE_VERSION_ROUTE, GET_WEIGHTS_ROUTE),
    *(START_PROFILE_ROUTE, STOP_PROFILE_ROUTE),
    *(ABORT_ROUTE, PAUSE_ROUTE, CONTINUE_ROUTE, HEALTH, READY, HEALTH_GENERATE, METRICS, ROOT),
)
"""All routes, in the order of the documentation."""


def make_handlers(manager: TokenizerManager) -> dict[str, Handler]:
    """The handler of every route, by path."""
    core = ChatCore(manager)
    control, models, probes = ControlHandlers(manager), ModelsHandler(manager), Probes(manager)
    sessions, tokens = SessionHandlers(manager), TokenizeHandlers(manager, core)
    chat, completions, generate = ChatHandler(manager, core), CompletionHandler(manager), GenerateHandler(manager)
    messages, ollama = MessagesHandlers(manager, core), OllamaHandlers(manager, core)
    responses = ResponsesHandlers(manager, core)
    encode, vectors, ollama_embed = EncodeHandler(manager), VectorHandlers(manager), OllamaEmbedHandlers(manager)
    parse_text, profile, weights = ParseTextHandlers(manager), ProfileHandlers(manager), WeightHandlers(manager)
    return {
        CHAT_ROUTE.path: chat,
        COMPLETIONS_ROUTE.path: completions,
        GENERATE_ROUTE.path: generate,
        RESPONSES_ROUTE.path: responses.create,
        RESPONSE_ROUTE.path: responses.one,
        CANCEL_RESPONSE_ROUTE.path: responses.cancel,
        RESPONSE_ITEMS_ROUTE.path: responses.input_items,
        MESSAGES_ROUTE.path: messages.messages,
        COUNT_TOKENS_ROUTE.path: messages.count_tokens,
        OLLAMA_CHAT_ROUTE.path: ollama.chat,
        OLLAMA_GENERATE_ROUTE.path: ollama.generate,
        OLLAMA_EMBED_ROUTE.path: ollama_embed.embed,
        OLLAMA_EMBEDDINGS_ROUTE.path: ollama_embed.embeddings,
        OLLAMA_SHOW_ROUTE.path: ollama.show,
        OLLAMA_TAGS.path: ollama.tags,
        OLLAMA_PS.path: ollama.running,
        OLLAMA_VERSION.path: ollama.version,
        TOKENIZE_ROUTE.path: tokens.tokenize,
        DETOKENIZE_ROUTE.path: tokens.detokenize,
        OPEN_SESSION_ROUTE.path: sessions.open,
        CLOSE_SESSION_ROUTE.path: sessions.close,
        LOADS.path: LoadsHandler(manager),
        PING.path: probes.health,
        INVOCATIONS.path: InvocationsHandler(
            {
                "messages": Invocable(CHAT, chat, OPENAI),
                "prompt": Invocable(COMPLETIONS, completions, OPENAI),
                "input": Invocable(EMBEDDINGS, vectors.embeddings, OPENAI),
                "text": Invocable(GENERATE, generate, NATIVE),
                "input_ids": Invocable(GENERATE, generate, NATIVE),
            }
        ),
        LIST_MODELS.path: models.list_models,
        GET_MODEL.path: models.get_model,
        MODEL_INFO.path: control.model_info,
        SERVER_INFO.path: control.server_info,
        FLUSH_CACHE.path: control.flush_cache,
        ENCODE_ROUTE.path: encode,
        CLASSIFY_NATIVE_ROUTE.path: encode,
        EMBEDDINGS_ROUTE.path: vectors.embeddings,
        CLASSIFY_ROUTE.path: vectors.classify,
        RERANK_ROUTE.path: vectors.rerank,
        RERANK_RESULTS_ROUTE.path: vectors.rerank_results,
        DECISIONS_ROUTE.path: DecisionsHandler(manager, core),
        SCORE_ROUTE.path: vectors.score,
        ABORT_ROUTE.path: control.abort_request,
        PAUSE_ROUTE.path: control.pause,
        CONTINUE_ROUTE.path: control.go_on,
        UPDATE_FROM_DISK_ROUTE.path: weights.update_from_disk,
        UPDATE_FROM_TENSOR_ROUTE.path: weights.update_from_tensor,
        INIT_GROUP_ROUTE.path: weights.init_group,
        UPDATE_FROM_DISTRIBUTED_ROUTE.path: weights.update_from_distributed,
        DESTROY_GROUP_ROUTE.path: weights.destroy_group,
        UPDATE_VERSION_ROUTE.path: weights.update_version,
        GET_WEIGHTS_ROUTE.path: weights.get_by_name,
        START_PROFILE_ROUTE.path: profile.start,
        STOP_PROFILE_ROUTE.path: profile.stop,
        PARSE_FUNCTION_CALL_ROUTE.path: parse_text.parse_function_call,
        SEPARATE_REASONING_ROUTE.path: parse_text.separate_reasoning,
        HEALTH.path: probes.health,
        READY.path: probes.ready,
        HEALTH_GENERATE.path: probes.health_generate,
        METRICS.path: control.metrics,
        ROOT.path: control.root,
    }
