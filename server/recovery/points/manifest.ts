/**
 * The manifest of a recovery point (docs/recovery-format.md), stored sealed as `points/<point id>`, and the
 * index of each component in it.
 */
import { formatTime } from '../../platform/clock.ts';
import { Damaged } from '../repository/piece-box.ts';
import type { Repository } from '../repository/repository.ts';

/** One file of a component; a line of its index, as JSON. */
export interface Entry {
  /** Path relative to the data directory. */
  readonly path: string;
  /** Permission bits. */
  readonly mode: number;
  readonly size_bytes: number;
  readonly pieces: readonly string[];
  /** The fingerprint of the file (SourceFile), under the name used in stored points. */
  readonly witness?: string | undefined;
}

export interface Component {
  readonly name: string;
  /** How consistent the files are with each other, for people. */
  readonly consistency: string;
  readonly files: number;
  readonly size_bytes: number;
  /** Pieces of the index: all entries, one JSON text per line. */
  readonly index: readonly string[];
  /** YYYY-MM-DD HH:MM:SS, when it was read. */
  readonly read_at: string;
}

/** Data missing from the point. */
export interface Gap {
  readonly component: string;
  readonly reason: string;
}

export interface Manifest {
  readonly format: 1;
  readonly point_id: string;
  /** Name of the journal (journal.ts). Missing in points of versions without journals. */
  readonly cloud?: string;
  /** The version of Cloudlet. */
  readonly version: string;
  /** Number of the newest metadata migration. */
  readonly schema: number;
  /** Time of the metadata snapshot. */
  readonly cut_at: string;
  readonly completed_at: string;
  /** When it was due; missing: not made by the schedule. */
  readonly scheduled_at?: string;
  /** Its pieces are locked at least until then; missing: the target has no lock. */
  readonly locked_until?: string | undefined;
  readonly contents: Readonly<Record<string, number>>;
  readonly components: readonly Component[];
  readonly gaps: readonly Gap[];
  /** Data that no point includes, for people. */
  readonly not_included: readonly string[];
}

const FORMAT = 1;
const NOT_INCLUDED = [
  'memory and console logs of virtual machines',
  'settings from the environment and the command line',
  'console sessions',
  'TLS certificates and other files outside the data directory',
];

/** The row of a point; times in ms since 1970. */
interface Row {
  readonly point_id: string;
  readonly created_at: number;
  readonly scheduled_at: number | null;
  /** JSON. */
  readonly contents: string;
}

/** Facts that the row does not have. */
type Written = Omit<Manifest, 'format' | 'not_included' | 'cut_at' | keyof Row>;

/** The manifest of a complete point, in this version's format. */
export function newManifest(
  { point_id, created_at, scheduled_at, contents }: Row,
  { components, gaps, ...facts }: Written,
): Manifest {
  return {
    format: FORMAT,
    point_id,
    cut_at: formatTime(created_at),
    ...(scheduled_at === null ? {} : { scheduled_at: formatTime(scheduled_at) }),
    ...facts,
    contents: JSON.parse(contents),
    components,
    gaps,
    not_included: NOT_INCLUDED,
  };
}

/** Throws an Error with a one-line message. */
export function readManifest(bytes: Uint8Array): Manifest {
  const manifest = JSON.parse(Buffer.from(bytes).toString('utf8')) as Manifest;
  if (manifest.format === FORMAT) return manifest;
  throw new Error(`the point has format ${manifest.format}, this Cloudlet knows ${FORMAT}: use a newer one`);
}

/**
 * Entries in the order of writing. Throws Damaged, unless a callback receives the damage: then entries in or
 * across the edges of a damaged index piece are skipped.
 */
export async function* entriesOf(
  repository: Repository,
  component: Component,
  onDamaged?: (damaged: Damaged, piece: string) => void,
): AsyncGenerator<Entry> {
  /** Bytes of a line that continues in the next piece; undefined: its beginning is lost. */
  let rest: Buffer | undefined = Buffer.alloc(0);
  for (const piece of component.index) {
    try {
      for await (const bytes of repository.read([piece])) {
        const text: Buffer =
          rest === undefined ? bytes.subarray(endOfLine(bytes)) : Buffer.concat([rest, bytes]);
        const end = text.lastIndexOf(NEWLINE) + 1;
        rest = text.subarray(end);
        for (const line of text.toString('utf8', 0, end).split('\n')) {
          if (line !== '') yield JSON.parse(line) as Entry;
        }
      }
    } catch (error) {
      if (onDamaged === undefined || !(error instanceof Damaged)) throw error;
      onDamaged(error, piece);
      rest = undefined;
    }
  }
}

/** All pieces of the components, including those of their indexes. Throws Damaged. */
export async function* piecesOf(
  repository: Repository,
  components: readonly Component[],
): AsyncGenerator<string> {
  for (const component of components) {
    yield* component.index;
    for await (const { pieces } of entriesOf(repository, component)) yield* pieces;
  }
}

const NEWLINE = 10;

/** Offset of the next line. */
function endOfLine(bytes: Buffer): number {
  const at = bytes.indexOf(NEWLINE);
  return at === -1 ? bytes.length : at + 1;
}
