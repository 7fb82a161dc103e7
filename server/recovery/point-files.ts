/** Single files of recovery points, for owners who take one thing back. */
import { AppError } from '../platform/errors.ts';
import { type Entry, entriesOf, type Gap, readManifest } from './manifest.ts';
import { Damaged } from './piece-box.ts';
import type { Repository } from './repository.ts';
import { type PointRow, type RecoveryStore, SOUND } from './store.ts';

export interface PointFilesDeps {
  readonly store: Pick<RecoveryStore, 'listAt'>;
  /** Opens the repository. Throws `target_unavailable`. */
  readonly repository: () => Promise<Repository>;
  /** Path of the target. */
  readonly location: string;
}

/** A point whose data is all there, as far as is known. */
export interface SoundPoint {
  readonly pointId: string;
  /** Time of the snapshot, ms. */
  readonly createdAt: number;
  readonly gaps: readonly Gap[];
}

export interface PointFile {
  readonly sizeBytes: number;
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
   * A file of a sound point; undefined: the point does not have it. `path`: relative to the data directory.
   * Throws `data_corrupted`, `target_unavailable`.
   */
  async find(
    pointId: string,
    { component: name, path }: { readonly component: string; readonly path: string },
  ): Promise<PointFile | undefined> {
    const repository = await this.#deps.repository();
    try {
      const manifest = await repository.getManifest(pointId);
      if (manifest === undefined) return undefined;
      const component = readManifest(manifest.bytes).components.find((each) => each.name === name);
      if (component === undefined) return undefined;
      for await (const entry of entriesOf(repository, component)) {
        if (entry.path === path) return fileOf(repository, entry);
      }
      return undefined;
    } catch (error) {
      throw said(error);
    }
  }
}

function soundPoint({ point_id: pointId, created_at: createdAt, gaps }: PointRow): SoundPoint {
  return { pointId, createdAt, gaps: JSON.parse(gaps) as Gap[] };
}

function fileOf(repository: Repository, { size_bytes: sizeBytes, pieces }: Entry): PointFile {
  return {
    sizeBytes,
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
