"""Is this Model Reliable for Everyone? (Feng et al., AISTATS 2024): one script a table or figure."""

WITHOUT: dict[str, tuple[str, str]] = {}  # item: status, and why no script makes it
