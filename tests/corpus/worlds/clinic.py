"""A clinic: patients, their visits, laboratory results and prescriptions; wards, diagnoses, drugs and doctors."""

from __future__ import annotations

import datetime as dt
from functools import cache

from tests.corpus.world import Chance, Row, Table, World

PATIENTS = 360
FIRST, LAST = dt.date(2024, 1, 1), dt.date(2025, 12, 31)
WARDS = {"cardiology": 30, "maternity": 14, "surgery": 26, "oncology": 16, "pediatrics": 14}
DIAGNOSES = {"I10": 30, "E11": 24, "J45": 16, "S52": 12, "O80": 10, "C50": 6, "K40": 2}
TESTS = {"glucose": (95, 22), "hemoglobin": (14, 2), "cholesterol": (200, 38), "creatinine": (1, 1)}
DRUGS = {"metformin": 30, "lisinopril": 28, "salbutamol": 18, "ibuprofen": 16, "tamoxifen": 8}
INSURERS = {"public": 70, "private": 22, "none": 8}
POSTCODES = ("10115", "10117", "10247", "10435", "12043", "12045", "13353", "14193")


def _patient(number: int, chance: Chance) -> Row:
    height = chance.around(170, 9)
    return {
        "patient_id": number,
        "sex": chance.one("FM"),
        "birth_year": chance.between(1930, 2020),
        "postcode": chance.one(POSTCODES),
        "insurer": chance.weighted(INSURERS),
        "smoker": None if chance.happens(5) else chance.happens(28),
        "height_cm": float(height),
        "weight_kg": max(30.0, height * 0.9 - 80 + chance.around(0, 14) / 2),
        "registered": chance.day(dt.date(2015, 1, 1), FIRST),
    }


def _visit(number: int, patient: Row, chance: Chance) -> Row:
    admitted = chance.day(FIRST, LAST)
    stay = chance.weighted({0: 30, 1: 25, 2: 15, 3: 12, 5: 10, 9: 6, 21: 2})
    severity = chance.weighted({1: 34, 2: 30, 3: 20, 4: 11, 5: 5})
    return {
        "visit_id": number,
        "patient_id": patient["patient_id"],
        "ward": chance.weighted(WARDS),
        "diagnosis": chance.weighted(DIAGNOSES),
        "admitted": admitted,
        "discharged": None if chance.happens(4) else admitted + dt.timedelta(days=stay),
        "severity": severity,
        "charge": 80.0 + 150 * stay + 90 * severity + chance.below(400) / 4,
        "doctor_id": chance.between(1, 12),
        "triage_note": chance.one(("", "seen by nurse", "  Walk-in ", "Referred by GP", "ambulance", "walk-in")),
    }


def _labs(patient: Row, chance: Chance) -> list[Row]:
    made = []
    for _ in range(chance.below(6)):
        test = chance.one(tuple(TESTS))
        middle, spread = TESTS[test]
        made.append(
            {
                "patient_id": patient["patient_id"],
                "test": test,
                "result": None if chance.happens(3) else max(0.0, chance.around(middle * 8, spread * 6) / 8),
                "taken_at": chance.moment(chance.day(FIRST, LAST)),
            }
        )
    return made


def _prescriptions(patient: Row, chance: Chance) -> list[Row]:
    return [
        {
            "patient_id": patient["patient_id"],
            "drug": chance.weighted(DRUGS),
            "dose_mg": float(chance.one((50, 100, 250, 500, 850))),
            "started": chance.day(FIRST, LAST),
            "days": chance.one((7, 14, 28, 90)),
        }
        for _ in range(chance.below(4))
    ]


PUBLIC = (
    Table(
        name="wards",
        types={"ward": "text", "floor": "int", "specialty": "text", "beds": "int"},
        rows=[
            {"ward": "cardiology", "floor": 1, "specialty": "internal", "beds": 40},
            {"ward": "maternity", "floor": 2, "specialty": "women", "beds": 24},
            {"ward": "surgery", "floor": 3, "specialty": "operative", "beds": 36},
            {"ward": "oncology", "floor": 2, "specialty": "internal", "beds": 18},
            {"ward": "pediatrics", "floor": 1, "specialty": "children", "beds": 20},
        ],
    ),
    Table(
        name="diagnoses",
        types={"code": "text", "label": "text", "chapter": "text"},
        rows=[
            {"code": "I10", "label": "Hypertension", "chapter": "Circulatory"},
            {"code": "E11", "label": "Type 2 diabetes", "chapter": "Endocrine"},
            {"code": "J45", "label": "Asthma", "chapter": "Respiratory"},
            {"code": "S52", "label": "Forearm fracture", "chapter": "Injury"},
            {"code": "O80", "label": "Delivery", "chapter": "Pregnancy"},
            {"code": "C50", "label": "Breast cancer", "chapter": "Neoplasms"},
            {"code": "K40", "label": "Hernia", "chapter": "Digestive"},
        ],
    ),
    Table(
        name="drugs",
        types={"drug": "text", "drug_class": "text", "price_per_day": "float"},
        rows=[
            {"drug": "metformin", "drug_class": "antidiabetic", "price_per_day": 0.25},
            {"drug": "lisinopril", "drug_class": "ace inhibitor", "price_per_day": 0.5},
            {"drug": "salbutamol", "drug_class": "bronchodilator", "price_per_day": 1.0},
            {"drug": "ibuprofen", "drug_class": "nsaid", "price_per_day": 0.125},
            {"drug": "tamoxifen", "drug_class": "hormone", "price_per_day": 2.5},
        ],
    ),
    Table(
        name="doctors",
        types={"doctor_id": "int", "doctor_specialty": "text", "senior": "bool"},
        rows=[
            {"doctor_id": i, "doctor_specialty": ("internal", "surgery", "general")[i % 3], "senior": i % 4 == 0}
            for i in range(1, 13)
        ],
    ),
)


@cache
def world(patients: int = PATIENTS) -> World:
    """The clinic, the same every time."""
    chance = Chance(101)
    people = [_patient(number, chance) for number in range(1, patients + 1)]
    visits: list[Row] = []
    for patient in people:
        for _ in range(chance.weighted({1: 40, 2: 28, 3: 18, 4: 9, 6: 5})):
            visits.append(_visit(len(visits) + 1, patient, chance))
    labs = [row for patient in people for row in _labs(patient, chance)]
    prescriptions = [row for patient in people for row in _prescriptions(patient, chance)]
    protected = (
        Table(
            name="patients",
            unit="patient_id",
            account="patients",
            rows=people,
            types={
                "patient_id": "int",
                "sex": "text",
                "birth_year": "int",
                "postcode": "text",
                "insurer": "text",
                "smoker": "bool",
                "height_cm": "float",
                "weight_kg": "float",
                "registered": "date",
            },
            bounds={"birth_year": (1900, 2030), "height_cm": (50, 220), "weight_kg": (2, 250)},
            keys={"sex": ["F", "M"]},
        ),
        Table(
            name="visits",
            unit="patient_id",
            account="patients",
            rows=visits,
            types={
                "visit_id": "int",
                "patient_id": "int",
                "ward": "text",
                "diagnosis": "text",
                "admitted": "date",
                "discharged": "date",
                "severity": "int",
                "charge": "float",
                "doctor_id": "int",
                "triage_note": "text",
            },
            bounds={
                "severity": (1, 5),
                "charge": (0, 5000),
                "admitted": ("2020-01-01", "2029-12-31"),
                "discharged": ("2020-01-01", "2029-12-31"),
            },
            keys={"ward": "wards.ward", "diagnosis": list(DIAGNOSES)},
        ),
        Table(
            name="labs",
            unit="patient_id",
            account="patients",
            rows=labs,
            types={"patient_id": "int", "test": "text", "result": "float", "taken_at": "timestamp"},
            bounds={"result": (0, 500)},
            keys={"test": list(TESTS)},
        ),
        Table(
            name="prescriptions",
            unit="patient_id",
            account="patients",
            rows=prescriptions,
            types={"patient_id": "int", "drug": "text", "dose_mg": "float", "started": "date", "days": "int"},
            bounds={"dose_mg": (0, 1000), "days": (0, 365)},
        ),
    )
    return World(name="clinic", tables=(*PUBLIC, *protected), max_groups=24, max_rows=32)
