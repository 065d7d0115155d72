"""The eight tools of the ferry line's service: plain functions on a database, which is a dict."""

from __future__ import annotations

import copy
import csv
import hashlib
import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

from metricsmith import DataError
from metricsmith.errors import nearest

FEE = 15
"""Euros for the move of a saver fare on a crossing that runs; any other move is free."""

Database = dict[str, Any]


def new_database() -> Database:
    """Return the database as every conversation finds it: 20 customers, 40 bookings, 30 connections."""
    return copy.deepcopy(_read())


@cache
def _read() -> Database:
    folder = Path(__file__).with_name("data")
    database: Database = {"transfers": 0}
    for table in ("customers", "bookings", "connections"):
        with (folder / f"{table}.csv").open(encoding="utf-8", newline="") as file:
            database[table] = {row.pop("id"): _typed(row) for row in csv.DictReader(file)}
    return database


def _typed(row: Mapping[str, str]) -> dict[str, Any]:
    return {name: int(value) if value.isdecimal() else value for name, value in row.items()}


def state_of(db: Database) -> str:
    """Return the hash of a database's canonical JSON: equal for equal contents, whatever order they came in."""
    text = json.dumps(db, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def find_customer(db: Database, name: str) -> str:
    """Find a customer by full name: the customer's id and the numbers of the bookings."""
    for customer, row in db["customers"].items():
        if row["name"].casefold() == str(name).strip().casefold():
            bookings = [booking for booking, of in db["bookings"].items() if of["customer"] == customer]
            return _answer({"customer": customer, "name": row["name"], "bookings": bookings})
    known = [row["name"] for row in db["customers"].values()]
    raise DataError(f"no customer is called {name!r}{nearest(str(name), known)}; ask the customer for the full name")


def get_booking(db: Database, booking: str) -> str:
    """Look a booking up by its number: holder, date of birth, fare, crossing, moves made, fee of a move."""
    row = _row(db, "bookings", booking)
    crossing = {"connection": row["connection"], **db["connections"][row["connection"]]}
    return _answer({**_view(db, booking), "crossing": crossing, "move_fee": _fee(db, row)})


def find_connections(db: Database, origin: str, destination: str, date: str) -> str:
    """List the connections between two ports on a day (YYYY-MM-DD), with times, prices in euros and seats left."""
    wanted = {"origin": origin, "destination": destination, "date": date}
    found = [
        {"connection": connection, **row}
        for connection, row in db["connections"].items()
        if all(row[name].casefold() == str(value).strip().casefold() for name, value in wanted.items())
    ]
    return _answer({"connections": found})


def move_booking(db: Database, booking: str, connection: str) -> str:
    """Move a booking to another connection between the same ports; the answer says the fee that was paid."""
    row, to = _open(db, booking), _row(db, "connections", connection)
    old = db["connections"][row["connection"]]
    if (to["origin"], to["destination"]) != (old["origin"], old["destination"]):
        raise DataError(
            f"{connection} goes from {to['origin']} to {to['destination']}, {booking} from {old['origin']} to "
            f"{old['destination']}: choose a connection between the same ports"
        )
    _take_seats(to, connection, row["passengers"])
    fee, left = _fee(db, row), old["status"]
    old["seats"] += row["passengers"]
    row.update(connection=connection, moved=row["moved"] + 1)
    return _answer({**_view(db, booking), "fee_paid": fee, "left": left})


def cancel_booking(db: Database, booking: str, refund: Literal["money", "voucher"]) -> str:
    """Cancel a booking and pay its price back, as money or as a voucher for its holder."""
    row = _open(db, booking)
    if refund not in ("money", "voucher"):
        raise DataError(f"refund is {refund!r}; allowed are 'money' and 'voucher'")
    connection = db["connections"][row["connection"]]
    connection["seats"] += row["passengers"]
    row["status"] = f"cancelled for {'money' if refund == 'money' else 'a voucher'}"
    paid = connection["price"] * row["passengers"]
    if refund == "voucher":
        db["customers"][row["customer"]]["voucher"] += paid
    return _answer({**_view(db, booking), "refund": refund, "euros": paid, "left": connection["status"]})


def book(db: Database, customer: str, connection: str, passengers: int, fare: Literal["saver", "flex"]) -> str:
    """Make a new booking for a customer's id; the answer holds its number."""
    _row(db, "customers", customer)
    if fare not in ("saver", "flex"):
        raise DataError(f"fare is {fare!r}; allowed are 'saver' and 'flex'")
    if not isinstance(passengers, int) or passengers < 1:
        raise DataError(f"passengers is {passengers!r}; it must be a whole number from 1 on")
    _take_seats(_row(db, "connections", connection), connection, passengers)
    booking = f"B{len(db['bookings']) + 1:02d}"
    of = {"customer": customer, "connection": connection, "passengers": passengers, "fare": fare}
    db["bookings"][booking] = {**of, "moved": 0, "status": "booked"}
    return _answer(_view(db, booking))


def give_voucher(db: Database, customer: str, euros: int) -> str:
    """Give a customer (by id) a voucher of some euros."""
    row = _row(db, "customers", customer)
    if not isinstance(euros, int) or not 1 <= euros <= 500:
        raise DataError(f"euros is {euros!r}; it must be a whole number from 1 to 500")
    row["voucher"] += euros
    return _answer({"customer": customer, "name": row["name"], "voucher": row["voucher"]})


def transfer_to_human(db: Database, reason: str) -> str:
    """Hand the conversation over to a person, with the reason; this ends the conversation."""
    db["transfers"] += 1  # the reason is free text, by which no database can be compared
    return _answer({"transferred": True, "reason": reason})


TOOLS: Mapping[str, Callable[..., str]] = {
    tool.__name__: tool
    for tool in (
        find_customer, get_booking, find_connections, move_booking, cancel_booking, book, give_voucher,
        transfer_to_human,
    )
}  # fmt: skip
"""All tools by name, each with the database as its first argument."""


def _row(db: Database, table: str, key: str) -> dict[str, Any]:
    if key not in db[table]:
        raise DataError(f"there is no {key!r} among the {table}{nearest(str(key), db[table])}; look it up first")
    row: dict[str, Any] = db[table][key]
    return row


def _open(db: Database, booking: str) -> dict[str, Any]:
    row = _row(db, "bookings", booking)
    if row["status"] != "booked":
        raise DataError(f"{booking} is {row['status']}; only a booking that stands can be moved or cancelled")
    return row


def _take_seats(connection: dict[str, Any], name: str, passengers: int) -> None:
    if connection["status"] != "runs" or connection["seats"] < passengers:
        raise DataError(
            f"{name} {'is called off' if connection['status'] != 'runs' else 'has not enough seats'}: "
            f"{connection['seats']} seats for {passengers} passengers; choose another connection"
        )
    connection["seats"] -= passengers


def _fee(db: Database, row: Mapping[str, Any]) -> int:
    return FEE if row["fare"] == "saver" and db["connections"][row["connection"]]["status"] == "runs" else 0


def _view(db: Database, booking: str) -> dict[str, Any]:
    row = db["bookings"][booking]
    holder = db["customers"][row["customer"]]
    return {"booking": booking, "holder": holder["name"], "born": holder["born"], **row}


def _answer(contents: Mapping[str, Any]) -> str:
    return json.dumps(contents, ensure_ascii=False)
