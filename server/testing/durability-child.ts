/** The writing process of durability.test.ts. `hasty` acknowledges before COMMIT, to see the test fail. */
import { writeSync } from 'node:fs';
import { SqliteMetadata } from '../drivers/metadata-sqlite/sqlite-metadata.ts';
import { Alarms } from '../platform/alarms.ts';
import { systemClock } from '../platform/clock.ts';
import { isAppError } from '../platform/errors.ts';

const WRITERS = 16;
const [directory = '', mode = ''] = process.argv.slice(2);
const alarms = new Alarms(systemClock);
const metadata = await SqliteMetadata.open({ directory, clock: systemClock, alarms });
let next = (metadata.get<{ n: number }>('SELECT coalesce(max(checksum), 0) AS n FROM blobs')?.n ?? 0) + 1;

const put = (n: number) =>
  metadata.commit([
    { sql: 'INSERT INTO settings (name, value) VALUES (?, ?)', params: [String(n), 'v'] },
    {
      sql: 'INSERT INTO blobs (size_bytes, data, checksum) VALUES (4096, ?, ?)',
      params: [Buffer.alloc(4096, n), n],
    },
  ]);
// writeSync: acknowledgements are in the file before the kill, not in a buffer of this process.
const acknowledge = (n: number) => writeSync(1, `${n}\n`);

async function writeForever(): Promise<void> {
  for (;;) {
    const n = next++;
    if (mode === 'hasty') acknowledge(n);
    await put(n);
    if (mode === 'honest') acknowledge(n);
  }
}

/** Until 20 commits were refused; then prints the outcome as JSON. */
async function writeUntilRefused(): Promise<void> {
  const acknowledged: number[] = [];
  const codes: string[] = [];
  while (codes.length < 20 && acknowledged.length < 100) {
    const n = next++;
    await put(n).then(
      () => acknowledged.push(n),
      (error) => codes.push(isAppError(error) ? error.code : String(error)),
    );
  }
  const read = metadata.get<{ n: number }>('SELECT count(*) AS n FROM settings')?.n ?? -1;
  await metadata.close();
  const report = { acknowledged, codes, alarms: alarms.list().map((alarm) => alarm.code), read };
  writeSync(1, JSON.stringify(report));
}

if (mode === 'failing') await writeUntilRefused();
else await Promise.all(Array.from({ length: WRITERS }, writeForever));
