"""Gives every font of matplotlib's font cache an entry for each weight that it has no file for.

matplotlib warns on standard error whenever the weight asked for is missing, once for every font of
the fallback list, so a bold title would print a warning for each script's font. The entry added
points at the file of the nearest weight that exists, which is what matplotlib would have drawn
with anyway.
"""

import json
import sys
from collections import defaultdict

WEIGHTS = range(100, 1000, 100)


def nearest(weight: int, entries: list[dict]) -> dict:
    return min(entries, key=lambda entry: (abs(entry["weight"] - weight), -entry["weight"]))


def main() -> None:
    path = sys.argv[1]
    with open(path, encoding="utf-8") as file:
        cache = json.load(file)
    faces = defaultdict(list)
    for entry in cache["ttflist"]:
        # Pillow and matplotlib name weights by words in some fonts; those stay as they are.
        if isinstance(entry["weight"], int):
            key = (entry["name"], entry["style"], entry["variant"], entry["stretch"])
            faces[key].append(entry)
    for entries in faces.values():
        present = {entry["weight"] for entry in entries}
        missing = [weight for weight in WEIGHTS if weight not in present]
        cache["ttflist"] += [dict(nearest(weight, entries), weight=weight) for weight in missing]
    with open(path, "w", encoding="utf-8") as file:
        json.dump(cache, file, indent=1)


main()
