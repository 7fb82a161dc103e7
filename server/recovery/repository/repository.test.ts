import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import { DirectoryTarget } from '../../drivers/recovery-directory/directory-target.ts';
import { randomSecret } from '../../platform/ids.ts';
import { BLOCK_BYTES, contentChunks, fixedBlocks } from './chunks.ts';
import { Damaged } from './piece-box.ts';
import { newRecoveryKey, readRecoveryKey, recoveryKeyText } from './recovery-keys.ts';
import { Repository } from './repository.ts';
import {
  createRepository,
  findRepository,
  type RepositoryKeys,
  unlockRepository,
} from './repository-head.ts';

const never = new AbortController().signal;
const MIB = 2 ** 20;
const [ONE, TWO, THREE] = ['1', '2', '3'].map((digit) => `drp-${digit.repeat(26)}`) as [
  string,
  string,
  string,
];

async function* inPieces(bytes: Buffer, step: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += step) yield bytes.subarray(at, at + step);
}

async function lengthsOf(chunks: AsyncIterable<Buffer>): Promise<Map<string, number>> {
  const lengths = new Map<string, number>();
  for await (const chunk of chunks) lengths.set(chunk.toString('latin1'), chunk.length);
  return lengths;
}

async function joined(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const all: Uint8Array[] = [];
  for await (const chunk of chunks) all.push(chunk);
  return Buffer.concat(all);
}

describe('a recovery key', () => {
  test('is read as it is written, whatever a person makes of case, spaces and dashes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), (key) => {
        const text = recoveryKeyText(key);
        assert.match(text, /^clr(-[0-9a-hjkmnp-tv-z]{7}){8}$/);
        assert.deepEqual(readRecoveryKey(text), Buffer.from(key));
        const typed = ` ${text.toUpperCase().replace(/-/g, ' ').replace(/0/g, 'O').replace(/1/g, 'l')}\n`;
        assert.deepEqual(readRecoveryKey(typed), Buffer.from(key));
      }),
    );
  });

  test('that is mistyped or cut short is refused, saying which', () => {
    const text = recoveryKeyText(newRecoveryKey());
    const other = text.at(-1) === '0' ? '1' : '0';
    assert.deepEqual(readRecoveryKey(`\ufeff${text}\r\n`), readRecoveryKey(text));
    assert.throws(() => readRecoveryKey(text.slice(0, -1) + other), /mistyped/);
    assert.throws(() => readRecoveryKey(text.slice(0, -1)), /56 letters and digits/);
    assert.throws(() => readRecoveryKey('password'), /56 letters and digits/);
  });
});

describe('chunks', () => {
  test('make the stream again, within their bounds', async () => {
    const bytes = randomSecret(9 * MIB + 17);
    for (const cut of [fixedBlocks, contentChunks]) {
      assert.deepEqual(await joined(cut(inPieces(bytes, 70_001))), bytes);
      for await (const chunk of cut(inPieces(bytes, 70_001))) {
        assert.ok(chunk.length > 0 && chunk.length <= 4 * BLOCK_BYTES);
      }
    }
    assert.equal((await joined(contentChunks(inPieces(Buffer.alloc(0), 1)))).length, 0);
  });

  test('cut by content: an inserted row changes few of them, and one is about 1 MiB', async () => {
    const bytes = randomSecret(64 * MIB);
    const changed = Buffer.concat([
      bytes.subarray(0, 10 * MIB),
      Buffer.from('one row'),
      bytes.subarray(10 * MIB),
    ]);
    const before = await lengthsOf(contentChunks(inPieces(bytes, 65_536)));
    const now = await lengthsOf(contentChunks(inPieces(changed, 65_536)));
    const fresh = [...now.keys()].filter((chunk) => !before.has(chunk));
    assert.ok(before.size > 32 && before.size < 128, `${before.size} chunks of 64 MiB`);
    assert.ok(fresh.length <= 3, `${fresh.length} chunks are new`);
  });
});

describe('a repository', () => {
  const folder = mkdtempSync(join(tmpdir(), 'cloudlet-repository-'));
  const location = join(folder, 'target');
  const target = new DirectoryTarget(location);
  const recoveryKey = newRecoveryKey();
  let keys: RepositoryKeys;
  let repository: Repository;
  const store = (bytes: Buffer, isPacked = false) =>
    repository.store(fixedBlocks(inPieces(bytes, 100_000)), { isPacked, signal: never });

  before(async () => {
    const key = randomSecret(32);
    const created = await createRepository(target, { key, recoveryKey });
    assert.deepEqual(created?.key, key);
    keys = created;
    repository = new Repository(target, keys);
  });
  after(() => rmSync(folder, { recursive: true }));

  test('is opened by the recovery key alone, and by no other', async () => {
    assert.deepEqual(await unlockRepository(target, recoveryKey), keys);
    assert.deepEqual(await findRepository(target, keys.key), keys);
    await assert.rejects(findRepository(target, randomSecret(32)), /of another cloud/);
    await assert.rejects(unlockRepository(target, newRecoveryKey()), /belongs to another repository/);
    assert.equal(await createRepository(target, { ...keys, recoveryKey }), undefined, 'there is one');
    await assert.rejects(
      unlockRepository(new DirectoryTarget(join(folder, 'none')), recoveryKey),
      /contains no recovery points/,
    );
  });

  test('keeps equal pieces once, and gives the bytes back', async () => {
    const bytes = Buffer.concat([randomSecret(3 * MIB), Buffer.alloc(2 * MIB, 7)]);
    const first = await store(bytes);
    const again = await store(bytes);
    assert.equal(first.sizeBytes, bytes.length);
    assert.equal(again.addedBytes, 0);
    assert.deepEqual(again.pieces, first.pieces);
    assert.equal(new Set(first.pieces).size, 4, 'the two blocks of one byte are one piece');
    assert.ok(first.addedBytes > 3 * MIB && first.addedBytes < 3.1 * MIB, 'the equal bytes were compressed');
    assert.deepEqual(await joined(repository.read(first.pieces)), bytes);
    const packed = await store(Buffer.alloc(MIB, 9), true);
    assert.ok(packed.addedBytes > MIB, 'what is packed already is kept as it is');
  });

  test('takes the bytes it is given, whole or as a part of others', async () => {
    for (const length of [1, 5000, 300_000, 9 * MIB]) {
      const bytes = randomSecret(length);
      const chunks = contentChunks(inPieces(bytes, length));
      const stored = await repository.store(chunks, { isPacked: false, signal: never });
      assert.deepEqual(await joined(repository.read(stored.pieces)), bytes, `${length} bytes`);
    }
  });

  test('shows no bytes, names or keys to whoever has its files', async () => {
    const secret = Buffer.from('the text that nobody may read '.repeat(100));
    await store(secret);
    await repository.putManifest(THREE, Buffer.from('{"secret":"the text"}'));
    for (const file of readdirSync(location, { recursive: true, withFileTypes: true })) {
      if (!file.isFile()) continue;
      const path = join(file.parentPath, file.name);
      assert.ok(!readFileSync(path).includes('the text'), path);
      assert.ok(!readFileSync(path).includes(keys.key), path);
      assert.equal(statSync(path).mode & 0o077, 0, path);
    }
  });

  test('any bit flipped, any file cut or exchanged is noticed, and named', async () => {
    const copy = join(folder, 'damaged');
    const stored = await store(randomSecret(2 * MIB));
    const sealed = await repository.putManifest(ONE, Buffer.from('{}'));
    cpSync(location, copy, { recursive: true });
    const other = new Repository(new DirectoryTarget(copy), keys);
    const [one = '', two = ''] = stored.pieces;
    const pathOf = (piece: string) => join(copy, 'pieces', piece.slice(0, 2), piece);
    const whole = readFileSync(pathOf(one));
    const cases: [string, Buffer][] = [
      ['cut', whole.subarray(0, -1)],
      ['empty', Buffer.alloc(0)],
      ['exchanged', readFileSync(pathOf(two))],
      ...[0, 12, 13, whole.length - 1].map((at): [string, Buffer] => {
        const flipped = Buffer.from(whole);
        flipped[at] = (flipped[at] as number) ^ 1;
        return [`flipped at ${at}`, flipped];
      }),
    ];
    for (const [what, bytes] of cases) {
      writeFileSync(pathOf(one), bytes);
      const named = (error: unknown) => error instanceof Damaged && error.message.includes(one);
      await assert.rejects(joined(other.read(stored.pieces)), named, what);
    }
    rmSync(pathOf(one));
    await assert.rejects(joined(other.read(stored.pieces)), /is missing/);
    // A manifest under the name of another one.
    writeFileSync(join(copy, 'points', TWO), sealed);
    await assert.rejects(other.getManifest(TWO), Damaged);
    assert.equal((await other.getManifest(ONE))?.bytes.toString(), '{}');
    assert.deepEqual(await other.points(), [ONE, TWO, THREE]);
  });

  test('what the target refuses is reported, and leaves no half file', async () => {
    const full = new DirectoryTarget('/dev/full/target');
    await assert.rejects(createRepository(full, { ...keys, recoveryKey }));
    const left = readdirSync(location, { recursive: true }).filter((name) =>
      String(name).includes('unfinished'),
    );
    assert.deepEqual(left, []);
  });
});
