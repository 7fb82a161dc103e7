/** `cloudlet ledger verify`: walks the whole ledger now and names the first inconsistent transfer. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type LedgerHead, LedgerWalk } from '../billing/ledger/checks-walk.ts';
import { LedgerStore } from '../billing/ledger/ledger-store.ts';
import type { Config } from '../config/config.ts';
import { readsOf } from '../drivers/metadata-postgresql/connections.ts';
import { inSnapshot } from '../drivers/metadata-postgresql/postgresql-snapshots.ts';
import { openSnapshot, SqliteReads } from '../drivers/metadata-sqlite/connection.ts';
import type { Reads } from '../metadata/metadata.ts';
import { systemClock } from '../platform/clock.ts';
import { plural } from '../platform/plural.ts';
import { type Command, UsageError } from './command.ts';
import { askServer, asOperator, type CallAsOperator, serverAnswers } from './operator-call.ts';

const HELP = `Usage: cloudlet ledger verify [--head <number>:<hash>]

Verifies every transfer of the ledger and all balances. The exit code is 0 if everything is correct, and 1 if a
transfer was changed, is missing or does not add up; the output names it.

  --head   a head printed by an earlier run; detects transfers removed from the end of the ledger since then
`;

/** Result of a ledger check from the API. */
interface Report {
  readonly running: boolean;
  readonly seconds: number | null;
  readonly checked: number;
  readonly head: { readonly seq: number; readonly hash: string };
  readonly problem: string | null;
}

type Found = Pick<Report, 'seconds' | 'head' | 'problem'>;

const PATH = '/api/admin/ledger/verify';
const POLL_MS = 100;

export const LEDGER: Command = {
  help: HELP,
  options: ['head'],
  run: async (config, { positionals, values }) => {
    if (positionals.join(' ') !== 'verify')
      throw new UsageError('ledger: expected verify; see cloudlet ledger --help');
    const head = values.head === undefined ? undefined : readHead(values.head);
    if (!(await serverAnswers(config))) return tell(await asOperator(config, (call) => ask(call, head)));
    const found = await walkBeside(config, head);
    if (found.problem === null) await askServer(config, endAlarm);
    return tell(found);
  },
};

function readHead(text: string): LedgerHead {
  const [, seq, hash] = /^(\d{1,15}):([0-9a-f]{64})$/.exec(text) ?? [];
  if (seq === undefined || hash === undefined) {
    throw new UsageError('--head must be <number>:<hash>, as printed by an earlier run');
  }
  return { seq: BigInt(seq), hash };
}

/** In this process, on one snapshot of the database, without load on the server. */
async function walkBeside({ dataDir, metadataUrl }: Config, head: LedgerHead | undefined): Promise<Found> {
  if (metadataUrl !== '') {
    return inSnapshot(metadataUrl, (client) => walkOver(readsOf(client), head));
  }
  const database = openSnapshot(dataDir);
  try {
    return await walkOver(new SqliteReads(database), head);
  } finally {
    database.close();
  }
}

async function walkOver(reads: Reads, head: LedgerHead | undefined): Promise<Found> {
  const walk = new LedgerWalk({ store: new LedgerStore(reads) });
  const began = systemClock.monotonic();
  const problem = (await walk.wholeProblem()) ?? (head ? await walk.anchorProblem(head) : null);
  const { seq, hash } = walk.head;
  const seconds = (systemClock.monotonic() - began) / 1000;
  return { problem, seconds, head: { seq: Number(seq), hash } };
}

/** Runs on a cloud opened for this command. */
async function ask(call: CallAsOperator, head: LedgerHead | undefined): Promise<Found> {
  const body = head === undefined ? {} : { head: { seq: Number(head.seq), hash: head.hash } };
  await call({ method: 'POST', path: PATH, body });
  for (;;) {
    const report = await call<Report>({ method: 'GET', path: PATH });
    if (!report.running) return report;
    await sleep(POLL_MS);
  }
}

/** Asks the server to check again, which clears the alarm of a problem that is gone. */
async function endAlarm(call: CallAsOperator): Promise<void> {
  const { running, problem } = await call<Report>({ method: 'GET', path: PATH });
  if (!running && problem !== null) await call({ method: 'POST', path: PATH, body: {} });
}

function tell({ seconds, head, problem }: Found): number {
  const speed = seconds ? `, ${Math.round(head.seq / seconds)} per second` : '';
  console.log(`${plural(head.seq, 'transfer')} verified${speed}; head ${head.seq}:${head.hash}`);
  if (seconds === null) throw new Error('the verification was aborted; see the log for the reason');
  if (problem === null) return 0;
  console.log(`inconsistent: ${problem}`);
  return 1;
}
