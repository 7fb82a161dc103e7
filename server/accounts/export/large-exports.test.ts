// A process of its own: it writes a zip of more than 4 GiB, most of it a hole.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { notInstalled } from '../../../scripts/installed.ts';
import { type ExportSource, jsonFile } from '../../calls/account-export.ts';
import { spoolsIn } from '../../drivers/spool-files.ts';
import { by, newPrincipal, openAccountFixture } from '../../testing/account-fixture.ts';
import { AccountExports } from './account-exports.ts';

const GIB = 2 ** 30;
const PIECE = Buffer.alloc(2 ** 20);
/** Reads a whole zip with another implementation: the first bad file, and the size and position of each. */
const READER = `
import json, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as z:
  files = [[i.filename, i.file_size, i.header_offset] for i in z.infolist()]
  print(json.dumps([z.testzip(), files, json.loads(z.read('MANIFEST.json'))]))
`;

let fixture: Awaited<ReturnType<typeof openAccountFixture>>;
before(async () => {
  fixture = await openAccountFixture();
});
after(() => fixture.close());

/** A file of zeros, like a mostly empty disk; null: its length is not known in advance. */
const zeros = (path: string, bytes: number, sizeBytes: number | null) => ({
  path,
  kind: 'disk' as const,
  modifiedAt: 0,
  sizeBytes,
  read: async (sink: (piece: Uint8Array) => Promise<void>) => {
    for (let left = bytes; left > 0; left -= PIECE.length) await sink(PIECE.subarray(0, left));
  },
});

/** Receives an archive and removes the zeros from the file. */
async function sparseFile(path: string) {
  const file = await open(path, 'w');
  let at = 0;
  return {
    take: async (piece: Uint8Array) => {
      if (piece.length < PIECE.length || PIECE.compare(piece) !== 0)
        await file.write(piece, 0, piece.length, at);
      at += piece.length;
    },
    close: async () => {
      await file.close();
      return at;
    },
  };
}

test('files and archives beyond 4 GiB are whole for other programs', {
  skip: notInstalled('python3'),
}, async () => {
  const sizes = { known: 4 * GIB + 5, unknown: 4 * GIB + 7 };
  const source: ExportSource = {
    async *files() {
      yield zeros('machines/a/disk.qcow2', sizes.known, sizes.known);
      yield jsonFile('between.json', { a: 1 });
      yield zeros('machines/b/disk.qcow2', sizes.unknown, null);
      yield jsonFile('last.json', { z: 1 });
    },
  };
  const exports = new AccountExports({
    ...fixture,
    checks: { assertFresh: async () => {} },
    sources: [source],
    openSpool: spoolsIn(fixture.directory, () => {}),
  });
  const owner = await newPrincipal(fixture.accounts, 'owner');
  const path = join(fixture.directory, 'large.zip');
  const file = await sparseFile(path);
  const { send } = await exports.openOwn(by(owner), true);
  const memory = process.memoryUsage().rss;
  await send(file.take, new AbortController().signal);
  assert.ok((await file.close()) > 8 * GIB);
  assert.ok(process.memoryUsage().rss - memory < 300e6, 'memory does not grow with the archive');
  const { stdout } = await promisify(execFile)('python3', ['-c', READER, path]);
  const [bad, files, manifest] = JSON.parse(stdout);
  assert.equal(bad, null);
  const found = Object.fromEntries(files.map(([name, size]: [string, number]) => [name, size]));
  assert.equal(found['machines/a/disk.qcow2'], sizes.known);
  assert.equal(found['machines/b/disk.qcow2'], sizes.unknown);
  assert.deepEqual(Object.keys(found).slice(-2), ['last.json', 'MANIFEST.json']);
  assert.equal(manifest.counts.disks, 2);
  assert.equal(manifest.files[2].bytes, sizes.unknown);
});
