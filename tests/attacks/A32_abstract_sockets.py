# Two sandboxes and the host cannot meet over abstract Unix sockets.
srv = """
import socket
s = socket.socket(socket.AF_UNIX)
s.bind('\\0sbx-a32')
s.listen()
open('up', 'w').close()
s.settimeout(6)
try:
    c, _ = s.accept()
    print('VERDICT BREACH peer', c.recv(10))
except OSError as e:
    print('no peer', e)
"""
cli = """
import socket
try:
    s = socket.socket(socket.AF_UNIX)
    s.connect('\\0sbx-a32')
    s.send(b'hi')
    print('VERDICT BREACH connected')
except OSError as e:
    print('refused', e)
print(open('/proc/net/unix').read()[:2000])
"""
host = """
try:
    s = socket.socket(socket.AF_UNIX)
    s.connect('\\0sbx-a32-host')
    print('VERDICT BREACH host abstract socket')
except OSError as e:
    print('refused', e)
"""
h = socket.socket(socket.AF_UNIX)
h.bind("\x00sbx-a32-host")
h.listen()
res = {}
th = threading.Thread(target=lambda: res.update(a=ex(srv, timeout_s=10)))
th.start()
time.sleep(2)
b = ex(cli + host)
th.join()
for n, (st, o, _) in (("srv", res["a"]), ("cli", b)):
    if "BREACH" in json.dumps(o):
        bad(n, o)
    if "sbx-a32-host" in json.dumps(o.get("stdout", "")).replace("VERDICT", ""):
        bad("host abstract name visible in /proc/net/unix")
verdict()
