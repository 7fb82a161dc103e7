/** Single files of recovery points, for owners who restore single objects. */
import { AppError } from '../../platform/errors.ts';
import { Damaged } from '../repository/piece-box.ts';
import type { Repository } from '../repository/repository.ts';
import { type PointRow, type RecoveryStore, SOUND } from '../store.ts';
import { type Entry, entriesOf, type Gap, readManifest } from './manifest.ts';
import { spaceOf } from './restore.ts';

const OWNER_ONLY = 0o600;

export interface PointFilesDeps {
  readonly store: Pick<RecoveryStore, 'listAt'>;
  /** Opens the repository. Throws `target_unavailable`. */
  readonly repository: () => Promise<Repository>;
  /** Path of the target. */
  readonly location: string;
}

/** A point whose data is complete, as far as known. */
export interface SoundPoint {
  readonly pointId: string;
  /** Time of the snapshot, ms. */
  readonly createdAt: number;
  readonly gaps: readonly Gap[];
}

export interface PointFile {
  readonly sizeBytes: number;
  /** Allocated space, without holes. */
  readonly spaceBytes: number;
  /** Writes it to a file on this host, with mode 0600; its folder exists. Throws the errors of read(). */
  writeTo(path: string): Promise<void>;
  /** Verified bytes, in order. Throws `data_corrupted`, `target_unavailable`. */
  read(): AsyncIterable<Uint8Array>;
}

export class PointFiles {
  readonly #deps: PointFilesDeps;

  constructor(deps: PointFilesDeps) {
    this.#deps = deps;
  }

  /** Newest first. */
  async points(): Promise<SoundPoint[]> {
    const { store, location } = this.#deps;
    const rows = (await store.listAt(location)).filter(({ state }) => SOUND.includes(state));
    return rows.map(soundPoint).sort((one, other) => other.createdAt - one.createdAt);
  }

  /**
   * A file of an intact point; undefined: the point does not have it. `path`: relative to the data
   * directory. Throws `data_corrupted`, `target_unavailable`.
   */
  async find(
    pointId: string,
    { component, path }: { readonly component: string; readonly path: string },
  ): Promise<PointFile | undefined> {
    const found = await this.findAll(pointId, { component, paths: new Set([path]) });
    return found.get(path);
  }

  /** Finds files by path in one pass over the list of the component; missing ones are left out. */
  async findAll(
    pointId: string,
    { component: name, paths }: { readonly component: string; readonly paths: ReadonlySet<string> },
  ): Promise<Map<string, PointFile>> {
    const repository = await this.#deps.repository();
    const found = new Map<string, PointFile>();
    try {
      const manifest = await repository.getManifest(pointId);
      if (manifest === undefined || paths.size === 0) return found;
      const component = readManifest(manifest.bytes).components.find((each) => each.name === name);
      if (component === undefined) return found;
      for await (const entry of entriesOf(repository, component)) {
        if (!paths.has(entry.path)) continue;
        found.set(entry.path, fileOf(repository, entry));
        if (found.size === paths.size) break;
      }
      return found;
    } catch (error) {
      throw said(error);
    }
  }
}

function soundPoint({ point_id: pointId, created_at: createdAt, gaps }: PointRow): SoundPoint {
  return { pointId, createdAt, gaps: JSON.parse(gaps) as Gap[] };
}

function fileOf(repository: Repository, entry: Entry): PointFile {
  const { size_bytes: sizeBytes, pieces } = entry;
  return {
    sizeBytes,
    spaceBytes: spaceOf(repository, entry),
    writeTo: async (path) => {
      try {
        await repository.writeFile({ path, mode: OWNER_ONLY }, pieces);
      } catch (error) {
        throw said(error);
      }
    },
    read: async function* () {
      try {
        yield* repository.read(pieces);
      } catch (error) {
        throw said(error);
      }
    },
  };
}

function said(error: unknown): unknown {
  if (!(error instanceof Damaged)) return error;
  return new AppError('data_corrupted', 'The recovery point is damaged', {
    hint: 'Use another recovery point',
    cause: error,
  });
}
