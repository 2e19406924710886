"""What a sketch counts, fixed before any label is read: columns, levels, codings, features; and how it is stored."""
