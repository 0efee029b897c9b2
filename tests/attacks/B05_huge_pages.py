"""Attacks isolation/cgroup_*.cc: huge pages that the host has set aside are counted in no memory
limit. Every way to ask for them must be refused before the pool is looked at; what a host without
such pages answers cannot be told from a refusal, so the flags that name a size are asked too."""

if sc(319, b"x", 4)[0] >= 0:
    bad("memfd_create(MFD_HUGETLB)")
for size in (0, 21, 30):
    if sc(9, 0, 1 << 21, 3, 0x22 | 0x40000 | size << 26, -1, 0)[0] != -1:
        bad("mmap(MAP_HUGETLB)", size)
    if sc(29, 0, 1 << 21, 0o1600 | 0o4000 | size << 26)[1] != "ENOMEM":
        bad("shmget(SHM_HUGETLB)", size)
verdict()
