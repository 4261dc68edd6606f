from whytube.cli.explain import print_profile


def test_the_profile_adds_up(capsys):
    print_profile({"load": 0.5, "search": 1.5})
    said = capsys.readouterr()
    assert said.out == "", "stdout is for the answer"
    lines = [line.split() for line in said.err.splitlines()]
    assert lines == [
        ["seconds", "share"],
        ["load", "0.50", "25", "%"],
        ["search", "1.50", "75", "%"],
        ["total", "2.00", "100", "%"],
    ]
