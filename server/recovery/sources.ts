/** What recovery needs of this cloud's own data, to copy it. Paths are relative to the data directory. */
import type { Reads } from '../metadata/metadata.ts';

/** The metadata as of one moment, while commits go on. */
export interface Snapshot {
  readonly reads: Reads;
  /** The whole database as a file. */
  bytes(): AsyncIterable<Uint8Array>;
  /** Frees the room it takes. */
  remove(): Promise<void>;
}

export interface Snapshots {
  take(): Promise<Snapshot>;
  /** Removes what a kill left. */
  sweep(): Promise<void>;
}

/** One file of a component: a file of this host, or bytes that come from elsewhere. */
export type SourceFile = SourceFacts & (PlainFile | OpenedFile);

export interface PlainFile {
  /** Where it is. It may be gone by then; nothing is followed when it is a link. */
  readonly place: string;
}

export interface OpenedFile {
  /** Undefined: it is gone since. */
  open(): Promise<AsyncIterable<Uint8Array> | undefined>;
}

interface SourceFacts {
  readonly path: string;
  /** Permission bits. */
  readonly mode: number;
  /** How it changes from point to point: not at all, block by block, or by insertion. */
  readonly changes: 'never' | 'in_place' | 'by_insertion';
  /** It is compressed or encrypted already. */
  readonly isPacked: boolean;
  /**
   * A text that every change of it changes: a later point takes the pieces of the earlier one where it is the
   * same. Asked for before it is read. Undefined: nobody can tell now.
   */
  readonly witness?: () => string | undefined;
  /** Its name for people, when the point goes on without it should it not be readable. */
  readonly gap?: string;
  /** How often it is tried until then; once. */
  readonly tries?: number;
}

/** One part of a cloud: all its files, as of the snapshot or later. */
export interface Source {
  readonly name: string;
  /** What a reader of the manifest is told of how its files agree with each other. */
  readonly consistency: string;
  /**
   * In which order its files come, so that an earlier point's can be found again: of their whole paths, or of
   * the last segments. Missing: none is looked for.
   */
  readonly order?: 'path' | 'name';
  files(snapshot: Snapshot, signal: AbortSignal): AsyncIterable<SourceFile>;
}

/** The files of the data directory. */
export interface DataFiles {
  /** Path of the blob's file, from the data directory. */
  blobPath(blob: string): string;
  /** The folder of the files that disks are made of. */
  readonly images: string;
  /** Where a file is on this host. */
  placeOf(path: string): string;
  /** Names in a folder; none when there is no such folder. */
  list(folder: string): Promise<readonly string[]>;
}
