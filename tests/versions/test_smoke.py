"""Every feature of the smoke set, on every version whose jars are locked: one to two minutes a version.

A feature that a version lacks must be refused by name: neither silence nor a wait counts. The outcomes are
compared with those of the last run. With RMQTOOLS_WRITE_VERSIONS=1 they are written, to outcomes.json and to
docs/compatibility.md.
"""

import os

import pytest

from rmqtools.cluster.lock import locked_versions
from rmqtools.errors import RocketMQError
from tests.versions import table
from tests.versions.features import FEATURES
from tests.versions.site import Feature, Site, site_of

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.slow]

WRITES = os.environ.get("RMQTOOLS_WRITE_VERSIONS") == "1"


@pytest.fixture(scope="module", params=locked_versions())
def version(request):
    return request.param


@pytest.fixture(scope="module")
def site(version, request, tmp_path_factory):
    def spark():
        return request.getfixturevalue("spark")

    with site_of(version, spark, tmp_path_factory.mktemp("versions")) as site:
        yield site


@pytest.fixture(scope="module")
def expected(version):
    outcomes = table.load()
    of_version = outcomes.setdefault(version, {})
    yield of_version
    if WRITES:
        outcomes[version] = {feature: of_version[feature] for feature in FEATURES if feature in of_version}
        table.store(outcomes)


def outcome_of(feature: Feature, site: Site) -> str:
    try:
        feature(site)
    except RocketMQError as error:
        return table.refusal(error)
    return table.PASSES


@pytest.mark.parametrize("feature", FEATURES)
def test_a_feature_passes_or_is_refused_as_the_table_says(site, expected, feature):
    known = expected.pop(feature, None) if WRITES else expected.get(feature)
    outcome = outcome_of(FEATURES[feature], site)
    if WRITES:
        known = expected[feature] = outcome

    assert outcome == known
