"""Facts about a model, layer by layer, as a family's reader finds them in a config.json. No torch here."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from bough.config.rope import RopeParameters
from bough.config.sharding import LARGEST_WORLD, ShardSpec, Span
from bough.errors import ConfigError

MOST_EXPERTS = 1024
"""Experts of a layer, at most: native kernels have room for so many."""


CLAMPED_SWISH = "clamped_swish"
"""Name of an activation: ``x sigmoid(1.702 x)`` of gates of at most 7, times 1 plus values between -7 and 7."""
SWISH_SLOPE, SWISH_BOUND = 1.702, 7.0


@dataclass(frozen=True, slots=True)
class EncoderParameters:
    """Facts that only encoders have."""

    layer_norm_eps: float
    type_vocab_size: int
    """Kinds of texts that tokens tell apart: two where a model reads pairs."""
    num_positions: int
    """Rows of the table of positions."""
    first_position: int
    """Row of the table of positions that a sequence's first token has."""

    @property
    def padding_id(self) -> int | None:
        """Token without a position of its own, which has the row of its id; ``None`` if all tokens count."""
        return self.first_position - 1 if self.first_position else None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionFacts:
    """Attention over keys and values that are kept for every token."""

    num_heads: int
    num_kv_heads: int
    head_dim: int
    rope: RopeParameters | None
    """Rotation of queries and keys; ``None``: they are not rotated."""
    window: int | None = None
    """Positions that a token sees, itself included; ``None``: all."""
    qkv_bias: bool = False
    """Biases on queries, keys and values."""
    output_bias: bool = False
    scaling: float | None = None
    """Factor on the scores; ``None``: the inverse root of a head's width."""
    sinks: bool = False
    """Each head has learned a score that takes a share of its weight and has no value."""

    @property
    def q_size(self) -> int:
        """Width of all queries of a token."""
        return self.num_heads * self.head_dim

    @property
    def kv_size(self) -> int:
        """Width of all keys of a token, and of all values."""
        return self.num_kv_heads * self.head_dim

    def shard(self, spec: ShardSpec) -> AttentionFacts:
        """Return what one rank has of it; raises :class:`ConfigError` if that would be nothing."""
        share = spec.heads(self.num_heads, self.num_kv_heads)
        return replace(self, num_heads=share.queries.size, num_kv_heads=share.keys.size)


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseFacts:
    """Feed-forward network that computes every token with the same weights."""

    width: int
    activation: str
    """Name of the activation, as files have it."""
    bias: bool = False

    def shard(self, spec: ShardSpec) -> DenseFacts:
        """Return what one rank has of it; raises :class:`ConfigError` if that would be nothing."""
        return replace(self, width=spec.rows(self.width).size)

    def matrix_rows(self) -> int:
        """Rows, or columns, of the matrices that a token is multiplied by, the hidden size being the other side."""
        return 3 * self.width

    def largest_stack(self) -> int:
        """Rows of the largest tensor that a checkpoint may have of it."""
        return 2 * self.width

    def widest_activation(self, hidden_size: int) -> int:
        """Upper bound of the numbers that computing a token takes."""
        return 3 * self.width


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingFacts:
    """Choice of the experts of a token, from the products of the token and one row of the router for each expert."""

    num_experts: int
    experts_per_token: int
    scores: Literal["softmax", "sigmoid"]
    """Function of the products. With renormalised weights a softmax of the chosen experts alone is the same."""
    renormalised: bool
    """The weights of a token's experts are divided by their sum."""
    scaling: float = 1.0
    """Factor on the weights, after that."""
    is_corrected: bool = False
    """Experts are chosen by their score plus a number that each has learned; weights are made of the scores alone."""
    num_groups: int = 1
    """Experts come in so many groups of neighbours."""
    groups_per_token: int = 1
    """Only experts of the best groups can be chosen, as many as this."""
    group_score: Literal["largest", "two_largest"] = "two_largest"
    """Score of a group: that of its best expert, or the sum of its two best."""
    bias: bool = False
    """Biases on the products."""

    def __post_init__(self) -> None:
        """Raise :class:`ConfigError` for numbers that no kernel could work with."""
        per_group, rest = divmod(self.num_experts, max(self.num_groups, 1))
        fits = (
            1 <= self.experts_per_token <= self.num_experts <= MOST_EXPERTS
            and 1 <= self.groups_per_token <= self.num_groups
            and rest == 0
            and self.experts_per_token <= self.groups_per_token * per_group
        )
        if not fits:
            raise ConfigError(
                f"{self.experts_per_token} of {self.num_experts} experts in {self.groups_per_token} of "
                f"{self.num_groups} groups cannot be chosen; there may be {MOST_EXPERTS}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertFacts:
    """Feed-forward network of many experts, of which each token is computed by a few."""

    width: int
    """Width of an expert."""
    activation: str
    """Name of the activation, as files have it."""
    routing: RoutingFacts
    bias: bool = False
    """Biases in the experts."""
    shared_width: int = 0
    """Width of a network beside the experts that computes every token; 0: none."""
    gates_shared: bool = False
    """Results of the shared network are multiplied by the sigmoid of a product of the token."""

    def matrix_rows(self) -> int:
        """Rows, or columns, of the matrices that a token is multiplied by: those of the experts that it chooses."""
        return self.routing.num_experts + 3 * (self.routing.experts_per_token * self.width + self.shared_width)

    def idle_rows(self) -> int:
        """Rows, or columns, of the matrices of experts that a token does not choose."""
        return 3 * (self.routing.num_experts - self.routing.experts_per_token) * self.width

    def largest_stack(self) -> int:
        """Rows of the largest tensor that is read at once: checkpoints that have experts in one are read in parts."""
        return max(2 * self.width, 2 * self.shared_width, self.routing.num_experts)

    def widest_activation(self, hidden_size: int) -> int:
        """Upper bound of the numbers that computing a token takes: its experts get a copy each, and give a result."""
        chosen = self.routing.experts_per_token
        return 2 * self.routing.num_experts + chosen * (3 * self.width + 3 * hidden_size) + 3 * self.shared_width

    def shard(self, spec: ShardSpec) -> ExpertFacts:
        """Return what one rank has of each expert that is there; raises :class:`ConfigError` if that would be nothing.

        The experts of the layer stay as many as they are.
        """
        spec.experts(self.routing.num_experts)
        width = spec.rows(self.width).size if spec.splits_experts else self.width
        shared_width = spec.rows(self.shared_width).size if self.shared_width else 0
        return replace(self, width=width, shared_width=shared_width)


FeedForwardFacts = DenseFacts | ExpertFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerFacts:
    """One block: the part that mixes tokens, and the part that computes each of them alone."""

    mixer: AttentionFacts
    feed_forward: FeedForwardFacts

    def matrix_rows(self) -> int:
        """Rows, or columns, of the matrices that a token is multiplied by, the hidden size being the other side."""
        return 2 * (self.mixer.q_size + self.mixer.kv_size) + self.feed_forward.matrix_rows()

    def widest_activation(self, hidden_size: int) -> int:
        """Upper bound of the numbers that computing a token takes beside the residual stream."""
        of_attention = 3 * (self.mixer.q_size + 2 * self.mixer.kv_size)
        return max(of_attention, self.feed_forward.widest_activation(hidden_size))

    def shard(self, spec: ShardSpec) -> LayerFacts:
        """Return what one rank has of it; raises :class:`ConfigError` if that would be nothing."""
        return replace(self, mixer=self.mixer.shard(spec), feed_forward=self.feed_forward.shard(spec))


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionArguments:
    """Arguments with which a layer of a model of transformers calls attention."""

    num_heads: int
    num_kv_heads: int
    key_width: int
    """Numbers of a query's or a key's head."""
    value_width: int
    scaling: float
    """Factor on the scores."""
    window: int | None
    """Positions that a token sees, itself included; ``None``: all."""
    logit_cap: float | None
    """Bound of the scores, by a hyperbolic tangent."""
    sinks: str | None
    """Name of the parameter with one score per head that takes a share of the weight and has no value."""


@dataclass(frozen=True, slots=True)
class KVLayout:
    """Keys and values of one token in the KV cache."""

    num_layers: int
    num_kv_heads: int
    head_dim: int
    routed_layers: tuple[int, ...] = ()
    """Layers of which the experts of each token are kept, too."""
    experts_per_token: int = 0
    """Experts that are kept of each of these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """A model as its config.json describes it, independent of how it is served."""

    vocab_size: int
    hidden_size: int
    layers: tuple[LayerFacts, ...]
    rms_norm_eps: float
    tie_word_embeddings: bool
    derived_context_len: int
    """Longest sequence that the model was made for, in tokens."""
    encoder: EncoderParameters | None = None
    """``None`` if the model is no encoder."""

    @property
    def is_encoder(self) -> bool:
        """True if every token sees every other: nothing is kept from one step for the next."""
        return self.encoder is not None

    @property
    def num_layers(self) -> int:
        """Number of blocks."""
        return len(self.layers)

    @property
    def has_experts(self) -> bool:
        """True if there is a layer of which each token is computed by a part."""
        return any(isinstance(layer.feed_forward, ExpertFacts) for layer in self.layers)

    @property
    def expert_share(self) -> float:
        """Share of a layer's experts that a token chooses; 0 without experts."""
        return max((each.experts_per_token / each.num_experts for each in self.routings()), default=0.0)

    @property
    def longest_context_len(self) -> int:
        """Longest sequence that may be asked for, in tokens: rotation can be stretched to it."""
        ropes = [shape.rope for shape in self.attention_shapes() if shape.rope is not None]
        return int(self.derived_context_len * min((rope.stretch for rope in ropes), default=1.0))

    def shard_layers(self, spec: ShardSpec) -> tuple[LayerFacts, ...]:
        """Return what one of several ranks has of each layer.

        Raises:
            ConfigError: if some rank would have nothing of a layer, with the numbers of ranks that can share the model,
                or if ranks are to have experts of a model without any.
        """
        if spec.world == 1:
            return self.layers
        if not (spec.splits_experts or self.has_experts):
            raise ConfigError(f"--ep-size {spec.world} is for mixtures of experts; leave it out", param="ep_size")
        problem = self._why_not_shared(spec)
        if problem is not None:
            worlds = range(1, LARGEST_WORLD + 1)
            possible = [str(each) for each in worlds if self._why_not_shared(replace(spec, world=each)) is None]
            raise ConfigError(f"{problem.message}; it can be {', '.join(possible)}", param=problem.param)
        return tuple(layer.shard(spec) for layer in self.layers)

    def _why_not_shared(self, wanted: ShardSpec) -> ConfigError | None:
        try:
            for rank in range(wanted.world):
                spec = replace(wanted, rank=rank)
                spec.rows(self.vocab_size)
                spec.to_stream(Span.whole(self.hidden_size), self.hidden_size)
                for layer in set(self.layers):
                    layer.shard(spec)
        except ConfigError as error:
            return error
        return None

    def routings(self) -> tuple[RoutingFacts, ...]:
        """Return the choice of experts of each layer that has some."""
        return tuple(each.feed_forward.routing for each in self.layers if isinstance(each.feed_forward, ExpertFacts))

    def attention_shapes(self) -> tuple[AttentionFacts, ...]:
        """Return the different kinds of attention, by the first layer of each."""
        return tuple(dict.fromkeys(layer.mixer for layer in self.layers))

    def windows(self) -> tuple[int | None, ...]:
        """Return the different sliding windows in tokens, by the first layer of each; ``None``: no window."""
        return tuple(dict.fromkeys(shape.window for shape in self.attention_shapes()))

    def kv_layout(self, *, keeps_experts: bool = False) -> KVLayout:
        """Return what the KV cache keeps for each token, with the experts that have computed it if ``keeps_experts``.

        Raises:
            ConfigError: if there are no experts to keep.
        """
        ((num_kv_heads, head_dim),) = {(shape.num_kv_heads, shape.head_dim) for shape in self.attention_shapes()}
        layout = KVLayout(self.num_layers, num_kv_heads, head_dim)
        if not keeps_experts:
            return layout
        if not self.has_experts:
            raise ConfigError(
                "--enable-return-routed-experts is for mixtures of experts; leave it out",
                param="enable_return_routed_experts",
            )
        (per_token,) = {routing.experts_per_token for routing in self.routings()}
        layers = (index for index, layer in enumerate(self.layers) if isinstance(layer.feed_forward, ExpertFacts))
        return replace(layout, routed_layers=tuple(layers), experts_per_token=per_token)

    def num_query_heads(self) -> int:
        """Return the most query heads that a layer has."""
        return max(shape.num_heads for shape in self.attention_shapes())

    def block_parameters(self) -> int:
        """Return the number of weights in the matrices of all blocks that a token is multiplied by."""
        return self.hidden_size * sum(layer.matrix_rows() for layer in self.layers)

    def idle_parameters(self) -> int:
        """Return the number of weights in experts that a single token does not choose."""
        networks = [layer.feed_forward for layer in self.layers]
        return self.hidden_size * sum(each.idle_rows() for each in networks if isinstance(each, ExpertFacts))

    def flops_per_token(self) -> int:
        """Return the floating-point operations of a decoded token's matrix products, its logits included."""
        return 2 * (self.block_parameters() + self.vocab_size * self.hidden_size)

    def largest_matrix(self) -> int:
        """Return the number of weights in the largest tensor of a checkpoint, which may stack projections."""
        heads = max(layer.mixer.q_size + 2 * layer.mixer.kv_size for layer in set(self.layers))
        widest = max(layer.feed_forward.largest_stack() for layer in set(self.layers))
        return max(self.vocab_size, heads, widest) * self.hidden_size

    def widest_activation(self) -> int:
        """Return an upper bound of the numbers that a token's activations take at the widest moment of a block."""
        return 4 * self.hidden_size + max(layer.widest_activation(self.hidden_size) for layer in set(self.layers))
