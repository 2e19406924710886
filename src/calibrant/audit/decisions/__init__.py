"""What an audit reports about decisions at a threshold: who is acted on, what happened to them, what it is worth."""
