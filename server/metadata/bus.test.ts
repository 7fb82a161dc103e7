import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Bus, type Forgotten } from './bus.ts';
import type { ResourceChange } from './metadata.ts';

const CHANGE: ResourceChange = { accountId: 1, kind: 'vm', id: 'vm-1' };

/** A bus, the messages its listeners received, and those sent to other nodes. */
function heard() {
  const bus = new Bus();
  const heard: unknown[] = [];
  const sent: unknown[] = [];
  bus.onForget('account', (id) => void heard.push(['account', id]));
  bus.onForget('price', (id) => void heard.push(['price', id]));
  bus.onChange({ tell: (change) => void heard.push(change), lost: () => void heard.push('lost') });
  const link = {
    forgets: (thing: Forgotten) => void sent.push(thing),
    changed: (change: ResourceChange) => void sent.push(change),
    close: async () => void sent.push('closed'),
  };
  return { bus, link, heard, sent };
}

test('what changed is told here at once, by kind, and to other nodes once they are connected', () => {
  const { bus, link, heard: said, sent } = heard();
  bus.forgets({ kind: 'account', id: 7 });
  bus.changed(CHANGE);
  assert.deepEqual(said, [['account', 7], CHANGE]);
  assert.deepEqual(sent, []);
  bus.connect(link);
  bus.forgets({ kind: 'price', id: '' });
  bus.forgets({ kind: 'credential', id: 'key-1' });
  bus.changed(CHANGE);
  assert.deepEqual(said.slice(2), [['price', ''], CHANGE]);
  assert.deepEqual(sent, [{ kind: 'price', id: '' }, { kind: 'credential', id: 'key-1' }, CHANGE]);
});

test('what another node tells is not told on', () => {
  const { bus, link, heard: said, sent } = heard();
  bus.connect(link);
  bus.receive({ forgets: [{ kind: 'account', id: 8 }], changes: [CHANGE] });
  assert.deepEqual(said, [['account', 8], CHANGE]);
  assert.deepEqual(sent, []);
});

test('after a loss all is forgotten, and watchers are told so', () => {
  const { bus, heard: said } = heard();
  bus.receive({ forgets: null, changes: null });
  assert.deepEqual(said, [['account', null], ['price', null], 'lost']);
  said.length = 0;
  bus.receive({ forgets: null, changes: [] });
  assert.deepEqual(said, [
    ['account', null],
    ['price', null],
  ]);
});
