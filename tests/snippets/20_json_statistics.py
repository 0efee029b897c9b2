import json
import statistics

with open("scores.json") as f:
    data = json.load(f)
summary = {
    name: {
        "mean": statistics.mean(s),
        "median": statistics.median(s),
        "stdev": round(statistics.stdev(s), 3),
    }
    for name, s in data.items()
}
print(json.dumps(summary, indent=2, sort_keys=True))
with open("summary.json", "w") as f:
    json.dump(summary, f)
