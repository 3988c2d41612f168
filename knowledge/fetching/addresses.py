"""Addresses: one look-up of a host's name, and whether what it gave may be reached."""

import ipaddress
import socket
from collections.abc import Callable

import httpx2
from django.conf import settings

from knowledge.errors import Unreadable

# Host and port to numeric addresses, the best first. Raises OSError when there are none.
Resolve = Callable[[str, int], list[str]]

PORTS = {"http": 80, "https": 443}
# Below them are mail, shells and the like: a request sent there can be taken for their commands.
UNPRIVILEGED = range(1024, 65_536)
# The one block IANA has given out for hosts on the internet (RFC 4291, 2.4).
GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")
NAT64 = ipaddress.ip_network("64:ff9b::/96")  # RFC 6052: the last 32 bits are an IPv4 address


def look_up(host: str, port: int) -> list[str]:
    """Return the addresses the system's resolver gives. Raises OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def parsed(url: str) -> httpx2.URL:
    """Return the URL without its fragment. Raises Unreadable when it may not be asked for."""
    try:
        parts = httpx2.URL(url.strip())
    except httpx2.InvalidURL as error:
        raise Unreadable(f"it is not a valid web address: {error}") from error
    if parts.scheme not in PORTS or not parts.host:
        raise Unreadable("it is not a web address: it has to begin with http:// or https://")
    if parts.userinfo:
        raise Unreadable(
            "it holds a user name or password: only pages that need none can be ingested"
        )
    port = port_of(parts)
    if port not in PORTS.values() and port not in UNPRIVILEGED:
        raise Unreadable(
            f"web pages are not fetched from port {port}: 80, 443 and 1024 to 65535 are allowed"
        )
    return parts.copy_with(fragment=None)


def port_of(url: httpx2.URL) -> int:
    """Return the port the URL leads to, said or not."""
    return PORTS[url.scheme] if url.port is None else url.port


def checked(url: httpx2.URL, resolve: Resolve) -> list[str]:
    """Return the addresses of the URL's host, every one of which may be reached.

    One bad address spoils them all: which one answers would be for others to choose.
    Raises Unreadable.
    """
    try:
        addresses = resolve(url.raw_host.decode(), port_of(url))
    except (OSError, UnicodeError) as error:
        raise Unreadable(f"there is no host {url.host!r} to be found") from error
    if not addresses:
        raise Unreadable(f"there is no host {url.host!r} to be found")
    if not is_granted(url):
        for address in addresses:
            if not is_public(address):
                raise Unreadable(
                    f"its host leads to {address}, which is no public address: only public ones "
                    "may be fetched from, and the hosts that FETCH_PRIVATE_HOSTS names"
                )
    return addresses


def is_granted(url: httpx2.URL) -> bool:
    """Tell whether the operator has named this host, with its port where that is unusual."""
    host = f"[{url.host}]" if ":" in url.host else url.host
    names = {f"{host}:{port_of(url)}".lower()}
    if port_of(url) == PORTS[url.scheme]:
        names |= {host.lower(), url.raw_host.decode()}
    return not names.isdisjoint(name.strip().lower() for name in settings.FETCH_PRIVATE_HOSTS)


def is_public(address: str) -> bool:
    """Tell whether a numeric address is one that anybody on the internet may reach.

    An IPv6 address that carries an IPv4 address is judged by that one, too.
    """
    ip = ipaddress.ip_address(address)
    if isinstance(ip, ipaddress.IPv4Address):
        return ip.is_global and not ip.is_multicast
    if ip.ipv4_mapped is not None:
        return is_public(str(ip.ipv4_mapped))
    if ip in NAT64:
        return is_public(str(ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)))
    if ip.sixtofour is not None and not is_public(str(ip.sixtofour)):
        return False
    return ip in GLOBAL_UNICAST and ip.is_global
