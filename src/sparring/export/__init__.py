"""Bots as folders of C++ that the judge builds."""
