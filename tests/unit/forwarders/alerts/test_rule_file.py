"""A wrong file of rules is refused with all its faults, each with its place and the nearest right name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headwater.errors import ConfigurationError
from headwater.forwarders.alerts.rule_file import read_rule_file
from headwater.forwarders.alerts.rules import escaped_for_slack, render
from tests.kit.checkout import ROOT
from tests.kit.forwarders.alerts import DESTINATIONS, rule_file

RULE = '[[rules]]\nname = "a"\nwhen = "job-failed"\nto = ["pager"]\n'


def faults(folder: Path, rules: str, destinations: str = DESTINATIONS) -> str:
    with pytest.raises(ConfigurationError) as caught:
        rule_file(folder, rules, destinations)
    return str(caught.value)


def test_a_right_file_is_read(tmp_path: Path) -> None:
    file = rule_file(tmp_path, RULE)
    assert [each.name for each in file.rules] == ["a"]
    assert list(file.destinations) == ["pager"]


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        (RULE + 'job = ["x"]', "rules[1] (a): there is no key job: did you mean jobs?"),
        (RULE + 'severity = "high"', "rules[1] (a).severity: "),
        (RULE + 'status = ["FINISHED"]', "rules[1] (a).status.0: "),
        (RULE + 'per = "soon"', "rules[1] (a).per: write a duration"),
        (RULE + 'text = "{jbo} failed"', "there is no name {jbo}: did you mean {job}?"),
        (RULE + 'text = "{job.__class__}"', "isn't a name"),
        (RULE + 'text = "{job!r}"', "isn't a name"),
        (RULE + 'text = "{0}"', "isn't a name"),
        (RULE + 'text = "{job"', "write a name in braces"),
        (RULE + 'exclude.table = ["x"]', "rules[1] (a).exclude.table"),
        (RULE + RULE, "two rules are called a"),
        (RULE.replace("pager", "pagr"), "rules[1] (a).to: there is no destination pagr: did you mean pager?"),
        (
            RULE.replace("job-failed", "job-fialed"),
            "rules[1] (a).when: there is no kind job-fialed: did you mean job-failed?",
        ),
        (RULE.replace('when = "job-failed"\n', ""), "rules[1] (a).when: isn't there"),
        (
            '[[rules]]\nname = "b"\nwhen = "table-late"\nto = ["pager"]\n',
            "rules[1] (b).tables: isn't there, and has to be",
        ),
        ('[[rules]]\nname = "b"\nwhen = "gap"\nreasons = ["SPOOL"]\nto = ["pager"]\n', "did you mean SPOOL_"),
        ('[rules]\nname = "b"\n', "write [[rules]]"),
        ("", "there is no rule"),
        ("[rule]\n", "there is no key rule: did you mean rules?"),
        ("[[rules]\n", "isn't TOML"),
    ],
)
def test_a_fault_of_a_rule(tmp_path: Path, rules: str, words: str) -> None:
    assert words in faults(tmp_path, rules)


@pytest.mark.parametrize(
    ("destinations", "words"),
    [
        (
            '[destinations.pager]\ntype = "slak"\n',
            "destinations.pager.type: there is no kind slak: did you mean slack?",
        ),
        ('[destinations.pager]\ntype = "slack"\n', "one of url, url.file and url.variable"),
        ('[destinations.pager]\ntype = "slack"\nurll = "http://a"\n', "did you mean destinations.pager.url?"),
        ('[destinations.pager]\ntype = "slack"\nurl = ["a"]\n', "destinations.pager.url: list can't be a value"),
        ('[destinations.pager]\ntype = "command"\ncommand = ["page"]\n', "whole path"),
        ('[destinations.pager]\ntype = "command"\ncommand = "/bin/true"\n', "destinations.pager.command"),
        ('[destinations.pager]\ntype = "command"\ncommand = ["/a"]\ntimeout = "2 h"\n', "destinations.pager.timeout"),
    ],
)
def test_a_fault_of_a_destination(tmp_path: Path, destinations: str, words: str) -> None:
    assert words in faults(tmp_path, RULE, destinations)


def test_all_faults_are_reported_at_once(tmp_path: Path) -> None:
    wrong = RULE.replace("pager", "pagr") + 'job = ["x"]\nper = "soon"\n'
    found = faults(tmp_path, wrong + '[[rules]]\nname = "a"\nwhen = "gapp"\nto = []\n')
    assert found.count(str(tmp_path / "rules.toml")) == 5
    for words in ("jobs?", "duration", "pager?", "gap?", "two rules are called a"):
        assert words in found


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="can't be read"):
        read_rule_file(tmp_path / "none.toml")


def test_the_rules_of_the_page_are_right(tmp_path: Path) -> None:
    page = (ROOT / "docs/alerts.md").read_text("utf-8")
    blocks = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    file = rule_file(
        tmp_path, "\n".join(blocks).replace('url.file = "/etc/headwater/slack.url"', 'url = "http://a/b"'), ""
    )
    assert {each.when for each in file.rules} == {"job-failed", "table-late", "column-changed"}


def test_values_are_no_templates_and_no_markup() -> None:
    assert render("{job}: {error}", {"job": "{error}", "error": "a\n\x1b[31mb"}) == "{error}: a [31mb"
    assert render("<!here> {job}", {"job": "<!channel> & <@U1>"}, escaped_for_slack) == (
        "<!here> &lt;!channel&gt; &amp; &lt;@U1&gt;"
    )
    assert len(render("{job}" * 50, {"job": "x" * 10_000})) <= 3_000
