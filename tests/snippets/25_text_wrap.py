import textwrap
from collections import Counter

text = "The quick brown fox jumps over the lazy dog. The dog sleeps; the fox runs on and on."
print(textwrap.fill(text, width=30, initial_indent="* ", subsequent_indent="  "))
words = Counter(w.strip(".;").lower() for w in text.split())
for word, n in words.most_common(3):
    print(f"{word:<8}|{n:>3}|{'#' * n}")
