"""As much of msgspec as the audit of a text file uses, where a distribution of Pyodide lacks it; the rest refuses."""

from __future__ import annotations

import dataclasses
import json as plain
import sys
import types

UNSET = UnsetType = None


class MsgspecError(Exception):
    pass


class DecodeError(MsgspecError):
    pass


class ValidationError(DecodeError):
    pass


class Meta:
    def __init__(self, **_):
        pass


class Struct:
    def __init_subclass__(cls, **_):
        pass


def field(**_):
    return None


def _refused(*_, **__):
    raise NotImplementedError("JSON is not read here: this page was built without msgspec")


def _encode(value):
    def fields(one):
        return {f.name: getattr(one, f.name) for f in dataclasses.fields(one)}

    return plain.dumps(value, default=fields, separators=(",", ":"), ensure_ascii=False).encode()


class _Decoder:
    def __class_getitem__(cls, _):
        return cls

    decode = _refused


convert = _refused
json = types.ModuleType("msgspec.json")
json.encode, json.decode, json.Decoder = _encode, _refused, _Decoder
sys.modules["msgspec.json"] = json
