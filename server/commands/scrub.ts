/** `cloudlet scrub`: verifies every stored byte now and names what is damaged. */
import { setTimeout as sleep } from 'node:timers/promises';
import { plural } from '../platform/plural.ts';
import { type Command, UsageError } from './command.ts';
import { asOperator, type CallAsOperator } from './operator-call.ts';

const HELP = `Usage: cloudlet scrub

Reads and verifies all objects, settings of buckets, databases and final dumps at full speed. The exit code is 0 if nothing is damaged, and 1 otherwise.
`;

interface Report {
  readonly running: boolean;
  readonly checked_blobs: number;
  readonly checked_bytes: number;
  readonly damaged_blobs: number;
  readonly checked_rows: number;
  readonly damaged_rows: number;
  readonly damaged: readonly {
    bucket: string;
    name: string;
    object_id: string;
    version_id: string;
    account_id: number;
  }[];
  readonly checked_buckets: number;
  readonly damaged_buckets: readonly { bucket: string; account_id: number }[];
  readonly checked_databases: number;
  readonly damaged_databases: readonly { database_id: string; problem: string }[];
}

const POLL_MS = 300;

export const SCRUB: Command = {
  help: HELP,
  run: async (config, { positionals }) => {
    if (positionals.length > 0) throw new UsageError('scrub takes no arguments; see cloudlet scrub --help');
    return asOperator(config, scrub);
  },
};

async function scrub(call: CallAsOperator): Promise<number> {
  let report = await call<Report>({ method: 'POST', path: '/api/admin/scrub' });
  while (report.running) {
    await sleep(POLL_MS);
    report = await call<Report>({ method: 'GET', path: '/api/admin/scrub' });
  }
  const damaged = [
    report.damaged_blobs,
    report.damaged_rows,
    report.damaged_buckets.length,
    report.damaged_databases.length,
  ].reduce((sum, count) => sum + count);
  console.log(
    `${plural(report.checked_blobs, 'blob')}, ${plural(report.checked_bytes, 'byte')}, ` +
      `${plural(report.checked_rows, 'object version')}, ${plural(report.checked_buckets, 'bucket')} and ` +
      `${plural(report.checked_databases, 'database')} verified; ${damaged} damaged`,
  );
  for (const { bucket, name, object_id, version_id, account_id } of report.damaged) {
    console.log(`damaged: ${bucket}/${name} (account ${account_id}, ${object_id}, ${version_id})`);
  }
  for (const { bucket, account_id } of report.damaged_buckets) {
    console.log(`damaged: settings of bucket ${bucket} (account ${account_id})`);
  }
  for (const { database_id, problem } of report.damaged_databases) {
    console.log(`damaged: database ${database_id}: ${problem}`);
  }
  return damaged === 0 ? 0 : 1;
}
