import os
import zipfile

with zipfile.ZipFile("input.zip") as z:
    print(z.namelist())
    z.extractall("extracted")

total = 0
for root, _, files in os.walk("extracted"):
    for name in sorted(files):
        text = open(os.path.join(root, name)).read()
        total += len(text.split())
        print(name, len(text))

with zipfile.ZipFile("output.zip", "w", zipfile.ZIP_DEFLATED) as z:
    z.writestr("summary.txt", f"words: {total}\n")
    z.write("extracted/a.txt", "copy/a.txt")
print("words:", total)
