# What one run leaves anywhere is not there for the next.
w = """
import ctypes, os
L = ctypes.CDLL(None, use_errno=True)
for d in ('/tmp', '/dev/shm', '/var/tmp', '.', '/run', os.path.expanduser('~')):
    try:
        open(os.path.join(d, 'residue-a33'), 'w').write('x')
    except OSError:
        pass
print('shm', L.shmget(0x5bca33, 4096, 0o1666), 'msg', L.msgget(0x5bca33, 0o1666))
print('sem', L.semget(0x5bca33, 1, 0o1666), 'key', L.syscall(248, b'user', b'a33', b'x', 1, -4))
print('mq', L.syscall(240, b'a33', 0o102, 0o666, None))
try:
    os.sethostname('a33')
except Exception as e:
    print(e)
"""
r = """
import ctypes, os
L = ctypes.CDLL(None, use_errno=True)
bad = []
for d in ('/tmp', '/dev/shm', '/var/tmp', '.', '/run', os.path.expanduser('~')):
    if os.path.exists(os.path.join(d, 'residue-a33')):
        bad.append(d)
for n, v in (
    ('shm', L.shmget(0x5bca33, 0, 0)),
    ('msg', L.msgget(0x5bca33, 0)),
    ('sem', L.semget(0x5bca33, 0, 0)),
    ('mq', L.syscall(240, b'a33', 0, 0, None)),
    ('key', L.syscall(249, b'user', b'a33', None, 0)),
):
    if v >= 0:
        bad.append(n)
if os.uname().nodename == 'a33':
    bad.append('hostname')
print('VERDICT', 'BREACH' if bad else 'SAFE', bad)
"""
ids = set()
for k in range(6):
    st, b, _ = ex(w)
    ids.add(b["sandbox_id"])
    st, b, _ = ex(r)
    ids.add(b["sandbox_id"])
    if "VERDICT SAFE" not in b["stdout"]:
        bad(b)
if len(ids) != 12:
    bad("a sandbox id was used twice", ids)
verdict()
