"""A report in another language: finished sentences are matched with a catalogue and worded again."""
