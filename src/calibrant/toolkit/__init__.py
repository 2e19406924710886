"""What applications may use next to the public functions: faces, which load a name when it is first used."""
