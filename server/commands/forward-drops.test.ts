import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { notInstalled } from '../../scripts/installed.ts';
import { forwardDrop } from './doctor/doctor-network.ts';

const isRoot = process.getuid?.() === 0;
const skip = notInstalled('nft') || (isRoot ? false : 'network namespaces need root');

/** The output of nft in a network namespace with these rules. */
function rulesetWith(rules: string): string {
  const words = ['--net', 'sh', '-c', 'nft -f - && nft -j list ruleset'];
  const { status, stdout, stderr } = spawnSync('unshare', words, { input: rules, encoding: 'utf8' });
  assert.equal(status, 0, stderr);
  return stdout;
}

const DROPPING = 'chain FORWARD { type filter hook forward priority filter; policy drop; }';

test('a chain of Docker, ufw or another that drops what is forwarded is found, with the rule', {
  skip,
}, () => {
  const open =
    'table ip filter { chain FORWARD { type filter hook forward priority filter; policy accept; }; }';
  assert.equal(forwardDrop(rulesetWith(open), 'br0'), null);
  assert.equal(forwardDrop(rulesetWith(`table ip cloudlet_1 { ${DROPPING}; }`), 'br0'), null);
  const plain = forwardDrop(rulesetWith(`table ip filter { ${DROPPING}; }`), 'br0');
  assert.equal(plain?.chain, 'ip filter FORWARD');
  assert.match(
    plain?.fix ?? '',
    /^nft insert rule ip filter FORWARD iifname br0 accept && .* oifname br0 accept$/,
  );
  const docker = forwardDrop(rulesetWith(`table ip filter { ${DROPPING}; chain DOCKER-USER {}; }`), 'br0');
  assert.match(docker?.fix ?? '', /^nft insert rule ip filter DOCKER-USER iifname br0 accept && /);
  const ufw = forwardDrop(rulesetWith(`table ip filter { ${DROPPING}; chain ufw-user-forward {}; }`), 'br0');
  assert.match(ufw?.fix ?? '', /^ufw route allow in on br0/);
  const mended = (plain?.fix ?? '').replaceAll('nft ', '').replaceAll(' && ', '\n');
  assert.equal(forwardDrop(rulesetWith(`table ip filter { ${DROPPING}; }\n${mended}\n`), 'br0'), null);
});
