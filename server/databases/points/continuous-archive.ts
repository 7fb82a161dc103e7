/**
 * Continuous protection: archives the logs of the accounts' database servers in the recovery target
 * every few seconds, so that a database can be restored as of any moment (moments.ts). A server
 * never waits for it: if it is not archived for long, it loses the oldest part of its log and
 * begins a new line.
 */
import type { Alarms } from '../../platform/alarms.ts';
import type { Clock } from '../../platform/clock.ts';
import { KeyedMutex } from '../../platform/concurrency.ts';
import { randomName } from '../../platform/ids.ts';
import type { LogArchive, LogWriter } from '../../recovery/logs/log-archive.ts';
import {
  type LogBase,
  type LogLine,
  type LogLines,
  reachOf,
  wholeRuns,
} from '../../recovery/logs/log-lines.ts';
import type { LogHead } from '../../recovery/logs/log-verification.ts';
import { DumpsMissing, type Engine } from '../engine.ts';
import type { Engines } from '../engines.ts';
import { ArchiveProblems } from './archive-problems.ts';
import type { LogServer, LogState, ServerLogs } from './server-logs.ts';

export interface Continuous {
  readonly store: Pick<LogArchive, 'open' | 'putBase' | 'trim' | 'useless'>;
  readonly alarms: Pick<Alarms, 'raise' | 'clear'>;
  /** How often logs are archived, ms. */
  readonly everyMs: number;
  /** Retention of the logs, ms. */
  readonly keepMs: number;
}

export interface ContinuousDeps {
  readonly engines: Pick<Engines, 'all'>;
  /** undefined: it is off. */
  readonly continuous?: Continuous | undefined;
  readonly clock: Pick<Clock, 'now' | 'uptime'>;
  readonly onError: (databaseId: string, what: string, error: unknown) => void;
}

/** The log that a server writes and this process archives. */
interface Track {
  readonly line: string;
  readonly bases: LogBase[];
  /** Archived up to this position. */
  to: bigint;
  /** All commits until then are archived; ms. */
  at: number;
  /** The server is stopped, so no commits occur. */
  isAsleep: boolean;
  /** Bytes since the newest base copy. */
  sinceBase: bigint;
  /** The archived files are damaged: a new base copy follows. */
  isBroken: boolean;
}

const MIB = 2n ** 20n;
/** Maximum bytes per server in one round, so that other servers get their turn. */
const MOST_AT_ONCE = 256n * MIB;
const SERVERS_AT_ONCE = 4;
/**
 * A new base copy is made after this many bytes of the log, which a recovery would replay, or after
 * this time.
 */
const BASE_AFTER = 512n * MIB;
const BASE_AFTER_MS = 86_400_000;
/** Delay after a gap, or after a failed base copy. */
const PAUSE_MS = 600_000;
/**
 * Maximum bytes of the log of one server in the target: absolute, or relative to the limits of its
 * databases.
 */
const MAX_LOG = 1024n * MIB;
const MAX_LOG_TIMES = 4;
const TRIM_MS = 3_600_000;
/** Maximum time that a stopping server waits. */
const FAREWELL_MS = 5000;

const NEW = { isAsleep: false, sinceBase: 0n, isBroken: false };

interface Served {
  readonly key: string;
  readonly server: LogServer;
  readonly of: ServerLogs;
}

interface Shipped extends Served {
  readonly track: Track;
}

export class ContinuousArchive implements LogWriter {
  readonly #deps: ContinuousDeps;
  readonly #tracks = new Map<string, Track>();
  /** By server: earliest time (uptime clock) for a new log or base copy. */
  readonly #pauses = new Map<string, number>();
  readonly #problems: ArchiveProblems;
  readonly #turns = new KeyedMutex();
  readonly #closing = new AbortController();
  #basing: Promise<void> | null = null;
  #trimmedAt = Number.NEGATIVE_INFINITY;

  constructor(deps: ContinuousDeps) {
    this.#deps = deps;
    this.#problems = new ArchiveProblems(deps.clock);
    if (deps.continuous === undefined) return;
    for (const { engine, logs: of } of this.#kinds())
      of.onSleep((server) => this.#farewell({ key: keyOf(engine, server), server, of }));
  }

  get isOn(): boolean {
    return this.#deps.continuous !== undefined;
  }

  /** Throws `target_unavailable`; undefined: off, or there is no recovery point yet. */
  async logs(): Promise<LogLines | undefined> {
    return this.#deps.continuous?.store.open(this);
  }

  /** Archives what all running servers have written. Call it every few seconds. Never rejects. */
  async tick(): Promise<void> {
    const logs = await this.#open();
    const waiting = this.#kinds().flatMap(({ engine, logs: of }) =>
      of.running().map((server) => ({ key: keyOf(engine, server), server, of })),
    );
    if (logs !== undefined) {
      const shipped: Shipped[] = [];
      const work = async () => {
        for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
          const { key } = next;
          const track = await this.#ship(logs, next).catch((error) => this.#problems.note(key, error));
          if (track) shipped.push({ ...next, track });
        }
      };
      await Promise.all(Array.from({ length: SERVERS_AT_ONCE }, work));
      // The server with the oldest copy is first, so that a busy server is not always chosen.
      const due = shipped.filter((each) => this.#isBaseDue(each));
      const [first] = due.sort((one, other) => copiedAt(one) - copiedAt(other));
      if (first !== undefined) this.#baseSoon(logs, first);
      await this.#trim(logs).catch((error) => this.#deps.onError('', 'removing old logs failed', error));
    }
    if (this.#deps.continuous !== undefined) this.#problems.tell(this.#deps.continuous.alarms);
  }

  /**
   * The gapless parts of the log lines of an account's server, oldest first, with their time ranges. Throws
   * `target_unavailable`.
   */
  async lines(engine: string, accountId: number): Promise<readonly (LogLine & { readonly until: number })[]> {
    const logs = await this.logs();
    if (logs === undefined) return [];
    const key = `${engine}-${accountId}`;
    const useless = await this.#useless();
    const track = this.#tracks.get(key);
    const known = track && { ...track };
    const runs = (await logs.lines(key)).flatMap((line) => wholeRuns(key, line, useless));
    return runs.map((run) => ({ ...run, until: this.#until(run, known) }));
  }

  heads(): readonly LogHead[] {
    return [...this.#tracks].map(([server, { line, to, bases: all }]) => {
      const bases = all.slice(-1).map(({ from, at }) => ({ from: `${from}`, at }));
      return { server, line, to: `${to}`, bases };
    });
  }

  async mend(useless: ReadonlySet<string>): Promise<void> {
    const logs = await this.#open();
    for (const [key, track] of logs === undefined ? [] : this.#tracks) {
      const { line: name, to, bases } = track;
      const all = await logs?.lines(key).catch(() => undefined);
      if (all === undefined || bases.length === 0) continue;
      const line = all.find((one) => one.line === name);
      const last = line && wholeRuns(key, line, useless).at(-1);
      const base = last?.bases.at(-1);
      track.isBroken = last === undefined || base === undefined || reachOf(base, last).to < to;
    }
  }

  /** Why that account's server is not archived now; null: it is, or nothing is known. */
  problem(engine: string, accountId: number): string | null {
    return this.#problems.of(`${engine}-${accountId}`);
  }

  /** Archives everything that the account's server has written; may start the server. */
  async catchUp(engine: Engine, accountId: number): Promise<void> {
    const key = `${engine.name}-${accountId}`;
    const logs = await this.logs();
    const of = engine.serverLogs;
    if (logs === undefined || of === undefined || !of.accounts().has(accountId)) return;
    await of.using(accountId, (server) => this.#ship(logs, { key, server, of }));
  }

  /** Archives the rest and aborts a running base copy. The engines are closed afterwards. */
  async close(): Promise<void> {
    if (this.isOn) await Promise.race([this.tick(), after(FAREWELL_MS)]);
    this.#closing.abort(new Error('Cloudlet stops'));
    await this.#basing;
  }

  #kinds(): readonly { readonly engine: Engine; readonly logs: ServerLogs }[] {
    return [...this.#deps.engines.all()].flatMap((engine) => {
      const { serverLogs: logs } = engine;
      return logs === undefined ? [] : [{ engine, logs }];
    });
  }

  async #open(): Promise<LogLines | undefined> {
    try {
      const logs = await this.logs();
      this.#problems.clearAll();
      return logs;
    } catch (error) {
      this.#problems.noteAll(error);
      return undefined;
    }
  }

  #useless = async () => (await this.#deps.continuous?.store.useless()) ?? new Set<string>();

  #until(run: LogLine, track: Track | undefined): number {
    const base = run.bases.at(-1);
    if (base === undefined) return 0;
    const stored = reachOf(base, run);
    if (track?.line !== run.line || stored.to < track.to) return stored.at;
    return track.isAsleep ? this.#deps.clock.now() : Math.max(stored.at, track.at);
  }

  /** Called before an idle server stops. */
  async #farewell(served: Served): Promise<void> {
    // New connections wait for this, unless the target is unavailable.
    if (this.#problems.of(served.key) !== null) return;
    const shipping = (async () => {
      const logs = await this.#open();
      const track = logs && (await this.#ship(logs, served));
      if (track) track.isAsleep = true;
    })();
    shipping.catch((error) => this.#problems.note(served.key, error));
    await Promise.race([shipping.catch(() => {}), after(FAREWELL_MS)]);
  }

  /** The line of its archive; null: none. */
  #ship(logs: LogLines, served: Served): Promise<Track | null> {
    return this.#turns.run(served.key, async () => {
      const { key, server } = served;
      const state = await server.state();
      if (state === null) return null;
      const track = await this.#trackOf(logs, served, state);
      if (track === null) throw new Error('the archived log has a gap; a new base backup will be made soon');
      track.isAsleep = false;
      await this.#send(logs, { ...served, track, state });
      this.#problems.clear(key);
      return track;
    });
  }

  async #send(
    logs: LogLines,
    { key, server, track, state }: Served & { readonly track: Track; readonly state: LogState },
  ): Promise<void> {
    const end = state.to - track.to > MOST_AT_ONCE ? track.to + MOST_AT_ONCE : state.to;
    for (let from = track.to; from < end; from = track.to) {
      const bytes = await server.read(from, end);
      const to = from + BigInt(bytes.length);
      // Only the last part contains all commits up to that time.
      const at = to === state.to ? state.at : track.at;
      await logs.putPart(key, track.line, { from, to, at, bytes });
      track.to = to;
      track.sinceBase += to - from;
    }
    if (track.to === state.to) track.at = state.at;
    if (track.to > state.from) await server.release(track.to);
  }

  /** The log line to continue; null: none yet. */
  async #trackOf(logs: LogLines, { key, server }: Served, state: LogState): Promise<Track | null> {
    const known = this.#tracks.get(key);
    const isIt = known !== undefined && known.line === state.line;
    const track = isIt ? known : state.line === null ? null : await this.#found(logs, key, state);
    // A log whose position went backwards is a different log: older data was restored there.
    if (track !== null && !track.isBroken && track.to >= state.from && track.to <= state.to) {
      this.#tracks.set(key, track);
      return track;
    }
    if (state.line !== null || known !== undefined) {
      // Without a pause, each of many gaps in a log would cost a base copy.
      if (this.#isPaused(key)) return null;
      this.#pauses.set(key, this.#deps.clock.uptime() + PAUSE_MS);
      const what = `the archived log of ${key} has a gap, or is damaged`;
      this.#deps.onError('', what, new Error('a new base copy starts a new log'));
    }
    const line = randomName(12);
    const begun = await server.begin(line);
    const made = { ...NEW, line, bases: [], to: begun.from, at: begun.at };
    this.#tracks.set(key, made);
    return made;
  }

  /** The line as left by an earlier process. */
  async #found(logs: LogLines, key: string, { line, from }: LogState): Promise<Track | null> {
    const stored = (await logs.lines(key)).find((one) => one.line === line);
    const found = stored && wholeRuns(key, stored, await this.#useless()).at(-1);
    if (line === null || stored === undefined || found === undefined) return null;
    const base = found.bases.at(-1);
    const first = found.parts[0];
    const reach = reachOf(base ?? { from: first?.from ?? from, at: first?.at ?? 0 }, found);
    const isBroken = base === undefined && stored.bases.length > 0;
    const sinceBase = base === undefined ? 0n : reach.to - base.from;
    return { ...NEW, line, bases: [...found.bases], ...reach, sinceBase, isBroken };
  }

  #isBaseDue({ key, track: { bases, sinceBase } }: Shipped): boolean {
    const newest = bases.at(-1);
    if (this.#basing !== null || this.#closing.signal.aborted) return false;
    if (newest === undefined) return !this.#isPaused(`${key} base`);
    const age = this.#deps.clock.now() - newest.at;
    const isOld = sinceBase > BASE_AFTER || (age > BASE_AFTER_MS && sinceBase > MIB);
    return isOld && !this.#isPaused(`${key} base`);
  }

  #isPaused(what: string): boolean {
    return this.#deps.clock.uptime() < (this.#pauses.get(what) ?? 0);
  }

  /** One base copy at a time; archiving of the log continues meanwhile. */
  #baseSoon(logs: LogLines, { key, server, of, track }: Shipped): void {
    const { continuous, clock, onError } = this.#deps;
    const { signal } = this.#closing;
    const { line, to: started } = track;
    const copy = () => server.copy(signal);
    this.#basing = (async () => {
      try {
        await of.using(server.accountId, async () => {
          const base = await continuous?.store.putBase(logs, { server: key, line, copy }, signal);
          if (base !== undefined) track.bases.push(base);
        });
        track.sinceBase = track.to - started;
        await this.#trimOne(logs, key);
      } catch (error) {
        this.#pauses.set(`${key} base`, clock.uptime() + PAUSE_MS);
        if (signal.aborted) return;
        this.#problems.note(key, error);
        if (!(error instanceof DumpsMissing)) onError('', `a base copy of ${key} failed`, error);
      } finally {
        this.#basing = null;
      }
    })();
  }

  async #trim(logs: LogLines): Promise<void> {
    const { clock, continuous } = this.#deps;
    if (continuous === undefined || clock.uptime() - this.#trimmedAt < TRIM_MS) return;
    this.#trimmedAt = clock.uptime();
    for (const server of await logs.servers()) await this.#trimOne(logs, server);
    const there = this.#limits();
    for (const key of this.#tracks.keys()) if (!there.has(key)) this.#forget(key);
  }

  async #trimOne(logs: LogLines, key: string): Promise<void> {
    const { clock, continuous } = this.#deps;
    const limit = this.#limits().get(key);
    const wanted = BigInt((limit ?? 0) * MAX_LOG_TIMES);
    const maxBytes = wanted > MAX_LOG ? wanted : MAX_LOG;
    const since = clock.now() - (continuous?.keepMs ?? 0);
    await continuous?.store.trim(logs, key, { since, maxBytes, isGone: limit === undefined });
  }

  /** Size limits of all servers. */
  #limits(): ReadonlyMap<string, number> {
    const all = this.#kinds().flatMap(({ engine, logs: of }) =>
      [...of.accounts()].map(([id, bytes]) => [`${engine.name}-${id}`, bytes] as const),
    );
    return new Map(all);
  }

  #forget(key: string): void {
    this.#tracks.delete(key);
    this.#problems.clear(key);
    for (const what of [key, `${key} base`]) this.#pauses.delete(what);
  }
}

const copiedAt = ({ track }: Shipped): number => track.bases.at(-1)?.at ?? 0;

const keyOf = (engine: Engine, { accountId }: LogServer) => `${engine.name}-${accountId}`;

function after(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref());
}
