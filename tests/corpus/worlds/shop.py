"""A shop: customers, their orders, items that only orders tell the owner of, sessions, reviews; products, countries."""

from __future__ import annotations

import datetime as dt
from functools import cache
from typing import Any

from tests.corpus.world import Chance, Row, Table, World

CUSTOMERS = 340
FIRST, LAST = dt.date(2024, 1, 1), dt.date(2025, 12, 31)
COUNTRIES = {"DE": 36, "FR": 22, "NL": 16, "PL": 14, "ES": 12}
SEGMENTS = {"consumer": 60, "small business": 28, "corporate": 12}
STATUSES = {"delivered": 76, "shipped": 8, "returned": 10, "cancelled": 6}
CHANNELS = {"web": 50, "app": 34, "store": 16}
COUPONS = {None: 70, "WELCOME10": 16, "SUMMER": 9, "VIP": 5}
DEVICES = {"mobile": 55, "desktop": 35, "tablet": 10}
SOURCES = {"search": 40, "direct": 26, "email": 18, "ads": 16}
MAILS = ("gmail.com", "web.de", "orange.fr", "GMail.com", "wp.pl")
DEPARTMENTS = ("fashion", "fashion", "fashion", "electronics", "electronics", "media")
CATEGORIES = ("shoes", "shirts", "bags", "phones", "cables", "books")

PRODUCTS = [
    {
        "product_id": i,
        "product_name": f"{CATEGORIES[i % 6]} no {i}",
        "category": CATEGORIES[i % 6],
        "list_price": 5.0 + 7 * (i % 9),
    }
    for i in range(1, 31)
]


def _customer(number: int, chance: Chance) -> Row:
    return {
        "customer_id": number,
        "country": chance.weighted(COUNTRIES),
        "segment": chance.weighted(SEGMENTS),
        "signup": chance.day(FIRST, dt.date(2025, 6, 30)),
        "birth_date": None if chance.happens(8) else chance.day(dt.date(1945, 1, 1), dt.date(2006, 12, 31)),
        "email": f"user{number}@{chance.one(MAILS)}",
        "newsletter": chance.happens(45),
    }


def _items(order: int, chance: Chance) -> list[Row]:
    made = []
    for _ in range(chance.weighted({1: 50, 2: 30, 3: 20})):
        product = chance.one(PRODUCTS)
        price = float(str(product["list_price"])) * (1 if chance.happens(70) else 0.75)
        made.append(
            {
                "order_id": order,
                "product_id": product["product_id"],
                "quantity": chance.weighted({1: 70, 2: 20, 4: 10}),
                "unit_price": price,
            }
        )
    return made


def _order(number: int, customer: Row, items: list[Row], chance: Chance) -> Row:
    total = sum(item["quantity"] * item["unit_price"] for item in items)
    coupon = chance.weighted(COUPONS)
    placed = chance.moment(chance.day(customer["signup"], LAST))
    return {
        "order_id": number,
        "customer_id": customer["customer_id"],
        "placed_at": placed,
        "shipped_on": None if chance.happens(7) else placed.date() + dt.timedelta(days=chance.between(0, 9)),
        "status": chance.weighted(STATUSES),
        "channel": chance.weighted(CHANNELS),
        "coupon": coupon,
        "discount": 0.0 if coupon is None else total / 8,
        "total": total,
    }


def _sessions(customer: Row, chance: Chance) -> list[Row]:
    made = []
    for _ in range(chance.below(7)):
        pages = chance.between(1, 24)
        made.append(
            {
                "customer_id": customer["customer_id"],
                "started_at": chance.moment(chance.day(customer["signup"], LAST)),
                "device": chance.weighted(DEVICES),
                "source": chance.weighted(SOURCES),
                "pages": pages,
                "seconds": pages * chance.between(8, 70),
                "converted": chance.happens(6 + pages),
            }
        )
    return made


def _reviews(customer: Row, chance: Chance) -> list[Row]:
    return [
        {
            "customer_id": customer["customer_id"],
            "product_id": chance.between(1, 30),
            "stars": chance.weighted({1: 8, 2: 8, 3: 16, 4: 30, 5: 38}),
            "posted": chance.day(customer["signup"], LAST),
            "body": chance.one(("Great!", "great", "broke after a week", "ok", "Fast delivery", "")),
        }
        for _ in range(chance.below(4))
    ]


PUBLIC = (
    Table(
        name="products",
        types={"product_id": "int", "product_name": "text", "category": "text", "list_price": "float"},
        rows=PRODUCTS,
    ),
    Table(
        name="categories",
        types={"category": "text", "department": "text"},
        rows=[{"category": c, "department": d} for c, d in zip(CATEGORIES, DEPARTMENTS, strict=True)],
    ),
    Table(
        name="countries",
        types={"country": "text", "region": "text", "vat": "float"},
        rows=[
            {"country": "DE", "region": "Central", "vat": 0.19},
            {"country": "FR", "region": "West", "vat": 0.20},
            {"country": "NL", "region": "West", "vat": 0.21},
            {"country": "PL", "region": "Central", "vat": 0.23},
            {"country": "ES", "region": "South", "vat": 0.21},
        ],
    ),
)


@cache
def world(customers: int = CUSTOMERS) -> World:
    """The shop, the same every time."""
    chance = Chance(202)
    people = [_customer(number, chance) for number in range(1, customers + 1)]
    orders: list[Row] = []
    items: list[Row] = []
    for customer in people:
        for _ in range(chance.weighted({0: 14, 1: 34, 2: 22, 3: 16, 5: 10, 8: 4})):
            bought = _items(len(orders) + 1, chance)
            orders.append(_order(len(orders) + 1, customer, bought, chance))
            items += bought
    sessions = [row for customer in people for row in _sessions(customer, chance)]
    reviews = [row for customer in people for row in _reviews(customer, chance)]
    about: Any = {"unit": "customer_id", "account": "customers"}
    protected = (
        Table(
            name="customers",
            rows=people,
            types={
                "customer_id": "int",
                "country": "text",
                "segment": "text",
                "signup": "date",
                "birth_date": "date",
                "email": "text",
                "newsletter": "bool",
            },
            bounds={"signup": (FIRST, LAST)},
            keys={"country": "countries.country", "segment": list(SEGMENTS)},
            **about,
        ),
        Table(
            name="orders",
            rows=orders,
            types={
                "order_id": "int",
                "customer_id": "int",
                "placed_at": "timestamp",
                "shipped_on": "date",
                "status": "text",
                "channel": "text",
                "coupon": "text",
                "discount": "float",
                "total": "float",
            },
            bounds={"total": (0, 2000), "discount": (0, 500), "placed_at": (FIRST, LAST)},
            keys={"status": list(STATUSES), "channel": list(CHANNELS)},
            **about,
        ),
        Table(
            name="items",
            rows=items,
            types={"order_id": "int", "product_id": "int", "quantity": "int", "unit_price": "float"},
            bounds={"quantity": (0, 10), "unit_price": (0, 100)},
            keys={"product_id": "products.product_id"},
            unit="order_id -> orders.order_id",
            account="customers",
        ),
        Table(
            name="sessions",
            rows=sessions,
            types={
                "customer_id": "int",
                "started_at": "timestamp",
                "device": "text",
                "source": "text",
                "pages": "int",
                "seconds": "int",
                "converted": "bool",
            },
            bounds={"pages": (0, 100)},
            keys={"device": list(DEVICES)},
            **about,
        ),
        Table(
            name="reviews",
            rows=reviews,
            types={"customer_id": "int", "product_id": "int", "stars": "int", "posted": "date", "body": "text"},
            bounds={"stars": (1, 5)},
            **about,
        ),
    )
    return World(name="shop", tables=(*PUBLIC, *protected), max_groups=24, max_rows=32)
