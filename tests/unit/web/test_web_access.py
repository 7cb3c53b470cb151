"""Nobody reads who may not. Without these a store could be read by any site that a browser visits, or by a network."""

from __future__ import annotations

import ipaddress

import pytest

from headwater.errors import ConfigurationError
from headwater.web.access import local_path
from headwater.web.settings import TrustedProxy, WebSettings
from tests.unit.web.conftest import Opener

TOKEN = "a-token-that-nobody-guesses"
PAGE = {"Accept": "text/html"}
PROXY = TrustedProxy(networks=(ipaddress.ip_network("10.1.0.0/16"),))


def test_loopback_is_served_to_anybody_on_this_machine(open_site: Opener) -> None:
    assert open_site().get("/search").status_code == 200
    assert open_site(host="localhost").get("/search").status_code == 200
    assert open_site(host="[::1]").get("/search").status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "0.0.0.0",  # noqa: S104
        "::",
        "192.0.2.1",
        "lineage.example.com",
    ],
)
def test_what_others_can_reach_needs_an_access_control(host: str) -> None:
    with pytest.raises(ConfigurationError, match="nothing says who may read: give a token"):
        WebSettings(host=host)
    assert WebSettings(host=host, token=TOKEN).has_access_control


def test_a_token_that_can_be_guessed_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="less than 16 characters"):
        WebSettings(token="short")


def test_a_name_that_isnt_the_servers_is_refused(open_site: Opener) -> None:
    """A site lets its own name point to 127.0.0.1, and its script asks as if it were of this server."""
    assert open_site(host="evil.example").get("/search.json").status_code == 421
    assert open_site(host="lineage.example", names=("lineage.example",)).get("/search.json").status_code == 200


def test_a_token_lets_programs_in(open_site: Opener) -> None:
    site = open_site(token=TOKEN)
    assert site.get("/search.json").status_code == 401
    assert site.get("/search.json", headers={"Authorization": "Bearer wrong"}).status_code == 401
    assert site.get("/search.json", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
    for path in ("/", "/openapi.json", "/table.json?name=lake.db.daily"):
        assert site.get(path).status_code == 401, path
    assert site.get("/live").status_code == 200


def test_a_browser_logs_in_with_the_token_and_out(open_site: Opener) -> None:
    site = open_site(token=TOKEN)
    sent = site.get("/table?name=lake.db.daily", headers=PAGE)
    assert (sent.status_code, sent.headers["location"]) == (303, "/login?next=%2Ftable%3Fname%3Dlake.db.daily")
    assert site.post("/login", data={"token": "wrong"}).status_code == 401
    entered = site.post("/login", data={"token": TOKEN, "next": "/table?name=lake.db.daily"})
    assert entered.headers["location"] == "/table?name=lake.db.daily"
    cookie = entered.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert TOKEN not in cookie
    assert site.get("/table?name=lake.db.daily", headers=PAGE).status_code == 200
    site.post("/logout")
    assert site.get("/search", headers=PAGE).status_code == 303


def test_a_cookie_that_somebody_wrote_himself_is_nothing(open_site: Opener) -> None:
    site = open_site(token=TOKEN)
    site.cookies.set("headwater", "eyJ1c2VyIjogImFkbWluIn0=.aaaaaa.bbbbbbbbbbbbbbbbbbbbbbbbbbb")
    assert site.get("/search.json").status_code == 401


def test_a_proxy_is_believed_where_it_connects_from(open_site: Opener) -> None:
    named = {"X-Forwarded-User": "ann"}
    assert open_site(proxy=PROXY, peer="10.1.2.3").get("/search.json", headers=named).status_code == 200
    assert open_site(proxy=PROXY, peer="10.1.2.3").get("/search.json").status_code == 403
    assert open_site(proxy=PROXY, peer="192.0.2.7").get("/search.json", headers=named).status_code == 403


@pytest.mark.parametrize("text", ["//evil.example", "https://evil.example", "/\\evil.example", "evil", "/a\r\nb", ""])
def test_a_login_leads_nowhere_else(text: str) -> None:
    assert local_path(text) == "/"


def test_a_cookie_is_marked_where_readers_come_by_https(open_site: Opener) -> None:
    entered = open_site(token=TOKEN, is_https=True).post("/login", data={"token": TOKEN})
    assert "secure" in entered.headers["set-cookie"].lower()
