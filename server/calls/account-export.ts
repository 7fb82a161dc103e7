/** The export of an account: each domain exports its own files, and accounts/export/ packs them. */
import type { Principal } from './principal.ts';

/** Accepts a piece, whose memory is reused when the promise settles. */
export type PieceSink = (piece: Uint8Array) => Promise<void>;

/** Bytes stored until they are read, on disk if there are many. */
export interface Spool {
  /** Throws `out_of_space`. */
  append(bytes: Uint8Array): Promise<void>;
  bytes(): AsyncIterable<Uint8Array>;
  /** Frees the disk space. A second call does nothing. */
  close(): Promise<void>;
}

export interface ExportedFile {
  /** Inside the archive: parts without `..`, with `/` between them. */
  readonly path: string;
  /** Counted in the manifest; null: a file beside the resources. */
  readonly kind: ExportedKind | null;
  /** ms since 1970. */
  readonly modifiedAt: number;
  /** null: unknown before the end. */
  readonly sizeBytes: number | null;
  /** Writes all bytes. Throws Unreadable for an entry in the manifest; any other error ends the archive. */
  read(sink: PieceSink, signal: AbortSignal): Promise<void>;
}

export const EXPORTED_KINDS = ['bucket', 'version', 'database', 'machine', 'disk'] as const;
export type ExportedKind = (typeof EXPORTED_KINDS)[number];

/** A file that cannot be exported, and why. */
export interface LeftOutFile {
  readonly path: string;
  readonly leftOut: string;
}

export interface Exporting {
  /** Owner of all exported data, with all scopes. */
  readonly owner: Principal;
  readonly wantsDisks: boolean;
  /** Whether the bytes count as traffic of the account. */
  readonly isCounted: boolean;
  readonly signal: AbortSignal;
  /** Creates a spool, which is closed at the end of the export at the latest. */
  spool(): Spool;
}

export interface ExportSource {
  files(exporting: Exporting): AsyncIterable<ExportedFile | LeftOutFile>;
}

/** Thrown by a file whose bytes cannot be read, or not to their end. The message is public. */
export class Unreadable extends Error {}

/** A small document. */
export function jsonFile(path: string, value: unknown, kind: ExportedKind | null = null): ExportedFile {
  const bytes = Buffer.from(`${JSON.stringify(value, null, 2)}\n`);
  return { path, kind, modifiedAt: 0, sizeBytes: bytes.length, read: (sink) => sink(bytes) };
}

/** A file beside the resources, read while it is written. */
export function piecesFile(path: string, pieces: () => AsyncIterable<Uint8Array>): ExportedFile {
  return {
    path,
    kind: null,
    modifiedAt: 0,
    sizeBytes: null,
    read: async (sink) => {
      for await (const piece of pieces()) await sink(piece);
    },
  };
}

/** One JSON value per line, read while it is written. */
export function linesFile(path: string, lines: () => AsyncIterable<unknown>): ExportedFile {
  return piecesFile(path, async function* () {
    for await (const line of lines()) yield Buffer.from(`${JSON.stringify(line)}\n`);
  });
}

const PART_BYTES = 200;

/**
 * A path that stays inside the folder it is unpacked in, on any system: no "..", no empty part, no
 * "\\" and no ":", which are separators on Windows; and no part is too long for a file system.
 */
export function safePath(name: string): string {
  const parts = name.split('/').map((part) => shortened(part.replace(/[\\:]/g, '_')));
  return parts.map((part) => (/^\.{0,2}$/.test(part) ? `_${part.replaceAll('.', '_')}` : part)).join('/');
}

function shortened(part: string): string {
  if (Buffer.byteLength(part) <= PART_BYTES) return part;
  // A cut inside a character leaves U+FFFD, which is removed.
  return Buffer.from(part)
    .subarray(0, PART_BYTES)
    .toString('utf8')
    .replace(/\uFFFD+$/, '');
}
