"""Attacks guest/courier_out_unsafe.cc: that the working directory can be opened for reading by its
owner. Modes of directories are the program's to set."""

guard()
open("/work/kept.txt", "w").write("kept")
print("main done", flush=True)
os.chmod("/work", 0)
