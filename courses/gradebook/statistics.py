"""Statistics of a graded class: the distribution of points, and how many passed each cell."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median

from ...hub.schemas.grading import CellRateOut, DistributionOut, GradeOut, GradesOut, StatisticsOut

PARTS = 10
"""Bars of the distribution: tenths of the maximum."""


def statistics(found: GradesOut) -> StatisticsOut:
    """The statistics of the students who have been graded, late penalties included."""
    graded = [each for each in found.grades if each.graded]
    return StatisticsOut(
        course=found.course,
        assignment=found.assignment,
        distribution=_distribution(graded) if graded else None,
        cells=_rates(found.questions, graded),
    )


def _distribution(graded: Sequence[GradeOut]) -> DistributionOut:
    scores = [each.score for each in graded]
    bars = [0] * PARTS
    for each in graded:
        part = each.score / each.max_score if each.max_score else 0.0
        # The maximum, and extra credit above it, belong to the last bar.
        bars[max(0, min(PARTS - 1, int(part * PARTS)))] += 1
    return DistributionOut(
        students=len(graded),
        mean=fmean(scores),
        median=median(scores),
        least=min(scores),
        most=max(scores),
        max_score=max(each.max_score for each in graded),
        bars=bars,
    )


def _rates(questions: Sequence[str], graded: Sequence[GradeOut]) -> list[CellRateOut]:
    """The cells in the order of the notebook; those without any score are left out."""
    rates = []
    for question in questions:
        cells = [cell for each in graded for cell in each.cells if cell.cell == question]
        scored = [(cell.score, cell.max_score) for cell in cells if cell.score is not None]
        if scored:
            rates.append(
                CellRateOut(
                    notebook=cells[0].notebook,
                    cell=question,
                    students=len(scored),
                    passed=sum(score >= most for score, most in scored),
                    mean=fmean(score for score, _ in scored),
                    max_score=scored[0][1],
                )
            )
    return rates
