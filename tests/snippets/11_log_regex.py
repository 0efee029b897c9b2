import re
from collections import Counter

pattern = re.compile(
    r'^(?P<ip>\S+) \S+ \S+ \[(?P<when>[^\]]+)\] "(?P<verb>\w+) (?P<path>\S+) [^"]*"'
    r" (?P<status>\d{3}) (?P<size>\d+|-)$"
)
status, paths, bad = Counter(), Counter(), 0
with open("access.log") as f:
    for line in f:
        m = pattern.match(line.strip())
        if not m:
            bad += 1
            continue
        status[m["status"]] += 1
        paths[m["path"]] += 1
print(dict(status))
print(paths.most_common(2))
print("unparsed lines:", bad)
