"""The orders: what the shop does to them, what the program must make of them, and where they live."""

import json
import random
import secrets
import time
from datetime import datetime, timezone

from machine import Cluster, server_programs
from wire import ServerError, Session

NAMES = ("Ann", "Bob", "Chi", "Dana", "Eve", "Finn", "Gül", "Hana")
TENANTS = ("acme", "globex", "initech")
STATUSES = ("new", "paid", "shipped", "cancelled")
POISONED = 1_000_000_000


class Number(str):
    """A JSON number, digit for digit: 12.10 is not 12.1 here."""


def encode(value):
    """JSON, a Number with the digits that it has."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{encode(member)}" for name, member in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(encode, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def decode(document):
    return json.loads(document, parse_int=Number, parse_float=Number)


def transformed(order):
    """What public-orders.json makes of an order, written down a second time: (document, partition key), or None where it drops."""
    if order["kind"] != "order" or order["status"] == "cancelled":
        return None
    order["displayName"] = order["customer"]["name"]
    order["customer"].pop("email", None)
    order.setdefault("metadata", {})["source"] = "cdc"
    return order, str(order["tenant"]["id"])


def expected(documents):
    """{key: (document, partition key)} of what the destination must hold."""
    result = {key: transformed(decode(document)) for key, document in documents.items()}
    return {key: outcome for key, outcome in result.items() if outcome is not None}


class Shop:
    """What both kinds of source have in common: transactions of 1 to 20 orders, about a quarter of them new."""

    def __init__(self, rows):
        self.random = random.Random(7)
        self.next_id = rows + 1
        self.transactions = 0
        self.changes = 0

    def change(self):
        """One transaction."""
        inserted, updated = [], {}
        for _ in range(self.random.randint(1, 20)):
            if self.random.random() < 0.25:
                inserted.append(self.next_id)
                self.next_id += 1
            else:
                updated[self.random.randint(1, self.next_id - 1)] = self.random.choice(STATUSES)
        for new in inserted:
            updated.pop(new, None)
        self.write(inserted, updated)
        self.transactions += 1
        self.changes += len(inserted) + len(updated)


# ---------------------------------------------------------------- PostgreSQL


class PostgresShop(Shop):
    """In a throw-away cluster, or in a schema of its own in the user's database."""

    def __init__(self, rows, folder, url=None):
        super().__init__(rows)
        self.cluster = None
        name = "tidegate_quickstart_" + secrets.token_hex(4)
        self.schema = self.publication = self.slot = name
        if url is None:
            self.cluster = Cluster(server_programs(), folder / "pg").ready()
            url = self.cluster.url("postgres")
            self.schema = "shop"
        self.url = url
        self.session = Session(url)
        self.title = "PostgreSQL " + self.session.value("SHOW server_version").split()[0] + (" (throw-away cluster)" if self.cluster else "")
        self.table = f"{self.schema}.orders"
        self.session.execute(
            f"CREATE SCHEMA {self.schema};"
            f"CREATE TABLE {self.table} (id bigint PRIMARY KEY, kind text NOT NULL, tenant jsonb, customer jsonb, status text, total numeric(12,2), placed timestamptz);"
            + self._insert(f"generate_series(1, {rows}) g", "(ARRAY['new','paid','shipped','cancelled'])[1 + g % 4]"))

    def settings(self):
        return {"kind": "postgres", "url": "${env:TIDEGATE_QUICKSTART_URL}", "publication": self.publication, "slot": self.slot}

    def environment(self):
        return {"TIDEGATE_QUICKSTART_URL": self.url}

    def _insert(self, series, status):
        tenants, names = (",".join(f"'{name}'" for name in names) for names in (TENANTS, NAMES))
        return (
            f"INSERT INTO {self.table} SELECT g, 'order', jsonb_build_object('id', (ARRAY[{tenants}])[1 + g % {len(TENANTS)}]),"
            f" jsonb_build_object('name', (ARRAY[{names}])[1 + g % {len(NAMES)}] || ' ' || g, 'email', 'c' || g || '@example.com'),"
            f" {status}, (g * 7919 % 100000) / 100.0, now() FROM {series};")

    def write(self, inserted, updated):
        statements = ["BEGIN"]
        if inserted:
            statements.append(self._insert(f"unnest(ARRAY{inserted}::bigint[]) g", "'new'").rstrip(";"))
        if updated:
            rows = ",".join(f"({number},'{status}')" for number, status in updated.items())
            statements.append(f"UPDATE {self.table} o SET status = v.status, total = total + 0.10 FROM (VALUES {rows}) v(id, status) WHERE o.id = v.id")
        self.session.execute(";".join([*statements, "COMMIT"]))

    def poison(self):
        self.session.execute(
            f"INSERT INTO {self.table} VALUES ({POISONED}, 'offer', '{{\"id\": \"acme\"}}', '{{\"name\": \"Mallory\", \"email\": \"m@example.com\"}}', 'new', 1.10, now())")
        self.transactions += 1
        self.changes += 1

    def mend(self, _program):
        """What the operator does: the refused transaction stays in the relay, but a new snapshot is read from the mended table."""
        statement = f"UPDATE {self.table} SET kind = 'order' WHERE id = {POISONED}"
        self.session.execute(statement)
        self.transactions += 1
        self.changes += 1
        return f"the row is mended: {statement}"

    def last(self):
        """Commits one more order and gives its key: where it has arrived, everything before has."""
        number = self.next_id
        self.next_id += 1
        self.write([number], {})
        self.transactions += 1
        self.changes += 1
        return str(number)

    def documents(self):
        """The server's own row_to_json of every order."""
        self.session.execute("SET TimeZone = 'UTC'")
        return dict(self.session.execute(f"SELECT id::text, row_to_json(o)::text FROM {self.table} o"))

    def close(self):
        """Leaves nothing behind, also where the daemon was killed."""
        try:
            if self.cluster is None:
                self._leave()
        finally:
            if self.cluster:
                self.cluster.stop()

    def _leave(self):
        session = Session(self.url)  # the first one may be in the middle of something
        deadline = time.monotonic() + 20
        while session.execute(f"SELECT FROM pg_replication_slots WHERE slot_name = '{self.slot}'"):
            try:
                session.execute(f"SELECT pg_drop_replication_slot('{self.slot}')")
            except ServerError as error:
                if error.code != "55006" or time.monotonic() > deadline:  # 55006: still active
                    raise
                session.execute(f"SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = '{self.slot}'")
                time.sleep(0.1)
        session.execute(f"DROP PUBLICATION IF EXISTS {self.publication}")
        session.execute(f"DROP SCHEMA IF EXISTS {self.schema} CASCADE")
        session.close()


# ---------------------------------------------------------------- the built-in file source


class FileShop(Shop):
    """A file of transactions, one a line, that grows."""

    BATCH = 500

    def __init__(self, rows, folder):
        super().__init__(rows)
        self.title = "the built-in file source (no PostgreSQL server programs on this machine, or --file)"
        self.table = "shop.orders"
        self.orders = {}
        self.position = 0
        self.path = folder / "shop.ndjson"
        self.file = open(self.path, "a", encoding="utf-8")
        for first in range(1, rows + 1, self.BATCH):
            numbers = range(first, min(first + self.BATCH, rows + 1))
            self._append([self._insert(number, STATUSES[number % 4]) for number in numbers])

    def settings(self):
        return {"kind": "file", "path": str(self.path)}

    def environment(self):
        return {}

    def write(self, inserted, updated):
        changes = [self._insert(number, "new") for number in inserted]
        for number, status in updated.items():
            order = self.orders[number]
            order["status"], order["cents"] = status, order["cents"] + 10
            changes.append({"relation": self.table, "op": "update", "key": str(number), "new": self._document(order)})
        self._append(changes)

    def poison(self):
        change = self._insert(POISONED, "new", kind="offer")
        self._append([change])
        self.transactions += 1
        self.changes += 1

    def mend(self, program):
        """What the operator does: a line that was read cannot be taken back, so the program says what such a record means."""
        text = json.loads(program.read_text())
        text["version"] = "v5"
        text["instructions"].insert(0, {"op": "drop-when-equals", "path": "kind", "value": "offer"})
        program.write_text(json.dumps(text, indent=2) + "\n")
        return "the program is mended: v5 begins with drop-when-equals kind offer"

    def last(self):
        number = self.next_id
        self.next_id += 1
        self.write([number], {})
        self.transactions += 1
        self.changes += 1
        return str(number)

    def documents(self):
        return {str(number): encode(self._document(order)) for number, order in self.orders.items()}

    def close(self):
        self.file.close()

    def _insert(self, number, status, kind="order"):
        order = {"id": number, "kind": kind, "tenant": TENANTS[number % len(TENANTS)], "name": f"{NAMES[number % len(NAMES)]} {number}", "status": status, "cents": number * 7919 % 100_000}
        self.orders[number] = order
        return {"relation": self.table, "op": "insert", "key": str(number), "new": self._document(order)}

    def _document(self, order):
        customer = {"name": order["name"], "email": f"c{order['id']}@example.com"}
        return {"id": order["id"], "kind": order["kind"], "tenant": {"id": order["tenant"]}, "customer": customer, "status": order["status"], "total": Number(f"{order['cents'] // 100}.{order['cents'] % 100:02}")}

    def _append(self, changes):
        self.position += 16
        line = {"position": self.position, "xid": self.position // 16, "time": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ"), "changes": changes}
        self.file.write(encode(line) + "\n")
        self.file.flush()
