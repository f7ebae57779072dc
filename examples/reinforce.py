"""GRPO in one file: an Engine samples, transformers learns, and the Engine gets the new weights.

GRPO is group relative policy optimisation (Shao et al., 2024, arXiv:2402.03300, section 4.1). The bundled model learns
to be brief: an answer earns the more the fewer of its tokens it has used. Each round samples a group of answers to
each question, compares every answer with its group, takes a few steps of gradient descent, and hands the new weights
over in memory. While transformers learns, the engine sleeps: its weights, which are about to be replaced, and its KV
cache are given back to the machine.
"""

import argparse
import copy
import time
from typing import Any, NamedTuple

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from bough import Engine

QUESTIONS = ("Tell me a story about a fox.", "Tell me about the oak.", "Why do leaves fall?", "Tell me a story.")
MAX_TOKENS = 64
CLIP = 0.2
"""Most that an update may change the probability of a token, as a share of it, and still be encouraged to."""
LEARNING_RATE = 3e-4


class Batch(NamedTuple):
    """Sampled answers as rows, each behind its prompt and padded on the right."""

    tokens: torch.Tensor  # [B, T]
    is_answer: torch.Tensor  # [B, T-1] of bool: the token after this position was sampled
    sampled_logprobs: torch.Tensor  # [B, T-1], as the engine reported them; 0 elsewhere
    rewards: torch.Tensor  # [B]
    advantages: torch.Tensor  # [B]


def reward(answer: list[int]) -> float:
    """Return the share of the tokens that an answer has left over, from 0 to 1."""
    return 1 - len(answer) / MAX_TOKENS


def sample(engine: Engine, prompts: list[list[int]], group_size: int) -> Batch:
    """Sample ``group_size`` answers to each prompt, all at once: the groups share the KV of their prompts."""
    sampling = {"temperature": 1.0, "max_new_tokens": MAX_TOKENS}
    repeated = [prompt for prompt in prompts for _ in range(group_size)]
    answers: list[dict[str, Any]] = engine.generate(input_ids=repeated, sampling_params=sampling, return_logprob=True)
    rewards = torch.tensor([reward(answer["output_ids"]) for answer in answers])
    groups = rewards.view(len(prompts), group_size)
    advantages = (groups - groups.mean(1, keepdim=True)) / (groups.std(1, keepdim=True) + 1e-4)

    width = max(len(prompt) + len(answer["output_ids"]) for prompt, answer in zip(repeated, answers, strict=True))
    tokens = torch.zeros(len(answers), width, dtype=torch.long)
    is_answer = torch.zeros(len(answers), width - 1, dtype=torch.bool)
    logprobs = torch.zeros(len(answers), width - 1)
    for row, (prompt, answer) in enumerate(zip(repeated, answers, strict=True)):
        ids = answer["output_ids"]
        begin, end = len(prompt) - 1, len(prompt) - 1 + len(ids)
        tokens[row, : end + 1] = torch.tensor(prompt + ids)
        is_answer[row, begin:end] = True
        logprobs[row, begin:end] = torch.tensor([each[0] for each in answer["meta_info"]["output_token_logprobs"]])
    return Batch(tokens, is_answer, logprobs, rewards, advantages.flatten())


def logprobs_of(model: torch.nn.Module, tokens: torch.Tensor) -> torch.Tensor:
    """Return the log-probability of each token after the first, ``[B, T-1]``; padding needs no mask behind causal
    attention."""
    logits = model(tokens).logits[:, :-1]
    return torch.gather(logits.log_softmax(-1), 2, tokens[:, 1:, None]).squeeze(2)


def loss_of(batch: Batch, logprobs: torch.Tensor, reference: torch.Tensor | None, kl_weight: float) -> torch.Tensor:
    """Return the loss of GRPO, with every sampled token weighted alike."""
    ratio = torch.exp(logprobs - batch.sampled_logprobs)
    advantage = batch.advantages[:, None]
    losses = -torch.minimum(ratio * advantage, ratio.clamp(1 - CLIP, 1 + CLIP) * advantage)
    if reference is not None:  # an estimate of KL(model, reference) that is never negative
        difference = reference - logprobs
        losses = losses + kl_weight * (torch.exp(difference) - difference - 1)
    return losses[batch.is_answer].mean()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--group-size", type=int, default=8, help="answers to each question in a round")
    parser.add_argument("--steps", type=int, default=2, help="of gradient descent in a round")
    parser.add_argument("--kl", type=float, default=0.0, help="weight of the divergence from the model at the start")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    torch.manual_seed(options.seed)

    with Engine(dtype="float32", random_seed=options.seed, max_total_tokens=8192) as engine:
        path = engine.get_model_info()["model_path"]
        tokenizer = AutoTokenizer.from_pretrained(path)
        chats = [[{"role": "user", "content": question}] for question in QUESTIONS]
        prompts = [tokenizer.apply_chat_template(chat, add_generation_prompt=True)["input_ids"] for chat in chats]
        model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
        start = copy.deepcopy(model) if options.kl > 0 else None
        optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=0.0)

        begin = time.perf_counter()
        for number in range(options.rounds + 1):
            batch = sample(engine, prompts, options.group_size)
            tokens = batch.is_answer.sum() / len(batch.rewards)
            print(f"round {number}: reward {batch.rewards.mean():.3f}, {tokens:.1f} tokens an answer", flush=True)
            if number == options.rounds:
                break

            engine.sleep(level=2)
            reference = None
            if start is not None:
                with torch.no_grad():
                    reference = logprobs_of(start, batch.tokens)
            for _ in range(options.steps):
                optimizer.zero_grad()
                loss_of(batch, logprobs_of(model, batch.tokens), reference, options.kl).backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
            engine.wake_up(["weights"])
            done = engine.update_weights_from_tensor(model.state_dict().items(), weight_version=f"round {number + 1}")
            if not done.success:
                raise RuntimeError(done.message)
            engine.wake_up()  # everything else
        print(f"{options.rounds} rounds in {time.perf_counter() - begin:.1f} s")


if __name__ == "__main__":
    main()
