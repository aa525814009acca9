"""How wrong keys are counted, and how many addresses are remembered."""

from scheduler_app.api.auth import MAX_ADDRESSES, MAX_WRONG_KEYS, WRONG_KEYS_SECONDS, WrongKeys


def test_an_address_is_within_the_limit_again_after_a_minute() -> None:
    counted = WrongKeys()
    assert [counted.add("10.0.0.1", 0.0) for _ in range(MAX_WRONG_KEYS + 2)] == [
        *range(1, MAX_WRONG_KEYS + 3)
    ]
    assert counted.add("10.0.0.2", 1.0) == 1
    assert counted.add("10.0.0.1", WRONG_KEYS_SECONDS - 0.1) == MAX_WRONG_KEYS + 3
    assert counted.add("10.0.0.1", WRONG_KEYS_SECONDS + 0.1) == 1


def test_the_addresses_of_one_ipv6_network_count_as_one() -> None:
    counted = WrongKeys()
    counted.add("2001:db8::1", 0.0)
    assert counted.add("2001:db8::ffff:1", 0.0) == 2
    assert counted.add("2001:db8:0:1::1", 0.0) == 1
    assert counted.add("::ffff:10.0.0.1", 0.0) == counted.add("10.0.0.1", 0.0) - 1


def test_a_bounded_number_of_addresses_is_remembered_the_newest_ones() -> None:
    counted = WrongKeys()
    for number in range(MAX_ADDRESSES + 10):
        counted.add(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", 0.0)
    assert len(counted) == MAX_ADDRESSES
    assert counted.add("10.0.0.0", 1.0) == 1
    assert counted.add(f"10.0.{(MAX_ADDRESSES + 9) >> 8}.{(MAX_ADDRESSES + 9) & 255}", 1.0) == 2


def test_what_is_no_address_is_counted_as_it_is() -> None:
    counted = WrongKeys()
    assert [counted.add("", 0.0), counted.add("", 0.0)] == [1, 2]
