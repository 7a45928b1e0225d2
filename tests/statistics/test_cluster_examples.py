"""The oracle of clusters against worked examples, with == on fractions."""

from fractions import Fraction

import pytest

import cluster_oracle as oracle

F = Fraction
VOTES = [(1, 1, 1), (1, 1, 2), (2, 2, 2), (1, 2, 3), (3, 3, 3), (2, 2, 2)]
LABELS = {"A": [1, 1, 2, 2, 3, 3], "B": [1, 1, 2, 3, 3, 2]}
EQUAL = [F(1)] * 6
A, B = (oracle.kappa(VOTES, labels, EQUAL) for labels in LABELS.values())

# clusters: T_g, V_J, tau, V_P, (G_e, b, df), (deff, d_-, d_+), limits
EXAMPLES = {
    "123456": (
        A.phi,
        F(432125685, 5473632256),
        F(0),
        F(432125685, 5473632256),
        (F(6), F(1), F(5)),
        (1, 1, 1),
        [-0.250214, 0.870928],
    ),
    "112233": (
        [F(37611, 73984), F(4887, 73984), F(-21249, 36992)],
        F(540758349, 21894529024),
        F(-404967519, 1368408064),
        F(540758349, 21894529024),
        (F(3), F(2), F(2)),
        (1, 1, 1),
        [-0.226064, 0.855809],
    ),
    "111223": (
        [F(74439, 73984), F(10233, 73984), F(-1323, 1156)],
        F(121200468723, 1094726451200),
        F(-44417241, 855255040),
        F(26724019527, 301049774080),
        (F(18, 7), F(7, 3), F(11, 7)),
        (1.402375, 1.886691, 1.840594),
        [-0.903820, 0.999918],
    ),
}


def test_influence_in_the_worked_example() -> None:
    assert F(247, 544) == A.value
    expected = F(297, 544), F(-2781, 73984), F(9207, 18496), F(-31941, 73984), F(21087, 36992), F(-1323, 1156)
    assert A.phi == list(expected)
    assert (min(A.least), max(A.greatest)) == (F(-50355, 36992), F(21087, 36992))


@pytest.mark.parametrize("clusters", EXAMPLES)
def test_clusters_in_the_worked_example(clusters: str) -> None:
    T, V_J, tau, V_P, sizes, effects, limits = EXAMPLES[clusters]
    found = oracle.clustered(A.phi, EQUAL, clusters)
    assert list(found.T.values()) == list(T)
    assert (found.V_J, found.tau, found.V_P) == (V_J, tau, V_P)
    assert (found.G_e, found.b, found.df) == sizes
    least, greatest = float(min(A.least)), float(max(A.greatest))
    weight = min(1, max(1 / 4, 15 / float(found.G_e)))
    ends = found.design_effect(least, 1 / 4), found.design_effect(greatest, weight)
    assert [round(float(x), 6) for x in (found.deff, *ends)] == list(effects)
    assert [round(x, 6) for x in oracle.beta_limits(A.value, A.E, found, least, greatest, 0.95)] == limits


def test_paired_difference_in_the_worked_example() -> None:
    assert A.value - B.value == F(-81, 272)
    found = oracle.clustered([a - b for a, b in zip(A.phi, B.phi, strict=True)], EQUAL, "112233")
    assert list(found.T.values()) == [F(22275, 36992), F(16929, 36992), F(-9801, 9248)]
    assert found.V_J == found.V_P == F(386620047, 5473632256)
    assert found.tau == F(-16251597, 171051008)
