/** `npm run bench`: every figure of the cloud as a ratio to a yardstick measured in the same run. */
import { rmSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { describeMachine } from './machine.ts';
import { ATTACK } from './rows/attack.ts';
import { BILLING } from './rows/billing.ts';
import { CLIENT } from './rows/client.ts';
import { CONSOLE } from './rows/console.ts';
import { DATABASE_SERVERS } from './rows/database-servers.ts';
import { DATABASES } from './rows/databases.ts';
import { EMPTYING } from './rows/emptying.ts';
import { GROWTH } from './rows/growth.ts';
import { IDLE } from './rows/idle.ts';
import { LARGE_OBJECTS } from './rows/large-objects.ts';
import { LISTING } from './rows/listing.ts';
import { MACHINES } from './rows/machines.ts';
import { MEMORY } from './rows/memory.ts';
import { MONGODB } from './rows/mongodb.ts';
import { RECOVERY } from './rows/recovery.ts';
import { RECOVERY_KINDS } from './rows/recovery-kinds.ts';
import { RUNNING_MACHINES } from './rows/running-machines.ts';
import { S3 } from './rows/s3.ts';
import { SMALL_OBJECTS } from './rows/small-objects.ts';
import { START_UP } from './rows/start-up.ts';
import { WORKERS_BESIDE } from './rows/workers.ts';
import { renderRow, skippedRow, TABLE_HEAD } from './table.ts';
import { makeFolder, type RunOptions } from './workshop.ts';

const MEASUREMENTS = [
  ...[...SMALL_OBJECTS, ...LARGE_OBJECTS, ...LISTING, ...EMPTYING, ...IDLE, ...MEMORY, ...START_UP],
  ...[
    ...MACHINES,
    ...RUNNING_MACHINES,
    ...BILLING,
    ...DATABASES,
    ...DATABASE_SERVERS,
    ...RECOVERY,
    ...RECOVERY_KINDS,
    ...MONGODB,
    ...CONSOLE,
    ...GROWTH,
    ...WORKERS_BESIDE,
    ...S3,
    ...CLIENT,
    ...ATTACK,
  ],
];

const NAMES = MEASUREMENTS.map(({ name }) => name);
const HELP = `Usage: npm run bench -- [--quick] [--only <row>]... [--rounds <n>]

Measures every figure of the cloud on this machine and prints a Markdown table. Takes about 15 minutes, 20 GB of
disk and a machine that does nothing else.

  --quick        fewer and shorter rounds, smaller amounts: to see that it works, not to publish
  --only <row>   one of ${NAMES.join(', ')}
  --rounds <n>   of recovery, in each of which 4 GiB are copied, put into a point and restored; default: 5
`;

async function measureAll(names: readonly string[], how: Omit<RunOptions, 'folder'>): Promise<void> {
  const folder = makeFolder();
  // Also runs when the bench is interrupted; programs that it started end with it.
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
  console.log(`${await describeMachine(folder)}\n\n${TABLE_HEAD}`);
  for (const { name, run } of MEASUREMENTS.filter((measurement) => names.includes(measurement.name))) {
    try {
      for (const row of await run({ ...how, folder })) console.log(renderRow(row));
    } catch (error) {
      process.exitCode = 1;
      console.error(error);
      console.log(renderRow(skippedRow(name, '', 'the measurement failed')));
    }
  }
}

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string', multiple: true, default: [] },
    rounds: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});
const rounds = values.rounds === undefined ? undefined : Number(values.rounds);
const unknown = values.only.filter((name) => !NAMES.includes(name));
if (unknown.length > 0) {
  console.error(`bench: no row ${unknown.join(', ')}; there are ${NAMES.join(', ')}`);
  process.exitCode = 1;
} else if (rounds !== undefined && !(Number.isInteger(rounds) && rounds > 0)) {
  console.error('bench: --rounds is a whole number from 1 on');
  process.exitCode = 1;
} else if (values.help) {
  console.log(HELP);
} else {
  await measureAll(values.only.length > 0 ? values.only : NAMES, { quick: values.quick, rounds });
}
