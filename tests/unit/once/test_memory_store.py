from rmqtools.once import MemoryStore


def consume(store, *keys, window=60.0):
    with store.claim(keys, window) as claim:
        claim.done |= claim.new
        return set(claim.new)


def test_a_key_is_forgotten_after_the_window(clock):
    store = MemoryStore(clock=clock)
    consume(store, "a")

    clock.advance(59)
    assert consume(store, "a") == set()
    clock.advance(2)
    assert consume(store, "a") == {"a"}


def test_beyond_max_keys_the_oldest_are_forgotten(clock):
    store = MemoryStore(max_keys=2, clock=clock)
    for key in "abc":
        consume(store, key)

    assert consume(store, "b", "c") == set()
    assert consume(store, "a") == {"a"}


def test_a_key_that_another_thread_is_consuming_is_busy():
    store = MemoryStore()
    with store.claim(["a"], 60), store.claim(["a", "b"], 60) as second:
        assert (second.new, second.busy) == (frozenset("b"), frozenset("a"))
