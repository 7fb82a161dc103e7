/**
 * Marks of deleted points that can be undeleted: empty files `deleting/<point id>`. Where a mark cannot be
 * removed, further ones follow, `.2`, `.3`, …: each reverses the one before.
 */
import { isId } from '../../platform/ids.ts';
import { NotRemovable, type Target } from '../repository/target.ts';

const FOLDER = 'deleting';
const EMPTY = Buffer.alloc(0);

export class DeletionMarks {
  readonly #target: Target;

  constructor(target: Target) {
    this.#target = target;
  }

  /** Ids of the deleted points. */
  async deleted(): Promise<string[]> {
    const counts = new Map<string, number>();
    for await (const name of this.#target.list(FOLDER)) {
      const id = pointOf(name);
      counts.set(id, (counts.get(id) ?? 0) + 1);
    }
    const isDeleted = ([id, count]: [string, number]) => isId('drp', id) && count % 2 === 1;
    return [...counts]
      .filter(isDeleted)
      .map(([id]) => id)
      .sort();
  }

  /** Files of one point. */
  async of(pointId: string): Promise<string[]> {
    const names = await Array.fromAsync(this.#target.list(FOLDER));
    return names.filter((name) => pointOf(name) === pointId).sort();
  }

  async set(pointId: string): Promise<void> {
    const marks = await this.of(pointId);
    if (marks.length % 2 === 0) await this.#add(pointId, marks.length);
  }

  async unset(pointId: string): Promise<void> {
    const marks = await this.of(pointId);
    try {
      for (const mark of marks) await this.#target.remove(mark);
      await this.#target.sync();
    } catch (error) {
      if (!(error instanceof NotRemovable)) throw error;
      if (marks.length % 2 === 1) await this.#add(pointId, marks.length);
    }
  }

  /** Throws NotRemovable. */
  async remove(pointId: string): Promise<void> {
    for (const mark of await this.of(pointId)) await this.#target.remove(mark);
  }

  async #add(pointId: string, marks: number): Promise<void> {
    const name = `${FOLDER}/${pointId}${marks === 0 ? '' : `.${marks + 1}`}`;
    await this.#target.putSynced(name, EMPTY);
  }
}

function pointOf(name: string): string {
  return name.slice(FOLDER.length + 1).replace(/\.\d+$/, '');
}
