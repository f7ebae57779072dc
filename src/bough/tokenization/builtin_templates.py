"""Chat templates for ``--chat-template NAME``, for checkpoints that bring none.

They leave a BOS token to the tokenizer, which adds it where its model wants one.
"""

from __future__ import annotations

_CHATML = """\
{%- for message in messages %}
    {{- '<|im_start|>' ~ message.role ~ '\\n' ~ message.content ~ '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}"""

_LLAMA_2 = """\
{%- set ns = namespace(system='') %}
{%- for message in messages %}
    {%- if message.role == 'system' %}
        {%- set ns.system = '<<SYS>>\\n' ~ message.content ~ '\\n<</SYS>>\\n\\n' %}
    {%- elif message.role == 'user' %}
        {{- '[INST] ' ~ ns.system ~ message.content ~ ' [/INST]' }}
        {%- set ns.system = '' %}
    {%- else %}
        {{- ' ' ~ message.content ~ ' ' ~ eos_token }}
    {%- endif %}
{%- endfor %}"""

_LLAMA_3 = """\
{%- for message in messages %}
    {{- '<|start_header_id|>' ~ message.role ~ '<|end_header_id|>\\n\\n' ~ message.content | trim ~ '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}"""

_MISTRAL = """\
{%- set ns = namespace(system='') %}
{%- for message in messages %}
    {%- if message.role == 'system' %}
        {%- set ns.system = message.content ~ '\\n\\n' %}
    {%- elif message.role == 'user' %}
        {{- '[INST] ' ~ ns.system ~ message.content ~ ' [/INST]' }}
        {%- set ns.system = '' %}
    {%- else %}
        {{- ' ' ~ message.content ~ eos_token }}
    {%- endif %}
{%- endfor %}"""

_DEEPSEEK = """\
{%- for message in messages %}
    {%- if message.role == 'system' %}
        {{- message.content }}
    {%- elif message.role == 'user' %}
        {{- '<｜User｜>' ~ message.content }}
    {%- else %}
        {{- '<｜Assistant｜>' ~ message.content ~ eos_token }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<｜Assistant｜>' }}
{%- endif %}"""

_LLAMA_4 = """\
{%- for message in messages %}
    {{- '<|header_start|>' ~ message.role ~ '<|header_end|>\\n\\n' ~ message.content | trim ~ '<|eot|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|header_start|>assistant<|header_end|>\\n\\n' }}
{%- endif %}"""

_PHI_4 = """\
{%- for message in messages %}
    {{- '<|im_start|>' ~ message.role ~ '<|im_sep|>' ~ message.content ~ '<|im_end|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant<|im_sep|>' }}
{%- endif %}"""

_GEMMA = """\
{%- set ns = namespace(system='') %}
{%- for message in messages %}
    {%- if message.role == 'system' %}
        {%- set ns.system = message.content | trim ~ '\\n\\n' %}
    {%- else %}
        {%- set role = 'model' if message.role == 'assistant' else message.role %}
        {{- '<start_of_turn>' ~ role ~ '\\n' ~ ns.system ~ message.content | trim ~ '<end_of_turn>\\n' }}
        {%- set ns.system = '' %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<start_of_turn>model\\n' }}
{%- endif %}"""

_PHI_3 = """\
{%- for message in messages %}
    {{- '<|' ~ message.role ~ '|>\\n' ~ message.content ~ '<|end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|assistant|>\\n' }}
{%- endif %}"""

_ZEPHYR = """\
{%- for message in messages %}
    {{- '<|' ~ message.role ~ '|>\\n' ~ message.content ~ eos_token ~ '\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|assistant|>\\n' }}
{%- endif %}"""

_VICUNA = """\
{%- for message in messages %}
    {%- if message.role == 'system' %}
        {{- message.content ~ ' ' }}
    {%- elif message.role == 'user' %}
        {{- 'USER: ' ~ message.content ~ ' ' }}
    {%- else %}
        {{- 'ASSISTANT: ' ~ message.content ~ eos_token }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- 'ASSISTANT:' }}
{%- endif %}"""

# The form of a question on which Qwen3-Reranker was trained, from its model card. The first message is the query, the
# last one the document.
_QWEN3_RERANKER = """\
{%- set task = instruct if instruct else
    'Given a web search query, retrieve relevant passages that answer the query' %}
{{- '<|im_start|>system\\nJudge whether the Document meets the requirements based on the Query and the Instruct ' }}
{{- 'provided. Note that the answer can only be "yes" or "no".<|im_end|>\\n<|im_start|>user\\n' }}
{{- '<Instruct>: ' ~ task ~ '\\n<Query>: ' ~ messages[0].content ~ '\\n<Document>: ' ~ messages[-1].content }}
{{- '<|im_end|>\\n<|im_start|>assistant\\n<think>\\n\\n</think>\\n\\n' }}"""

RERANKER_TEMPLATE = "qwen3-reranker"
"""Name of the template with which a language model judges documents."""

BUILTIN_TEMPLATES = {
    "chatml": _CHATML,
    "deepseek": _DEEPSEEK,
    "gemma": _GEMMA,
    "llama-2": _LLAMA_2,
    "llama-3": _LLAMA_3,
    "llama-4": _LLAMA_4,
    "mistral": _MISTRAL,
    "phi-3": _PHI_3,
    "phi-4": _PHI_4,
    RERANKER_TEMPLATE: _QWEN3_RERANKER,
    "vicuna": _VICUNA,
    "zephyr": _ZEPHYR,
}
"""Name to Jinja source."""
