/**
 * The archived logs of database servers in a repository. From a base copy of a server and the log since, it
 * is recovered as of any moment (decisions/0036):
 *
 * ```
 * logs/<server>/<line>.base.<from>.<at>       a sealed list of the pieces of a base copy
 * logs/<server>/<line>.log.<from>.<to>.<at>   a part of the log, sealed
 * ```
 *
 * A line is a log without gaps; after a gap the server begins another. Positions are bytes, 16 hex digits.
 * `at`, ms in 12 hex digits: everything committed by then is in the log up to `to`, or in the base copy.
 */
import { contentChunks } from '../repository/chunks.ts';
import { Damaged, type PieceBox } from '../repository/piece-box.ts';
import type { StoredBytes } from '../repository/repository.ts';
import { NotRemovable, type Target } from '../repository/target.ts';

export interface LogPart {
  readonly from: bigint;
  readonly to: bigint;
  /** ms. */
  readonly at: number;
}

export type LogBase = Pick<LogPart, 'from' | 'at'>;

export interface LogLine {
  readonly line: string;
  /** Oldest first, here and below. */
  readonly bases: readonly LogBase[];
  readonly parts: readonly LogPart[];
}

/** Facts about a base copy that the engine needs to recover it. */
export type BaseFacts = Readonly<Record<string, unknown>>;

export interface BaseCopy {
  readonly from: bigint;
  readonly stream: AsyncIterable<Uint8Array>;
  /** Resolves once the stream has ended; `at`: when the copy was complete, ms. */
  readonly ended: Promise<{ readonly at: number; readonly facts: BaseFacts }>;
}

/**
 * Position up to which a line was archived when a later base copy was stored; later files that are
 * missing are detected by this.
 */
export interface LineExtent {
  readonly line: string;
  /** End of the line: a decimal position. */
  readonly to: string;
  readonly bases: readonly { readonly from: string; readonly at: number }[];
}

/** A base copy as stored. */
interface StoredBase {
  readonly format: 1;
  readonly facts: BaseFacts;
  readonly size_bytes: number;
  readonly pieces: readonly string[];
  /** The earlier lines of the server; missing in base copies of earlier versions. */
  readonly earlier?: readonly LineExtent[];
}

/** Retention of the log. */
export interface Keeping {
  /** Log since this time is kept, ms. */
  readonly since: number;
  /** Maximum bytes per server; above it, the oldest part is removed. */
  readonly maxBytes: bigint;
  /** The server was deleted: everything is removed after that time. */
  readonly isGone: boolean;
}

export interface LogLinesDeps {
  readonly target: Target;
  readonly box: PieceBox;
  store(
    pieces: AsyncIterable<Uint8Array>,
    how: { isPacked: boolean; signal: AbortSignal },
  ): Promise<StoredBytes>;
  read(pieces: Iterable<string>): AsyncGenerator<Buffer>;
}

const FOLDER = 'logs';
const FILE = /^([a-z0-9]+)\.(?:base\.([0-9a-f]{16})|log\.([0-9a-f]{16})\.([0-9a-f]{16}))\.([0-9a-f]{12})$/;

export class LogLines {
  readonly #deps: LogLinesDeps;

  constructor(deps: LogLinesDeps) {
    this.#deps = deps;
  }

  /** Lines of a server, oldest first. `server`: `postgresql-7`. */
  async lines(server: string): Promise<LogLine[]> {
    const lines = new Map<string, { bases: LogBase[]; parts: LogPart[] }>();
    for await (const name of this.#deps.target.list(`${FOLDER}/${server}`)) {
      const [, line = '', base, from, to, at = ''] = FILE.exec(fileOf(name)) ?? [];
      if (line === '') continue;
      const found = lines.get(line) ?? { bases: [], parts: [] };
      lines.set(line, found);
      const time = Number.parseInt(at, 16);
      if (base !== undefined) found.bases.push({ from: BigInt(`0x${base}`), at: time });
      else found.parts.push({ from: BigInt(`0x${from}`), to: BigInt(`0x${to}`), at: time });
    }
    return [...lines]
      .map(([line, { bases, parts }]) => ({ line, bases: bases.sort(byTime), parts: parts.sort(byPlace) }))
      .sort((one, other) => beginOf(one) - beginOf(other));
  }

  /** Names of all servers with archived logs. */
  async servers(): Promise<string[]> {
    const names = new Set<string>();
    for await (const name of this.#deps.target.list(FOLDER)) names.add(name.split('/')[1] ?? '');
    return [...names];
  }

  /** Durable when it resolves. */
  async putPart(server: string, line: string, part: LogPart & { readonly bytes: Uint8Array }): Promise<void> {
    const { target, box } = this.#deps;
    const name = partFile(server, line, part);
    await target.putSynced(name, await box.sealLog(name, part.bytes));
  }

  /** Throws Damaged. */
  async readPart(server: string, line: string, part: LogPart): Promise<Buffer> {
    return this.#open(partFile(server, line, part));
  }

  /** Stores a base copy. No sweep may run: its pieces are not referenced until the end. */
  async putBase(
    server: string,
    line: string,
    { copy, signal }: { readonly copy: BaseCopy; readonly signal: AbortSignal },
  ): Promise<LogBase> {
    const { target, box, store } = this.#deps;
    const { sizeBytes, pieces } = await store(contentChunks(copy.stream), { isPacked: false, signal });
    const { at, facts } = await copy.ended;
    const name = baseFile(server, line, { from: copy.from, at });
    const earlier = (await this.lines(server)).map(extentOf);
    const stored: StoredBase = { format: 1, facts, size_bytes: sizeBytes, pieces, earlier };
    await target.sync();
    await target.putSynced(name, box.sealManifest(name, Buffer.from(JSON.stringify(stored))));
    return { from: copy.from, at };
  }

  /** Throws Damaged, also while its bytes are read. */
  async readBase(server: string, line: string, base: LogBase) {
    const stored = await this.#base(baseFile(server, line, base));
    const { facts, size_bytes: sizeBytes, pieces, earlier = [] } = stored;
    return { facts, sizeBytes, pieces, earlier, read: () => this.#deps.read(pieces) };
  }

  /** Pieces of all base copies, except those with a damaged list. */
  async *pieces(): AsyncGenerator<string> {
    for await (const name of this.#deps.target.list(FOLDER)) {
      if (FILE.exec(fileOf(name))?.[2] === undefined) continue;
      try {
        yield* (await this.#base(name)).pieces;
      } catch (error) {
        if (!(error instanceof Damaged)) throw error;
      }
    }
  }

  /** Removes expired files if the credentials allow it. The rest remains recoverable. */
  async trim(server: string, keeping: Keeping): Promise<void> {
    const lines = await this.lines(server);
    for (const each of surplus(lines, keeping)) {
      // A base copy without its log is useless, so it is removed first.
      for (const name of filesOfLine(server, each)) {
        try {
          await this.#deps.target.remove(name);
        } catch (error) {
          if (error instanceof NotRemovable) return;
          throw error;
        }
      }
    }
  }

  async #base(name: string): Promise<StoredBase> {
    return JSON.parse((await this.#open(name)).toString('utf8')) as StoredBase;
  }

  async #open(name: string): Promise<Buffer> {
    const sealed = await this.#deps.target.get(name);
    if (sealed === undefined) throw new Damaged(`${name} is missing`, 'missing');
    return this.#deps.box.openManifest(name, sealed);
  }
}

function extentOf({ line, bases, parts }: LogLine): LineExtent {
  const to = parts.reduce((most, part) => (part.to > most ? part.to : most), 0n);
  return { line, to: `${to}`, bases: bases.map(({ from, at }) => ({ from: `${from}`, at })) };
}

/** The end of the gapless log that follows a base copy. */
export function reachOf(base: LogBase, { parts }: Pick<LogLine, 'parts'>): { to: bigint; at: number } {
  let [to, at] = [base.from, base.at];
  for (const part of parts) {
    if (part.from > to) break;
    if (part.to >= to) [to, at] = [part.to, Math.max(at, part.at)];
  }
  return { to, at };
}

/**
 * The parts of a line without gaps, oldest first, each with the base copies that precede its log:
 * moments in a part can be recovered only from a base copy in it.
 */
export function unbroken({ line, bases, parts }: LogLine): LogLine[] {
  const runs: { from: bigint; to: bigint; parts: LogPart[]; bases: LogBase[] }[] = [];
  for (const part of parts) {
    const last = runs.at(-1);
    if (last === undefined || part.from > last.to)
      runs.push({ from: part.from, to: part.to, parts: [part], bases: [] });
    else {
      last.parts.push(part);
      if (part.to > last.to) last.to = part.to;
    }
  }
  for (const base of bases) {
    const run = runs.findLast(({ from, to }) => from <= base.from && base.from <= to);
    // The log of a new base copy may not be stored yet.
    if (run === undefined) runs.push({ from: base.from, to: base.from, parts: [], bases: [base] });
    else run.bases.push(base);
  }
  runs.sort((one, other) => (one.from < other.from ? -1 : 1));
  return runs.map((run) => ({ line, bases: run.bases, parts: run.parts }));
}

/** Names of the files of a line, in the repository. */
export function filesOfLine(server: string, { line, bases, parts }: LogLine): string[] {
  return [
    ...bases.map((base) => baseFile(server, line, base)),
    ...parts.map((part) => partFile(server, line, part)),
  ];
}

/** See unbroken(), for the line without these files. */
export function wholeRuns(server: string, of: LogLine, without: ReadonlySet<string>): LogLine[] {
  const { line, bases, parts } = of;
  return unbroken({
    line,
    bases: bases.filter((base) => !without.has(baseFile(server, line, base))),
    parts: parts.filter((part) => !without.has(partFile(server, line, part))),
  });
}

/** The files that trim() removes: all before the first base copy that is kept. */
export function surplus(lines: readonly LogLine[], { since, maxBytes, isGone }: Keeping): readonly LogLine[] {
  const newest = Math.max(
    ...lines.map(({ bases, parts }) => Math.max(bases.at(-1)?.at ?? 0, parts.at(-1)?.at ?? 0)),
  );
  if (isGone && newest < since) return lines;
  const all = lines.flatMap((of) => of.bases.map((base) => ({ of, base })));
  const first = all.findLastIndex(({ base }) => base.at <= since);
  const sizeFrom = (at: number) => {
    const { of, base } = all[at] as (typeof all)[number];
    const later = lines.slice(lines.indexOf(of));
    const parts = later.flatMap((line) =>
      line === of ? line.parts.filter(({ to }) => to > base.from) : line.parts,
    );
    return parts.reduce((sum, { from, to }) => sum + to - from, 0n);
  };
  let keep = Math.max(0, first);
  while (keep < all.length - 1 && sizeFrom(keep) > maxBytes) keep++;
  const kept = all[keep];
  if (kept === undefined) return lines.slice(0, -1);
  const at = lines.indexOf(kept.of);
  const { line, bases, parts } = kept.of;
  const before = {
    line,
    bases: bases.filter((base) => base !== kept.base && base.at <= kept.base.at),
    parts: parts.filter(({ to }) => to <= kept.base.from),
  };
  return [...lines.slice(0, at), before];
}

const byTime = (one: LogBase, other: LogBase) => one.at - other.at;
const byPlace = (one: LogPart, other: LogPart) =>
  one.from === other.from ? Number(one.to - other.to) : one.from < other.from ? -1 : 1;
const beginOf = ({ bases, parts }: LogLine) => Math.min(bases[0]?.at ?? Infinity, parts[0]?.at ?? Infinity);
const place = (position: bigint) => position.toString(16).padStart(16, '0');
const time = (at: number) => at.toString(16).padStart(12, '0');
const fileOf = (name: string) => name.slice(name.lastIndexOf('/') + 1);
/** Path in the repository, here and below. */
export const partFile = (server: string, line: string, { from, to, at }: LogPart) =>
  `${FOLDER}/${server}/${line}.log.${place(from)}.${place(to)}.${time(at)}`;
export const baseFile = (server: string, line: string, { from, at }: LogBase) =>
  `${FOLDER}/${server}/${line}.base.${place(from)}.${time(at)}`;
