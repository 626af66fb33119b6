"""Prices of events, and calibration to a target."""
