import assert from 'node:assert/strict';
import { test } from 'node:test';
import { networkOf, sourceOf } from './caller-networks.ts';

test('networks: /24 of IPv4, /64 of IPv6', () => {
  const networks: Record<string, string> = {
    '192.168.7.9': '192.168.7.0/24',
    '::ffff:192.168.7.9': '192.168.7.0/24',
    '::FFFF:192.168.7.9': '192.168.7.0/24',
    '2001:db8:1:2:3:4:5:6': '2001:db8:1:2::/64',
    '2001:0DB8:0001:0002:ffff::1': '2001:db8:1:2::/64',
    '2001:db8::1': '2001:db8:0:0::/64',
    '2001:db8:1::2:3:4:5': '2001:db8:1:0::/64',
    '1::2:3:4:5:6:7': '1:0:2:3::/64',
    '::1': '0:0:0:0::/64',
    '::': '0:0:0:0::/64',
    '::2:3:4:5:6:7:8': '0:2:3:4::/64',
    'fe80::1%eth0': 'fe80:0:0:0::/64',
    '64:ff9b::1.2.3.4': '64:ff9b:0:0::/64',
    '1:2:3:4:5:6:1.2.3.4': '1:2:3:4::/64',
    'not an address': 'not an address',
  };
  for (const [address, network] of Object.entries(networks))
    assert.equal(networkOf(address), network, address);
});

test('one caller: an IPv4 address, or the /64 of an IPv6 one', () => {
  const sources: Record<string, string> = {
    '192.168.7.9': '192.168.7.9',
    '::ffff:192.168.7.9': '192.168.7.9',
    '2001:db8:1:2:3:4:5:6': '2001:db8:1:2::/64',
    '': '',
  };
  for (const [address, source] of Object.entries(sources)) assert.equal(sourceOf(address), source, address);
});
