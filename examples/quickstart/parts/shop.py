"""The orders: what the shop does to them, what the program must make of them, and where they live."""

import json
import os
import random
import secrets
import time

from machine import Cluster, Stop, server_programs
from wire import ServerError, Session

NAMES = ("Ann", "Bob", "Chi", "Dana", "Eve", "Finn", "Gül", "Hana")
TENANTS = ("acme", "globex", "initech")
STATUSES = ("new", "paid", "shipped", "cancelled")
POISONED = 1_000_000_000


class Number(str):
    """A JSON number, digit for digit: 12.10 is not 12.1 here."""


def decode(document):
    return json.loads(document, parse_int=Number, parse_float=Number)


def transformed(order):
    """What public-orders.json makes of an order, written down a second time: (document, partition key), or None where it drops."""
    if order["kind"] != "order":
        raise Stop(f"order {order['id']} is of kind {order['kind']}: the comparison cannot be made while a record is poisoned")
    if order["status"] == "cancelled":
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

    way_out = "reset"  # the refused transaction is in the relay: a new snapshot is read from the mended table

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

    def mend(self):
        """What the operator types at the source."""
        statement = f"UPDATE {self.table} SET kind = 'order' WHERE id = {POISONED}"
        self.session.execute(statement)
        self.transactions += 1
        self.changes += 1
        return statement

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
