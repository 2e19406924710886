"""Telling a record, for applications: documents, words, numbers as people read them, text for a terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from calibrant.lazy_module import LazyModule, where

if TYPE_CHECKING:
    from calibrant.audit.compare import audits_compared as audits_compared
    from calibrant.audit.record import Finding as Finding
    from calibrant.decisions.comparison import EVERYONE as EVERYONE
    from calibrant.decisions.comparison import Difference as Difference
    from calibrant.report import numbers as numbers
    from calibrant.report.brief import facts as facts
    from calibrant.report.brief import parts as parts
    from calibrant.report.brief.action import decision as decision
    from calibrant.report.document import Cell as Cell
    from calibrant.report.document import Column as Column
    from calibrant.report.document import Document as Document
    from calibrant.report.document import Heading as Heading
    from calibrant.report.document import Node as Node
    from calibrant.report.document import Opening as Opening
    from calibrant.report.document import Paragraph as Paragraph
    from calibrant.report.document import Parts as Parts
    from calibrant.report.document import Row as Row
    from calibrant.report.document import Section as Section
    from calibrant.report.document import Table as Table
    from calibrant.report.document import number_table as number_table
    from calibrant.report.findings import limit_of as limit_of
    from calibrant.report.findings import noun as noun
    from calibrant.report.findings import ordered as ordered
    from calibrant.report.findings import screened as screened
    from calibrant.report.findings import shared_by as shared_by
    from calibrant.report.findings import stated_of as stated_of
    from calibrant.report.findings import states as states
    from calibrant.report.html import page as page
    from calibrant.report.languages.catalogue import ENGLISH as ENGLISH
    from calibrant.report.languages.translator import worded as worded
    from calibrant.report.markdown import inside as inside
    from calibrant.report.markdown import marked as marked
    from calibrant.report.markdown import written as written
    from calibrant.report.outline import document as document
    from calibrant.report.outputs import results as results
    from calibrant.report.outputs.files import write_all as write_all
    from calibrant.report.spans import Span as Span
    from calibrant.report.spans import Text as Text
    from calibrant.report.spans import clipped as clipped
    from calibrant.report.spans import code as code
    from calibrant.report.spans import label as label
    from calibrant.report.spans import literal as literal
    from calibrant.report.spans import name as name
    from calibrant.report.spans import plain as plain
    from calibrant.report.spans import say as say
    from calibrant.report.spans import sentence as sentence
    from calibrant.report.terminal import cells as cells
    from calibrant.report.terminal import clip as clip
    from calibrant.report.terminal import pad as pad
    from calibrant.report.wording.clusters import independent as independent
    from calibrant.report.wording.headline import headline as headline
    from calibrant.report.wording.headline import page_title as page_title
    from calibrant.report.wording.notices import notices as notices
    from calibrant.report.wording.parts import verdict_word as verdict_word
    from calibrant.report.wording.terms import VERDICTS as VERDICTS
    from calibrant.report.wording.terms import certified_range as certified_range
    from calibrant.report.wording.terms import judged_range as judged_range
    from calibrant.report.wording.terms import repair_named as repair_named
    from calibrant.views.sample import keyed as keyed

_WHERE = where(
    {
        "calibrant.audit.compare": "audits_compared",
        "calibrant.audit.record": "Finding",
        "calibrant.decisions.comparison": "Difference EVERYONE",
        "calibrant.report.brief": "facts parts",
        "calibrant.report.brief.action": "decision",
        "calibrant.report.document": (
            "Cell Column Document Heading Node Opening Paragraph Parts Row Section Table number_table"
        ),
        "calibrant.report.findings": "limit_of noun ordered screened shared_by stated_of states",
        "calibrant.report.html": "page",
        "calibrant.report.languages.catalogue": "ENGLISH",
        "calibrant.report.languages.translator": "worded",
        "calibrant.report.markdown": "inside marked written",
        "calibrant.report.numbers:": "numbers",
        "calibrant.report.outline": "document",
        "calibrant.report.outputs.files": "write_all",
        "calibrant.report.outputs.results:": "results",
        "calibrant.report.spans": "Span Text clipped code label literal name plain say sentence",
        "calibrant.report.terminal": "cells clip pad",
        "calibrant.report.wording.clusters": "independent",
        "calibrant.report.wording.headline": "headline page_title",
        "calibrant.report.wording.notices": "notices",
        "calibrant.report.wording.parts": "verdict_word",
        "calibrant.report.wording.terms": "VERDICTS certified_range judged_range repair_named",
        "calibrant.views.sample": "keyed",
    }
)
__all__ = sorted(_WHERE)
sys.modules[__name__].__class__ = LazyModule
