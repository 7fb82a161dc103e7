/** What a recovery point says of itself (docs/recovery-format.md): sealed, it is `points/<point id>`. */

/** One file of a component; a line of its index, as JSON. */
export interface Entry {
  /** Relative to the data directory. */
  readonly path: string;
  /** Permission bits. */
  readonly mode: number;
  readonly size_bytes: number;
  readonly pieces: readonly string[];
  /** Text that the file's next change would have changed (SourceFile). */
  readonly witness?: string | undefined;
}

export interface Component {
  readonly name: string;
  /** How its files agree with each other, for people. */
  readonly consistency: string;
  readonly files: number;
  readonly size_bytes: number;
  /** Pieces of its index: all entries, one JSON text a line. */
  readonly index: readonly string[];
  /** YYYY-MM-DD HH:MM:SS, when it was read. */
  readonly read_at: string;
}

/** Something that should be in the point and is not. */
export interface Gap {
  readonly component: string;
  readonly reason: string;
}

export interface Manifest {
  readonly format: 1;
  readonly point_id: string;
  /** Name of its journal (journal.ts). Points of Cloudlets that wrote none have none. */
  readonly cloud?: string;
  /** The version of Cloudlet. */
  readonly version: string;
  /** Number of the last migration of its metadata. */
  readonly schema: number;
  /** The moment of the metadata. */
  readonly cut_at: string;
  readonly completed_at: string;
  readonly contents: Readonly<Record<string, number>>;
  readonly components: readonly Component[];
  readonly gaps: readonly Gap[];
  /** What no point has, for people. */
  readonly not_included: readonly string[];
}

const FORMAT = 1;

/** Throws an Error of one clear line. */
export function readManifest(bytes: Uint8Array): Manifest {
  const manifest = JSON.parse(Buffer.from(bytes).toString('utf8')) as Manifest;
  if (manifest.format === FORMAT) return manifest;
  throw new Error(`the point has format ${manifest.format}, this Cloudlet knows ${FORMAT}: use a newer one`);
}
