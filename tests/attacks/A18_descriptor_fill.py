# Opens descriptors until refused, then tries to raise the limit.
import resource

s, h = resource.getrlimit(resource.RLIMIT_NOFILE)
try:
    resource.setrlimit(resource.RLIMIT_NOFILE, (h, h))
except ValueError:
    pass
fds = []
try:
    while len(fds) < 70000:
        fds.append(os.dup(1))
except OSError as e:
    print("stopped at", len(fds), e.strerror)
if len(fds) > 8192:
    bad("nofile too high", len(fds))
for fd in fds:
    os.close(fd)
try:
    resource.setrlimit(resource.RLIMIT_NOFILE, (h * 2, h * 2))
    bad("raised hard limit")
except (ValueError, PermissionError):
    pass
verdict()
