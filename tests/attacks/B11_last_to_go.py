"""Attacks warden/warden_make.cc: a tenant is the first to go when the host runs out of memory, and
must not be able to make itself one of the last."""

guard()
for score in (-1000, -900, -500, -1, 0):
    try:
        with open("/proc/self/oom_score_adj", "w") as own:
            own.write(str(score))
        print("lowered to", score, flush=True)
        break
    except OSError:
        pass
