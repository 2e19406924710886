"""Where rows come from: files, globs, frames, queries; each as parts that can be read apart."""
