"""Names that somebody may have to live with, and that shells, SQL, patterns and paths take for something else."""

from __future__ import annotations

# All of these are legal as one part of a path, so also as a column's name, a key or a partition's value.
FILE_NAMES = {
    "single quote": "it's",
    "double quote": 'say "so"',
    "semicolon": "a;b",
    "comment": "a -- b",
    "leading comment": "-- a",
    "leading dash": "-rf",
    "space": "a b ",
    "percent": "100%",
    "encoded dots": "%2e%2e",
    "encoded slash": "a%2Fb",
    "unicode": "naïve 日本 ☃",
    "decomposed": "e\u0301",
    "right to left": "a\u202eb",
    "line separator": "a\u2028b",
    "newline": "new\nline",
    "tab": "tab\there",
    "carriage return": "a\rb",
    "star": "a*",
    "two stars": "**",
    "question mark": "a?",
    "brackets": "[ab]",
    "not brackets": "[!a]",
    "braces": "{a,b}",
    "backslash": "back\\slash",
    "trailing backslash": "a\\",
    "dots inside": "a..b",
    "dollar": "$HOME ${HOME} $paths",
    "backtick": "`id`",
    "equals": "a=b=c",
    "hash": "a#b?c&d",
    "colon": "C:a",
    "drop": "x'); DROP TABLE t; --",
    "drop identifier": 'x"; DROP TABLE t; --',
    "format": "{0} {name} %s %(x)s",
}

# With a slash, or with a dot in front, they are no file's name, but still a column's name, a key or a value.
TEXTS = FILE_NAMES | {
    "parent": "../../etc",
    "dots": "..",
    "dot": ".",
    "absolute": "/etc/passwd",
    "comment block": "/* c */",
    "slash": "a/b",
    "hidden": ".hidden",
    "underscore": "_temporary",
    "nul": "a\0b",
    "delete": "a\x7fb",
    "null word": "NULL",
}
