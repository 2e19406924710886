"""Logs of evaluations of language models, as the tools that make them write them: an answer is a row."""
