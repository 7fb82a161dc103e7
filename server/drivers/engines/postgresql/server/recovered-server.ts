/** A copy of a server, recovered as of a moment from a base copy and the log since. */
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ServerCopy } from '../../../../databases/points/server-logs.ts';
import { AppError } from '../../../../platform/errors.ts';
import { writeDurableFile } from '../../../../platform/files.ts';
import type { HostProcesses } from '../../../host-process/host-processes.ts';
import type { ManagedServer, ServerFolders, ServerKindDeps } from '../../../managed-server/managed-server.ts';
import { makeFolder, processName } from '../../../managed-server/server-data.ts';
import { tarEntry } from '../dumps/tar-entry.ts';
import type { PostgresqlLinks } from '../postgresql-links.ts';
import type { findPrograms } from '../postgresql-programs.ts';
import { DATA } from './data-directory.ts';
import { endRecovery, type RecoveryState, recoveryState, replayedTo } from './log-archive-store.ts';
import { PostgresqlServer } from './postgresql-server.ts';
import { type PostgresqlFacts, segmentFile } from './server-log.ts';

const TAR = ['/usr/bin/tar', '/bin/tar'];
const MEMORY_MB = 256;
const POLL_MS = 100;
/** Replays at most BASE_AFTER of databases/continuous-archive.ts. */
const REPLAY_MS = 30 * 60_000;

/** The end of a replay. */
export interface RecoveryTarget {
  /** ms; null: to the end of the log. PostgreSQL fails to recover to a time beyond the log. */
  at: number | null;
}

/** Settings of a server that replays its log up to a time, then serves only us. */
export class RecoveringServer extends PostgresqlServer {
  readonly #target: RecoveryTarget;

  constructor(deps: ServerKindDeps, find: typeof findPrograms, target: RecoveryTarget) {
    super(deps, find);
    this.#target = target;
  }

  override program(folders: ServerFolders, port: number) {
    const program = super.program(folders, port);
    const { at } = this.#target;
    // Abbreviations of zones are not known yet when it is read.
    const time = at === null ? {} : { recovery_target_time: new Date(at).toISOString().replace('Z', '+00') };
    const settings = { listen_addresses: '', hot_standby: 'on', recovery_target_action: 'promote', ...time };
    const words = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    return { ...program, args: [...program.args, ...words] };
  }
}

/** Places the files of the copy where its server finds them: as the server's user, in its view. */
export async function placeCopy(
  copy: ServerCopy,
  {
    folder,
    uid,
    processes,
    signal,
  }: {
    readonly folder: string;
    readonly uid: number | null;
    readonly processes: HostProcesses;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  const facts = copy.facts as unknown as PostgresqlFacts;
  const [home, keeper] = [join(folder, 'home'), join(folder, 'keeper')];
  mkdirSync(keeper, { mode: 0o700 });
  writeDurableFile(join(keeper, 'secret'), Buffer.from(facts.secret, 'base64'), 0o600);
  makeFolder(home, uid);
  const seen = await processes.pathOf(home);
  const running = await processes.start(
    {
      name: processName('postgresql-recovery', folder),
      command: TAR.find(existsSync) ?? 'tar',
      // The server's archive ends before ours begins.
      args: ['-x', '--ignore-zeros', `--one-top-level=${DATA}`, '-f', '-', '-C', seen],
      env: { LANG: 'C.UTF-8' },
      uid,
      folder: home,
      network: 'none',
      memoryMb: MEMORY_MB,
    },
    { stdio: ['pipe', 'ignore', 'pipe'] },
  );
  const { stdin, stderr } = running.child ?? {};
  if (!stdin || !stderr) throw new Error('tar without its streams');
  const complaint = stderr.setEncoding('utf8').take(4).toArray();
  complaint.catch(() => []);
  const fed = pipeline(Readable.from(archiveOf(copy, facts)), stdin, { signal });
  const problem = await fed.then(
    () => null,
    (error: Error) => error,
  );
  if (problem !== null) await running.end({ graceMs: 0 });
  const { code } = await running.ended;
  if (problem !== null && code === null) throw problem;
  if (code !== 0)
    throw new Error(`tar ended with ${code}: ${(await complaint).join('')}`, { cause: problem });
}

interface Segment {
  readonly at: bigint;
  readonly bytes: Buffer;
}

async function* archiveOf(copy: ServerCopy, { segmentBytes }: PostgresqlFacts): AsyncGenerator<Uint8Array> {
  yield* copy.base();
  yield tarEntry('standby.signal', Buffer.alloc(0));
  const size = BigInt(segmentBytes);
  let segment: Segment | null = null;
  /** Position up to which parts exist. */
  let end = -1n;
  for await (const part of copy.log()) {
    let { from, bytes } = part;
    // An interrupted Cloudlet may have archived bytes twice.
    if (from < end) [from, bytes] = [end, bytes.subarray(Number(end - from))];
    while (bytes.length > 0) {
      const begin: bigint = from - (from % size);
      if (segment === null || segment.at !== begin) {
        if (segment !== null)
          yield tarEntry(`pg_wal/${segmentFile(segment.at, segmentBytes)}`, segment.bytes);
        segment = { at: begin, bytes: Buffer.alloc(segmentBytes) };
      }
      const within = Number(from - begin);
      const taken = bytes.copy(segment.bytes, within);
      [from, bytes] = [from + BigInt(taken), bytes.subarray(taken)];
    }
    end = from > end ? from : end;
  }
  if (segment !== null) yield tarEntry(`pg_wal/${segmentFile(segment.at, segmentBytes)}`, segment.bytes);
}

/**
 * Makes the server replay its log, with everything committed by its time and nothing later.
 * Resolves with the last replayed position.
 */
export async function recover(
  { server, links }: { readonly server: ManagedServer; readonly links: PostgresqlLinks },
  target: RecoveryTarget,
  signal: AbortSignal,
): Promise<bigint | null> {
  await server.up();
  for (let waited = 0; waited < REPLAY_MS; waited += POLL_MS) {
    signal.throwIfAborted();
    const state: RecoveryState = await links.asAdmin(recoveryState);
    if (state.isOver) return links.asAdmin(replayedTo);
    if (!state.isAtEnd) await sleep(POLL_MS);
    else if (target.at === null) await links.asAdmin(endRecovery);
    else {
      // Nothing was committed after that time.
      target.at = null;
      await server.stop();
      await server.up();
    }
  }
  throw new AppError('engine_unavailable', 'The log of the database was not replayed in time', {
    hint: 'Choose an earlier time, or a recovery point',
  });
}
