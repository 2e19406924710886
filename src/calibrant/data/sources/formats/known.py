"""What can be read, listed once: for help, messages and the name of what comes from standard input."""

READ = "Parquet, CSV, Arrow IPC, ORC, JSON lines, Excel, NumPy, logs of evaluations"
FORMATS = {  # what the format of standard input may be called, and the ending that says so
    "csv": ".csv",
    "parquet": ".parquet",
    "arrow": ".arrow",
    "orc": ".orc",
    "jsonl": ".jsonl",
    "excel": ".xlsx",
    "numpy": ".npz",
}
