"""BERT (Devlin et al. 2018), as an encoder and as a classifier."""

from __future__ import annotations

import torch
from torch import nn

from bough.config.model_config import ModelConfig
from bough.config.model_facts import EncoderParameters
from bough.layers.activation import activation
from bough.layers.attention.bidirectional import LengthGroup, bidirectional_attention
from bough.layers.embedding import VocabEmbedding
from bough.layers.linear import Linear, MergedLinear
from bough.layers.norm import LayerNorm
from bough.models.base import torch_dtype
from bough.models.encoder import Encoder, EncoderBatch


def layer_norm(config: ModelConfig) -> LayerNorm:
    """A norm with the model's epsilon."""
    return LayerNorm(config.hidden_size, encoder_parameters(config).layer_norm_eps, torch_dtype(config))


def encoder_parameters(config: ModelConfig) -> EncoderParameters:
    """What only encoders have; this model is one."""
    assert config.encoder is not None, "an encoder's configuration"
    return config.encoder


class BertEmbeddings(nn.Module):
    """Sum of what a token is, where it stands, and which text of a pair it belongs to."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        dtype, size = torch_dtype(config), config.hidden_size
        self.num_types = encoder_parameters(config).type_vocab_size
        self.word_embeddings = VocabEmbedding(config.vocab_size, size, dtype)
        self.position_embeddings = VocabEmbedding(encoder_parameters(config).num_positions, size, dtype)
        self.token_type_embeddings = VocabEmbedding(self.num_types, size, dtype)
        self.LayerNorm = layer_norm(config)

    def forward(self, batch: EncoderBatch) -> torch.Tensor:
        """``[num_tokens, hidden_size]``"""
        x = self.word_embeddings(batch.input_ids)
        x = x + self.position_embeddings(batch.positions)
        x = x + self.token_type_embeddings(batch.token_types.clamp_max(self.num_types - 1))
        output: torch.Tensor = self.LayerNorm(x)
        return output


class BertSelfAttention(nn.Module):
    """Attention of every token to every token of its sequence."""

    def __init__(self, config: ModelConfig, layer_id: int) -> None:
        super().__init__()
        size = config.hidden_size
        self.num_heads = config.layers[layer_id].mixer.num_heads
        self.qkv = MergedLinear(size, {"query": size, "key": size, "value": size}, bias=True, dtype=torch_dtype(config))

    def forward(self, x: torch.Tensor, groups: tuple[LengthGroup, ...]) -> torch.Tensor:
        """``[num_tokens, hidden_size]`` to the same shape."""
        q, k, v = self.qkv(x).view(x.shape[0], 3, self.num_heads, -1).unbind(1)
        return bidirectional_attention(q, k, v, groups)


class BertOutput(nn.Module):
    """Projection back to the stream of states, sum and norm."""

    def __init__(self, config: ModelConfig, width: int) -> None:
        super().__init__()
        self.linear = Linear("dense", width, config.hidden_size, bias=True, dtype=torch_dtype(config))
        self.LayerNorm = layer_norm(config)

    def forward(self, x: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
        """``[num_tokens, width]`` and ``[num_tokens, hidden_size]`` to the latter's shape."""
        output: torch.Tensor = self.LayerNorm(states + self.linear(x))
        return output


class BertAttention(nn.Module):
    """Attention with its output; the names are the checkpoint's."""

    def __init__(self, config: ModelConfig, layer_id: int) -> None:
        super().__init__()
        self.self = BertSelfAttention(config, layer_id)
        self.output = BertOutput(config, config.hidden_size)

    def forward(self, x: torch.Tensor, groups: tuple[LengthGroup, ...]) -> torch.Tensor:
        """``[num_tokens, hidden_size]`` to the same shape."""
        output: torch.Tensor = self.output(self.self(x, groups), x)
        return output


class BertIntermediate(nn.Module):
    """The wide half of the feed-forward network."""

    def __init__(self, config: ModelConfig, layer_id: int) -> None:
        super().__init__()
        facts = config.layers[layer_id].feed_forward
        self.linear = Linear("dense", config.hidden_size, facts.width, bias=True, dtype=torch_dtype(config))
        self.activation = activation(facts.activation)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``[num_tokens, hidden_size]`` to ``[num_tokens, intermediate_size]``."""
        return self.activation(self.linear(x))


class BertLayer(nn.Module):
    """One transformer block, normalising after attention and after the feed-forward network."""

    def __init__(self, config: ModelConfig, layer_id: int) -> None:
        super().__init__()
        self.attention = BertAttention(config, layer_id)
        self.intermediate = BertIntermediate(config, layer_id)
        self.output = BertOutput(config, config.layers[layer_id].feed_forward.width)

    def forward(self, x: torch.Tensor, groups: tuple[LengthGroup, ...]) -> torch.Tensor:
        """``[num_tokens, hidden_size]`` to the same shape."""
        x = self.attention(x, groups)
        output: torch.Tensor = self.output(self.intermediate(x), x)
        return output


class BertEncoder(nn.Module):
    """All blocks."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.layer = nn.ModuleList(BertLayer(config, layer_id) for layer_id in range(config.num_layers))

    def forward(self, x: torch.Tensor, groups: tuple[LengthGroup, ...]) -> torch.Tensor:
        """``[num_tokens, hidden_size]`` to the same shape."""
        for layer in self.layer:
            x = layer(x, groups)
        return x


class BertModel(Encoder):
    """BERT without a head.

    Checkpoints may have its weights under ``bert.``, and further ones that embeddings do not need.
    """

    prefix = "bert."
    unused: tuple[str, ...] = ("pooler.", "cls.")
    """Beginnings of names that checkpoints may have and this model does not."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.embeddings = BertEmbeddings(config)
        self.encoder = BertEncoder(config)

    def forward(self, batch: EncoderBatch) -> torch.Tensor:
        """See :class:`Encoder`."""
        output: torch.Tensor = self.encoder(self.embeddings(batch), batch.groups)
        return output

    def own_name(self, name: str) -> str | None:
        """See :meth:`Model.own_name`."""
        name = name.removeprefix(self.prefix)
        if name.startswith(self.unused) or name.endswith((".position_ids", ".token_type_ids")):
            return None
        # As checkpoints that came from TensorFlow have it.
        return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")


class BertForMaskedLM(BertModel):
    """The same without the head that guesses words."""


class BertPooler(nn.Module):
    """A layer on top of the first token's state."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        size = config.hidden_size
        self.linear = Linear("dense", size, size, bias=True, dtype=torch_dtype(config))

    def forward(self, pooled: torch.Tensor) -> torch.Tensor:
        """``[R, hidden_size]`` to the same shape."""
        return torch.tanh(self.linear(pooled))


class BertForSequenceClassification(BertModel):
    """BERT with class scores."""

    unused = ("cls.",)

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        assert config.pooling is not None, "a classifier pools"
        self.pooler = BertPooler(config)
        self.head = Linear("classifier", config.hidden_size, config.pooling.dim, bias=True, dtype=torch_dtype(config))

    def project(self, pooled: torch.Tensor) -> torch.Tensor:
        """Class scores, float32 ``[R, num_labels]``."""
        scores: torch.Tensor = self.head(self.pooler(pooled.to(self.head.weight.dtype)))
        return scores.float()
