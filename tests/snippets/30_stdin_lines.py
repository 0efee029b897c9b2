import sys

lines = [line.strip() for line in sys.stdin]
print(len(lines), "lines read")
