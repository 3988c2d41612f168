"""Billing: who pays for what, and the rules by which money is paid back."""
