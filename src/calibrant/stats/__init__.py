"""Statistics on plain arrays: bounds, confidence sets and corrections; nothing here knows about files."""
