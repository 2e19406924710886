"""Formats of files: what can be read, and the readers of those that are not columns or delimited text."""

READ = "Parquet, CSV, Arrow IPC, ORC, JSON lines, Excel, NumPy"  # for help and messages
FORMATS = {  # what the format of standard input may be called, and the ending that says so
    "csv": ".csv",
    "parquet": ".parquet",
    "arrow": ".arrow",
    "orc": ".orc",
    "jsonl": ".jsonl",
    "excel": ".xlsx",
    "numpy": ".npz",
}
