# Every byte, broken UTF-8, terminal sequences, and long runs of wide characters.
os.write(
    1,
    bytes(range(256))
    + b"\xed\xa0\x80\xf0\x9f\x98"
    + b"\x00\x1b]0;pwn\x07\x1b[2J"
    + b"<<<"
    + "€".encode() * 30000
    + b">>>\n",
)
os.write(2, "𝄞".encode() * 20000)
