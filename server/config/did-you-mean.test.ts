import assert from 'node:assert/strict';
import { test } from 'node:test';
import { didYouMean } from './did-you-mean.ts';

const NAMES = ['versioning', 'region', 'name', 'encryption', 'CLOUDLET_PORT', 'CLOUDLET_DATA_DIR', 'tags'];

test('a slip of the keyboard is recognized', () => {
  const slips: Readonly<Record<string, string>> = {
    versionning: 'versioning', // one too many
    versoning: 'versioning', // one missing
    verzioning: 'versioning', // another
    evrsioning: 'versioning', // swapped
    Versioning: 'versioning',
    nmae: 'name',
    tag: 'tags',
    CLOUDLET_PROT: 'CLOUDLET_PORT',
    cloudlet_port: 'CLOUDLET_PORT',
    CLOUDLET_DATADIR: 'CLOUDLET_DATA_DIR',
  };
  for (const [typed, meant] of Object.entries(slips)) assert.equal(didYouMean(typed, NAMES), meant, typed);
});

test('what is far from all, or too short or long to tell, has no guess', () => {
  for (const typed of ['color', 'owner', 'CLOUDLET_FOO', 'x', '', 'a'.repeat(1e6)]) {
    assert.equal(didYouMean(typed, NAMES), undefined, typed.slice(0, 20));
  }
  assert.equal(didYouMean('name', []), undefined);
});

test('the nearest wins, the first of equals', () => {
  assert.equal(didYouMean('start', ['stars', 'starts', 'star', 'start']), 'start');
  assert.equal(didYouMean('stort', ['start', 'short']), 'start');
});
