# SPDX-License-Identifier: Apache-2.0
"""What is wrong with how run.py was called, in one line."""


class UsageError(Exception):
    pass
