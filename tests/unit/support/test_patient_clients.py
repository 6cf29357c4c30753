"""Longer time-outs in tests on real servers."""

from rmqtools import ClientConfig, ProducerConfig
from tests.support.patience import PATIENT_REQUEST
from tests.support.patient_clients import CONFIGS, patient_defaults


def timeouts(**given: float) -> tuple[float, float]:
    config = ProducerConfig.from_mapping({"name_server": "a:1", **{k: str(v) for k, v in given.items()}})
    return config.send_timeout, config.request_timeout


def test_configs_made_in_the_block_wait_longer_unless_they_say_how_long():
    users = timeouts()

    with patient_defaults():
        assert timeouts() == (PATIENT_REQUEST, PATIENT_REQUEST)
        assert timeouts(send_timeout=0.5) == (0.5, PATIENT_REQUEST)

    assert timeouts() == users == (3.0, 3.0)


def test_every_config_of_a_client_is_among_them():
    known, found = [ClientConfig], {ClientConfig}
    while known:
        found |= (below := set(known.pop().__subclasses__()))
        known += below

    public = {config.__name__ for config in found if config.__module__.startswith("rmqtools.config")}
    assert public - {config.__name__ for config in CONFIGS} == {"ConsumerConfig"}  # nobody makes one
