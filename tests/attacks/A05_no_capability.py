# No capability in any set, no_new_privs, a filter, and no uid that is root on the host.
st = dict((l.split(":", 1) for l in open("/proc/self/status").read().splitlines() if ":" in l))
for k in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
    if int(st[k].strip(), 16):
        bad(k, st[k].strip())
if st["NoNewPrivs"].strip() != "1":
    bad("NoNewPrivs", st["NoNewPrivs"])
if st["Seccomp"].strip() != "2":
    bad("Seccomp mode", st["Seccomp"])
inside, outside, cnt = map(int, open("/proc/self/uid_map").read().split()[:3])
if os.getuid() == 0 and outside == 0:
    bad("uid 0 is host root")
if outside == 0 and cnt > 1 and (os.getuid() == 0):
    bad("identity uid map")
if 0 in os.getgroups() and outside == 0:
    bad("group 0 kept", os.getgroups())
for u in (0, 1, 65534, 12345):
    if u == os.getuid():
        continue
    if forked(lambda: (os.setuid(u), 1)[1] if True else 0) == 1 and u == 0:
        bad("setuid(0) worked")
if sc(126, 0, 0)[1] == "ok":
    bad("capset accepted")
if sc(157, 24, 0, 0, 0, 0)[0] == 0 and int(st["CapEff"], 16):
    bad("capbset_drop usable")
if sc(157, 38, 0, 0, 0, 0)[0] == 0:
    bad("no_new_privs could be cleared")
verdict()
