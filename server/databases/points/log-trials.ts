/** Recovers a database server to the end of its archived log, for a restore drill. */

import { formatTime } from '../../platform/clock.ts';
import { isAppError } from '../../platform/errors.ts';
import { randomBelow } from '../../platform/ids.ts';
import { plural } from '../../platform/plural.ts';
import { CheckSkipped, inMib } from '../../recovery/drill/drill-checks.ts';
import {
  type LogBase,
  type LogLine,
  type LogLines,
  reachOf,
  wholeRuns,
} from '../../recovery/logs/log-lines.ts';
import { type LogVerdict, uselessFiles } from '../../recovery/logs/log-verification.ts';
import type { Engine } from '../engine.ts';
import type { Engines } from '../engines.ts';
import type { ServerCopy } from './server-logs.ts';

/** The server of an account, as of the end of its log. */
interface Candidate {
  /** `postgresql-7`. */
  readonly server: string;
  readonly accountId: number;
  readonly engine: Engine;
  readonly run: LogLine;
  readonly base: LogBase;
}

const SERVER = /^([a-z]+)-([0-9]+)$/;
const MIB = 2 ** 20;
/** Archived files have a fixed length, and a server writes some of its own. */
const OVERHEAD_BYTES = 96 * MIB;
/**
 * A server may have flushed a page of its log in the middle of a record, which is then not replayed. Records
 * with all the pages that one can have are smaller.
 */
const RECORD_BYTES = 512n * 2n ** 10n;

export interface LogTrial {
  readonly logs: LogLines;
  readonly engines: Pick<Engines, 'all'>;
  readonly folder: { freeBytes(): Promise<number> };
  readonly verdict: LogVerdict;
}

/** Picks one server at random that fits on this host. Throws CheckSkipped if there is none. */
export async function tryLog(trial: LogTrial): Promise<string> {
  const all = await candidatesOf(trial);
  if (all.length === 0) throw new CheckSkipped('no server has a complete base copy yet');
  let refusal = '';
  while (all.length > 0) {
    const [chosen] = all.splice(randomBelow(all.length), 1);
    const tried = chosen && (await tryOne(trial, chosen));
    if (tried?.said !== undefined) return tried.said;
    refusal = tried?.refusal ?? '';
  }
  throw new CheckSkipped(`no log was replayed: ${refusal}`);
}

async function candidatesOf({ logs, engines, verdict }: LogTrial): Promise<Candidate[]> {
  const useless = uselessFiles(verdict);
  const found: Candidate[] = [];
  for (const server of await logs.servers()) {
    const [, name, id] = SERVER.exec(server) ?? [];
    const engine = [...engines.all()].find((each) => each.name === name);
    const runs = (await logs.lines(server)).flatMap((line) => wholeRuns(server, line, useless));
    const run = runs.findLast(({ bases }) => bases.length > 0);
    const base = run?.bases.at(-1);
    if (engine === undefined || run === undefined || base === undefined) continue;
    found.push({ server, accountId: Number(id), engine, run, base });
  }
  return found;
}

/** `refusal`: why it cannot be tested here. */
async function tryOne(
  { logs, folder }: LogTrial,
  { server, accountId, engine, run, base }: Candidate,
): Promise<{ readonly said?: string; readonly refusal?: string }> {
  const { available, reason } = await engine.readiness();
  const of = engine.serverLogs;
  if (!available || of === undefined) return { refusal: reason ?? `${engine.name} is not available here` };
  const { facts, sizeBytes, read } = await logs.readBase(server, run.line, base);
  const reach = reachOf(base, run);
  const parts = run.parts.filter(({ to }) => to > base.from);
  const logBytes = Number(reach.to - base.from);
  const [needed, free] = [sizeBytes + logBytes + OVERHEAD_BYTES, await folder.freeBytes()];
  if (needed > free)
    return { refusal: `${server} needs ${inMib(needed)} of disk, and only ${inMib(free)} can be used` };
  const log = async function* () {
    for (const part of parts) yield { from: part.from, bytes: await logs.readPart(server, run.line, part) };
  };
  const copy: ServerCopy = { accountId, facts, sizeBytes, base: read, log, logBytes };
  try {
    const { databases, tables, rows, to } = await of.tryToEnd(copy, new AbortController().signal);
    if (to + RECORD_BYTES < reach.to)
      throw new Error(`the log of ${server} is replayed up to ${to} only, and continues to ${reach.to}`);
    const had = `${plural(databases, 'database')}, ${plural(tables, 'table')} and ${plural(rows, 'row')} read`;
    return { said: `${server} as of the end of its log, ${formatTime(reach.at)} UTC: ${had}` };
  } catch (error) {
    if (isAppError(error) && error.code === 'engine_unavailable') return { refusal: error.message };
    throw error;
  }
}
