"""Shared infrastructure of the model builders."""
