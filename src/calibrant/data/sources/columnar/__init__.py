"""Files of columns: Parquet, Arrow IPC and ORC, by row group, record batch and stripe; checked as they are read."""
