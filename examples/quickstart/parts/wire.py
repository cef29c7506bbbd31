"""A PostgreSQL session with nothing but the standard library: simple queries, values as text.

Password logins by SCRAM-SHA-256, MD5 or in clear; TLS where the url's sslmode asks for it.
"""

import base64
import hashlib
import hmac
import os
import socket
import ssl
import struct
import urllib.parse


class ServerError(Exception):
    """The server's own answer; `code` is its SQLSTATE."""

    def __init__(self, fields):
        self.code = fields.get("C", "")
        super().__init__(fields.get("M", "the server gave no reason"))


class Url:
    """postgres://user:password@host:port/database?host=…&sslmode=…"""

    def __init__(self, text):
        parts = urllib.parse.urlsplit(text)
        if parts.scheme not in ("postgres", "postgresql"):
            raise ValueError("a url begins with postgres://")
        query = dict(urllib.parse.parse_qsl(parts.query))
        text_of = lambda part: urllib.parse.unquote(part) if part else None
        self.host = query.get("host") or text_of(parts.hostname) or "localhost"
        if self.host.startswith("%2f"):
            self.host = urllib.parse.unquote(parts.netloc.rpartition("@")[2])
        self.port = int(query.get("port") or parts.port or 5432)
        self.user = query.get("user") or text_of(parts.username) or os.environ.get("USER", "postgres")
        self.password = query.get("password") or text_of(parts.password)
        self.database = query.get("dbname") or text_of(parts.path.lstrip("/")) or self.user
        self.sslmode = query.get("sslmode", "prefer")
        self.sslrootcert = query.get("sslrootcert")


class Session:
    def __init__(self, url):
        self.url = Url(url)
        self.socket = self._connect()
        self.pending = b""
        self._start()

    def execute(self, statements):
        """Runs statements; the rows of the last one, each a list of text or None."""
        self._send(b"Q", statements.encode() + b"\0")
        rows, failure = [], None
        while True:
            kind, body = self._receive()
            if kind == b"T":
                rows = []
            elif kind == b"D":
                rows.append(_values(body))
            elif kind == b"E":
                failure = ServerError(_fields(body))
            elif kind == b"Z":
                if failure:
                    raise failure
                return rows

    def value(self, statement):
        rows = self.execute(statement)
        return rows[0][0] if rows else None

    def close(self):
        try:
            self._send(b"X", b"")
        except OSError:
            pass
        self.socket.close()

    def _connect(self):
        url = self.url
        if url.host.startswith("/"):
            plain = socket.socket(socket.AF_UNIX)
            plain.connect(f"{url.host}/.s.PGSQL.{url.port}")
            return plain
        plain = socket.create_connection((url.host, url.port), timeout=10)
        plain.settimeout(None)
        if url.sslmode == "disable":
            return plain
        plain.sendall(struct.pack("!ii", 8, 80877103))
        if plain.recv(1) == b"S":
            return self._tls().wrap_socket(plain, server_hostname=url.host)
        if url.sslmode not in ("prefer", "allow"):
            raise ConnectionError("the server offers no TLS")
        return plain

    def _tls(self):
        verify = self.url.sslmode in ("verify-ca", "verify-full") or self.url.sslrootcert
        context = ssl.create_default_context(cafile=self.url.sslrootcert)
        context.check_hostname = self.url.sslmode == "verify-full"
        if not verify:
            context.verify_mode = ssl.CERT_NONE
        return context

    def _start(self):
        settings = {"user": self.url.user, "database": self.url.database, "application_name": "tidegate quickstart", "client_encoding": "UTF8"}
        body = b"".join(f"{name}\0{value}\0".encode() for name, value in settings.items()) + b"\0"
        self.socket.sendall(struct.pack("!ii", len(body) + 8, 196608) + body)
        while True:
            kind, body = self._receive()
            if kind == b"R":
                self._authenticate(body)
            elif kind == b"E":
                raise ServerError(_fields(body))
            elif kind == b"Z":
                return

    def _authenticate(self, body):
        (method,) = struct.unpack("!i", body[:4])
        password = (self.url.password or "").encode()
        if method == 3:
            self._send(b"p", password + b"\0")
        elif method == 5:
            inner = hashlib.md5(password + self.url.user.encode()).hexdigest().encode()
            self._send(b"p", b"md5" + hashlib.md5(inner + body[4:8]).hexdigest().encode() + b"\0")
        elif method == 10:
            self._scram(password)
        elif method != 0:
            raise ConnectionError(f"the server asks for a login that is not known here ({method})")

    def _scram(self, password):
        nonce = base64.b64encode(os.urandom(18)).decode()
        first = f"n=,r={nonce}"
        message = f"n,,{first}".encode()
        self._send(b"p", b"SCRAM-SHA-256\0" + struct.pack("!i", len(message)) + message)
        server_first = self._sasl()
        given = dict(part.split("=", 1) for part in server_first.split(","))
        salted = hashlib.pbkdf2_hmac("sha256", password, base64.b64decode(given["s"]), int(given["i"]))
        key = hmac.digest(salted, b"Client Key", "sha256")
        final = f"c=biws,r={given['r']}"
        signed = f"{first},{server_first},{final}".encode()
        signature = hmac.digest(hashlib.sha256(key).digest(), signed, "sha256")
        proof = base64.b64encode(bytes(a ^ b for a, b in zip(key, signature))).decode()
        self._send(b"p", f"{final},p={proof}".encode())
        expected = hmac.digest(hmac.digest(salted, b"Server Key", "sha256"), signed, "sha256")
        if self._sasl() != "v=" + base64.b64encode(expected).decode():
            raise ConnectionError("the server does not know the password either")

    def _sasl(self):
        kind, body = self._receive()
        if kind == b"E":
            raise ServerError(_fields(body))
        return body[4:].decode()

    def _send(self, kind, body):
        self.socket.sendall(kind + struct.pack("!i", len(body) + 4) + body)

    def _receive(self):
        kind = self._exactly(1)
        (length,) = struct.unpack("!i", self._exactly(4))
        return kind, self._exactly(length - 4)

    def _exactly(self, count):
        while len(self.pending) < count:
            more = self.socket.recv(65536)
            if not more:
                raise ConnectionError("the server has closed the connection")
            self.pending += more
        taken, self.pending = self.pending[:count], self.pending[count:]
        return taken


def _values(body):
    (count,) = struct.unpack("!h", body[:2])
    values, place = [], 2
    for _ in range(count):
        (length,) = struct.unpack("!i", body[place:place + 4])
        place += 4
        values.append(None if length < 0 else body[place:place + length].decode())
        place += max(length, 0)
    return values


def _fields(body):
    return {part[:1].decode(): part[1:].decode(errors="replace") for part in body.split(b"\0") if part}
