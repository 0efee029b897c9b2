import os
from pathlib import Path

for name, text in {
    "résumé.txt": "curriculum",
    "データ.csv": "名前,値\nりんご,3\n",
    "emoji-🐎.txt": "hooves",
}.items():
    Path(name).write_text(text, encoding="utf-8")
Path("папка").mkdir()
Path("папка/файл.txt").write_text("привет\n", encoding="utf-8")
print(sorted(os.listdir(".")))
print(Path("データ.csv").read_text(encoding="utf-8"), end="")
print(Path("größe.txt").read_text(encoding="utf-8"))
