"""Pictures of curves, each declared once in `kinds`: `charts` draws it with Altair, `plots` with Matplotlib."""
