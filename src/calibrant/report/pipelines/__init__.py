"""What a pipeline reads of an audit: an assertion, test results, a summary of changes, numbers, a model card."""
