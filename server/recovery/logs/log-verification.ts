/**
 * Reads the archived logs of database servers: every base copy with its pieces, and every part of
 * the log. Missing files are detected by gaps in the lines, by the newest base copy, which lists
 * earlier files, and by the archive that writes the logs.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { AppError } from '../../platform/errors.ts';
import { type DamagedFile, PieceSet, type Verdict } from '../drill/verification.ts';
import { Damaged } from '../repository/piece-box.ts';
import { pieceFile, type Repository } from '../repository/repository.ts';
import {
  baseFile,
  filesOfLine,
  type LineExtent,
  type LogBase,
  type LogLine,
  type LogLines,
  type LogPart,
  partFile,
} from './log-lines.ts';

/** The current log of a server, with only its newest base copy. */
export interface LogHead extends LineExtent {
  readonly server: string;
}

export interface LogVerdict extends Verdict {
  readonly servers: number;
  readonly bases: number;
  readonly parts: number;
  /** Size of base copies and logs, as on the servers. */
  readonly bytes: number;
  /** Files not read for lack of time. */
  readonly unread: number;
}

/** The last verification; `at`: its end, ms. */
export interface LogReport extends LogVerdict {
  readonly at: number;
}

export interface LogVerifyOptions {
  readonly repository: Repository;
  readonly heads: readonly LogHead[];
  readonly signal: AbortSignal;
  /** Checks only the seals of pieces. */
  readonly isQuick?: boolean;
  /** Pieces already found intact; more are added. */
  readonly sound?: PieceSet;
  /** Time limit for reading files. */
  readonly isLate?: () => boolean;
}

interface Flaw extends DamagedFile {
  /** The log file that it is, or belongs to. */
  readonly owner: string;
}

const AT_ONCE = 4;
/** Maximum damaged files listed; others are counted. */
const NAMED = 1000;
/** Old logs being removed are fewer after this. */
const SETTLE_MS = 3000;

/** Throws `target_unavailable` if the whole target is missing. */
export async function verifyLogs(options: LogVerifyOptions): Promise<LogVerdict> {
  const { repository, heads } = options;
  const reading = new LogReading(options);
  const servers = new Set([...(await repository.logs.servers()), ...heads.map(({ server }) => server)]);
  for (const server of servers) await reading.server(server);
  const { flaws, bases, parts, bytes, unread } = reading;
  if (flaws.length > 0 && !(await repository.isThere())) {
    throw new AppError('target_unavailable', 'The recovery target is no longer available');
  }
  const damage = flaws.slice(0, NAMED).map(({ owner: _, ...file }) => file);
  return { servers: servers.size, bases, parts, bytes, unread, damage, damagedFiles: flaws.length };
}

/** Unusable files of logs: damaged themselves, or with damaged pieces. */
export function uselessFiles({ damage }: Pick<Verdict, 'damage'>): ReadonlySet<string> {
  return new Set(damage.flatMap(({ file, needed_by }) => [file, needed_by]));
}

class LogReading {
  bases = 0;
  parts = 0;
  bytes = 0;
  unread = 0;
  readonly flaws: Flaw[] = [];
  readonly #options: LogVerifyOptions;
  readonly #logs: LogLines;
  readonly #sound: PieceSet;
  /** The newest base copy of the server that is being read. */
  #newest: { readonly at: number; readonly earlier: readonly LineExtent[] } | undefined;

  constructor(options: LogVerifyOptions) {
    this.#options = options;
    this.#logs = options.repository.logs;
    this.#sound = options.sound ?? new PieceSet();
  }

  async server(server: string): Promise<void> {
    const flaws: Flaw[] = [];
    this.#newest = undefined;
    for (const line of await this.#logs.lines(server)) {
      const work = [...this.#baseChecks(server, line), ...this.#partChecks(server, line)];
      const each = async () => {
        for (let next = work.pop(); next !== undefined; next = work.pop()) {
          this.#options.signal.throwIfAborted();
          if (this.#options.isLate?.()) this.unread++;
          else flaws.push(...(await next()));
        }
      };
      await Promise.all(Array.from({ length: AT_ONCE }, each));
    }
    // Old files may have been removed, and new parts added, in the meantime.
    const now = await this.#logs.lines(server);
    const there = new Set(now.flatMap((line) => filesOfLine(server, line)));
    this.flaws.push(...flaws.filter(({ owner }) => there.has(owner)));
    this.flaws.push(...now.flatMap((line) => gapsOf(server, line)));
    this.flaws.push(...(await this.#lacking(server, now)));
  }

  async #lacking(server: string, now: readonly LogLine[]): Promise<Flaw[]> {
    const heads = this.#options.heads.filter((head) => head.server === server);
    const found = new Lacking(server, now);
    for (const extent of this.#newest?.earlier ?? []) found.inPast(extent);
    for (const head of heads) found.inPresent(head);
    if (found.orphans.length === 0) return found.flaws;
    await sleep(SETTLE_MS);
    const filesOf = (lines: readonly LogLine[]) => lines.flatMap((line) => filesOfLine(server, line));
    const later = new Set(filesOf(await this.#logs.lines(server)));
    const isBeingRemoved = filesOf(now).some((file) => !later.has(file));
    return isBeingRemoved ? found.flaws : [...found.flaws, ...found.orphans];
  }

  *#baseChecks(server: string, { line, bases }: LogLine) {
    for (const base of bases) {
      const owner = baseFile(server, line, base);
      yield async () => {
        const { flaw, value } = await flawOf(owner, server, () => this.#logs.readBase(server, line, base));
        if (value === undefined) return [flaw as Flaw];
        this.bases++;
        if (base.at > (this.#newest?.at ?? -1)) this.#newest = { at: base.at, earlier: value.earlier };
        this.bytes += value.sizeBytes;
        return this.#pieceFlaws(owner, value.pieces);
      };
    }
  }

  async #pieceFlaws(owner: string, pieces: readonly string[]): Promise<Flaw[]> {
    const { repository, signal, isQuick } = this.#options;
    const flaws: Flaw[] = [];
    for (const piece of pieces) {
      if (this.#sound.has(piece)) continue;
      signal.throwIfAborted();
      const damaged = await repository.check(piece, isQuick);
      if (damaged === undefined) this.#sound.add(piece);
      else flaws.push({ owner, file: pieceFile(piece), problem: damaged.problem, needed_by: owner });
    }
    return flaws;
  }

  *#partChecks(server: string, { line, parts }: LogLine) {
    for (const part of parts) {
      const owner = partFile(server, line, part);
      yield async () => {
        const { flaw } = await flawOf(owner, server, async () => {
          const { length } = await this.#logs.readPart(server, line, part);
          if (length !== sizeOf(part)) throw new Damaged(`${owner} has ${length} bytes`);
        });
        this.parts++;
        this.bytes += sizeOf(part);
        return flaw === undefined ? [] : [flaw];
      };
    }
  }
}

async function flawOf<T>(
  owner: string,
  server: string,
  read: () => Promise<T>,
): Promise<{ readonly flaw?: Flaw; readonly value?: T }> {
  try {
    return { value: await read() };
  } catch (error) {
    if (!(error instanceof Damaged)) throw error;
    return { flaw: { owner, file: owner, problem: error.problem, needed_by: logOf(server) } };
  }
}

/** Missing parts between existing ones. */
function gapsOf(server: string, { line, bases, parts }: LogLine): Flaw[] {
  const gaps: Flaw[] = [];
  let end = bases[0]?.from ?? parts[0]?.from ?? 0n;
  let at = bases[0]?.at ?? 0;
  for (const part of parts) {
    if (part.to <= end) continue;
    if (part.from > end) gaps.push(missing(server, partFile(server, line, { from: end, to: part.from, at })));
    end = part.to;
    at = part.at;
  }
  return gaps;
}

/** Finds files that were archived, have not expired, and are missing. */
class Lacking {
  readonly flaws: Flaw[] = [];
  /** Missing base copies whose log exists: damage, unless they are being removed just now. */
  readonly orphans: Flaw[] = [];
  readonly #server: string;
  readonly #lines: readonly LogLine[];
  /** Times of the existing base copies. */
  readonly #times: readonly number[];

  constructor(server: string, lines: readonly LogLine[]) {
    this.#server = server;
    this.#lines = lines;
    this.#times = lines.flatMap(({ bases }) => bases.map(({ at }) => at));
  }

  inPast(extent: LineExtent): void {
    const line = this.#lineOf(extent);
    if (line === undefined) return;
    this.#tail(line, extent);
    for (const base of basesOf(extent)) {
      if (line.bases.some(({ at }) => at === base.at)) continue;
      const flaw = this.#missing(extent.line, base);
      const kept = line.bases[0]?.from;
      // Removes the oldest base copy and the log up to the next one.
      if (this.#times.some((at) => at < base.at)) this.flaws.push(flaw);
      else if (line.parts.some(({ to }) => to > base.from && (kept === undefined || to <= kept)))
        this.orphans.push(flaw);
    }
  }

  inPresent(extent: LineExtent): void {
    const line = this.#lineOf(extent) ?? { line: extent.line, bases: [], parts: [] };
    this.#tail(line, extent);
    const newest = Math.max(-1, ...this.#times);
    for (const base of basesOf(extent))
      if (base.at > newest) this.flaws.push(this.#missing(extent.line, base));
  }

  #lineOf({ line }: LineExtent): LogLine | undefined {
    return this.#lines.find((one) => one.line === line);
  }

  #tail({ line, parts }: LogLine, extent: LineExtent): void {
    const to = BigInt(extent.to);
    // A log that has only begun has no parts yet.
    const first = parts[0]?.from ?? basesOf(extent)[0]?.from ?? to;
    const from = parts.reduce((most, part) => (part.to > most ? part.to : most), first);
    const at = parts.at(-1)?.at ?? 0;
    const file = partFile(this.#server, line, { from, to, at });
    if (from < to) this.flaws.push(missing(this.#server, file));
  }

  #missing(line: string, base: LogBase): Flaw {
    return missing(this.#server, baseFile(this.#server, line, base));
  }
}

function basesOf({ bases }: LineExtent): LogBase[] {
  return bases.map(({ from, at }) => ({ from: BigInt(from), at }));
}

const sizeOf = ({ from, to }: LogPart) => Number(to - from);
const logOf = (server: string) => `the log of ${server}`;
const missing = (server: string, file: string): Flaw => ({
  owner: file,
  file,
  problem: 'missing',
  needed_by: logOf(server),
});
