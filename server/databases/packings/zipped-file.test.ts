/** Dumps in zip archives as created by phpMyAdmin, Explorer, Finder and Info-ZIP. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { crc32, deflateRawSync, gzipSync } from 'node:zlib';
import { LoadFailed } from '../engine.ts';
import { unpacked } from './packed-dumps.ts';

const PLAIN = Buffer.concat([
  Buffer.from('INSERT INTO t VALUES (1);\n'.repeat(20_000)),
  randomBytes(300_000),
]);
const DESCRIPTOR = 0x08074b50;

interface Entry {
  readonly name: string;
  readonly content: Buffer;
  readonly isStored?: boolean;
  /** Checksum and sizes after the content: 8 bytes each with ZIP64, and with a signature or without. */
  readonly descriptor?: 'near' | 'far' | 'bare';
  readonly flags?: number;
  readonly method?: number;
}

/** One file of an archive; `extra` is the extra field that Info-ZIP adds to each. */
function entry({ name, content, isStored = false, descriptor, flags = 0, method }: Entry): Buffer {
  const packed = isStored ? content : deflateRawSync(content);
  const [crc, title, extra] = [crc32(content), Buffer.from(name), Buffer.from('5554050003aabbccdd', 'hex')];
  const head = Buffer.alloc(30);
  head.writeUInt32LE(0x04034b50, 0);
  head.writeUInt16LE(20, 4);
  head.writeUInt16LE(flags | (descriptor === undefined ? 0 : 8), 6);
  head.writeUInt16LE(method ?? (isStored ? 0 : 8), 8);
  if (descriptor === undefined) {
    head.writeUInt32LE(crc, 14);
    head.writeUInt32LE(packed.length, 18);
    head.writeUInt32LE(content.length, 22);
  }
  head.writeUInt16LE(title.length, 26);
  head.writeUInt16LE(extra.length, 28);
  return Buffer.concat([head, title, extra, packed, after({ descriptor, crc, packed, content })]);
}

function after(of: {
  readonly descriptor: Entry['descriptor'];
  readonly crc: number;
  readonly packed: Buffer;
  readonly content: Buffer;
}): Buffer {
  if (of.descriptor === undefined) return Buffer.alloc(0);
  const bytes = of.descriptor === 'far' ? 8 : 4;
  const tail = Buffer.alloc(4 + 2 * bytes);
  tail.writeUInt32LE(of.crc, 0);
  tail.writeUInt32LE(of.packed.length, 4);
  tail.writeUInt32LE(of.content.length, 4 + bytes);
  const signature = Buffer.alloc(4);
  signature.writeUInt32LE(DESCRIPTOR, 0);
  return of.descriptor === 'bare' ? tail : Buffer.concat([signature, tail]);
}

/** The index, only its beginning is read. */
const INDEX = Buffer.concat([Buffer.from('PK\x01\x02'), Buffer.alloc(100), Buffer.from('PK\x05\x06')]);
const archive = (...entries: Entry[]) => Buffer.concat([...entries.map(entry), INDEX]);

async function read(bytes: Buffer, length = 60_000): Promise<Buffer> {
  async function* pieces(): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length);
  }
  const found: Uint8Array[] = [];
  for await (const piece of unpacked(pieces())) found.push(piece);
  return Buffer.concat(found);
}

const refused = (bytes: Buffer, why: RegExp) =>
  assert.rejects(read(bytes), (error: Error) => {
    assert.ok(error instanceof LoadFailed, String(error));
    assert.match(error.message, why);
    return true;
  });

test('one file is read, however it is packed and whatever follows', async () => {
  const dump = { name: 'shop.sql', content: PLAIN };
  for (const how of [
    dump,
    { ...dump, isStored: true },
    { ...dump, descriptor: 'near' as const },
    { ...dump, descriptor: 'bare' as const },
    { ...dump, descriptor: 'far' as const },
  ])
    for (const length of [60_000, 2 ** 20]) assert.ok((await read(archive(how), length)).equals(PLAIN));
  const small = archive({ name: 'a.sql', content: Buffer.from('SELECT 1;\n'), descriptor: 'near' });
  assert.equal((await read(small, 1)).toString(), 'SELECT 1;\n');
});

test('folders and notes of macOS are passed over, and a packed file inside is unpacked', async () => {
  const bytes = archive(
    { name: 'dumps/', content: Buffer.alloc(0), isStored: true },
    { name: 'dumps/shop.sql.gz', content: gzipSync(PLAIN), descriptor: 'near' },
    { name: '__MACOSX/dumps/._shop.sql.gz', content: Buffer.from('note'), descriptor: 'near' },
  );
  assert.ok((await read(bytes)).equals(PLAIN));
});

test('little is passed over: what it takes to unpack counts nowhere', async () => {
  const dump = { name: 'shop.sql', content: PLAIN };
  const note = (content: Buffer) => ({ name: '__MACOSX/._shop.sql', content });
  await refused(archive(note(Buffer.alloc(17 * 2 ** 20)), dump), /too much besides the dump/);
  await refused(
    archive(...Array.from({ length: 1001 }, () => note(Buffer.alloc(0))), dump),
    /too much besides/,
  );
  assert.ok(
    (await read(archive(...Array.from({ length: 999 }, () => note(Buffer.alloc(9))), dump))).equals(PLAIN),
  );
});

test('several files, a password, other packings and damage are refused with what to do', async () => {
  const [a, b] = [
    { name: 'a.sql', content: PLAIN },
    { name: 'b.sql', content: PLAIN },
  ];
  await refused(archive(a, b), /several files, "a\.sql" and "b\.sql": unpack the archive, and load one file/);
  await refused(archive({ ...a, flags: 1 }), /has a password: unpack it first/);
  await refused(archive({ ...a, method: 93 }), /unsupported compression: unpack it first/);
  await refused(archive({ name: 'd/', content: Buffer.alloc(0), isStored: true }), /has no file/);
  await refused(archive(a).subarray(0, 100_000), /damaged or cut off/);
  const whole = archive({ ...a, isStored: true });
  whole[200_000] = (whole[200_000] ?? 0) ^ 1;
  await refused(whole, /damaged or cut off/);
});

test('who reads no more ends it', async () => {
  const whole = archive({ name: 'a.sql', content: PLAIN });
  let isClosed = false;
  async function* closing(): AsyncGenerator<Uint8Array> {
    try {
      for (let at = 0; at < whole.length; at += 20_000) yield whole.subarray(at, at + 20_000);
    } finally {
      isClosed = true;
    }
  }
  for await (const piece of unpacked(closing())) {
    assert.ok(piece.length > 0);
    break;
  }
  assert.ok(isClosed);
});
