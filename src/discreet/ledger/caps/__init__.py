"""Caps of people, projects and teams on an account, and what lifts one."""
