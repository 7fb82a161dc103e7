/** Renames, moves and copies objects and folders: the calls and their outcomes. */
import { CloudError } from '../../../../../sdk/index.ts';
import { cloud } from '../../../cloud.ts';
import { eachOf, objectsOf, patiently, type Target } from './many.ts';

export type Relocation = 'rename' | 'move' | 'copy';

/** The target. */
export interface Place {
  readonly bucket: string;
  /** The folder as typed: with or without slashes at its ends. */
  readonly folder: string;
  /** The name of a single file or folder; not used for several. */
  readonly name: string;
}

/** One object and its new name. */
export interface Step {
  readonly id: string;
  readonly from: string;
  readonly to: string;
}

export interface Outcome {
  readonly done: readonly Step[];
  /** Names that already exist: nothing was stored. */
  readonly taken: readonly Step[];
  /** Error of the files that were not moved. */
  readonly failure: unknown;
}

/** `a/b/c.txt` → `c.txt`, `a/b/` → `b`. */
export function baseOf(name: string): string {
  return name.slice(parentOf(name).length).replace(/\/$/, '') || name;
}

/** `a/b/c.txt` → `a/b/`, `a/b/` → `a/`. */
export function parentOf(name: string): string {
  return name.slice(0, name.lastIndexOf('/', name.length - 2) + 1);
}

/** ` /photos/2026` → `photos/2026/`; empty: the top of the bucket. */
export function folderOf(typed: string): string {
  const folder = typed.trim().replace(/^\/+|\/+$/g, '');
  return folder === '' ? '' : `${folder}/`;
}

/**
 * All of them before the first call: otherwise, objects moved within their own folder would be
 * listed again. Throws CloudError.
 */
export async function stepsOf(bucket: string, targets: readonly Target[], place: Place): Promise<Step[]> {
  const folder = folderOf(place.folder);
  const steps: Step[] = [];
  for await (const { id, name, target } of objectsOf(bucket, targets)) {
    const base = targets.length === 1 ? place.name : baseOf(target.name);
    const isFolder = target.id === undefined || target.name.endsWith('/');
    const rest = name.slice(target.name.length);
    steps.push({ id, from: name, to: `${folder}${base}${isFolder ? '/' : ''}${rest}` });
  }
  return steps;
}

/** Makes the calls; `isMove`: each removes its source in the same commit. */
export async function relocate(
  steps: readonly Step[],
  { bucket, isMove, overwrite }: { bucket: string; isMove: boolean; overwrite: boolean },
): Promise<Outcome> {
  const done: Step[] = [];
  const taken: Step[] = [];
  let failure: unknown;
  await eachOf(steps, async (step) => {
    const place = { bucket, name: step.to, overwrite };
    try {
      const made = await patiently(() =>
        isMove ? cloud.moveObject(step.id, place) : cloud.copyObject(step.id, place),
      );
      done.push({ ...step, id: made.object_id });
    } catch (error) {
      if (error instanceof CloudError && error.status === 412) taken.push(step);
      else failure ??= error;
    }
  });
  return { done, taken, failure };
}
