"""Two small logs made by Inspect with its mock model: `python inspect_run.py FOLDER`."""

from __future__ import annotations

import sys

QUESTIONS, EPOCHS = 2, 2
STATED = ("0 | 91%", "5 | 65%", "0 | 71%", "2 | 87%")  # to 0 + 0 and 1 + 1, twice: answer and confidence
RIGHT, CONFIDENCES = (1, 0, 1, 1), (0.91, 0.65, 0.71, 0.87)


def run(folder: str, form: str) -> str:
    """Evaluate a model that says `SAID`, with a scorer that keeps the confidence; return the path of the log."""
    from inspect_ai import Task
    from inspect_ai import eval as evaluate
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import Score, Target, accuracy, scorer
    from inspect_ai.solver import TaskState, generate

    @scorer(metrics=[accuracy()])
    def stated():  # type: ignore[no-untyped-def]
        async def score(state: TaskState, target: Target) -> Score:
            answer, _, confidence = state.output.completion.partition(" | ")
            value = "C" if answer == target.text else "I"
            return Score(value=value, answer=answer, metadata={"confidence": confidence})

        return score

    outputs = [ModelOutput.from_content("mockllm/model", stated_value) for stated_value in STATED]
    for output in outputs:
        output.usage = ModelUsage(input_tokens=5, output_tokens=5, total_tokens=10)  # else it asks a tokenizer
    topics = ("history", "algebra")
    samples = [
        Sample(id=f"q{i}", input=f"What is {i} + {i}?", target=str(2 * i), metadata={"topic": topics[i]})
        for i in range(QUESTIONS)
    ]
    (log,) = evaluate(
        Task(dataset=samples, solver=generate(), scorer=stated(), name="sums"),
        model=get_model("mockllm/model", custom_outputs=outputs),
        epochs=EPOCHS,
        log_dir=folder,
        log_format=form,
        display="none",
        max_samples=1,
        max_connections=1,
        log_realtime=False,
    )
    return str(log.location)


if __name__ == "__main__":
    print(run(sys.argv[1], "eval"), run(sys.argv[1], "json"))
