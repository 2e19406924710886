"""What applications may use beside the public functions: faces, which load a name when it is first used."""
