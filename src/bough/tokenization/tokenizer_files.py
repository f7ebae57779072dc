"""What the files beside a model's weights say about its tokenizer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, normalizers, processors
from tokenizers import Tokenizer as Backend

from bough.config.checkpoint import has_file, read_json, wrong_entry
from bough.config.declared_tokens import declared_tokens, read_token_id, token_text
from bough.config.pooling import lowers_text
from bough.errors import CheckpointError, ConfigError
from bough.tokenization.wordpiece import BERT_CLASSES, bert_normalizer, token_content

DEFAULT_TEMPLATE = "default"

_NAMED = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
_LISTS = ("additional_special_tokens", "extra_special_tokens")

_FLAGGED_CLASSES = frozenset(
    f"{name}{suffix}" for name in ("LlamaTokenizer", "CodeLlamaTokenizer", "GemmaTokenizer") for suffix in ("", "Fast")
)
"""Classes that know ``add_bos_token`` and ``add_eos_token``. The older transformers set
the post-processor by these flags, and models were published that rely on it: the tokenizer.json of e5-mistral ends no
text, and that of DeepSeek's models begins none. From version 5 on transformers goes by the file alone."""


@dataclass(frozen=True, slots=True)
class TokenizerFiles:
    """The parsed files of one checkpoint.

    Attributes:
        tokenizer_json: path of the tokenizer's description; ``None`` if the checkpoint has another format.
        declared: tokens that the configuration gives ids to.
        special: strings of the special tokens by name (``bos_token``, ``additional_special_tokens`` …).
        lowers_text: whether text becomes lower case before the tokenizer has it.
        normalizer: in place of BERT's in the tokenizer's description, of which the configuration knows better.
        surrounds: whether BOS begins and EOS ends a text, where the configuration knows better of that.
    """

    directory: Path
    tokenizer_json: Path | None
    declared: dict[int, AddedToken]
    special: dict[str, Any]
    chat_templates: dict[str, str]
    lowers_text: bool = False
    normalizer: normalizers.BertNormalizer | None = None
    surrounds: tuple[bool, bool] | None = None

    @classmethod
    def read(cls, path: Path) -> TokenizerFiles:
        """Read the files of a directory, or those beside a ``tokenizer.json``.

        Raises:
            ConfigError: if there is no such directory, or a file in it is not what its name says.
        """
        directory = path if path.is_dir() else path.parent
        if not path.exists():
            raise ConfigError(f"no tokenizer at {path}: no such file or directory", param="tokenizer_path")
        tokenizer_json = path if path.is_file() else directory / "tokenizer.json"
        config_file, map_file = directory / "tokenizer_config.json", directory / "special_tokens_map.json"
        config, special_map = _read_object(config_file), _read_object(map_file)
        tokenizer_class = config.get("tokenizer_class")
        if not isinstance(tokenizer_class, str | None):
            raise wrong_entry(config_file, "tokenizer_class", "must be a string", tokenizer_class)
        for file, entries in ((config_file, config), (map_file, special_map)):
            for name in _NAMED:
                token_text(file, name, entries.get(name))
        return cls(
            directory=directory,
            tokenizer_json=tokenizer_json if has_file(tokenizer_json) else None,
            declared=_declared_tokens(config_file, config),
            special=_special_strings({**special_map, **config}),
            chat_templates=_chat_templates(config_file, config),
            lowers_text=lowers_text(directory),
            normalizer=bert_normalizer(config) if tokenizer_class in BERT_CLASSES else None,
            surrounds=_surrounds(config),
        )


def add_declared_tokens(backend: Backend, files: TokenizerFiles) -> None:
    """Make the tokens that the configuration declares known to a backend whose own file lacks them.

    A token whose string is in the vocabulary keeps its id and becomes one that is never split; a new one must get the
    id that the configuration states. A special token that has no id anywhere is left alone: the model cannot know it.
    """
    known = {token.content: token for token in backend.get_added_tokens_decoder().values()}
    for token_id, token in sorted(files.declared.items()):
        if token.content in known and known[token.content].special >= token.special:
            continue
        if backend.token_to_id(token.content) is None and token_id != backend.get_vocab_size():
            continue
        _add(backend, token)
    special = [value for name, value in files.special.items() if name in _NAMED]
    special += [token for name in _LISTS for token in files.special.get(name, ())]
    for content in special:
        existing = known.get(content)
        if (existing is None or not existing.special) and backend.token_to_id(content) is not None:
            _add(backend, AddedToken(content, special=True, normalized=False))


def around(first: tuple[str, int] | None, last: tuple[str, int] | None) -> processors.TemplateProcessing:
    """What puts a token before a text and one behind it, each given by its string and id."""
    before, after = [] if first is None else ["first"], [] if last is None else ["last"]
    # Names of their own: a token's text may have what a template's notation gives a meaning to.
    tokens = [
        {"id": name, "ids": [token[1]], "tokens": [token[0]]}
        for name, token in (("first", first), ("last", last))
        if token is not None
    ]
    single = [*before, "$A", *after]
    return processors.TemplateProcessing(single=single, pair=[*single, *before, "$B:1", *after], special_tokens=tokens)


def surround(backend: Backend, files: TokenizerFiles) -> None:
    """Let BOS begin and EOS end a text if the configuration says so, whatever the backend's own file has."""
    if files.surrounds is None:
        return
    tokens = []
    for name, is_wanted in zip(("bos_token", "eos_token"), files.surrounds, strict=True):
        content = files.special.get(name) if is_wanted else None
        token_id = None if content is None else backend.token_to_id(content)
        tokens.append(None if content is None or token_id is None else (content, token_id))
    backend.post_processor = around(*tokens)


def _add(backend: Backend, token: AddedToken) -> None:
    if token.special:
        backend.add_special_tokens([token])
    else:
        backend.add_tokens([token])


def _read_object(path: Path) -> dict[str, Any]:
    if not has_file(path):
        return {}
    content = read_json(path)
    if not isinstance(content, dict):
        raise CheckpointError(f"{path} does not hold a JSON object; download it again")
    return content


def _surrounds(config: dict[str, Any]) -> tuple[bool, bool] | None:
    """Need of a BOS and an EOS; a flag that is missing beside the other has the old default."""
    bos, eos = config.get("add_bos_token"), config.get("add_eos_token")
    if config.get("tokenizer_class") not in _FLAGGED_CLASSES or not (isinstance(bos, bool) or isinstance(eos, bool)):
        return None
    return bos is not False, eos is True


def _declared_tokens(config_file: Path, config: dict[str, Any]) -> dict[int, AddedToken]:
    added_file = config_file.with_name("added_tokens.json")
    declared = {
        read_token_id(added_file, f"{content!r:.40}", value): AddedToken(content, normalized=False)
        for content, value in _read_object(added_file).items()
    }
    for index, token in declared_tokens(config_file, config).items():
        flags = {name: bool(token[name]) for name in _FLAGS if name in token}
        declared[index] = AddedToken(token["content"], **flags)
    return declared


_FLAGS = ("lstrip", "rstrip", "single_word", "normalized", "special")


def _special_strings(merged: dict[str, Any]) -> dict[str, Any]:
    special: dict[str, Any] = {}
    for name in _NAMED:
        content = token_content(merged.get(name))
        if content is not None:
            special[name] = content
    for name in _LISTS:
        value = merged.get(name)
        if isinstance(value, dict):
            special.update({key: text for key, token in value.items() if (text := token_content(token)) is not None})
            value = list(value.values())
        if isinstance(value, list):
            special[name] = [text for token in value if (text := token_content(token)) is not None]
    return special


def _chat_templates(config_file: Path, config: dict[str, Any]) -> dict[str, str]:
    """Templates by name. Files of their own win over entries of the configuration."""
    directory = config_file.parent
    templates: dict[str, str] = {}
    declared = config.get("chat_template")
    if isinstance(declared, str):
        templates[DEFAULT_TEMPLATE] = declared
    elif isinstance(declared, dict):
        templates.update({name: text for name, text in declared.items() if isinstance(text, str)})
    elif isinstance(declared, list):
        for entry in declared:
            named = (entry.get("name"), entry.get("template")) if isinstance(entry, dict) else (None, None)
            if not all(isinstance(each, str) for each in named):
                rule = "must list objects with a name and a template, both strings"
                raise wrong_entry(config_file, "chat_template", rule, entry)
            templates[entry["name"]] = entry["template"]
    from_json = _read_object(directory / "chat_template.json").get("chat_template")
    if isinstance(from_json, str):
        templates[DEFAULT_TEMPLATE] = from_json
    elif isinstance(from_json, dict):
        templates.update({name: text for name, text in from_json.items() if isinstance(text, str)})
    files = {DEFAULT_TEMPLATE: directory / "chat_template.jinja"}
    files |= {path.stem: path for path in sorted((directory / "additional_chat_templates").glob("*.jinja"))}
    for name, path in files.items():
        if has_file(path, directory):
            templates[name] = read_template_file(path)
    return templates


def read_template_file(path: Path) -> str:
    """Return the text of a Jinja file. Raises :class:`CheckpointError` if it cannot be read as UTF-8 text."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise CheckpointError(f"cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise CheckpointError(f"{path} is not UTF-8 text ({error.reason} at byte {error.start})") from None
