"""Policy gradients (Williams, 1992) in a loop: an Engine samples, transformers learns, and the Engine gets the weights.

The bundled model is taught to be brief: an answer is better the fewer tokens it has. Each round samples answers, makes
those that are better than the average of the round more likely, and hands the new weights over in memory.
"""

import argparse

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from bough import Engine

QUESTIONS = ("Tell me a story about a fox.", "Tell me about the oak.", "Why do leaves fall?", "Tell me a story.")
MOST_TOKENS = 64


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--samples", type=int, default=8, help="answers to each question in a round")
    arguments = parser.parse_args()

    with Engine(dtype="float32", random_seed=1) as engine:
        path = engine.get_model_info()["model_path"]
        tokenizer = AutoTokenizer.from_pretrained(path)
        trained = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
        optimizer = torch.optim.AdamW(trained.parameters(), lr=3e-4, weight_decay=0.0)
        prompts = [
            tokenizer.apply_chat_template([{"role": "user", "content": question}], add_generation_prompt=True)[
                "input_ids"
            ]
            for question in QUESTIONS
            for _ in range(arguments.samples)
        ]
        for number in range(arguments.rounds):
            sampling = {"temperature": 1.0, "max_new_tokens": MOST_TOKENS}
            answers = engine.generate(input_ids=prompts, sampling_params=sampling)
            lengths = torch.tensor([float(len(answer["output_ids"])) for answer in answers])
            versions = {answer["meta_info"]["weight_version"] for answer in answers}
            print(f"{' '.join(versions)}: {lengths.mean():.1f} tokens an answer", flush=True)

            by_question = lengths.view(len(QUESTIONS), arguments.samples)
            advantages = (by_question.mean(1, keepdim=True) - by_question) / (by_question.std(1, keepdim=True) + 1.0)
            optimizer.zero_grad()
            for prompt, answer, advantage in zip(prompts, answers, advantages.flatten(), strict=True):
                tokens = torch.tensor([prompt + answer["output_ids"]])
                logprobs = trained(tokens).logits[0, len(prompt) - 1 : -1].log_softmax(-1)
                chosen = logprobs.gather(1, tokens[0, len(prompt) :, None])
                (-advantage * chosen.sum() / len(prompts)).backward()
            torch.nn.utils.clip_grad_norm_(trained.parameters(), 1.0)
            optimizer.step()

            done = engine.update_weights_from_tensor(trained.state_dict().items(), weight_version=f"round {number + 1}")
            assert done.success, done.message


if __name__ == "__main__":
    main()
