"""The limits of returned files, 4 MiB each and 16 MiB in all, at both edges."""

MIB = 1 << 20


def test_exactly_the_limit_comes_back(daemon):
    answer = daemon.execute(f"open('f','wb').write(b'a' * {4 * MIB}); print('ok')")
    assert answer.file("f") == b"a" * (4 * MIB) and "files_omitted" not in answer.json
    assert "end" not in answer.json or answer.json["end"]["cause"] == "exited"


def test_one_byte_more_is_named_and_the_run_succeeds(daemon):
    answer = daemon.execute(f"open('f','wb').write(b'a' * {4 * MIB + 1}); print('ok')")
    assert answer["stdout"] == "ok\n" and answer["exit_code"] == 0
    assert "files" not in answer.json
    assert answer.json["files_omitted"] == [
        {"path": "f", "size": 4 * MIB + 1, "reason": "too_large"}
    ]


def test_of_five_only_sixteen_mebibytes(daemon):
    answer = daemon.execute(f"for n in range(5): open(f'f{{n}}','wb').write(b'a' * {4 * MIB})")
    assert answer.paths() == ["f0", "f1", "f2", "f3"]
    assert answer.json["files_omitted"] == [{"path": "f4", "size": 4 * MIB, "reason": "total"}]


def test_exactly_the_total(daemon):
    answer = daemon.execute(f"for n in range(4): open(f'f{{n}}','wb').write(b'a' * {4 * MIB})")
    assert len(answer.paths()) == 4 and "files_omitted" not in answer.json


def test_one_byte_over_the_total(daemon):
    code = (
        f"for n in range(4): open(f'f{{n}}','wb').write(b'a' * {4 * MIB})\nopen('g','w').write('x')"
    )
    answer = daemon.execute(code)
    assert len(answer.paths()) == 4
    assert answer.json["files_omitted"] == [{"path": "g", "size": 1, "reason": "total"}]
