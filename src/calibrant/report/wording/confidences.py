"""Where the confidence of a language model comes from, in words: it decides what an audit of it is about."""

from __future__ import annotations

from calibrant.data.specs.column_names import JUDGE, SAMPLED, STATED, TOKENS

MEANS = {
    STATED: "stated: the model named it in its answer",
    TOKENS: "token probability: computed from the log-probabilities of its tokens",
    JUDGE: "judge: another model scored the answer",
    SAMPLED: "sampled: how often answers to the same question agree",
}
HOW = {
    STATED: "The model was asked how sure it is and named a number; asked in other words, it may name another.",
    TOKENS: "The model's own probability of its answer, among the choices it was offered or of the tokens it wrote.",
    JUDGE: "Another model scored the answer: the audit is of that judge, on answers like these.",
    SAMPLED: "The same question was put several times; the share of answers that agree stands for the confidence.",
}
