/** A sync of many files whose client is killed repeatedly, for the tests of the client. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CliUser } from './cli-kit.ts';

/**
 * Makes files of different lengths in folders, with names that sort differently in JavaScript and in UTF-8.
 */
function makeFiles(folder: string, count: number): void {
  for (let at = 0; at < count; at++) {
    const sub = join(folder, ['a', 'a-b', 'a.d', '\uff5e', '\u{1f600}'][at % 5] ?? '', String(at % 7));
    mkdirSync(sub, { recursive: true });
    const path = join(sub, `file ${at}.txt`);
    writeFileSync(path, `${at}\n`.repeat(1 + (at % 300)));
    utimesSync(path, 1_700_000_000 + at, 1_700_000_000.25 + at);
  }
}

/** Name → digest of every file below. */
export function digests(folder: string): Map<string, string> {
  const found = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  const named = found.map(({ parentPath, name }) => join(parentPath, name));
  return new Map(
    named.sort().map((path) => {
      return [path.slice(folder.length + 1), createHash('md5').update(readFileSync(path)).digest('hex')];
    }),
  );
}

/** Starts the command `kills` times and kills it with SIGKILL after some files; then lets it end. */
async function runKilled(
  user: CliUser,
  args: readonly string[],
  { kills, each }: { readonly kills: number; readonly each: number },
): Promise<void> {
  for (let round = 0; round < kills; round++) {
    const child = user.start(args);
    let lines = 0;
    child.stdout?.resume();
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      lines += text.split('\n').length - 1;
      if (lines >= each) child.kill('SIGKILL');
    });
    await once(child, 'close');
    assert.equal(child.signalCode, 'SIGKILL', 'it ended before it could be killed');
  }
  await user.ok([...args, '--quiet']);
}

/** In both directions, killed in each; nothing is stored twice, and all bytes and times are equal. */
export async function syncBothWays(user: CliUser, { files, kills }: { files: number; kills: number }) {
  const [from, to] = [join(user.home, 'from'), join(user.home, 'to')];
  makeFiles(from, files);
  const each = Math.floor(files / (kills + 2));
  await runKilled(user, ['sync', 'from', 's3://synced/in'], { kills, each });
  const versions = (await user.ok(['ls', '--versions', '--json', 's3://synced/'])).trim().split('\n');
  assert.equal(versions.length, files);
  await runKilled(user, ['sync', 's3://synced/in', 'to'], { kills, each });
  assert.deepEqual(digests(to), digests(from));
  for (const args of [
    ['sync', 'from', 's3://synced/in'],
    ['sync', 's3://synced/in', 'to'],
    ['sync', '--checksum', 'to', 's3://synced/in'],
  ]) {
    const { stderr } = await user.run(args);
    assert.match(stderr, new RegExp(`^0 files, .*; ${files.toLocaleString('en')} files unchanged`, 'm'));
  }
}
