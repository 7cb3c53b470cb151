"""How jobs are run again, as `correction.toml` says: what is wrong in the file is named with what to write."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.errors import ConfigurationError
from headwater.versions.correction import RerunCommand, RerunCommands
from tests.kit.lineage.scripted_producer import NOON, at

A_DAY = 24 * 60


@pytest.mark.parametrize(
    ("template", "commands"),
    [
        ("jobs/report.py", ("jobs/report.py",)),
        ("jobs/report.py {date}", ("jobs/report.py 2026-03-01", "jobs/report.py 2026-03-02")),
        (
            "report.py --from {date-1} {date+30}",
            ("report.py --from 2026-02-28 2026-03-31", "report.py --from 2026-03-01 2026-04-01"),
        ),
        (
            'report.py \'{{"day": "{date}"}}\'',
            ('report.py \'{"day": "2026-03-01"}\'', 'report.py \'{"day": "2026-03-02"}\''),
        ),
    ],
)
def test_each_day_is_run_once(template: str, commands: tuple[str, ...]) -> None:
    """Three runs on two days, the later ones first."""
    assert RerunCommand("report", template).commands([at(A_DAY), NOON, at(60)]) == commands


def test_a_file_names_jobs(tmp_path: Path) -> None:
    file = tmp_path / "correction.toml"
    file.write_text('[jobs.details]\nrun = "details.py"\n[jobs."etl/daily report"]\nrun = "report.py {date}"\n')
    found = RerunCommands.read(file)
    assert found.of("details") == RerunCommand("details", "details.py")
    assert found.of("etl/daily report") == RerunCommand("etl/daily report", "report.py {date}")
    assert found.of("report") is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("jobs = 3", r'jobs has to be a table: write \[jobs\."NAME"\]'),
        ("[job.a]\nrun = 'a.py'", "there is no key 'job'; did you mean 'jobs'"),
        ("[jobs]\na = 'a.py'", r'\[jobs\."a"\] has to be a table'),
        ("[jobs.a]\nrn = 'a.py'", r"there is no key 'rn'; did you mean 'run'.*\n.*run is missing"),
        ("[jobs.a]\nrun = ''", "run is missing: write run"),
        ("[jobs.a]\nrun = 3", "run is missing: write run"),
        ("[jobs.a]\nrun = 'a.py'\nstop = 3", "stop has to be a command: write stop"),
        ("[jobs.a]\nrun = 'a.py'\nstart = 'go {place}'", r"\{place\} isn't known: write .*\{checkpoint\}"),
        ("[jobs.a]\nrun = 'a.py {day}'", r"\{day\} isn't known: write \{date\}, \{date-1\}"),
        ("[jobs.a]\nrun = 'a.py {date'", r"'\{' in 'a.py \{date' is alone: write \{\{"),
        ('[jobs.a]\nrun = "a.py \'x"', "is no command: No closing quotation"),
        ("[jobs.a", "isn't TOML"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "correction.toml"
    file.write_text(text)
    with pytest.raises(ConfigurationError, match=said):
        RerunCommands.read(file)


def test_a_mistyped_job_is_an_error_and_one_that_needs_nothing_is_not() -> None:
    commands = RerunCommands({name: RerunCommand(name, "a.py") for name in ("daily_reprot", "weekly")})
    commands.refuse_unknown(["revenue"])
    with pytest.raises(ConfigurationError, match=r"'daily_reprot' made anything .* did you mean 'daily_report'"):
        commands.refuse_unknown(["revenue", "daily_report"])
