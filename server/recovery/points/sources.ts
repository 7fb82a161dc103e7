/** Access to this cloud's own data for copying. Paths are relative to the data directory. */
import type { Reads } from '../../metadata/metadata.ts';

/** A snapshot of the metadata, while commits continue. */
export interface Snapshot {
  readonly reads: Reads;
  /** The whole database as a file. */
  bytes(): AsyncIterable<Uint8Array>;
  /** Frees its disk space. */
  remove(): Promise<void>;
}

export interface Snapshots {
  take(): Promise<Snapshot>;
  /** Removes leftovers of a killed process. */
  sweep(): Promise<void>;
}

/** One file of a component: a file on this host, or bytes from another host. */
export type SourceFile = SourceFacts & (PlainFile | OpenedFile);

export interface PlainFile {
  /** Path of the file. The file may be gone by then; symbolic links are not followed. */
  readonly absolutePath: string;
}

export interface OpenedFile {
  /** undefined: the file no longer exists. */
  open(): Promise<AsyncIterable<Uint8Array> | undefined>;
}

interface SourceFacts {
  readonly path: string;
  /** Permission bits. */
  readonly mode: number;
  /** How the file changes between points: never, in place, or by insertion. */
  readonly changes: 'never' | 'in_place' | 'by_insertion';
  /** True if it is compressed or encrypted already. */
  readonly isPacked: boolean;
  /**
   * Text that changes with every change of the file: if it is equal, a later point reuses the
   * pieces of an earlier one. Read before the file. undefined: unknown now.
   */
  readonly fingerprint?: () => string | undefined;
  /** Name for people, set if an unreadable file is a gap instead of an error. */
  readonly gap?: string;
  /** Number of attempts; default 1. */
  readonly tries?: number;
}

/** One component of a cloud: its files, as of the snapshot or later. */
export interface Source {
  readonly name: string;
  /** How consistent the files are with each other, for readers of the manifest. */
  readonly consistency: string;
  /**
   * Sort order of the files, so that those of an earlier point can be matched: by the whole path, or by the
   * last segment. Missing: no matching.
   */
  readonly order?: 'path' | 'name';
  files(snapshot: Snapshot, signal: AbortSignal): AsyncIterable<SourceFile>;
}
