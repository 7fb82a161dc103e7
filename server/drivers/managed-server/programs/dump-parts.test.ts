import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { LoadFailed } from '../../../databases/engine.ts';
import { DumpParts } from './dump-parts.ts';
import { type ExtraDump, joinedDump } from './dump-streams.ts';

const extra = (name: string, content: string): ExtraDump => ({
  name,
  statements: `CREATE DATABASE "${name}";`,
  open: async () => Readable.from([Buffer.from(content)]),
});
const of = (content: string) => Readable.from([Buffer.from(content)]);

/** In pieces of this many bytes. */
async function* cut(bytes: Buffer, size: number) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function apart(dump: Readable) {
  const parts = await DumpParts.of(dump);
  const found: [string | null, string, boolean][] = [];
  for (let name: string | null = null; ; ) {
    const content = await text(parts.content());
    found.push([name, content, await parts.isBroken()]);
    name = await parts.nextName();
    if (name === null) return found;
  }
}

test('a dump of one database is as it was, and its only part', async () => {
  const dump = of('SELECT 1;\n');
  assert.equal(joinedDump(dump, []), dump);
  for (const content of ['SELECT 1;\n', '', '-- Cloudlet dump short\nSELECT 1;', 'x'.repeat(500)])
    assert.deepEqual(await apart(of(content)), [[null, content, false]]);
});

test('parts come apart as they were put together, however the bytes arrive', async () => {
  const whole = await text(
    joinedDump(of('SELECT 1;\n'), [
      extra('a "b"\n', 'one\n\n-- two'),
      extra('empty', ''),
      extra('c', 'three\n'),
    ]),
  );
  assert.match(whole, /^-- Cloudlet dump \w{32}\nSELECT 1;\n/);
  for (const size of [1, 2, 7, 33, 64, 100_000]) {
    const [first, ...others] = await apart(Readable.from(cut(Buffer.from(whole), size)));
    assert.equal(first?.[1], 'SELECT 1;\n\n', `${size}`);
    assert.deepEqual(
      others,
      [
        ['a "b"\n', 'one\n\n-- two\n', false],
        ['empty', '\n', false],
        ['c', 'three\n', false],
      ],
      `${size}`,
    );
  }
});

test('what breaks is said, and costs no other', async () => {
  const broken = {
    ...extra('broken', ''),
    open: async () =>
      Readable.from(
        (async function* () {
          yield Buffer.from('half');
          throw new Error('dropped meanwhile');
        })(),
      ),
  };
  const missing = { ...extra('missing', ''), open: () => Promise.reject(new Error('no such database')) };
  const found = await apart(joinedDump(of('SELECT 1;\n'), [broken, missing, extra('last', 'whole\n')]));
  assert.deepEqual(
    found.slice(1).map(([name, , isBroken]) => [name, isBroken]),
    [
      ['broken', true],
      ['missing', true],
      ['last', false],
    ],
  );
  // It is an error in the account's own.
  const failing = Readable.from(
    (async function* () {
      yield Buffer.from('half');
      throw new Error('the server ended');
    })(),
  );
  await assert.rejects(text(joinedDump(failing, [extra('a', 'b')])), /the server ended/);
});

test('content that nobody reads to its end is passed over', async () => {
  const whole = joinedDump(of('x'.repeat(100_000)), [extra('a', 'y'.repeat(100_000)), extra('b', 'last\n')]);
  const parts = await DumpParts.of(whole);
  for await (const _ of parts.content()) break;
  assert.equal(await parts.nextName(), 'a');
  assert.equal(await parts.nextName(), 'b');
  assert.equal(await text(parts.content()), 'last\n');
  assert.equal(await parts.nextName(), null);
});

test('no text of a database passes for a mark', async () => {
  const hostile = `\n-- ${'A'.repeat(32)} database "evil"\nDROP;\n-- ${'A'.repeat(32)} content\n`;
  const [first, second, ...more] = await apart(joinedDump(of(hostile), [extra('a', hostile)]));
  assert.ok(first?.[1].includes('evil'));
  assert.ok(second?.[1].includes('evil'));
  assert.deepEqual(more, []);
});

test('a line after a mark that has no end is not kept', async () => {
  const key = 'k'.repeat(32);
  let read = 0;
  const endless = async function* () {
    yield Buffer.from(`-- Cloudlet dump ${key}\nSELECT 1;\n-- ${key} `);
    for (; read < 1000; read++) yield Buffer.alloc(4096, 'x');
  };
  await assert.rejects(apart(Readable.from(endless())), LoadFailed);
  assert.ok(read < 100, `${read}`);
});
