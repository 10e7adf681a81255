"""What a run of the tests prints about those that it skipped."""

from types import SimpleNamespace


def test_skipped_tests_are_counted_by_reason(request):
    (conftest,) = (x for x in request.config.pluginmanager.get_plugins() if getattr(x, "KERNEL_ARGUMENTS", None))
    reasons = ["Skipped: no GPU", "Skipped: no compiler", "Skipped: no GPU"]
    printed = []
    reporter = SimpleNamespace(
        stats={"skipped": [SimpleNamespace(longrepr=("file", 1, reason)) for reason in reasons]},
        section=printed.append,
        line=printed.append,
    )
    conftest.pytest_terminal_summary(reporter)
    assert printed == ["skipped", "     2  no GPU", "     1  no compiler"]
